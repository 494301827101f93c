// What Redis has to hold, given the state of the model: every key but the figures of the minutes, which are compared as sums.
import { fromWire, json, looseBale, Meaning, packed, sheaf } from './foretold.js';
import type { Foretold, Moment } from './foretold.js';
import { compareText, packedOf } from './state.js';
import type { Session, State } from './state.js';

export const layout = '2';

/** A key of Redis and what it has to hold. `ends` says whether it has to have an expiry. */
export interface KeyContents {
  kind: 'hash' | 'list' | 'zset' | 'set' | 'string' | 'stream';
  ends: boolean | 'either';
  value: Map<string, Foretold> | Foretold[];
}

/** Empty keys do not exist in Redis. */
export function keysOf(state: State): Map<string, KeyContents> {
  const keys = new Map<string, KeyContents>();
  const hash = (name: string, value: Map<string, Foretold>, ends: KeyContents['ends'] = false) => {
    if (value.size > 0) keys.set(name, { kind: 'hash', value, ends });
  };
  const zset = (name: string, value: Map<string, Foretold>) => {
    if (value.size > 0) keys.set(name, { kind: 'zset', value, ends: false });
  };
  const list = (name: string, value: Foretold[], ends: KeyContents['ends'] = false) => {
    if (value.length > 0) keys.set(name, { kind: 'list', value, ends });
  };
  hash('cfg', cfgFields(state));
  const stored = new Map<string, Foretold>(state.tombstones);
  for (const [id, job] of state.jobs) stored.set(id, packedOf(job));
  for (const [name, { ids, loose, head }] of state.bales) {
    stored.set(name, loose ? looseBale(head, ids) : state.packedBale(name));
    if (!loose) for (const id of ids) stored.delete(id);
  }
  hash('jobs', stored);
  state.waits.forEach((ids, priority) => list(`wait:${priority}`, state.entriesOf(ids)));
  zset('delayed', state.delayed);
  list('suspects', state.suspects);
  list('inbox', state.inbox);
  list('wake', state.wake ? ['1'] : []);
  const sessions = new Map<string, Foretold>();
  const rescuing = new Map<string, Foretold>();
  for (const [name, session] of state.sessions) {
    (session.live ? sessions : rescuing).set(name, session.at);
    hash(`active:${name}`, activeFields(state, session));
    hash(`lanes:${name}`, laneFields(session));
  }
  zset('sessions', sessions);
  zset('rescuing', rescuing);
  for (const [name, lanes] of state.producers) {
    const fields = new Map<string, Foretold>();
    for (const [lane, { seq, answer }] of lanes) {
      fields.set(lane, seq);
      if (answer) fields.set(`${lane}:answer`, packed([answer.seq, answer.words]));
    }
    hash(`producer:${name}`, fields, true);
  }
  for (const [key, { id, ends }] of state.uniques)
    keys.set(`unique:${key}`, { kind: 'string', value: [id], ends });
  hash('groups', state.groups);
  for (const [name, members] of state.grouped) zset(`group:${name}`, members);
  list('fresh', state.fresh);
  list('ring', state.ring);
  hash('group-active', mapValues(state.groupActive, String));
  for (const [name, times] of state.groupRate) list(`group-rate:${name}`, times.map(String), true);
  zset('parked', state.parked);
  list('rate', state.rate.map(String), true);
  hash(
    'blocked',
    mapValues(state.blocked, ({ policy }) => policy),
  );
  for (const [id, { refs }] of state.blocked) {
    keys.set(`deps:${id}`, { kind: 'set', value: [...refs].sort(compareText), ends: false });
  }
  hash(
    'dependents',
    mapValues(state.dependents, (targets) => json(targets.map(fromWire))),
  );
  list(
    'chained',
    state.chained.map((notice) => json(mapNotice(notice))),
  );
  hash(
    'chains',
    mapValues(state.chains, ({ kept, spec }) => keptSpec(kept, spec)),
  );
  zset(
    'chains-due',
    mapValues(state.chains, ({ due }) => due),
  );
  zset(
    'ended',
    mapValues(state.ended, ({ until }) => until),
  );
  const results = mapValues(state.ended, ({ result }): Foretold => result);
  for (const [id, { labels }] of state.ended) if (labels !== undefined) results.set(`#${id}`, labels);
  hash('results', results);
  hash('progress', state.progress);
  for (const [id, { lines, ends }] of state.logs) list(`logs:${id}`, lines, ends);
  for (const [id, entries] of state.tries) list(`tries:${id}`, entries);
  addDeadKeys(state, hash, zset);
  const operationText = ({ began, moved }: { began: Moment; moved: number }) =>
    momentAndRest(began, ` ${moved}`);
  hash('replays', mapValues(state.operations, operationText));
  hash('schedules', state.schedules);
  zset('ticks', state.ticks);
  if (state.happened.length > 0) keys.set('events', { kind: 'stream', value: state.happened, ends: false });
  return keys;
}

