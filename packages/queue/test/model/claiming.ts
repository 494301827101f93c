// Claims in the model: what a look does, step by step, and the short way.
import { Moment, packed, packedPairs } from './foretold.js';
import type { Foretold } from './foretold.js';
import { State, compareText, groupOf, inOrder } from './state.js';
import type { Said, Session } from './state.js';

const nurseMs = 10_000;
const watchLapseMs = 50;
const expiryMs = 10;

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
  /** Ends the sheaf of its lane too; these are the jobs in it. */
  whole?: Ack[] | undefined;
  /** Would like its jobs in a sheaf. */
  tie?: boolean;
  idle: boolean;
}

/** The flags of a reply. */
const says = {
  inbox: 1,
  rescue: 2,
  drain: 4,
  alone: 8,
  more: 16,
  watch: 32,
  paused: 64,
  notices: 128,
  ticks: 256,
  sheaf: 512,
} as const;

/** What one look has found out so far. */
class Look {
  readonly call: ClaimCall;
  readonly nowMs: number;
  room: number;
  flags = 0;
  /** When the worker should look again; 0 for no time. */
  dueAt = 0;
  ids: string[] = [];
  grouped = false;
  suspected = 0;
  more = false;

  constructor(call: ClaimCall, nowMs: number) {
    this.call = call;
    this.nowMs = nowMs;
    this.room = call.want;
  }

  earlier(at: number | undefined): void {
    if (at !== undefined && at > 0 && (this.dueAt === 0 || at < this.dueAt)) this.dueAt = at;
  }

  get alone(): boolean {
    return (this.flags & says.alone) !== 0;
  }
}

export class Claiming extends State {
  claim(call: ClaimCall, nowMs: number, token: string): Foretold {
    const session = this.live(call.session);
    if (!session) return ['LEASE_LOST'];
    const early = this.#earlyAnswer(session, call, nowMs);
    if (early) return early;
    if (call.whole && this.events !== undefined) return ['SPLIT'];
    const said = { ...this.#acknowledge(session, call), cancelled: session.cancelled };
    session.cancelled = [];

    const look = new Look(call, nowMs);
    const wasWatching = this.watch === call.session;
    this.#makeRoom(look);
    this.#promote(look);
    this.#openGroups(look);
    this.#choose(look);
    const plainList = this.#plainList(look);
    this.#seeWhatOthersNeed(look);
    this.#keepWatch(look);

    const given = this.#give(session, look, token);
    const issued = look.ids.length > 0 ? token : '';
    this.#write(session, call, issued, look.alone, said);
    if (issued !== '') this.hasTurn = true;
    if (wasWatching && issued !== '') {
      this.watch = undefined;
      look.more = true;
    }
    if (look.more) {
      look.flags |= says.more;
      if (!this.rules.paused) this.rouse();
    }
    const { refused, special, cancelled } = said;
    const head = ['OK', issued, nowMs, packed(given.flat()), look.dueAt, look.flags];
    return [...head, refused, special, cancelled, plainList];
  }

  /** The short way: the head of one list, and nothing else. */
  take(call: ClaimCall, priority: number, nowMs: number, token: string): Foretold {
    const session = this.live(call.session);
    if (!session) return ['LEASE_LOST'];
    const early = this.#earlyAnswer(session, call, nowMs);
    if (early) return early;
    if (this.hasRules || this.events !== undefined || this.watch === call.session) return ['LOOK'];
    const said = { ...this.#acknowledge(session, call), cancelled: [] };
    const look = new Look(call, nowMs);
    const list = this.waits[priority]!;
    look.ids = call.tie ? this.popWhole(list, call.want) : this.popApart(list, call.want);
    const given = this.#give(session, look, token);
    const issued = look.ids.length > 0 ? token : '';
    this.#write(session, call, issued, false, said);
    const tied = call.tie === true && given.length > 0;
    session.lanes.get(call.lane)!.tied = tied;
    if (list.length > 0) this.rouse();
    const flags = (list.length > 0 ? says.more : 0) | (tied ? says.sheaf : 0);
    const head = ['OK', issued, nowMs, this.#reply(given), 0, flags];
    return [...head, said.refused, said.special, [], -1];
  }

  #earlyAnswer(session: Session, call: ClaimCall, nowMs: number): Foretold | undefined {
    const lane = session.lanes.get(call.lane)!;
    if (call.seq < lane.seq) return ['STALE'];
    if (call.seq > lane.seq) {
      return call.whole && (!lane.tied || this.dependents.size > 0) ? ['SPLIT'] : undefined;
    }
    const again = [...session.active].filter(([, token]) => token === lane.token && token !== '');
    const names = this.entriesOf(again.map(([id]) => id));
    if (names.some((name) => this.bales.has(name))) this.onBale('again');
    const pairs = names.map((name): [string, string] => [name, this.stored(name)]);
    const stored = session.said.get(call.lane);
    const said = stored?.seq === String(call.seq) ? stored : { refused: [], special: [], cancelled: [] };
    const flags = says.more | (lane.alone ? says.alone : 0) | (lane.tied ? says.sheaf : 0);
    const { refused, special, cancelled } = said;
    // A sheaf has kept its order; fields have none.
    const jobs = names.some((name) => this.bales.has(name)) ? pairs.flat() : packedPairs(pairs);
    return ['REPEAT', lane.token, nowMs, jobs, 0, flags, refused, special, cancelled, -1];
  }

  /** Bales travel as they are, many small jobs as one value. */
  #reply(given: [string, string][]): Foretold {
    return given.some(([name]) => this.bales.has(name)) ? given.flat() : packed(given.flat());
  }

  #acknowledge(session: Session, { acks, lane, whole }: ClaimCall): { refused: string[]; special: string[] } {
    const refused: string[] = [];
    const special: string[] = [];
    const done: string[] = [];
    const { token: last } = session.lanes.get(lane)!;
    const together = whole ? [...session.active].filter(([, token]) => token === last) : [];
    const others = [...session.lanes.keys()].find((name) => name !== lane);
    if (!whole) this.untie(session, others);
    const isPlain = ({ id, token }: Ack) =>
      session.active.get(id) === token && this.hasOwnField(session, id) && this.dependents.size === 0;
    if (!acks.every(isPlain)) this.untie(session, whole ? lane : undefined);
    for (const { id, token } of acks) {
      if (session.active.get(id) !== token) refused.push(id);
      else if (this.dependents.has(id)) special.push(id);
      else done.push(id);
    }
    for (const [id] of together) done.push(id);
    for (const id of done) {
      session.active.delete(id);
      this.jobs.delete(id);
    }
    for (const [name, { ids }] of this.bales) {
      if (!done.includes(ids[0]!)) continue;
      this.bales.delete(name);
      this.onBale('ended');
    }
    if (done.length > 0) {
      this.figure('done', done.length);
      if (this.events !== undefined) this.happened.push(['type', 'done', 'id', done.join(' ')]);
    }
    return { refused, special };
  }

