// The queue as it should be: one partition in memory, one method per script, written as plainly as its documentation reads.
// A method changes the state and returns the reply that the script has to give; `keys` lists every key that Redis may then
// hold, with its contents. Nothing is fast here, and nothing is shared with the scripts.
//
// Times come from outside (see foretold.ts), and so does what the scripts may choose freely: the value of a new token, and
// which jobs of a dead session a rescue takes first. Ids, groups and payloads are strings of one character per byte.
import assert from 'node:assert/strict';
import type { StoredOptions } from '../../src/packed.js';
import { Meaning, Moment, fromWire, json, packed, packedPairs, toWire } from './foretold.js';
import type { Foretold } from './foretold.js';

export const flag = { options: 1, binary: 2, foreign: 4, settles: 8, traces: 16, grouped: 32 } as const;
const tombstone = '\xff';
const prioritySpan = 1e12;
const triesKept = 20;
const nurseMs = 10_000;
const watchLapseMs = 50;
const headsLookedAt = 20;
const suspectsLookedAt = 20;
const operationsKept = 1_000;
export const layout = '1';

/** What bounds one call; tests with smaller ones reach them sooner. */
export interface Bounds {
  promotedPerCall: number;
  claimBytes: number;
  bytesCheckedEvery: number;
}

export const realBounds: Bounds = {
  promotedPerCall: 200,
  claimBytes: 8 * 1024 * 1024,
  bytesCheckedEvery: 64,
};

export interface ModelJob {
  id: string;
  flags: number;
  attempts: number;
  crashes: number;
  priority: number;
  /** Five bytes. */
  created: string;
  /** JSON, or nothing. */
  options: string;
  payload: string;
}

export interface Rules {
  paused?: boolean;
  maxActive?: number;
  rateMax?: number;
  ratePerMs?: number;
  keyMaxActive?: number;
  keyRateMax?: number;
  keyRatePerMs?: number;
}

interface Lane {
  seq: number;
  token: string;
  alone: boolean;
}

/** What a call said beside the jobs that it gave; a repetition has to say the same. */
interface Said {
  seq: string;
  refused: string[];
  special: string[];
  cancelled: string[];
}

export interface Session {
  name: string;
  live: boolean;
  /** Of a live session the end of its lease, of one that is being rescued the beginning of that. */
  at: Moment;
  description: string;
  lanes: Map<string, Lane>;
  active: Map<string, string>;
  said: Map<string, Said>;
  cancelled: string[];
  worker: string | undefined;
}

interface ProducerLane {
  seq: string;
  answer: { seq: string; words: string[] } | undefined;
}

export interface Letter {
  died: Moment;
  print: string;
  detail: string;
}

export interface Ack {
  id: string;
  token: string;
}

export interface ClaimCall {
  session: string;
  lane: string;
  seq: number;
  want: number;
  acks: Ack[];
  idle: boolean;
}

export interface NewItem {
  id: string;
  job: ModelJob;
  own: boolean;
  delay: number | '';
  runAt: number | '';
  unique: string;
  window: number | '';
  refs: string[];
  policy: string;
  detail: string;
  print: string;
  title: string;
}

export interface SettleItem {
  id: string;
  token: string;
  outcome: 'done' | 'cancelled' | 'dead';
  keepMs: number;
  result: string;
  tried: string;
  detail: string;
  print: string;
  title: string;
}

export interface RetryItem {
  id: string;
  token: string;
  why: 'failed' | 'snoozed' | 'returned';
  delay: number | '';
  runAt: number | '';
  tried: string;
}

/** A key of Redis and what it has to hold. `ends` says whether it has to have an expiry. */
export interface KeyContents {
  kind: 'hash' | 'list' | 'zset' | 'set' | 'string' | 'stream';
  ends: boolean | 'either';
  value: Map<string, Foretold> | Foretold[];
}

export type PlaceName =
  'listed' | 'grouped' | 'held' | 'suspect' | 'due' | 'delayed' | 'blocked' | 'active' | 'dead' | 'gone';

export class Model {
  readonly bounds: Bounds;
  /** Every job that has not ended. */
  jobs = new Map<string, ModelJob>();
  /** Cancelled jobs whose ids still stand in a list. */
  tombstones = new Map<string, string>();
  waits: string[][] = [[], [], [], [], [], []];
  delayed = new Map<string, Moment>();
  suspects: string[] = [];
  inbox: string[] = [];
  inboxTaken = 0;
  wake = false;
  sessions = new Map<string, Session>();
  producers = new Map<string, Map<string, ProducerLane>>();
  uniques = new Map<string, { id: string; ends: boolean }>();
  groups = new Map<string, 'ready' | 'full' | 'slow'>();
  grouped = new Map<string, Map<string, number>>();
  fresh: string[] = [];
  ring: string[] = [];
  groupActive = new Map<string, number>();
  groupRate = new Map<string, number[]>();
  parked = new Map<string, number>();
  rate: number[] = [];
  blocked = new Map<string, { policy: string; refs: Set<string> }>();
  dependents = new Map<string, string[]>();
  chained: { target: string; id: string; outcome: string }[] = [];
  chains = new Map<string, { kept: Moment; spec: string; due: Moment }>();
  ended = new Map<string, { until: Moment; result: string }>();
  progress = new Map<string, string>();
  logs = new Map<string, { lines: string[]; ends: boolean }>();
  tries = new Map<string, Foretold[]>();
  dead = new Map<string, Letter>();
  titles = new Map<string, string>();
  operations = new Map<string, { began: Moment; moved: number }>();
  schedules = new Map<string, string>();
  ticks = new Map<string, number>();
  stats = new Map<string, number>();
  happened: string[][] = [];
  partitions: string | undefined;
  token = '';
  listTurn = 0;
  oddToGroups = false;
  ringFirst = false;
  hasTurn = false;
  rules: Rules = {};
  events: number | undefined;
  watch: string | undefined;
  renewed: Moment | undefined;
  graceUntil: Moment | undefined;
  order = 0;
  nurse: { session: string; until: number } | undefined;
  retention: { maxAgeMs?: number; maxCount?: number } | undefined;

  constructor(bounds: Bounds = realBounds) {
    this.bounds = bounds;
  }

  // ── Questions about the state ─────────────────────────────────────────────────────────────────────────────────────────

  live(name: string): Session | undefined {
    const session = this.sessions.get(name);
    return session?.live ? session : undefined;
  }

  get liveSessions(): Session[] {
    return [...this.sessions.values()].filter(({ live }) => live);
  }

  holderOf(id: string): Session | undefined {
    return [...this.sessions.values()].find(({ active }) => active.has(id));
  }

  /** Where a job is. */
  placeOf(id: string, nowMs: number): PlaceName {
    const job = this.jobs.get(id);
    if (!job) return 'gone';
    if (this.dead.has(id)) return 'dead';
    if (this.blocked.has(id)) return 'blocked';
    const due = this.delayed.get(id);
    if (due) return due.ms > nowMs ? 'delayed' : 'due';
    if (this.holderOf(id)) return 'active';
    if (this.suspects.includes(id)) return 'suspect';
    const group = groupOf(job);
    if (group !== undefined) return this.groups.get(group) === 'ready' ? 'grouped' : 'held';
    return 'listed';
  }

