// The state of one partition as the model sees it: what there is, where a job is, and the steps that several scripts share
// (placing a job, ending it, burying it). Ids, groups and payloads are strings of one character per byte.
import { flag as storedFlag } from '../../src/packed.js';
import type { StoredOptions } from '../../src/packed.js';
import { fromWire, toWire } from './foretold.js';
import type { Foretold, Moment } from './foretold.js';

/** As TypeScript writes them; the scripts have their own numbers, which have to be the same. */
export const flag = { ...storedFlag, loose: 192 } as const;
const prioritySpan = 1e12;

/** What bounds one call; tests with smaller ones reach them sooner. */
export interface Bounds {
  promotedPerCall: number;
  claimBytes: number;
  bytesCheckedEvery: number;
  suspectsLookedAt: number;
  triesKept: number;
  /** From so many waiting jobs on a look leaves them to the short way. */
  worthTaking: number;
}

export const realBounds: Bounds = {
  promotedPerCall: 200,
  claimBytes: 8 * 1024 * 1024,
  bytesCheckedEvery: 64,
  suspectsLookedAt: 20,
  triesKept: 20,
  worthTaking: 16,
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

export type BaleFate =
  | 'whole'
  | 'again'
  | 'back'
  | 'apart'
  | 'cut'
  | 'untied'
  | 'ended'
  | 'loosened'
  | 'looseTaken'
  | 'dropped'
  | 'emptied'
  | 'seen';

/** Plain jobs that lie together in Redis. The model knows each of them; that they are together shows only in the keys. */
export interface Bale {
  ids: string[];
  /** Each job has its own field, but they share their place in the list. */
  loose: boolean;
  /** Their number, the priority, the time: what follows the flags. */
  head: string;
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

export interface Lane {
  seq: number;
  token: string;
  alone: boolean;
  /** What it claimed last lies together in its field (sheaf.lua). */
  tied: boolean;
}

/** What a call said beside the jobs that it gave; a repetition has to say the same. */
export interface Said {
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
  /** What became of the wish to drain its worker. */
  drain: string | undefined;
}

export interface ProducerLane {
  seq: string;
  answer: { seq: string; words: string[] } | undefined;
}

export interface Letter {
  died: Moment;
  print: string;
  detail: string;
}

export type PlaceName =
  'listed' | 'grouped' | 'held' | 'suspect' | 'due' | 'delayed' | 'blocked' | 'active' | 'dead' | 'gone';

export class State {
  readonly bounds: Bounds;
  /** Every job that has not ended. */
  jobs = new Map<string, ModelJob>();
  bales = new Map<string, Bale>();
  /** Told what happens to bales. */
  onBale: (what: BaleFate) => void = () => {};
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
  ended = new Map<string, { until: Moment; result: string; labels: string | undefined }>();
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
  newestFirst = false;
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

  // ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────────────

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

  untie(session: Session, except?: string): void {
    for (const [name, lane] of session.lanes) {
      if (name === except || !lane.tied) continue;
      lane.tied = false;
      for (const [id, token] of session.active) if (token === lane.token) this.#undo(id, 'untied');
    }
  }

  baleOf(id: string): [string, Bale] | undefined {
    return [...this.bales].find(([, { ids }]) => ids.includes(id));
  }

  /** What stands in a list, or in a sheaf, for these jobs. */
  entriesOf(ids: string[]): string[] {
    const names: string[] = [];
    for (const id of ids) {
      const name = this.baleOf(id)?.[0] ?? id;
      if (names.at(-1) !== name) names.push(name);
    }
    return names;
  }

  /** The field of a bale. */
  packedBale(name: string): string {
    const { ids, head } = this.bales.get(name)!;
    return String.fromCharCode(flag.bale) + head + ids.map((id) => this.jobs.get(id)!.payload).join(',\n');
  }

  /** The field that a job has, or the bale that it lies in. */
  stored(name: string): string {
    return this.bales.has(name) ? this.packedBale(name) : packedOf(this.jobs.get(name)!);
  }

  /** A job gets a field of its own, wherever it is. */
  singleOut(id: string): void {
    const [, bale] = this.baleOf(id) ?? [];
    if (!bale || bale.loose) return;
    const holder = this.holderOf(id);
    if (holder) return this.untie(holder);
    bale.loose = true;
    this.onBale('loosened');
  }

  /** Takes jobs from a list; bales come apart. */
  popApart(list: string[], count: number): string[] {
    const ids = list.splice(0, count);
    const cut = this.baleOf(list[0] ?? '');
    for (const id of ids) this.#undo(id, 'apart');
    if (cut && !this.bales.has(cut[0])) this.onBale('cut');
    return ids;
  }

  /** Takes jobs from a list; bales that fit stay together. */
  popWhole(list: string[], want: number): string[] {
    const taken: string[] = [];
    while (taken.length < want && list.length > 0) {
      const entries = this.entriesOf(list);
      const room = want - taken.length;
      const share = Math.floor((room * entries.length) / list.length);
      if (share === 0 && taken.length > 0) break;
      for (const name of entries.slice(0, Math.max(1, Math.min(share, room)))) {
        const left = want - taken.length;
        const bale = this.bales.get(name);
        if (bale && !bale.loose && bale.ids.length <= left) {
          this.onBale('whole');
          taken.push(...list.splice(0, bale.ids.length));
        } else taken.push(...this.popApart(list, Math.min(bale?.ids.length ?? 1, left)));
      }
    }
    return taken;
  }

  #undo(id: string, how: BaleFate): void {
    const [name, bale] = this.baleOf(id) ?? [];
    if (name === undefined) return;
    this.bales.delete(name);
    this.onBale(bale!.loose ? 'looseTaken' : how);
  }

  /** A job that lies in a sheaf has no field of its own. */
  hasOwnField({ active, lanes }: Session, id: string): boolean {
    const token = active.get(id);
    return token !== undefined && ![...lanes.values()].some((lane) => lane.tied && lane.token === token);
  }

  /** Looks for a job that may leave: if it has no field of its own, sheaves are untied. */
  tokenApart(session: Session, id: string): string | undefined {
    if (!this.hasOwnField(session, id)) this.untie(session);
    return session.active.get(id);
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

  get hasRules(): boolean {
    return Object.keys(this.rules).length > 0;
  }

  get held(): number {
    const shut = [...this.groups].filter(([, state]) => state !== 'ready');
    return shut.reduce((sum, [name]) => sum + (this.grouped.get(name)?.size ?? 0), 0);
  }

  firstDelayed(): [string, Moment] | undefined {
    return [...this.delayed].sort((a, b) => a[1].ms - b[1].ms || compareText(a[0], b[0]))[0];
  }

  // ── Where a job goes ─────────────────────────────────────────────────────────────────────────────────────────────────

  place(job: ModelJob, returned: boolean): void {
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

  leaveGroup(group: string, id: string): void {
    const members = this.grouped.get(group)!;
    members.delete(id);
    if (members.size === 0) this.grouped.delete(group);
  }

  openGroup(name: string): void {
    this.groups.set(name, 'ready');
    this.ring.push(name);
  }

  /** A job is no longer active: its group may go on, and a queue at its limit too. */
  free(job: ModelJob): void {
    if (this.hasRules) this.rouse();
    const group = groupOf(job);
    if (group === undefined) return;
    const running = this.groupActive.get(group)! - 1;
    if (running > 0) this.groupActive.set(group, running);
    else this.groupActive.delete(group);
    if (this.groups.get(group) === 'full') {
      this.openGroup(group);
      this.rouse();
    }
  }

  setDue(id: string, at: Moment): void {
    this.delayed.set(id, at);
    if (this.firstDelayed()![0] === id) this.rouse();
  }

  // ── How a job ends ───────────────────────────────────────────────────────────────────────────────────────────────────

  finish(now: Moment, job: ModelJob, outcome: 'done' | 'cancelled', keepMs: number, result: string): void {
    const { id } = job;
    this.jobs.delete(id);
    this.tries.delete(id);
    this.progress.delete(id);
    this.releaseUnique(job);
    const window = Math.max(keepMs, optionsOf(job).w ?? 0);
    const logs = this.logs.get(id);
    if (window > 0) {
      const { m } = optionsOf(job);
      const labels = m === undefined ? undefined : toWire(JSON.stringify(m));
      this.ended.set(id, { until: now.plus(window), result: outcome[0]! + result, labels });
      if (logs) logs.ends = true;
    } else {
      this.logs.delete(id);
    }
    this.figure(outcome, 1);
    this.tell(outcome, id);
    this.tellDependents(id, outcome);
    this.dependents.delete(id);
  }

  bury(now: Moment, job: ModelJob, detail: string, print: string, title: string): void {
    job.flags |= flag.traces;
    this.dead.set(job.id, { died: now, print, detail });
    this.titles.set(print, title);
    this.releaseUnique(job);
    this.figure('dead', 1);
    this.tell('dead', job.id);
    this.tellDependents(job.id, 'dead');
  }

  exhume(id: string): void {
    const { print } = this.dead.get(id)!;
    this.dead.delete(id);
    if (![...this.dead.values()].some((letter) => letter.print === print)) this.titles.delete(print);
  }

  releaseUnique(job: ModelJob): void {
    const { u, uw } = optionsOf(job);
    if (u !== undefined && uw === undefined && this.uniques.get(toWire(u))?.id === job.id)
      this.uniques.delete(toWire(u));
  }

  tellDependents(id: string, outcome: string): void {
    const targets = this.dependents.get(id);
    if (!targets) return;
    for (const target of targets) this.chained.push({ target, id, outcome });
    this.rouse();
  }

  /** The first and the last ones are kept. */
  rememberTry(id: string, entry: Foretold): void {
    const tries = [...(this.tries.get(id) ?? []), entry];
    this.tries.set(id, tries.length > this.bounds.triesKept ? [tries[0]!, ...tries.slice(2)] : tries);
  }

  // ── Who hears of it ──────────────────────────────────────────────────────────────────────────────────────────────────

  rouse(): void {
    this.wake = true;
  }

  figure(field: string, by: number): void {
    this.stats.set(field, (this.stats.get(field) ?? 0) + by);
  }

  tell(kind: string, id: string): void {
    if (this.events !== undefined) this.happened.push(['type', kind, 'id', id]);
  }
}

export function packedOf(job: ModelJob): string {
  const { flags, attempts, crashes, priority, created, options, payload } = job;
  const { length } = options;
  const head = String.fromCharCode(flags, attempts, crashes * 16 + priority) + created;
  return head + (options === '' ? '' : String.fromCharCode(length >> 8, length & 0xff) + options) + payload;
}

/** A job, or those of a bale, each as it would be alone. */
export function jobsUnder(name: string, packed: string): { id: string; packed: string }[] {
  if (packed.charCodeAt(0) !== flag.bale) return [{ id: name, packed }];
  const header = `\0\0${packed.slice(2, 8)}`;
  const payloads = packed.slice(8).split(',\n');
  return payloads.map((payload, i) => ({ id: `${name.slice(1)}.${i}`, packed: header + payload }));
}

export function optionsOf(job: ModelJob): StoredOptions {
  return job.options === '' ? {} : (JSON.parse(fromWire(job.options)) as StoredOptions);
}

export function groupOf(job: ModelJob): string | undefined {
  return job.flags & flag.grouped ? toWire(optionsOf(job).g!) : undefined;
}

/** As Redis orders: by score, then by bytes. */
export function inOrder(scores: Map<string, number>): [string, number][] {
  return [...scores].sort((a, b) => a[1] - b[1] || compareText(a[0], b[0]));
}

export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