function cfgFields(state: State): Map<string, Foretold> {
  const fields = new Map<string, Foretold>();
  const set = (name: string, value: Foretold | undefined) => {
    if (value !== undefined) fields.set(name, value);
  };
  if (state.partitions !== undefined) {
    set('partitions', state.partitions);
    set('layout', layout);
  }
  if (state.token !== '') set('token', state.token);
  if (state.hasTurn) {
    const bits = (state.oddToGroups ? 16 : 0) + (state.ringFirst ? 32 : 0) + (state.newestFirst ? 64 : 0);
    set('turn', String(state.listTurn + bits));
  }
  if (state.hasRules) set('rules', json({ ...state.rules }));
  set('events', state.events === undefined ? undefined : String(state.events));
  set('watch', state.watch);
  set('renewed', state.renewed);
  set('graceUntil', state.graceUntil);
  if (state.nurse) set('nurse', `${state.nurse.session} ${state.nurse.until}`);
  if (state.order > 0) set('order', String(state.order));
  if (state.held > 0) set('held', String(state.held));
  if (state.tombstones.size > 0) set('tombstones', String(state.tombstones.size));
  const loose = [...state.bales.values()].filter((bale) => bale.loose);
  if (loose.length > 0) set('loose', String(loose.reduce((sum, { ids }) => sum + ids.length, 0)));
  state.waits.forEach((ids, priority) => {
    const beyond = ids.length - state.entriesOf(ids).length;
    if (beyond > 0) set(`baled${priority}`, String(beyond));
  });
  if (state.inboxTaken > 0) set('inboxTaken', String(state.inboxTaken));
  if (state.retention) set('retention', json({ ...state.retention }));
  return fields;
}

function addDeadKeys(
  state: State,
  hash: (name: string, value: Map<string, Foretold>) => void,
  zset: (name: string, value: Map<string, Foretold>) => void,
): void {
  zset(
    'dead',
    mapValues(state.dead, ({ died }) => died),
  );
  hash(
    'dead-info',
    mapValues(state.dead, ({ print, detail }) => packed([print, detail])),
  );
  const byPrint = new Map<string, Map<string, Foretold>>();
  for (const [id, { print, died }] of state.dead) {
    byPrint.set(print, (byPrint.get(print) ?? new Map<string, Foretold>()).set(id, died));
  }
  zset(
    'dead-groups',
    mapValues(byPrint, ({ size }) => size),
  );
  for (const [print, members] of byPrint) zset(`dead-group:${print}`, members);
  hash('dead-titles', state.titles);
}

function activeFields(state: State, { live, description, lanes, active }: Session): Map<string, Foretold> {
  const fields = new Map<string, Foretold>(active);
  if (!live) return fields;
  fields.set('#', description);
  for (const [lane, { seq, token, alone, tied }] of lanes) {
    const said = `${seq}:${token}${alone ? ':alone' : ''}`;
    const ids = [...active].filter(([, held]) => held === token).map(([id]) => id);
    fields.set(lane, tied ? sheaf(`${said}=${ids.length}`, state.entriesOf(ids)) : said);
    if (tied) for (const id of ids) fields.delete(id);
  }
  return fields;
}

function laneFields({ said, cancelled, worker, drain }: Session): Map<string, Foretold> {
  const fields = new Map<string, Foretold>();
  for (const [lane, answer] of said) {
    fields.set(lane, packed([answer.seq, answer.refused, answer.special, answer.cancelled]));
  }
  if (cancelled.length > 0) fields.set('cancelled', packed(cancelled));
  if (worker !== undefined) fields.set('worker', worker);
  if (drain !== undefined) fields.set('drain', drain);
  return fields;
}

function mapNotice({ target, id, outcome }: { target: string; id: string; outcome: string }): object {
  return { target: fromWire(target), id: fromWire(id), outcome };
}

export function keptSpec(kept: Moment, spec: string): Foretold {
  return momentAndRest(kept, ` ${spec}`);
}

/** A time and a text in one field. */
function momentAndRest(moment: Moment, rest: string): Foretold {
  return new Meaning([moment, rest], (actual) => {
    const at = actual.indexOf(' ');
    return [Number(actual.slice(0, at)), actual.slice(at)];
  });
}

function mapValues<V>(map: Map<string, V>, change: (value: V) => Foretold): Map<string, Foretold> {
  return new Map([...map].map(([name, value]) => [name, change(value)]));
}