  /** What the books call it. */
  stateOf(id: string, nowMs: number): string {
    if (this.tombstones.has(id)) return 'cancelled';
    const place = this.placeOf(id, nowMs);
    if (place === 'held') return 'blocked';
    if (place === 'gone') {
      const memory = this.ended.get(id);
      return memory ? (memory.result.startsWith('d') ? 'done' : 'cancelled') : '';
    }
    return ['listed', 'grouped', 'suspect', 'due'].includes(place) ? 'waiting' : place;
  }

  get activeCount(): number {
    return [...this.sessions.values()].reduce((sum, { active }) => sum + active.size, 0);
  }

  // ── Adding ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  declare(partitions: string, now: Moment): Foretold {
    this.partitions ??= partitions;
    return this.partitions === partitions ? ['OK', now] : ['MISMATCH', this.partitions, layout];
  }

  add(producer: string, lane: string, seq: number, jobs: ModelJob[], now: Moment): Foretold {
    const last = this.#lane(producer, lane)?.seq;
    if (last === `A${seq}`) return ['ABANDONED', now];
    if (last !== undefined && numberOf(last) >= seq) return ['REPEAT', now];
    for (const job of jobs) {
      this.jobs.set(job.id, job);
      this.waits[job.priority]!.push(job.id);
    }
    this.#remember(producer, lane, String(seq), this.#lane(producer, lane)?.answer);
    this.#rouse();
    return ['OK', now];
  }

  addEach(
    producer: string,
    lane: string,
    seq: number,
    items: NewItem[],
    inbox: { taken: number; count: number },
    now: Moment,
  ): Foretold {
    const repeating = lane.startsWith('=');
    const original = repeating ? lane.slice(1) : lane;
    const known = this.#lane(producer, original);
    if (known) {
      if (known.seq === `A${seq}`) {
        if (!repeating) return ['ABANDONED', now, []];
      } else if (numberOf(known.seq) >= seq) {
        return ['REPEAT', now, known.answer?.seq === String(seq) ? known.answer.words : []];
      }
    }
    if (inbox.count > 0 && this.inboxTaken !== inbox.taken) return ['STALE', now, []];
    const words: string[] = [];
    let ready = false;
    for (const item of items) {
      const existing = this.#duplicateOf(item, now);
      words.push(existing === undefined ? 'ADDED' : 'DUPLICATE', existing ?? item.id);
      if (existing === undefined) ready = this.#accept(item, now) || ready;
    }
    if (inbox.count > 0) {
      this.inbox.splice(0, inbox.count);
      this.inboxTaken += inbox.count;
    }
    if (repeating) this.#remember(producer, original, `A${seq}`, known?.answer);
    else this.#remember(producer, original, String(seq), { seq: String(seq), words });
    if (ready) this.#rouse();
    return ['OK', now, words];
  }

  #lane(producer: string, lane: string): ProducerLane | undefined {
    return this.producers.get(producer)?.get(lane);
  }

  #remember(producer: string, lane: string, seq: string, answer: ProducerLane['answer']): void {
    const lanes = this.producers.get(producer) ?? new Map<string, ProducerLane>();
    this.producers.set(producer, lanes);
    lanes.set(lane, { seq, answer });
  }

  #duplicateOf({ id, own, unique }: NewItem, now: Moment): string | undefined {
    if (own) {
      if (this.jobs.has(id)) return id;
      if (this.tombstones.has(id)) {
        const list = this.waits[this.tombstones.get(id)!.charCodeAt(2) % 16]!;
        list.splice(list.indexOf(id), 1);
        this.tombstones.delete(id);
      }
      const memory = this.ended.get(id);
      if (memory && memory.until.ms > now.ms) return id;
    }
    return unique === '' ? undefined : this.uniques.get(unique)?.id;
  }

  /** True when the job can be claimed at once. */
  #accept(item: NewItem, now: Moment): boolean {
    const { id, job } = item;
    this.jobs.set(id, job);
    if (item.own) this.ended.delete(id);
    if (item.unique !== '') this.uniques.set(item.unique, { id, ends: item.window !== '' });
    let ready = false;
    if (item.detail !== '') this.#bury(now, job, item.detail, item.print, item.title);
    else if (item.refs.length > 0) this.blocked.set(id, { policy: item.policy, refs: new Set(item.refs) });
    else if (item.delay !== '') this.#setDue(id, now.plus(item.delay));
    else if (item.runAt !== '') this.#setDue(id, new Moment(Math.max(item.runAt, 1)));
    else {
      this.#place(job, false);
      ready = true;
    }
    this.#tell('added', id);
    return ready;
  }

  // ── Sessions ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  open(name: string, leaseMs: number, description: string, now: Moment): Foretold {
    const known = this.sessions.get(name);
    if (known) return known.live ? ['OK', now] : ['USED'];
    this.#surviveOutage(now, leaseMs);
    this.renewed = now;
    const lanes = new Map(['#0', '#1'].map((lane) => [lane, { seq: 0, token: '', alone: false }]));
    const session: Session = {
      ...{ name, live: true, at: now.plus(leaseMs), description, lanes, worker: undefined },
      ...{ active: new Map(), said: new Map(), cancelled: [] },
    };
    this.sessions.set(name, session);
    return ['OK', now];
  }

  renew(name: string, leaseMs: number, now: Moment): Foretold {
    const session = this.live(name);
    if (!session) return ['LEASE_LOST', now];
    this.#surviveOutage(now, leaseMs);
    if (session.at.ms < now.ms && !this.#inGrace(now)) return ['EXPIRED', now];
    session.at = now.plus(leaseMs);
    this.renewed = now;
    return ['OK', now];
  }

  close(name: string): Foretold {
    const session = this.live(name);
    if (!session) return 'LEASE_LOST';
    if (session.active.size > 0) return 'BUSY';
    this.sessions.delete(name);
    if (this.watch === name) this.watch = undefined;
    this.#rouse();
    return 'CLOSED';
  }

  /** `chosen` are the jobs that the script took. */
  rescue(leaseMs: number, chunk: number, chosen: string[], now: Moment): Foretold {
    this.#surviveOutage(now, leaseMs);
    const inOrder = (live: boolean) =>
      [...this.sessions.values()]
        .filter((session) => session.live === live)
        .sort((a, b) => a.at.ms - b.at.ms || compareText(a.name, b.name));
    let session = inOrder(false)[0];
    if (!session) {
      if (this.#inGrace(now)) return ['GRACE'];
      session = inOrder(true).find(({ at }) => at.ms <= now.ms);
      if (!session) return ['NONE'];
      session.live = false;
      session.at = now;
      session.worker = (JSON.parse(session.description) as { name: string }).name;
    }
    assert.equal(
      chosen.length,
      Math.min(chunk, session.active.size),
      'a rescue takes as many jobs as it may',
    );
    for (const id of chosen) {
      assert.ok(session.active.delete(id), `${id} is rescued from a session that holds it`);
      const job = this.jobs.get(id)!;
      const at = now;
      const tried = [job.attempts + 1, at, 'crash', session.worker!, 'WORKER_CRASHED'];
      this.#rememberTry(id, json([...tried, 'the worker died while it ran the job', '']));
      job.crashes = Math.min(job.crashes + 1, 15);
      job.flags |= flag.traces;
      this.#free(job);
      this.suspects.push(id);
    }
    const more = session.active.size > 0 ? 1 : 0;
    if (!more) this.sessions.delete(session.name);
    if (chosen.length > 0) this.#rouse();
    return ['RESCUED', session.name, chosen.length, more, chosen];
  }

  /** After an outage, when nobody could renew for a whole lease, nobody is to blame for one more lease. */
  #surviveOutage(now: Moment, leaseMs: number): void {
    const renewed = this.renewed?.ms ?? now.ms;
    if (now.ms - renewed > leaseMs) this.graceUntil = now.plus(leaseMs);
    if (renewed > now.ms + 1_000) {
      for (const session of this.liveSessions) {
        if (session.at.ms >= now.ms + leaseMs + 1_000) session.at = now.plus(leaseMs);
      }
      this.graceUntil = undefined;
    }
  }

  #inGrace(now: Moment): boolean {
    return now.ms < (this.graceUntil?.ms ?? 0);
  }

  // ── Claiming ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  claim(call: ClaimCall, nowMs: number, token: string): Foretold {
    const session = this.live(call.session);
    if (!session) return ['LEASE_LOST'];
    const early = this.#earlyAnswer(session, call, nowMs);
    if (early) return early;
    const { refused, special } = this.#acknowledge(session, call);
    const wasWatching = this.watch === call.session;
    const { rules, listTurn, oddToGroups, ringFirst } = this;
    // Only a claim that found something moves the turns on.
    const turns = { listTurn, oddToGroups, ringFirst };
    let flags = 0;
    let dueAt = 0;
    const earlier = (at: number | undefined) => {
      if (at !== undefined && at > 0 && (dueAt === 0 || at < dueAt)) dueAt = at;
    };

    let room = call.want;
    if (rules.paused) {
      room = 0;
      flags |= 64;
    }
    if (room > 0 && rules.maxActive !== undefined) {
      room = Math.min(room, Math.max(0, rules.maxActive - this.activeCount));
    }
    if (room > 0 && rules.rateMax !== undefined) {
      const used = this.rate.filter((at) => at + rules.ratePerMs! > nowMs);
      const allowed = Math.max(0, rules.rateMax - used.length);
      if (allowed < room) earlier(used[0]! + rules.ratePerMs!);
      room = Math.min(room, allowed);
    }

    this.#promote(nowMs);
    const nextDue = this.#firstDelayed();
    if (nextDue) earlier(Math.max(nextDue[1].ms, 1));
    const grouped = this.groups.size > 0;
    if (grouped) {
      for (const [name, at] of inOrder(this.parked)) {
        if (at > nowMs) break;
        this.parked.delete(name);
        this.#openGroup(name);
      }
      earlier(inOrder(this.parked)[0]?.[1]);
    }

    const ids: string[] = [];
    const suspected = this.suspects.length;
    let alone = false;
    if (room > 0 && suspected > 0) {
      const suspect = this.#runnableSuspect(nowMs, earlier);
      if (suspect !== undefined && call.idle) {
        this.suspects.splice(this.suspects.indexOf(suspect), 1);
        const group = groupOf(this.jobs.get(suspect)!);
        if (group !== undefined) this.#enterGroup(group, nowMs);
        ids.push(suspect);
        alone = true;
        flags |= 8;
        if (suspected === 1) this.nurse = undefined;
      } else if (
        suspect !== undefined &&
        (this.nurse?.session === call.session || (this.nurse?.until ?? 0) < nowMs)
      ) {
        this.nurse = { session: call.session, until: nowMs + nurseMs };
        flags |= 4;
        room = 0;
      }
    }
    const listed = () => this.waits.reduce((sum, list) => sum + list.length, 0);
    if (room > 0 && ids.length === 0) {
      if (grouped) {
        const odd = room % 2 === 1;
        const share = listed() === 0 ? room : Math.floor(room / 2) + (odd && this.oddToGroups ? 1 : 0);
        if (listed() > 0 && odd) this.oddToGroups = !this.oddToGroups;
        ids.push(...this.#claimFromGroups(share, nowMs, earlier));
        ids.push(...this.#claimFromLists(room - ids.length));
        if (ids.length < room) ids.push(...this.#claimFromGroups(room - ids.length, nowMs, earlier));
      } else {
        ids.push(...this.#claimFromLists(room));
      }
    }

    const busyLists = [0, 1, 2, 3, 4, 5].filter((p) => this.waits[p]!.length > 0);
    const special_ = grouped || this.#hasRules || this.events !== undefined || suspected > 0;
    const plainList = !special_ && busyLists.length === 1 ? busyLists[0]! : -1;

    const { cancelled } = session;
    session.cancelled = [];
    if (this.inbox.length > 0) flags |= 1;
    const deadlines = this.liveSessions.map(({ at }) => at.ms);
    const oldest = Math.min(...deadlines);
    if (oldest < nowMs || deadlines.length < this.sessions.size) flags |= 2;
    if (oldest >= nowMs) earlier(oldest + 10);
    if (this.chained.length > 0) flags |= 128;
    const tick = Math.min(...this.ticks.values());
    if (tick <= nowMs) flags |= 256;
    else if (tick !== Infinity) earlier(tick);

    const limited = call.want > 0 && room === 0;
    let more = !limited && (listed() > 0 || (alone && suspected > 1));
    if (grouped && !limited && this.fresh.length + this.ring.length > 0) more = true;
    if (ids.length === 0 && !more) {
      const watcher = this.watch === undefined ? undefined : this.live(this.watch);
      if (!watcher || watcher.name === call.session || watcher.at.ms < nowMs) {
        this.watch = call.session;
        flags |= 32;
      } else {
        dueAt = watcher.at.ms + watchLapseMs;
      }
    }

    const { given, buried, overflow } = this.#give(session, ids, token);
    if (overflow) more = true;
    if (buried > 0 && given.length === 0) more = true;
    if (given.length > 0 && rules.rateMax !== undefined) {
      for (const _ of given) this.rate.push(nowMs);
      this.rate = this.rate.slice(-rules.rateMax);
    }
    if (given.length > 0 && this.events !== undefined) {
      this.happened.push(['type', 'claimed', 'token', token, 'id', given.map(([id]) => id).join(' ')]);
    }
    this.#write(session, call, ids.length > 0 ? token : '', alone, { refused, special, cancelled });
    if (ids.length > 0) this.hasTurn = true;
    else Object.assign(this, turns);
    if (ids.length > 0 && wasWatching) {
      this.watch = undefined;
      more = true;
    }
    if (more) {
      flags |= 16;
      if (!rules.paused) this.#rouse();
    }
    const reply = packed(given.flat());
    return [
      'OK',
      ids.length > 0 ? token : '',
      nowMs,
      reply,
      dueAt,
      flags,
      refused,
      special,
      cancelled,
      plainList,
    ];
  }

  /** The short way: the head of one list, and nothing else. */
  take(call: ClaimCall, priority: number, nowMs: number, token: string): Foretold {
    const session = this.live(call.session);
    if (!session) return ['LEASE_LOST'];
    const early = this.#earlyAnswer(session, call, nowMs);
    if (early) return early;
    if (this.#hasRules || this.events !== undefined || this.watch === call.session) return ['LOOK'];
    const { refused, special } = this.#acknowledge(session, call);
    const list = this.waits[priority]!;
    const ids = list.splice(0, call.want);
    const { given, overflow } = this.#give(session, ids, token);
    const more = list.length > 0 || overflow;
    this.#write(session, call, ids.length > 0 ? token : '', false, { refused, special, cancelled: [] });
    if (more) this.#rouse();
    const reply = packed(given.flat());
    return ['OK', ids.length > 0 ? token : '', nowMs, reply, 0, more ? 16 : 0, refused, special, [], -1];
  }

  get #hasRules(): boolean {
    return Object.keys(this.rules).length > 0;
  }

  #earlyAnswer(session: Session, call: ClaimCall, nowMs: number): Foretold | undefined {
    const lane = session.lanes.get(call.lane)!;
    if (call.seq < lane.seq) return ['STALE'];
    if (call.seq > lane.seq) return undefined;
    const again = [...session.active].filter(([, token]) => token === lane.token && token !== '');
    const pairs = again.map(([id]): [string, string] => [id, packedOf(this.jobs.get(id)!)]);
    const stored = session.said.get(call.lane);
    const said = stored?.seq === String(call.seq) ? stored : { refused: [], special: [], cancelled: [] };
    const flags = 16 + (lane.alone ? 8 : 0);
    const { refused, special, cancelled } = said;
    return ['REPEAT', lane.token, nowMs, packedPairs(pairs), 0, flags, refused, special, cancelled, -1];
  }

  #acknowledge(session: Session, { acks }: ClaimCall): { refused: string[]; special: string[] } {
    const refused: string[] = [];
    const special: string[] = [];
    const done: string[] = [];
    for (const { id, token } of acks) {
      if (session.active.get(id) !== token) refused.push(id);
      else if (this.dependents.has(id)) special.push(id);
      else done.push(id);
    }
    for (const id of done) {
      session.active.delete(id);
      this.jobs.delete(id);
    }
    if (done.length > 0) {
      this.#tally('done', done.length);
      if (this.events !== undefined) this.happened.push(['type', 'done', 'id', done.join(' ')]);
    }
    return { refused, special };
  }

  /** Due jobs go where they wait: those that came back to the front, the others behind. */
  #promote(nowMs: number): void {
    const due = [...this.delayed]
      .filter(([, at]) => at.ms <= nowMs)
      .sort((a, b) => a[1].ms - b[1].ms || compareText(a[0], b[0]))
      .slice(0, this.bounds.promotedPerCall);
    const returned = due.filter(([, at]) => at.ms === 0).reverse();
    const others = due.filter(([, at]) => at.ms !== 0);
    for (const [id, at] of [...returned, ...others]) {
      this.delayed.delete(id);
      const job = this.jobs.get(id)!;
      // Whoever was there when a worker died runs alone until it ends.
      if (job.crashes > 0) this.suspects.push(id);
      else this.#place(job, at.ms === 0);
    }
  }

  #firstDelayed(): [string, Moment] | undefined {
    return [...this.delayed].sort((a, b) => a[1].ms - b[1].ms || compareText(a[0], b[0]))[0];
  }

  /** The first suspect whose group has room. */
  #runnableSuspect(nowMs: number, earlier: (at: number | undefined) => void): string | undefined {
    return this.suspects.slice(0, suspectsLookedAt).find((id) => {
      const group = groupOf(this.jobs.get(id)!);
      if (group === undefined) return true;
      const { why, freeAt } = this.#shutBecause(group, nowMs);
      earlier(freeAt);
      return why === undefined;
    });
  }

  #shutBecause(group: string, nowMs: number): { why?: 'full' | 'slow'; freeAt?: number } {
    const { keyMaxActive, keyRateMax, keyRatePerMs } = this.rules;
    if (keyMaxActive !== undefined && (this.groupActive.get(group) ?? 0) >= keyMaxActive)
      return { why: 'full' };
    if (keyRateMax !== undefined) {
      const times = this.groupRate.get(group) ?? [];
      const oldest = times[times.length - keyRateMax];
      if (oldest !== undefined && oldest + keyRatePerMs! > nowMs) {
        return { why: 'slow', freeAt: oldest + keyRatePerMs! };
      }
    }
    return {};
  }

  /** A job of the group starts. */
  #enterGroup(group: string, nowMs: number): void {
    this.groupActive.set(group, (this.groupActive.get(group) ?? 0) + 1);
    const { keyRateMax } = this.rules;
    if (keyRateMax === undefined) return;
    this.groupRate.set(group, [...(this.groupRate.get(group) ?? []), nowMs].slice(-keyRateMax));
  }

  /** Groups take turns, one job each: those that have just become busy alternate with the others. */
  #claimFromGroups(count: number, nowMs: number, earlier: (at: number | undefined) => void): string[] {
    const ids: string[] = [];
    while (ids.length < count) {
      const [first, second] = this.ringFirst ? [this.ring, this.fresh] : [this.fresh, this.ring];
      const name = first.shift() ?? second.shift();
      if (name === undefined) break;
      this.ringFirst = !this.ringFirst;
      const members = inOrder(this.grouped.get(name) ?? new Map<string, number>());
      if (members.length === 0) {
        this.groups.delete(name);
        continue;
      }
      const { why, freeAt } = this.#shutBecause(name, nowMs);
      if (why !== undefined) {
        this.groups.set(name, why);
        if (freeAt !== undefined) this.parked.set(name, freeAt);
        earlier(freeAt);
        continue;
      }
      this.#enterGroup(name, nowMs);
      ids.push(members[0]![0]);
      this.#leaveGroup(name, members[0]![0]);
      if (members.length > 1) this.ring.push(name);
      else this.groups.delete(name);
    }
    return ids;
  }

  /** Of 16 turns the last five belong to the levels 1 to 5, if they have jobs; all others to the most urgent. */
  #claimFromLists(count: number): string[] {
    const take = [0, 0, 0, 0, 0, 0];
    const left = (p: number) => this.waits[p]!.length - take[p]!;
    const total = this.waits.reduce((sum, list) => sum + list.length, 0);
    const owned = Math.min(count, total);
    let urgent = 0;
    for (let i = 0; i < owned; i++) {
      const owner = this.listTurn - 10;
      this.listTurn = (this.listTurn + 1) % 16;
      if (owner >= 1 && left(owner) > 0) take[owner]!++;
      else urgent++;
    }
    for (let p = 0; p <= 5; p++) {
      const more = Math.min(urgent, left(p));
      take[p]! += more;
      urgent -= more;
    }
    return take.flatMap((number, p) => this.waits[p]!.splice(0, number));
  }

  #give(
    session: Session,
    ids: string[],
    token: string,
  ): { given: [string, string][]; buried: number; overflow: boolean } {
    const { claimBytes, bytesCheckedEvery } = this.bounds;
    const given: [string, string][] = [];
    let buried = 0;
    let bytes = 0;
    for (const [i, id] of ids.entries()) {
      if (i % bytesCheckedEvery === 0 && bytes > claimBytes) {
        buried += this.#putBack(ids.slice(i));
        return { given, buried, overflow: true };
      }
      const job = this.jobs.get(id);
      if (job) {
        given.push([id, packedOf(job)]);
        bytes += packedOf(job).length;
        session.active.set(id, token);
      } else {
        this.tombstones.delete(id);
        buried++;
      }
    }
    return { given, buried, overflow: false };
  }

  /** Too much for one reply: the rest goes back to where it was. Returns how many were only tombstones. */
  #putBack(ids: string[]): number {
    for (const id of ids.toReversed()) {
      const job = this.jobs.get(id);
      const group = job && groupOf(job);
      if (job && group !== undefined) {
        this.#free(job);
        this.delayed.set(id, new Moment(0));
      } else {
        this.waits[job ? job.priority : this.tombstones.get(id)!.charCodeAt(2) % 16]!.unshift(id);
      }
    }
    return 0;
  }

  #write(session: Session, call: ClaimCall, token: string, alone: boolean, said: Omit<Said, 'seq'>): void {
    session.lanes.set(call.lane, { seq: call.seq, token, alone });
    if (token !== '') this.token = token;
    if (said.refused.length + said.special.length + said.cancelled.length > 0) {
      session.said.set(call.lane, { seq: String(call.seq), ...said });
    }
  }

  // ── Ending ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  settle(name: string, items: SettleItem[], now: Moment): Foretold {
    const session = this.live(name);
    if (!session) return ['LEASE_LOST'];
    const words = items.map((item) => {
      if (session.active.get(item.id) !== item.token) return 'ALREADY';
      const job = this.jobs.get(item.id)!;
      session.active.delete(item.id);
      this.#free(job);
      if (item.tried !== '') this.#rememberTry(item.id, item.tried);
      if (item.outcome === 'dead') this.#bury(now, job, item.detail, item.print, item.title);
      else this.#finish(now, job, item.outcome, item.keepMs, item.result);
      return 'SETTLED';
    });
    return ['OK', ...words];
  }

  retry(name: string, items: RetryItem[], now: Moment): Foretold {
    const session = this.live(name);
    if (!session) return ['LEASE_LOST'];
    const words = items.map((item) => {
      if (session.active.get(item.id) !== item.token) return 'ALREADY';
      const job = this.jobs.get(item.id)!;
      session.active.delete(item.id);
      this.#free(job);
      if (item.why === 'failed') {
        job.attempts = Math.min(job.attempts + 1, 255);
        job.flags |= flag.traces;
        if (item.tried !== '') this.#rememberTry(item.id, item.tried);
        this.#tally('failed', 1);
        this.#tell('failed', item.id);
      }
      if (item.delay !== '' && item.delay > 0) this.#setDue(item.id, now.plus(item.delay));
      else if (item.runAt !== '') this.#setDue(item.id, new Moment(Math.max(item.runAt, 1)));
      else this.#setDue(item.id, new Moment(0));
      return 'DELAYED';
    });
    return ['OK', ...words];
  }

  note(
    name: string,
    id: string,
    token: string,
    kind: 'progress' | 'log',
    value: string,
    keep: number,
  ): Foretold {
    const session = this.live(name);
    if (!session) return 'LEASE_LOST';
    if (session.active.get(id) !== token) return 'ALREADY';
    this.jobs.get(id)!.flags |= flag.traces;
    if (kind === 'progress') this.progress.set(id, value);
    else this.logs.set(id, { lines: [...(this.logs.get(id)?.lines ?? []), value].slice(-keep), ends: false });
    return 'OK';
  }

  cancel(id: string, keepMs: number, now: Moment): Foretold {
    const job = this.jobs.get(id);
    if (!job) return this.tombstones.has(id) || this.ended.has(id) ? 'ENDED' : 'UNKNOWN';
    const state = this.stateOf(id, now.ms);
    const place = this.placeOf(id, now.ms);
    this.delayed.delete(id);
    this.blocked.delete(id);
    this.suspects = this.suspects.filter((other) => other !== id);
    if (place === 'dead') this.#exhume(id);
    const group = groupOf(job);
    if (place === 'grouped' || place === 'held') this.#leaveGroup(group!, id);
    const holder = this.holderOf(id);
    if (holder) {
      holder.active.delete(id);
      holder.cancelled.push(id);
      this.#free(job);
    }
    this.#finish(now, job, 'cancelled', keepMs, '');
    if (place === 'listed') this.tombstones.set(id, tombstone + packedOf(job).slice(1, 3));
    return state;
  }

  #finish(now: Moment, job: ModelJob, outcome: 'done' | 'cancelled', keepMs: number, result: string): void {
    const { id } = job;
    this.jobs.delete(id);
    this.tries.delete(id);
    this.progress.delete(id);
    this.#releaseUnique(job);
    const window = Math.max(keepMs, optionsOf(job).w ?? 0);
    const logs = this.logs.get(id);
    if (window > 0) {
      this.ended.set(id, { until: now.plus(window), result: outcome[0]! + result });
      if (logs) logs.ends = true;
    } else {
      this.logs.delete(id);
    }
    this.#tally(outcome, 1);
    this.#tell(outcome, id);
    this.#tellDependents(id, outcome);
    this.dependents.delete(id);
  }

  #bury(now: Moment, job: ModelJob, detail: string, print: string, title: string): void {
    job.flags |= flag.traces;
    this.dead.set(job.id, { died: now, print, detail });
    this.titles.set(print, title);
    this.#releaseUnique(job);
    this.#tally('dead', 1);
    this.#tell('dead', job.id);
    this.#tellDependents(job.id, 'dead');
  }

  #exhume(id: string): void {
    const { print } = this.dead.get(id)!;
    this.dead.delete(id);
    if (![...this.dead.values()].some((letter) => letter.print === print)) this.titles.delete(print);
  }

  #releaseUnique(job: ModelJob): void {
    const { u, uw } = optionsOf(job);
    if (u !== undefined && uw === undefined && this.uniques.get(toWire(u))?.id === job.id)
      this.uniques.delete(toWire(u));
  }

  #tellDependents(id: string, outcome: string): void {
    const targets = this.dependents.get(id);
    if (!targets) return;
    for (const target of targets) this.chained.push({ target, id, outcome });
    this.#rouse();
  }

  // ── Dead letters ──────────────────────────────────────────────────────────────────────────────────────────────────────

  replay(operation: string, ids: string[], now: Moment): Foretold {
    const record = this.#operation(operation, now);
    for (const id of ids) {
      const letter = this.dead.get(id);
      const job = this.jobs.get(id);
      if (!letter || letter.died.ms > record.began.ms) continue;
      const { u, uw } = optionsOf(job!);
      if (u !== undefined && uw === undefined) {
        const holder = this.uniques.get(toWire(u));
        if (holder && holder.id !== id) continue;
        this.uniques.set(toWire(u), holder ?? { id, ends: false });
      }
      this.#exhume(id);
      job!.attempts = 0;
      job!.crashes = 0;
      this.#place(job!, false);
      this.#tell('replayed', id);
      record.moved++;
      this.#rouse();
    }
    return [record.moved, record.began];
  }

  discard(operation: string, ids: string[], now: Moment): Foretold {
    const record = this.#operation(operation, now);
    for (const id of ids) {
      const letter = this.dead.get(id);
      if (!letter || letter.died.ms > record.began.ms) continue;
      this.#exhume(id);
      this.#finish(now, this.jobs.get(id)!, 'cancelled', 0, '');
      record.moved++;
    }
    return [record.moved, record.began];
  }

  expire(limit: number, now: Moment): Foretold {
    if (!this.retention) return 0;
    const { maxAgeMs, maxCount } = this.retention;
    const letters = this.#lettersInOrder();
    const old =
      maxAgeMs === undefined ? 0 : letters.filter(([, { died }]) => died.ms <= now.ms - maxAgeMs).length;
    const surplus = Math.max(old, maxCount === undefined ? 0 : letters.length - maxCount);
    const dropped = letters.slice(0, Math.min(Math.max(surplus, 0), limit));
    for (const [id] of dropped) {
      this.#exhume(id);
      this.#finish(now, this.jobs.get(id)!, 'cancelled', 0, '');
    }
    return dropped.length;
  }

  edit(id: string, seen: string, replacement: ModelJob): Foretold {
    if (!this.dead.has(id)) return 'UNKNOWN';
    const stored = packedOf(this.jobs.get(id)!);
    if (stored === packedOf(replacement)) return 'EDITED';
    if (stored !== seen) return 'CHANGED';
    this.jobs.set(id, replacement);
    return 'EDITED';
  }

  deaths(print: string, atMs: number, atId: string, order: 'newest' | 'oldest', limit: number): Foretold {
    const letters = this.#lettersInOrder().filter(([, letter]) => print === '' || letter.print === print);
    const side = ([id, { died }]: [string, Letter]) =>
      died.ms - atMs || (atId === '' ? 1 : compareText(id, atId));
    const page =
      order === 'newest'
        ? letters.filter((letter) => side(letter) < 0).reverse()
        : letters.filter((letter) => side(letter) > 0);
    return page.slice(0, limit).flatMap(([id, { died }]) => [id, died]);
  }

  letters(ids: string[], maxBytes: number): Foretold {
    const found: Foretold[] = [];
    let bytes = 0;
    let looked = 0;
    for (const id of ids) {
      if (bytes >= maxBytes) break;
      looked++;
      const letter = this.dead.get(id);
      if (!letter) continue;
      const stored = packedOf(this.jobs.get(id)!);
      const { died, print, detail } = letter;
      found.push([id, died, stored, print, this.titles.get(print)!, detail, this.tries.get(id) ?? []]);
      bytes += stored.length;
    }
    return [looked, ...found];
  }

  causes(prints: string[]): Foretold {
    return prints.flatMap((print): Foretold[] => {
      const letters = this.#lettersInOrder().filter(([, letter]) => letter.print === print);
      if (letters.length === 0) return [];
      const [first, last] = [letters[0]![1].died, letters.at(-1)![1].died];
      return [[print, this.titles.get(print)!, String(letters.length), first, last]];
    });
  }

  #lettersInOrder(): [string, Letter][] {
    return [...this.dead].sort((a, b) => a[1].died.ms - b[1].died.ms || compareText(a[0], b[0]));
  }

  #operation(name: string, now: Moment): { began: Moment; moved: number } {
    const known = this.operations.get(name);
    if (known) return known;
    assert.ok(this.operations.size < operationsKept, 'no test makes so many operations');
    const newest = Math.max(0, ...[...this.dead.values()].map(({ died }) => died.ms));
    const record = { began: newest > now.ms ? new Moment(newest) : now, moved: 0 };
    this.operations.set(name, record);
    return record;
  }

  // ── Chains and schedules ──────────────────────────────────────────────────────────────────────────────────────────────

  depend(id: string, target: string, rememberMs: number, now: Moment): Foretold {
    const job = this.jobs.get(id);
    if (!job) {
      if (this.tombstones.has(id)) return 'cancelled';
      const memory = this.ended.get(id);
      if (!memory) return 'UNKNOWN';
      // The script counts in whole seconds here.
      const [from, to] = [now.from, now.to ?? now.from].map((ms) => Math.floor(ms / 1000) * 1000 + rememberMs);
      const until = memory.until.ms;
      memory.until = new Moment(Math.max(until, from!), Math.max(until, to!));
      return memory.result.startsWith('d') ? 'done' : 'cancelled';
    }
    const targets = this.dependents.get(id) ?? [];
    if (!targets.includes(target)) targets.push(target);
    this.dependents.set(id, targets);
    if ((optionsOf(job).w ?? 0) < rememberMs) {
      job.options =
        job.options === '' ? `{"w":${rememberMs}}` : `${job.options.slice(0, -1)},"w":${rememberMs}}`;
      job.flags |= flag.options | flag.settles;
    }
    return this.dead.has(id) ? 'dead' : 'WAITING';
  }

  unblock(id: string, ref: string, outcome: string, now: Moment): Foretold {
    const blocked = this.blocked.get(id);
    if (!blocked) return 'UNKNOWN';
    if (!blocked.refs.has(ref)) return 'WAITING';
    if (outcome !== 'done' && blocked.policy !== 'run') {
      if (blocked.policy === 'wait' && outcome === 'dead') return 'WAITING';
      this.blocked.delete(id);
      this.#finish(now, this.jobs.get(id)!, 'cancelled', 3_600_000, '');
      return 'CANCELLED';
    }
    blocked.refs.delete(ref);
    if (blocked.refs.size > 0) return 'WAITING';
    this.blocked.delete(id);
    this.delayed.set(id, new Moment(0));
    this.#rouse();
    return 'RELEASED';
  }

  chainKeep(chain: string, spec: string, pauseMs: number, now: Moment): Foretold {
    const known = this.chains.get(chain);
    if (known) known.due = now.plus(pauseMs);
    else this.chains.set(chain, { kept: now, spec, due: now.plus(pauseMs) });
    return known ? 'KNOWN' : 'KEPT';
  }

  chainTake(limit: number, pauseMs: number, now: Moment): Foretold {
    const due = [...this.chains]
      .filter(([, chain]) => chain.due.ms <= now.ms)
      .sort((a, b) => a[1].due.ms - b[1].due.ms || compareText(a[0], b[0]))
      .slice(0, limit);
    for (const [, chain] of due) chain.due = now.plus(pauseMs);
    return [now, ...due.flatMap(([name, { kept, spec }]) => [name, keptSpec(kept, spec)])];
  }

  chainDrop(chain: string): Foretold {
    return this.chains.delete(chain) ? 'DROPPED' : 'UNKNOWN';
  }

  schedule(name: string, spec: string, next: number): Foretold {
    const stored = this.schedules.get(name);
    if (stored === spec && this.ticks.has(name)) return 'SAME';
    this.schedules.set(name, spec);
    const whenOf = (text: string) => (JSON.parse(fromWire(text)) as { when: string }).when;
    if (stored !== undefined && this.ticks.has(name) && whenOf(stored) === whenOf(spec)) return 'CHANGED';
    this.ticks.set(name, next);
    this.#rouse();
    return stored === undefined ? 'SET' : 'CHANGED';
  }

  unschedule(name: string): Foretold {
    this.ticks.delete(name);
    return this.schedules.delete(name) ? 'REMOVED' : 'UNKNOWN';
  }

  due(limit: number, now: Moment): Foretold {
    const due = inOrder(this.ticks).filter(([, at]) => at <= now.ms);
    return [
      now,
      ...due.slice(0, limit).flatMap(([name, at]) => [name, String(at), this.schedules.get(name) ?? '']),
    ];
  }

  tick(name: string, dueMs: number, next: number | '', jobs: ModelJob[], now: Moment): Foretold {
    if (this.ticks.get(name) !== dueMs) return ['LATE', now];
    if (dueMs > now.ms) return ['EARLY', now];
    for (const job of jobs) {
      if (this.jobs.has(job.id) || this.tombstones.has(job.id) || this.ended.has(job.id)) continue;
      const { u, uw } = optionsOf(job);
      if (u !== undefined) {
        if (this.uniques.has(toWire(u))) continue;
        this.uniques.set(toWire(u), { id: job.id, ends: uw !== undefined });
      }
      this.jobs.set(job.id, job);
      this.#place(job, false);
      this.#tell('added', job.id);
    }
    if (next === '') {
      this.ticks.delete(name);
      this.schedules.delete(name);
    } else {
      this.ticks.set(name, next);
    }
    if (jobs.length > 0) this.#rouse();
    return ['FIRED', now];
  }

  // ── Operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  rule(changes: Record<string, unknown>): Foretold {
    for (const [name, value] of Object.entries(changes)) {
      if (name === 'events') this.events = value === null ? undefined : (value as number);
      else if (value === null) delete this.rules[name as keyof Rules];
      else Object.assign(this.rules, { [name]: value });
    }
    if (this.rules.rateMax !== undefined) this.rate = this.rate.slice(-this.rules.rateMax);
    const regroup = Object.keys(changes).some((name) => name.startsWith('key'));
    for (const [name, state] of this.groups) {
      if (state === 'ready' || !regroup) continue;
      this.parked.delete(name);
      this.#openGroup(name);
    }
    this.#rouse();
    return json({ ...this.rules });
  }

  peek(count: number): Foretold {
    return [String(this.inboxTaken), ...this.inbox.slice(0, count)];
  }

  sweep(limit: number, now: Moment): Foretold {
    const old = [...this.ended]
      .filter(([, { until }]) => until.ms <= now.ms)
      .sort((a, b) => a[1].until.ms - b[1].until.ms || compareText(a[0], b[0]))
      .slice(0, limit);
    for (const [id] of old) {
      this.ended.delete(id);
      this.logs.delete(id);
    }
    return old.length;
  }

  tally(counts: [string, number][]): Foretold {
    for (const [field, by] of counts) this.#tally(field, by);
    return 'OK';
  }

  ask(id: string): Foretold {
    if (this.jobs.has(id)) return [this.dead.has(id) ? 'dead' : 'WAITING', ''];
    const memory = this.ended.get(id);
    if (memory) return [memory.result.startsWith('d') ? 'done' : 'cancelled', memory.result];
    return [this.tombstones.has(id) ? 'cancelled' : 'UNKNOWN', ''];
  }

  look(id: string, now: Moment): Foretold {
    const job = this.jobs.get(id);
    const state = this.stateOf(id, now.ms);
    const report = this.progress.get(id) ?? '';
    const traces = [this.tries.get(id) ?? [], this.logs.get(id)?.lines ?? []];
    if (!job) {
      if (state === '') return [''];
      return [state, '', 0, '', '', report, this.ended.get(id)?.result ?? 'c', '', [], ...traces];
    }
    const due = state === 'delayed' ? this.delayed.get(id)! : 0;
    const holder = this.holderOf(id);
    const refs = new Map([...(this.blocked.get(id)?.refs ?? [])].map((ref) => [ref, '']));
    const detail = this.dead.get(id)?.detail ?? '';
    const head = [state, packedOf(job), due, holder?.name ?? '', holder?.active.get(id) ?? '', report, ''];
    return [...head, detail, [...refs.keys()].sort(compareText), ...traces];
  }

  count(now: Moment): Foretold {
    const heads: string[] = [];
    const firstOf = (ids: string[]) => {
      const id = ids.find((candidate) => this.jobs.has(candidate));
      if (id !== undefined) heads.push(packedOf(this.jobs.get(id)!).slice(0, 8));
    };
    for (const list of this.waits) firstOf(list.slice(0, headsLookedAt));
    firstOf(this.suspects.slice(0, 1));
    const due = [...this.delayed]
      .filter(([, at]) => at.ms <= now.ms)
      .sort((a, b) => a[1].ms - b[1].ms || compareText(a[0], b[0]));
    firstOf(due.slice(0, 1).map(([id]) => id));
    for (const names of [this.fresh, this.ring]) {
      for (const name of names.slice(0, headsLookedAt)) {
        firstOf(
          inOrder(this.grouped.get(name) ?? new Map<string, number>())
            .slice(0, 1)
            .map(([id]) => id),
        );
      }
    }
    return [
      ...[now, this.jobs.size + this.tombstones.size, this.waits.map((list) => list.length)],
      ...[
        due.length,
        this.delayed.size - due.length,
        this.suspects.length,
        this.inbox.length,
        this.blocked.size,
      ],
      ...[
        this.#held,
        this.tombstones.size,
        this.activeCount,
        this.sessions.size,
        this.dead.size,
        this.ended.size,
      ],
      ...[heads, this.#firstDelayed()?.[1] ?? 0],
    ];
  }

  get #held(): number {
    const shut = [...this.groups].filter(([, state]) => state !== 'ready');
    return shut.reduce((sum, [name]) => sum + (this.grouped.get(name)?.size ?? 0), 0);
  }

  // ── What several of them do ───────────────────────────────────────────────────────────────────────────────────────────

  #place(job: ModelJob, returned: boolean): void {
    const group = groupOf(job);
    if (group === undefined) {
      if (returned) this.waits[job.priority]!.unshift(job.id);
      else this.waits[job.priority]!.push(job.id);
      return;
    }
    const order = returned ? 0 : ++this.order;
    const members = this.grouped.get(group) ?? new Map<string, number>();
    this.grouped.set(group, members.set(job.id, job.priority * prioritySpan + order));
    if (this.groups.has(group)) return;
    this.groups.set(group, 'ready');
    this.fresh.push(group);
  }

  #leaveGroup(group: string, id: string): void {
    const members = this.grouped.get(group)!;
    members.delete(id);
    if (members.size === 0) this.grouped.delete(group);
  }

  #openGroup(name: string): void {
    this.groups.set(name, 'ready');
    this.ring.push(name);
  }

  /** A job is no longer active: its group may go on, and a queue at its limit too. */
  #free(job: ModelJob): void {
    if (this.#hasRules) this.#rouse();
    const group = groupOf(job);
    if (group === undefined) return;
    const running = this.groupActive.get(group)! - 1;
    if (running > 0) this.groupActive.set(group, running);
    else this.groupActive.delete(group);
    if (this.groups.get(group) === 'full') {
      this.#openGroup(group);
      this.#rouse();
    }
  }

  #setDue(id: string, at: Moment): void {
    this.delayed.set(id, at);
    if (this.#firstDelayed()![0] === id) this.#rouse();
  }

  /** The first and the last 19. */
  #rememberTry(id: string, entry: Foretold): void {
    const tries = [...(this.tries.get(id) ?? []), entry];
    this.tries.set(id, tries.length > triesKept ? [tries[0]!, ...tries.slice(2)] : tries);
  }

  #rouse(): void {
    this.wake = true;
  }

  #tally(field: string, by: number): void {
    this.stats.set(field, (this.stats.get(field) ?? 0) + by);
  }

  #tell(kind: string, id: string): void {
    if (this.events !== undefined) this.happened.push(['type', kind, 'id', id]);
  }

  // ── What Redis holds ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Every key but the figures of the minutes, which are compared as sums. Empty keys do not exist in Redis. */
  keys(): Map<string, KeyContents> {
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
    hash('cfg', this.#cfg());
    const stored = new Map<string, Foretold>(this.tombstones);
    for (const [id, job] of this.jobs) stored.set(id, packedOf(job));
    hash('jobs', stored);
    this.waits.forEach((ids, priority) => list(`wait:${priority}`, ids));
    zset('delayed', this.delayed);
    list('suspects', this.suspects);
    list('inbox', this.inbox);
    list('wake', this.wake ? ['1'] : []);
    const sessions = new Map<string, Foretold>();
    const rescuing = new Map<string, Foretold>();
    for (const [name, session] of this.sessions) {
      (session.live ? sessions : rescuing).set(name, session.at);
      hash(`active:${name}`, activeFields(session));
      hash(`lanes:${name}`, laneFields(session));
    }
    zset('sessions', sessions);
    zset('rescuing', rescuing);
    for (const [name, lanes] of this.producers) {
      const fields = new Map<string, Foretold>();
      for (const [lane, { seq, answer }] of lanes) {
        fields.set(lane, seq);
        if (answer) fields.set(`${lane}:answer`, packed([answer.seq, answer.words]));
      }
      hash(`producer:${name}`, fields, true);
    }
    for (const [key, { id, ends }] of this.uniques)
      keys.set(`unique:${key}`, { kind: 'string', value: [id], ends });
    hash('groups', this.groups);
    for (const [name, members] of this.grouped) zset(`group:${name}`, members);
    list('fresh', this.fresh);
    list('ring', this.ring);
    hash('group-active', mapValues(this.groupActive, String));
    for (const [name, times] of this.groupRate) list(`group-rate:${name}`, times.map(String), true);
    zset('parked', this.parked);
    list('rate', this.rate.map(String), true);
    hash(
      'blocked',
      mapValues(this.blocked, ({ policy }) => policy),
    );
    for (const [id, { refs }] of this.blocked) {
      keys.set(`deps:${id}`, { kind: 'set', value: [...refs].sort(compareText), ends: false });
    }
    hash(
      'dependents',
      mapValues(this.dependents, (targets) => json(targets.map(fromWire))),
    );
    list(
      'chained',
      this.chained.map((notice) => json(mapNotice(notice))),
    );
    hash(
      'chains',
      mapValues(this.chains, ({ kept, spec }) => keptSpec(kept, spec)),
    );
    zset(
      'chains-due',
      mapValues(this.chains, ({ due }) => due),
    );
    zset(
      'ended',
      mapValues(this.ended, ({ until }) => until),
    );
    hash(
      'results',
      mapValues(this.ended, ({ result }) => result),
    );
    hash('progress', this.progress);
    for (const [id, { lines, ends }] of this.logs) list(`logs:${id}`, lines, ends);
    for (const [id, entries] of this.tries) list(`tries:${id}`, entries);
    this.#deadKeys(hash, zset);
    const operationText = ({ began, moved }: { began: Moment; moved: number }) =>
      momentAndRest(began, ` ${moved}`);
    hash('replays', mapValues(this.operations, operationText));
    hash('schedules', this.schedules);
    zset('ticks', this.ticks);
    if (this.happened.length > 0) keys.set('events', { kind: 'stream', value: this.happened, ends: false });
    return keys;
  }

  #cfg(): Map<string, Foretold> {
    const fields = new Map<string, Foretold>();
    const set = (name: string, value: Foretold | undefined) => {
      if (value !== undefined) fields.set(name, value);
    };
    if (this.partitions !== undefined) {
      set('partitions', this.partitions);
      set('layout', layout);
    }
    if (this.token !== '') set('token', this.token);
    if (this.hasTurn)
      set('turn', String(this.listTurn + (this.oddToGroups ? 16 : 0) + (this.ringFirst ? 32 : 0)));
    if (this.#hasRules) set('rules', json({ ...this.rules }));
    set('events', this.events === undefined ? undefined : String(this.events));
    set('watch', this.watch);
    set('renewed', this.renewed);
    set('graceUntil', this.graceUntil);
    if (this.nurse) set('nurse', `${this.nurse.session} ${this.nurse.until}`);
    if (this.order > 0) set('order', String(this.order));
    if (this.#held > 0) set('held', String(this.#held));
    if (this.tombstones.size > 0) set('tombstones', String(this.tombstones.size));
    if (this.inboxTaken > 0) set('inboxTaken', String(this.inboxTaken));
    if (this.retention) set('retention', json({ ...this.retention }));
    return fields;
  }

  #deadKeys(
    hash: (name: string, value: Map<string, Foretold>) => void,
    zset: (name: string, value: Map<string, Foretold>) => void,
  ): void {
    zset(
      'dead',
      mapValues(this.dead, ({ died }) => died),
    );
    hash(
      'dead-info',
      mapValues(this.dead, ({ print, detail }) => packed([print, detail])),
    );
    const byPrint = new Map<string, Map<string, Foretold>>();
    for (const [id, { print, died }] of this.dead) {
      byPrint.set(print, (byPrint.get(print) ?? new Map<string, Foretold>()).set(id, died));
    }
    zset(
      'dead-groups',
      mapValues(byPrint, ({ size }) => size),
    );
    for (const [print, members] of byPrint) zset(`dead-group:${print}`, members);
    hash('dead-titles', this.titles);
  }
}

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

