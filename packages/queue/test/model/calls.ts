// Every script of the queue, called as its real callers do it. After each call three judges look: the model says what the
// reply and the keys have to be, the ledger says what must hold in any case, and a reply that is neither is an error.
//
// Sabotage takes the model away (its scripts are wrong on purpose) and keeps the ledger.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { RedisLink, Script, ScriptArgument } from '@sluice/redis';
import { partitionKeys } from '../../src/keys.js';
import type { PartitionKeys } from '../../src/keys.js';
import { Partition, RedisClock } from '../../src/partition.js';
import { scripts } from '../../src/scripts.js';
import { pack } from '../../src/wire.js';
import type { WireValue } from '../../src/wire.js';
import { Moment, plainReply, show, unpack, whyNot } from './foretold.js';
import type { Foretold } from './foretold.js';
import { Ledger, Violation } from './invariants.js';
import type { ClaimCall } from './claiming.js';
import { layout } from './keys.js';
import type { Model, NewItem, RetryItem, SettleItem } from './model.js';
import { compareText, flag, jobsUnder, packedOf } from './state.js';
import type { ModelJob } from './state.js';
import { readSnapshot, whySnapshotDiffers } from './snapshot.js';
import type { Snapshot } from './snapshot.js';

export type ScriptName = keyof typeof scripts;
export const rememberMs = 600_000;
export const leaseMs = 1_000_000;
/** Nothing that a test waits for: whatever has to end is ended by hand. */
const prefix = 't';
const queueName = 'q';

/** Scripts with other texts than the real ones. */
export type Variants = Partial<Record<ScriptName, Script>>;

/** Whether the caller hears the answer, or whether it is a late copy of a call whose sender is gone. */
export type Hearing = 'heard' | 'lost' | 'echo';

interface Limits {
  maxActive?: number;
  keyMaxActive?: number;
}

interface Judges {
  foretell: (model: Model, now: Moment, reply: unknown) => Foretold;
  hear?: (ledger: Ledger, reply: unknown, nowMs: number) => void;
  given?: (reply: unknown) => string[];
  /** It only reads: if it should write, the next look at the keys will show it. */
  reads?: true;
}

/** Two workers have all the sessions. */
export function workerOf(session: string): string {
  return `w${Number(session.slice(-1)) % 2}`;
}

export class Calls {
  readonly link: RedisLink;
  readonly partition: Partition;
  readonly model: Model | undefined;
  readonly ledger = new Ledger();
  /** Told which script answered what. */
  tell: (name: ScriptName, reply: unknown) => void = () => {};
  readonly #base: string;
  readonly #variants: Variants;
  /** What the server has seen since its memory of scripts was last emptied. */
  readonly #loaded = new Set<string>();
  #limits: Limits = {};
  snapshot: Snapshot = new Map();
  /** Whether the keys are looked at after each call. */
  looks = true;
  count = 0;

  constructor(link: RedisLink, model: Model | undefined, variants: Variants = {}) {
    const keys = partitionKeys(prefix, queueName, 0);
    this.link = link;
    this.partition = new Partition(0, keys, link, new RedisClock());
    this.#base = keys.cfg.slice(0, -'cfg'.length);
    this.model = model;
    this.#variants = variants;
  }

  get keys(): PartitionKeys {
    return this.partition.keys;
  }