  /** How much may be claimed. */
  #makeRoom(look: Look): void {
    const { paused, maxActive, rateMax, ratePerMs } = this.rules;
    if (paused) {
      look.room = 0;
      look.flags |= says.paused;
    }
    if (look.room > 0 && maxActive !== undefined) {
      look.room = Math.min(look.room, Math.max(0, maxActive - this.activeCount));
    }
    if (look.room > 0 && rateMax !== undefined) {
      const used = this.rate.filter((at) => at + ratePerMs! > look.nowMs);
      const allowed = Math.max(0, rateMax - used.length);
      if (allowed < look.room) look.earlier(used[0]! + ratePerMs!);
      look.room = Math.min(look.room, allowed);
    }
  }

  /** Due jobs go where they wait: those that came back to the front, the others behind. */
  #promote(look: Look): void {
    const due = [...this.delayed]
      .filter(([, at]) => at.ms <= look.nowMs)
      .sort((a, b) => a[1].ms - b[1].ms || compareText(a[0], b[0]))
      .slice(0, this.bounds.promotedPerCall);
    const returned = due.filter(([, at]) => at.ms === 0).toReversed();
    const others = due.filter(([, at]) => at.ms !== 0);
    for (const [id, at] of [...returned, ...others]) {
      this.delayed.delete(id);
      const job = this.jobs.get(id)!;
      // Whoever was there when a worker died runs alone until it ends.
      if (job.crashes > 0) this.suspects.push(id);
      else this.place(job, at.ms === 0);
    }
    const next = this.firstDelayed();
    if (next) look.earlier(Math.max(next[1].ms, 1));
  }

  /** Groups whose time has come may go on. */
  #openGroups(look: Look): void {
    look.grouped = this.groups.size > 0;
    for (const [name, at] of inOrder(this.parked)) {
      if (at > look.nowMs) {
        look.earlier(at);
        return;
      }
      this.parked.delete(name);
      this.openGroup(name);
    }
  }

  #choose(look: Look): void {
    look.suspected = this.suspects.length;
    if (look.room > 0) this.#chooseSuspect(look);
    if (look.room === 0 || look.ids.length > 0 || this.#leavesTheList(look)) return;
    const { listTurn, oddToGroups, ringFirst, newestFirst } = this;
    if (look.grouped) {
      const odd = look.room % 2 === 1;
      const share = Math.floor(look.room / 2) + (odd && this.oddToGroups ? 1 : 0);
      const lists = this.#listed > 0;
      if (lists && odd) this.oddToGroups = !this.oddToGroups;
      this.#claimFromGroups(look, lists ? share : look.room);
      this.#claimFromLists(look);
      this.#claimFromGroups(look, look.room);
    } else {
      this.#claimFromLists(look);
    }
    // Only a claim that found something moves the turns on.
    if (look.ids.length === 0) Object.assign(this, { listTurn, oddToGroups, ringFirst, newestFirst });
  }

  /** There is nothing but a list, and the worker would like a sheaf: take.lua gives that. */
  #leavesTheList(look: Look): boolean {
    const { tie, session } = look.call;
    if (!tie || this.#listed < this.bounds.worthTaking || this.watch === session) return false;
    return this.#plainList(look) >= 0;
  }

  /** A suspect goes to a worker that runs nothing. Otherwise one worker at a time lets its jobs end for it. */
  #chooseSuspect(look: Look): void {
    const { session, idle } = look.call;
    const suspect = this.#runnableSuspect(look);
    if (suspect === undefined) return;
    if (idle) {
      this.suspects.splice(this.suspects.indexOf(suspect), 1);
      const group = groupOf(this.jobs.get(suspect)!);
      if (group !== undefined) this.#enterGroup(group, look.nowMs);
      look.ids.push(suspect);
      look.flags |= says.alone;
      if (look.suspected === 1) this.nurse = undefined;
    } else if (this.nurse?.session === session || !this.#isNursed(look.nowMs)) {
      this.nurse = { session, until: look.nowMs + nurseMs };
      look.flags |= says.drain;
      look.room = 0;
    }
  }

  #isNursed(nowMs: number): boolean {
    if (!this.nurse || this.nurse.until < nowMs) return false;
    return (this.live(this.nurse.session)?.at.ms ?? 0) >= nowMs;
  }

  /** The first suspect whose group has room. */
  #runnableSuspect(look: Look): string | undefined {
    return this.suspects.slice(0, this.bounds.suspectsLookedAt).find((id) => {
      const group = groupOf(this.jobs.get(id)!);
      return group === undefined || this.#shutBecause(group, look).why === undefined;
    });
  }

  #shutBecause(group: string, look: Look): { why?: 'full' | 'slow'; freeAt?: number } {
    const { keyMaxActive = Infinity, keyRateMax, keyRatePerMs } = this.rules;
    if ((this.groupActive.get(group) ?? 0) >= keyMaxActive) return { why: 'full' };
    if (keyRateMax === undefined) return {};
    const times = this.groupRate.get(group) ?? [];
    const oldest = times[times.length - keyRateMax];
    if (oldest === undefined || oldest + keyRatePerMs! <= look.nowMs) return {};
    look.earlier(oldest + keyRatePerMs!);
    return { why: 'slow', freeAt: oldest + keyRatePerMs! };
  }

  /** A job of the group starts. */
  #enterGroup(group: string, nowMs: number): void {
    this.groupActive.set(group, (this.groupActive.get(group) ?? 0) + 1);
    const { keyRateMax } = this.rules;
    if (keyRateMax === undefined) return;
    this.groupRate.set(group, [...(this.groupRate.get(group) ?? []), nowMs].slice(-keyRateMax));
  }

  /** Groups take turns, one job each: those that have just become busy alternate with the others. */
  #claimFromGroups(look: Look, upTo: number): void {
    while (look.ids.length < upTo) {
      const name = this.ringFirst
        ? (this.ring.shift() ?? this.#nextFresh())
        : (this.#nextFresh() ?? this.ring.shift());
      if (name === undefined) return;
      this.ringFirst = !this.ringFirst;
      const members = inOrder(this.grouped.get(name) ?? new Map<string, number>());
      const { why, freeAt } = members.length > 0 ? this.#shutBecause(name, look) : {};
      if (members.length === 0) {
        this.groups.delete(name);
      } else if (why !== undefined) {
        this.groups.set(name, why);
        if (freeAt !== undefined) this.parked.set(name, freeAt);
      } else {
        const [id] = members[0]!;
        this.#enterGroup(name, look.nowMs);
        this.leaveGroup(name, id);
        look.ids.push(id);
        if (members.length > 1) this.ring.push(name);
        else this.groups.delete(name);
      }
    }
  }

  /** The oldest and the newest alternate. */
  #nextFresh(): string | undefined {
    const name = this.newestFirst ? this.fresh.pop() : this.fresh.shift();
    if (name !== undefined) this.newestFirst = !this.newestFirst;
    return name;
  }

  /** Of 16 turns the last five belong to the levels 1 to 5, if they have jobs; all others to the most urgent. */
  #claimFromLists(look: Look): void {
    const take = [0, 0, 0, 0, 0, 0];
    const left = (p: number) => this.waits[p]!.length - take[p]!;
    let urgent = 0;
    for (let turns = Math.min(look.room - look.ids.length, this.#listed); turns > 0; turns--) {
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
    look.ids.push(...take.flatMap((number, p) => this.popApart(this.waits[p]!, number)));
  }

  get #listed(): number {
    return this.waits.reduce((sum, list) => sum + list.length, 0);
  }

  /** The one list that take.lua may go on with, when there is nothing else to respect. */
  #plainList(look: Look): number {
    if (look.grouped || this.hasRules || this.events !== undefined || look.suspected > 0) return -1;
    const busy = this.waits.flatMap((list, p) => (list.length > 0 ? [p] : []));
    return busy.length === 1 ? busy[0]! : -1;
  }

  #seeWhatOthersNeed(look: Look): void {
    const { nowMs } = look;
    if (this.inbox.length > 0) look.flags |= says.inbox;
    const deadlines = this.liveSessions.map(({ at }) => at.ms);
    const oldest = Math.min(...deadlines);
    if (oldest < nowMs || deadlines.length < this.sessions.size) look.flags |= says.rescue;
    const next = Math.min(...deadlines.filter((deadline) => deadline >= nowMs));
    if (next !== Infinity) look.earlier(next + expiryMs);
    if (this.chained.length > 0) look.flags |= says.notices;
    const tick = Math.min(...this.ticks.values());
    if (tick <= nowMs) look.flags |= says.ticks;
    else if (tick !== Infinity) look.earlier(tick);
  }

  /** Of all sleepers one keeps watch; the others look again when its lease is over. */
  #keepWatch(look: Look): void {
    const limited = look.call.want > 0 && look.room === 0;
    const groupsReady = look.grouped && this.fresh.length + this.ring.length > 0;
    look.more = !limited && (this.#listed > 0 || (look.alone && look.suspected > 1) || groupsReady);
    if (look.ids.length > 0 || look.more) return;
    const watcher = this.watch === undefined ? undefined : this.live(this.watch);
    if (watcher && watcher.name !== look.call.session && watcher.at.ms >= look.nowMs) {
      look.dueAt = watcher.at.ms + watchLapseMs;
      return;
    }
    this.watch = look.call.session;
    look.flags |= says.watch;
  }

  #give(session: Session, look: Look, token: string): [string, string][] {
    const { claimBytes, bytesCheckedEvery } = this.bounds;
    const given: [string, string][] = [];
    let bytes = 0;
    let buried = 0;
    let at = 0;
    for (const [i, name] of this.entriesOf(look.ids).entries()) {
      if (i % bytesCheckedEvery === 0 && bytes > claimBytes) {
        this.#putBack(look.ids.slice(at));
        look.more = true;
        break;
      }
      const ids = this.bales.get(name)?.ids ?? [name];
      at += ids.length;
      if (this.jobs.has(ids[0]!)) {
        given.push([name, this.stored(name)]);
        bytes += this.stored(name).length;
        for (const id of ids) session.active.set(id, token);
      } else {
        this.tombstones.delete(name);
        buried++;
      }
    }
    if (given.length > 0) this.#writeDown(look, token, given);
    else if (buried > 0) look.more = true;
    return given;
  }

  /** Too much for one reply: the rest goes back to where it was, or where it will be found first. */
  #putBack(ids: string[]): void {
    if (ids.some((id) => this.baleOf(id))) this.onBale('back');
    for (const id of ids.toReversed()) {
      const job = this.jobs.get(id);
      if (job && groupOf(job) !== undefined) {
        this.free(job);
        this.delayed.set(id, new Moment(0));
      } else {
        this.waits[job ? job.priority : this.tombstones.get(id)!.charCodeAt(2) % 16]!.unshift(id);
      }
    }
  }

  #writeDown(look: Look, token: string, given: [string, string][]): void {
    const { rateMax } = this.rules;
    if (rateMax !== undefined) this.rate = [...this.rate, ...given.map(() => look.nowMs)].slice(-rateMax);
    if (this.events === undefined) return;
    this.happened.push(['type', 'claimed', 'token', token, 'id', given.map(([id]) => id).join(' ')]);
  }

  /** What a repetition of the call will be told. */
  #write(session: Session, call: ClaimCall, token: string, alone: boolean, said: Omit<Said, 'seq'>): void {
    session.lanes.set(call.lane, { seq: call.seq, token, alone, tied: false });
    if (said.refused.length + said.special.length + said.cancelled.length > 0) {
      session.said.set(call.lane, { seq: String(call.seq), ...said });
    }
    if (token !== '') this.token = token;
  }
}