export function packedOf(job: ModelJob): string {
  const { flags, attempts, crashes, priority, created, options, payload } = job;
  const { length } = options;
  const head = String.fromCharCode(flags, attempts, crashes * 16 + priority) + created;
  return head + (options === '' ? '' : String.fromCharCode(length >> 8, length & 0xff) + options) + payload;
}

export function optionsOf(job: ModelJob): StoredOptions {
  return job.options === '' ? {} : (JSON.parse(fromWire(job.options)) as StoredOptions);
}

export function groupOf(job: ModelJob): string | undefined {
  return job.flags & flag.grouped ? toWire(optionsOf(job).g!) : undefined;
}

/** Of a call that was made, or of one that was abandoned. */
function numberOf(seq: string): number {
  return Number(seq.replace('A', ''));
}

// ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

function activeFields({ live, description, lanes, active }: Session): Map<string, Foretold> {
  const fields = new Map<string, Foretold>(active);
  if (!live) return fields;
  fields.set('#', description);
  for (const [lane, { seq, token, alone }] of lanes)
    fields.set(lane, `${seq}:${token}${alone ? ':alone' : ''}`);
  return fields;
}

function laneFields({ said, cancelled, worker }: Session): Map<string, Foretold> {
  const fields = new Map<string, Foretold>();
  for (const [lane, answer] of said) {
    fields.set(lane, packed([answer.seq, answer.refused, answer.special, answer.cancelled]));
  }
  if (cancelled.length > 0) fields.set('cancelled', packed(cancelled));
  if (worker !== undefined) fields.set('worker', worker);
  return fields;
}

function mapNotice({ target, id, outcome }: { target: string; id: string; outcome: string }): object {
  return { target: fromWire(target), id: fromWire(id), outcome };
}

function keptSpec(kept: Moment, spec: string): Foretold {
  return momentAndRest(kept, ` ${spec}`);
}

/** A time and a text in one field. */
function momentAndRest(moment: Moment, rest: string): Foretold {
  return new Meaning([moment, rest], (actual) => {
    const at = actual.indexOf(' ');
    return [Number(actual.slice(0, at)), actual.slice(at)];
  });
}

/** As Redis orders: by score, then by bytes. */
function inOrder(scores: Map<string, number>): [string, number][] {
  return [...scores].sort((a, b) => a[1] - b[1] || compareText(a[0], b[0]));
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function mapValues<V>(map: Map<string, V>, change: (value: V) => Foretold): Map<string, Foretold> {
  return new Map([...map].map(([name, value]) => [name, change(value)]));
}