  // ── Adding ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  declare(partitions: number): Promise<unknown> {
    return this.#run(
      'declare',
      { partitions, layout },
      {
        foretell: (model, now, reply) => model.declare(String(partitions), timeIn(now, reply, 1)),
      },
    );
  }

  /** `bales`: which of the jobs lie together, by name. */
  add(
    producer: string,
    lane: string,
    seq: number,
    jobs: ModelJob[],
    bales = new Map<string, string[]>(),
  ): Promise<unknown> {
    const priorities = [...new Set(jobs.map(({ priority }) => priority))];
    const entries = packedEntries(jobs, bales);
    const priority = priorities.length === 1 ? priorities[0]! : '';
    const baled = jobs.length - entries.length / 2;
    const args = { lane, seq, rememberMs, entries: wirePack(entries), priority, baled };
    const copies = () => new Map([...bales].map(([name, ids]) => [name, [...ids]]));
    return this.#run(
      'add',
      args,
      {
        foretell: (model, now, reply) =>
          model.add(producer, lane, seq, jobs.map(copy), copies(), timeIn(now, reply, 1)),
        hear: (ledger, reply) => {
          if (word(reply) !== 'OK') return;
          for (const job of jobs) ledger.accepted(job.id, job.payload, job.priority, true);
        },
      },
      this.#producerKeys(producer),
    );
  }

  addEach(
    producer: string,
    lane: string,
    seq: number,
    items: NewItem[],
    inbox = { taken: 0, count: 0 },
  ): Promise<unknown> {
    const rows = items.map((item): WireValue => [
      ...[item.id, packedOf(item.job), item.own ? 1 : 0, String(item.delay), String(item.runAt)],
      ...[item.unique, String(item.window), item.refs, item.policy, item.detail, item.print, item.title],
    ]);
    const { taken: inboxTaken, count: inboxCount } = inbox;
    const args = { lane, seq, rememberMs, items: wirePack(rows), inboxTaken, inboxCount };
    const copies = () => items.map((item) => ({ ...item, job: copy(item.job) }));
    return this.#run(
      inbox.count > 0 ? 'intake' : 'addEach',
      args,
      {
        foretell: (model, now, reply) =>
          model.addEach(producer, lane, seq, copies(), inbox, timeIn(now, reply, 1)),
        hear: (ledger, reply) => {
          if (word(reply) !== 'OK') return;
          if (inbox.count > 0) ledger.taken(items.map(({ job }) => job.payload));
          const words = (reply as [string, number, string[]])[2];
          items.forEach(({ job, delay, runAt, refs, detail }, i) => {
            if (words[2 * i] !== 'ADDED') return;
            const ordered = delay === '' && runAt === '' && refs.length === 0 && detail === '';
            ledger.accepted(job.id, job.payload, job.priority, ordered && !(job.flags & 32));
          });
        },
      },
      this.#producerKeys(producer),
    );
  }

  #producerKeys(producer: string): PartitionKeys {
    return { ...this.keys, producer: this.keys.producer + producer };
  }

  // ── Sessions ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  open(session: string, draining = false): Promise<unknown> {
    const about = { id: workerOf(session), name: `worker of ${session}` };
    const description = JSON.stringify(about).padEnd(80);
    return this.#run(
      'open',
      { session, leaseMs, description, draining: draining ? '1' : '0' },
      {
        foretell: (model, now, reply) =>
          model.open(session, leaseMs, description, draining, timeIn(now, reply, 1)),
        hear: (ledger, reply) => word(reply) === 'OK' && ledger.opened(session),
      },
    );
  }

  renew(session: string, drained = false): Promise<unknown> {
    return this.#run(
      'renew',
      { session, leaseMs, drained: drained ? '1' : '0' },
      {
        foretell: (model, now, reply) => model.renew(session, leaseMs, drained, timeIn(now, reply, 1)),
        hear: (ledger, reply, nowMs) => word(reply) === 'OK' && ledger.renewed(session, nowMs),
      },
    );
  }

  /** The session that is meant, or the worker. */
  drain(session: string, worker: string, wished: boolean): Promise<unknown> {
    return this.#run(
      'drain',
      { session, worker, wished: wished ? '1' : '0' },
      { foretell: (model) => model.drain(session, worker, wished) },
    );
  }

  close(session: string): Promise<unknown> {
    return this.#run(
      'close',
      { session },
      {
        foretell: (model) => model.close(session),
      },
    );
  }

  rescue(chunk: number): Promise<unknown> {
    return this.#run(
      'rescue',
      { leaseMs, chunk },
      {
        foretell: (model, now, reply) => model.rescue(leaseMs, chunk, rescuedIds(reply), now),
        hear: (ledger, reply, nowMs) => {
          if (word(reply) === 'RESCUED') ledger.rescued((reply as string[])[1]!, rescuedIds(reply), nowMs);
        },
      },
    );
  }

  // ── Claiming ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  claim(call: ClaimCall, hearing: Hearing = 'heard'): Promise<unknown> {
    const args = { ...claimArguments(call), idle: call.idle ? '1' : '0' };
    return this.#run(
      'claim',
      args,
      this.#claimJudges(call, hearing, (model, nowMs, token) => model.claim(call, nowMs, token)),
    );
  }

  take(call: ClaimCall, priority: number, hearing: Hearing = 'heard'): Promise<unknown> {
    const wait = this.keys[`wait${priority}` as 'wait0'];
    const judges = this.#claimJudges(call, hearing, (model, nowMs, token) =>
      model.take(call, priority, nowMs, token),
    );
    const args = { ...claimArguments(call), level: priority };
    return this.#run('take', args, judges, { ...this.keys, wait });
  }

  #claimJudges(
    call: ClaimCall,
    hearing: Hearing,
    foretell: (model: Model, nowMs: number, token: string) => Foretold,
  ): Judges {
    return {
      foretell: (model, now, reply) => {
        const [, token = '', nowMs = now.ms] = reply as [string, string?, number?];
        if (!now.accepts(nowMs)) throw new Error(`the claim was made at ${nowMs}, not ${now}`);
        if (word(reply) === 'OK' && token !== '') checkToken(Number(model.token), Number(token), nowMs);
        return foretell(model, nowMs, token);
      },
      hear: (ledger, reply) => {
        if (word(reply) !== 'OK' && word(reply) !== 'REPEAT') return;
        const { token, ids, refused, special } = readClaim(reply);
        if (word(reply) === 'OK') {
          const unheard = new Set([...refused, ...special]);
          for (const ack of [...call.acks, ...(call.whole ?? [])]) {
            if (!unheard.has(ack.id)) ledger.ended(ack.id, { session: call.session, token: ack.token });
          }
          if (token !== '') ledger.claimed(call.session, token, ids);
        }
        if (hearing === 'heard') ledger.heard(call.session, token, ids);
      },
      given: (reply) => (word(reply) === 'OK' ? readClaim(reply).ids : []),
    };
  }

  // ── Ending ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  settle(session: string, items: SettleItem[]): Promise<unknown> {
    const rows = items.map((item): WireValue => [
      ...[item.id, item.token, item.outcome, item.keepMs, item.result, item.tried],
      ...[item.detail, item.print, item.title],
    ]);
    return this.#run(
      'settle',
      { session, items: wirePack(rows) },
      {
        foretell: (model, now) => model.settle(session, items, now),
        hear: (ledger, reply) => {
          items.forEach(({ id, token, outcome }, i) => {
            if ((reply as string[])[i + 1] !== 'SETTLED') return;
            if (outcome === 'dead') ledger.returned(id, { session, token });
            else ledger.ended(id, { session, token });
          });
        },
      },
    );
  }

  retry(session: string, items: RetryItem[]): Promise<unknown> {
    const rows = items.map((item): WireValue => [
      ...[item.id, item.token, item.why, String(item.delay), String(item.runAt), item.tried],
    ]);
    return this.#run(
      'retry',
      { session, items: wirePack(rows) },
      {
        foretell: (model, now) => model.retry(session, items, now),
        hear: (ledger, reply) => {
          items.forEach(({ id, token }, i) => {
            if ((reply as string[])[i + 1] === 'DELAYED') ledger.returned(id, { session, token });
          });
        },
      },
    );
  }

  note(
    session: string,
    id: string,
    token: string,
    kind: 'progress' | 'log',
    value: string,
    keep: number,
  ): Promise<unknown> {
    return this.#run(
      'note',
      { session, id: bytes(id), token, kind, value: bytes(value), keep },
      {
        foretell: (model) => model.note(session, id, token, kind, value, keep),
        hear: (ledger, reply) => reply === 'OK' && ledger.noted(id, { session, token }),
      },
    );
  }

  cancel(id: string, keepMs: number): Promise<unknown> {
    return this.#run(
      'cancel',
      { id: bytes(id), keepMs },
      {
        foretell: (model, now) => model.cancel(id, keepMs, now),
        hear: (ledger, reply) => reply !== 'UNKNOWN' && reply !== 'ENDED' && ledger.ended(id),
      },
    );
  }

  hasten(id: string): Promise<unknown> {
    return this.#run('hasten', { id: bytes(id) }, { foretell: (model, now) => model.hasten(id, now) });
  }

  // ── Dead letters ──────────────────────────────────────────────────────────────────────────────────────────────────────

  replay(operation: string, ids: string[]): Promise<unknown> {
    return this.#run(
      'replay',
      { operation, ids: wirePack(ids) },
      {
        foretell: (model, now) => model.replay(operation, ids, now),
      },
    );
  }

  discard(operation: string, ids: string[]): Promise<unknown> {
    return this.#run(
      'discard',
      { operation, ids: wirePack(ids) },
      this.#dropping(ids, (model, now) => model.discard(operation, ids, now)),
    );
  }

  expire(limit: number): Promise<unknown> {
    const all = [...(this.model?.dead.keys() ?? [])];
    return this.#run(
      'expire',
      { limit },
      this.#dropping(all, (model, now) => model.expire(limit, now)),
    );
  }

  /** Which letters are gone is not in the reply; the model knows, and the ledger sees. */
  #dropping(ids: string[], foretell: (model: Model, now: Moment) => Foretold): Judges {
    return {
      foretell: (model, now) => {
        const before = [...new Set(ids)].filter((id) => model.dead.has(id));
        const reply = foretell(model, now);
        for (const id of before) if (!model.dead.has(id)) this.ledger.ended(id);
        return reply;
      },
    };
  }

  amend(operation: string, id: string, seen: string, replacement: ModelJob): Promise<unknown> {
    const [old, other] = [bytes(seen), bytes(packedOf(replacement))];
    return this.#run(
      'amend',
      { operation, id: bytes(id), seen: old, replacement: other },
      {
        foretell: (model, now) => {
          const wasDead = model.dead.has(id);
          const reply = model.amend(operation, id, seen, copy(replacement), now);
          // A repetition says the same and changes nothing.
          if (wasDead && !model.dead.has(id)) this.ledger.edited(id, replacement.payload);
          return reply;
        },
      },
    );
  }

  edit(id: string, seen: string, replacement: ModelJob): Promise<unknown> {
    const args = { id: bytes(id), seen: bytes(seen), replacement: bytes(packedOf(replacement)) };
    return this.#run('edit', args, {
      foretell: (model) => model.edit(id, seen, copy(replacement)),
      hear: (ledger, reply) => reply === 'EDITED' && ledger.edited(id, replacement.payload),
    });
  }

  deaths(
    print: string,
    atMs: number,
    atId: string,
    order: 'newest' | 'oldest',
    limit: number,
  ): Promise<unknown> {
    return this.#run(
      'deaths',
      { print, atMs, atId: bytes(atId), order, limit },
      {
        reads: true,
        foretell: (model) => model.deaths(print, atMs, atId, order, limit),
      },
    );
  }

  letters(ids: string[], maxBytes: number): Promise<unknown> {
    return this.#run(
      'letters',
      { ids: wirePack(ids), maxBytes },
      { reads: true, foretell: (model) => model.letters(ids, maxBytes) },
    );
  }

  causes(prints: string[]): Promise<unknown> {
    return this.#run(
      'causes',
      { prints: wirePack(prints) },
      { reads: true, foretell: (model) => model.causes(prints) },
    );
  }

  // ── Chains and schedules ──────────────────────────────────────────────────────────────────────────────────────────────

  depend(id: string, target: string, rememberMs: number): Promise<unknown> {
    return this.#run(
      'depend',
      { id: bytes(id), target: bytes(target), rememberMs },
      {
        foretell: (model, now) => model.depend(id, target, rememberMs, now),
      },
    );
  }

  unblock(id: string, ref: string, outcome: string): Promise<unknown> {
    return this.#run(
      'unblock',
      { id: bytes(id), ref: bytes(ref), outcome },
      {
        foretell: (model, now) => model.unblock(id, ref, outcome, now),
        hear: (ledger, reply) => reply === 'CANCELLED' && ledger.ended(id),
      },
    );
  }

  chainKeep(chain: string, spec: string, pauseMs: number): Promise<unknown> {
    return this.#run(
      'chainKeep',
      { chain, spec, pauseMs },
      {
        foretell: (model, now) => model.chainKeep(chain, spec, pauseMs, now),
      },
    );
  }

  chainTake(limit: number, pauseMs: number): Promise<unknown> {
    return this.#run(
      'chainTake',
      { limit, pauseMs },
      {
        foretell: (model, now, reply) => model.chainTake(limit, pauseMs, timeIn(now, reply, 0)),
      },
    );
  }

  chainDrop(chain: string): Promise<unknown> {
    return this.#run('chainDrop', { chain }, { foretell: (model) => model.chainDrop(chain) });
  }

  schedule(name: string, spec: string, next: number): Promise<unknown> {
    return this.#run(
      'schedule',
      { name, spec: bytes(spec), next },
      {
        foretell: (model) => model.schedule(name, spec, next),
      },
    );
  }

  unschedule(name: string): Promise<unknown> {
    return this.#run('unschedule', { name }, { foretell: (model) => model.unschedule(name) });
  }

  due(limit: number): Promise<unknown> {
    return this.#run(
      'due',
      { limit },
      { reads: true, foretell: (model, now, reply) => model.due(limit, timeIn(now, reply, 0)) },
    );
  }

  /** All jobs of a tick are the same but for their ids. */
  tick(name: string, due: number, next: number | '', jobs: ModelJob[]): Promise<unknown> {
    const packed = jobs.length > 0 ? bytes(packedOf(jobs[0]!)) : Buffer.alloc(0);
    return this.#run(
      'tick',
      { name, due, next, ids: wirePack(jobs.map(({ id }) => id)), packed },
      {
        foretell: (model, now, reply) => {
          const isNew = jobs.filter(({ id }) => !model.jobs.has(id));
          const answer = model.tick(name, due, next, jobs.map(copy), timeIn(now, reply, 1));
          for (const job of isNew) {
            if (model.jobs.has(job.id))
              this.ledger.accepted(job.id, job.payload, job.priority, !(job.flags & 32));
          }
          return answer;
        },
      },
    );
  }

  // ── Operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  rule(changes: Record<string, unknown>): Promise<unknown> {
    return this.#run(
      'rule',
      { changes: JSON.stringify(changes) },
      {
        foretell: (model) => model.rule(changes),
        hear: (_, reply) => (this.#limits = JSON.parse(reply as string) as Limits),
      },
    );
  }

  peek(count: number): Promise<unknown> {
    return this.#run('peek', { count }, { reads: true, foretell: (model) => model.peek(count) });
  }

  sweep(limit: number): Promise<unknown> {
    return this.#run('sweep', { limit }, { foretell: (model, now) => model.sweep(limit, now) });
  }

  tally(counts: [string, number][]): Promise<unknown> {
    return this.#run(
      'tally',
      { counts: wirePack(counts.flat()) },
      { foretell: (model) => model.tally(counts) },
    );
  }

  ask(id: string): Promise<unknown> {
    return this.#run('ask', { id: bytes(id) }, { reads: true, foretell: (model) => model.ask(id) });
  }

  look(id: string): Promise<unknown> {
    return this.#run(
      'look',
      { id: bytes(id) },
      {
        reads: true,
        foretell: (model, now, reply) => {
          const refs = (reply as unknown[])[8];
          if (Array.isArray(refs)) refs.sort(compareText);
          return model.look(id, now);
        },
      },
    );
  }

  counts(): Promise<unknown> {
    return this.#run(
      'count',
      {},
      { reads: true, foretell: (model, now, reply) => model.count(timeIn(now, reply, 0)) },
    );
  }

  // ── Redis itself ──────────────────────────────────────────────────────────────────────────────────────────────────────

  async push(messages: string[]): Promise<void> {
    this.ledger.pushed(messages);
    const push = [this.keys.inbox, ...messages.map(bytes)];
    await this.command('RPUSH', push, (model) => model.inbox.push(...messages));
  }

  /** One plain command, with what it means for the model. */
  async command(
    command: string,
    args: (string | number | Buffer)[],
    mean: (model: Model, reply: unknown) => void,
  ): Promise<unknown> {
    const [answer, snapshot] = await Promise.all([
      this.link.call(command, args),
      readSnapshot(this.link, this.#base),
    ]);
    const reply = plainReply(answer);
    this.snapshot = snapshot;
    if (this.model) mean(this.model, reply);
    this.#judgeKeys(command);
    return reply;
  }

  async flushScripts(): Promise<void> {
    await this.link.call('SCRIPT', ['FLUSH']);
    this.#loaded.clear();
  }

  // ── One call ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #run(
    name: ScriptName,
    args: Record<string, ScriptArgument>,
    judges: Judges,
    keys = this.keys,
  ): Promise<unknown> {
    const fromMs = Date.now();
    const call = this.#send(name, args, keys);
    // The look at the keys travels right behind the call, unless the call may have to be sent twice.
    if (!this.#loaded.has(name)) await call;
    this.#loaded.add(name);
    const looking = judges.reads || !this.looks ? undefined : readSnapshot(this.link, this.#base);
    const reply = plainReply(await call);
    if (looking) this.snapshot = await looking;
    const now = new Moment(fromMs, Date.now());
    this.count++;
    this.tell(name, reply);
    if (this.model) {
      const why = whyNot(judges.foretell(this.model, now, reply), reply, 'the reply');
      if (why !== undefined) throw new Error(`${name}: ${why}`);
    }
    try {
      judges.hear?.(this.ledger, reply, now.from);
      if (looking) this.#judgeKeys(name, judges.given?.(reply));
    } catch (error) {
      if (error instanceof Violation) error.message = `${name} ${show(reply)}: ${error.message}`;
      throw error;
    }
    return reply;
  }

  #send(name: ScriptName, args: Record<string, ScriptArgument>, keys: PartitionKeys): Promise<unknown> {
    const variant = this.#variants[name];
    if (variant) return this.link.run<string, string>(variant, keys, args);
    return this.partition.runWith(keys, name, args as never);
  }

  #judgeKeys(what: string, given: string[] = []): void {
    const why = this.model && whySnapshotDiffers(this.model, this.snapshot);
    if (why !== undefined) throw new Error(`after ${what}: ${why}`);
    this.ledger.look(this.snapshot, { given, ...this.#limits });
  }
}

/** A script with a part of its text replaced; a text that is not there exactly once is an error. */
export function alter(name: ScriptName, ...changes: [from: string, to: string][]): Script {
  const script = scripts[name] as Script;
  let { source } = script;
  for (const [from, to] of changes) {
    assert.equal(source.split(from).length, 2, `${name}.lua has the text "${from}" exactly once`);
    source = source.replace(from, () => to);
  }
  return { ...script, source, sha: createHash('sha1').update(source).digest('hex') };
}

export function readClaim(reply: unknown) {
  const [, token, nowMs, jobs, , flags, refused, special, cancelled, plainList] = reply as [
    ...[string, string, number, string | string[], number, number, string[], string[], string[], number],
  ];
  const flat = Array.isArray(jobs) ? jobs : (unpack(Buffer.from(jobs, 'latin1')) as string[]);
  const given = flat.flatMap((name, i) => (i % 2 === 0 ? jobsUnder(name, flat[i + 1]!) : []));
  return {
    token,
    nowMs,
    given,
    ids: given.map(({ id }) => id),
    flags,
    refused,
    special,
    cancelled,
    plainList,
  };
}

function packedEntries(jobs: ModelJob[], bales: Map<string, string[]>): string[] {
  return jobs.flatMap((job) => {
    const [name, ids] = [...bales].find(([, members]) => members.includes(job.id)) ?? [];
    if (!ids) return [job.id, packedOf(job)];
    if (ids[0] !== job.id) return [];
    const payloads = ids.map((id) => jobs.find((other) => other.id === id)!.payload);
    const head = String.fromCharCode(flag.bale, ids.length) + packedOf(job).slice(2, 8);
    return [name!, head + payloads.join(',\n')];
  });
}

export function word(reply: unknown): string {
  return String(Array.isArray(reply) ? reply[0] : reply);
}

function rescuedIds(reply: unknown): string[] {
  return word(reply) === 'RESCUED' ? (reply as [string, string, number, number, string[]])[4] : [];
}

function claimArguments({ session, lane, seq, want, acks, whole, tie }: ClaimCall) {
  const runs: WireValue[] = [];
  for (const { token } of acks) {
    if (runs.at(-2) === token) runs[runs.length - 1] = Number(runs.at(-1)) + 1;
    else runs.push(token, 1);
  }
  return {
    session,
    lane,
    seq,
    want,
    list: wirePack(['#', lane, ...acks.map(({ id }) => id)]),
    runs: wirePack(runs),
    whole: whole ? '1' : '0',
    tie: tie ? '1' : '0',
  };
}

/** The time that a reply tells exactly. */
function timeIn(now: Moment, reply: unknown, index: number): Moment {
  const told = (reply as unknown[])[index];
  if (typeof told === 'number' && !now.accepts(told))
    throw new Error(`the reply says ${told}, which is not ${now}`);
  return now;
}

/** max(last + 1, TIME in µs). */
function checkToken(last: number, token: number, nowMs: number): void {
  const fine = token === last + 1 || (token > last && Math.floor(token / 1000) === nowMs);
  if (!fine) throw new Error(`token ${token} follows ${last} at ${nowMs} ms`);
}

function copy(job: ModelJob): ModelJob {
  return { ...job };
}

export function bytes(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function wirePack(value: WireValue): Buffer {
  const encode = (inner: WireValue): WireValue =>
    typeof inner === 'string' ? bytes(inner) : Array.isArray(inner) ? inner.map(encode) : inner;
  return pack(encode(value));
}
