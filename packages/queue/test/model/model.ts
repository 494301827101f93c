// The queue as it should be: one partition in memory, one method per script, written as plainly as its documentation reads.
// A method changes the state and returns the reply that the script has to give. Nothing is fast here, and nothing is shared
// with the scripts. Claims are in claiming.ts, what several scripts do in state.ts, what Redis then holds in keys.ts.
//
// Times come from outside (see foretold.ts), and so does what the scripts may choose freely: the value of a new token, and
// which jobs of a dead session a rescue takes first.
import assert from 'node:assert/strict';
import { Claiming } from './claiming.js';
import { Moment, fromWire, json, toWire } from './foretold.js';
import type { Foretold } from './foretold.js';
import { keptSpec, layout } from './keys.js';
import { compareText, flag, groupOf, inOrder, optionsOf, packedOf } from './state.js';
import type { Letter, ModelJob, ProducerLane, Rules, Session } from './state.js';

const tombstone = '\xff';
const headsLookedAt = 20;
const operationsKept = 1_000;

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

/** Nobody renewed for this share of a lease: nobody could. */
const outageShare = 2 / 3;

export class Model extends Claiming {
  // ── Adding ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  declare(partitions: string, now: Moment): Foretold {
    this.partitions ??= partitions;
    return this.partitions === partitions ? ['OK', now] : ['MISMATCH', this.partitions, layout];
  }

  /** `bales`: which of the jobs lie together, by name. */
  add(
    producer: string,
    lane: string,
    seq: number,
    jobs: ModelJob[],
    bales: Map<string, string[]>,
    now: Moment,
  ): Foretold {
    const last = this.#lane(producer, lane)?.seq;
    if (last === `A${seq}`) return ['ABANDONED', now];
    if (last !== undefined && numberOf(last) >= seq) return ['REPEAT', now];
    for (const job of jobs) {
      this.jobs.set(job.id, job);
      this.waits[job.priority]!.push(job.id);
    }
    for (const [name, ids] of bales) {
      const head = String.fromCharCode(ids.length) + packedOf(this.jobs.get(ids[0]!)!).slice(2, 8);
      this.bales.set(name, { ids, loose: false, head });
    }
    this.#remember(producer, lane, String(seq), this.#lane(producer, lane)?.answer);
    this.rouse();
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
    if (ready) this.rouse();
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
        const [name, bale] = this.baleOf(id) ?? [];
        if (bale) {
          bale.ids = bale.ids.filter((other) => other !== id);
          this.onBale(bale.ids.length > 0 ? 'dropped' : 'emptied');
          if (bale.ids.length === 0) this.bales.delete(name!);
        }
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
    if (item.detail !== '') this.bury(now, job, item.detail, item.print, item.title);
    else if (item.refs.length > 0) this.blocked.set(id, { policy: item.policy, refs: new Set(item.refs) });
    else if (item.delay !== '') this.setDue(id, now.plus(item.delay));
    else if (item.runAt !== '') this.setDue(id, new Moment(Math.max(item.runAt, 1)));
    else {
      this.place(job, false);
      ready = true;
    }
    this.tell('added', id);
    return ready;
  }

  // ── Sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  open(name: string, leaseMs: number, description: string, draining: boolean, now: Moment): Foretold {
    const known = this.sessions.get(name);
    if (known) return known.live ? ['OK', now] : ['USED'];
    this.#surviveOutage(now, leaseMs);
    this.renewed = now;
    const lanes = new Map(
      ['#0', '#1'].map((lane) => [lane, { seq: 0, token: '', alone: false, tied: false }]),
    );
    const session: Session = {
      ...{ name, live: true, at: now.plus(leaseMs), description, lanes, worker: undefined },
      ...{ active: new Map(), said: new Map(), cancelled: [], drain: draining ? 'draining' : undefined },
    };
    this.sessions.set(name, session);
    return ['OK', now];
  }

  renew(name: string, leaseMs: number, drained: boolean, now: Moment): Foretold {
    const session = this.live(name);
    if (!session) return ['LEASE_LOST', now];
    this.#surviveOutage(now, leaseMs);
    if (session.at.ms < now.ms && !this.#inGrace(now)) return ['EXPIRED', now];
    session.at = now.plus(leaseMs);
    this.renewed = now;
    if (!session.drain) return ['OK', now, 0];
    session.drain = drained ? 'drained' : 'draining';
    return ['OK', now, 1];
  }

  drain(name: string, worker: string, wished: boolean): Foretold {
    const live = [...this.sessions.values()].filter((session) => session.live);
    live.sort((a, b) => a.at.ms - b.at.ms || compareText(a.name, b.name));
    const meant = (session: Session) =>
      name === '' ? session.description.includes(`"id":"${worker}"`) : session.name === name;
    let answer: Foretold = [];
    for (const session of live.filter(meant)) {
      session.drain = wished ? (session.drain ?? 'asked') : undefined;
      const { id } = JSON.parse(session.description) as { id: string };
      answer = [id, session.drain ?? ''];
    }
    return answer;
  }

  close(name: string): Foretold {
    const session = this.live(name);
    if (!session) return 'LEASE_LOST';
    if (session.active.size > 0) return 'BUSY';
    this.sessions.delete(name);
    if (this.watch === name) this.watch = undefined;
    this.rouse();
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
      if (this.#inGrace(now)) return ['GRACE', this.graceUntil!.minus(now)];
      session = inOrder(true).find(({ at }) => at.ms <= now.ms);
      if (!session) return ['NONE'];
      session.live = false;
      this.untie(session);
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
      this.rememberTry(id, json([...tried, 'the worker died while it ran the job', '']));
      job.crashes = Math.min(job.crashes + 1, 15);
      job.flags |= flag.traces;
      this.free(job);
      this.suspects.push(id);
    }
    const more = session.active.size > 0 ? 1 : 0;
    if (!more) this.sessions.delete(session.name);
    if (chosen.length > 0) this.rouse();
    return ['RESCUED', session.name, chosen.length, more, chosen];
  }

  /** After an outage, when nobody could renew for a whole lease, nobody is to blame for one more lease. */
  #surviveOutage(now: Moment, leaseMs: number): void {
    const renewed = this.renewed?.ms ?? now.ms;
    if (now.ms - renewed > leaseMs * outageShare) this.graceUntil = now.plus(leaseMs);
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

  hasten(id: string, now: Moment): Foretold {
    const due = this.delayed.get(id);
    if (!due || due.ms <= now.ms) return 'ELSEWHERE';
    this.delayed.set(id, now);
    this.rouse();
    return 'HASTENED';
  }

  // ── Ending ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  settle(name: string, items: SettleItem[], now: Moment): Foretold {
    const session = this.live(name);
    if (!session) return ['LEASE_LOST'];
    const words = items.map((item) => {
      if (this.tokenApart(session, item.id) !== item.token) return 'ALREADY';
      const job = this.jobs.get(item.id)!;
      session.active.delete(item.id);
      this.free(job);
      if (item.tried !== '') this.rememberTry(item.id, item.tried);
      if (item.outcome === 'dead') this.bury(now, job, item.detail, item.print, item.title);
      else this.finish(now, job, item.outcome, item.keepMs, item.result);
      return 'SETTLED';
    });
    return ['OK', ...words];
  }

  retry(name: string, items: RetryItem[], now: Moment): Foretold {
    const session = this.live(name);
    if (!session) return ['LEASE_LOST'];
    const words = items.map((item) => {
      if (this.tokenApart(session, item.id) !== item.token) return 'ALREADY';
      const job = this.jobs.get(item.id)!;
      session.active.delete(item.id);
      this.free(job);
      if (item.why === 'failed') {
        job.attempts = Math.min(job.attempts + 1, 255);
        job.flags |= flag.traces;
        if (item.tried !== '') this.rememberTry(item.id, item.tried);
        this.figure('failed', 1);
        this.tell('failed', item.id);
      }
      if (item.delay !== '' && item.delay > 0) this.setDue(item.id, now.plus(item.delay));
      else if (item.runAt !== '') this.setDue(item.id, new Moment(Math.max(item.runAt, 1)));
      else this.setDue(item.id, new Moment(0));
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
    if (this.tokenApart(session, id) !== token) return 'ALREADY';
    this.jobs.get(id)!.flags |= flag.traces;
    if (kind === 'progress') this.progress.set(id, value);
    else this.logs.set(id, { lines: [...(this.logs.get(id)?.lines ?? []), value].slice(-keep), ends: false });
    return 'OK';
  }

  cancel(id: string, keepMs: number, now: Moment): Foretold {
    const job = this.jobs.get(id);
    if (!job) return this.tombstones.has(id) || this.ended.has(id) ? 'ENDED' : 'UNKNOWN';
    this.singleOut(id);
    const state = this.stateOf(id, now.ms);
    const place = this.placeOf(id, now.ms);
    this.delayed.delete(id);
    this.blocked.delete(id);
    this.suspects = this.suspects.filter((other) => other !== id);
    if (place === 'dead') this.exhume(id);
    const group = groupOf(job);
    if (place === 'grouped' || place === 'held') this.leaveGroup(group!, id);
    const holder = this.holderOf(id);
    if (holder) {
      this.tokenApart(holder, id);
      holder.active.delete(id);
      holder.cancelled.push(id);
      this.free(job);
    }
    this.finish(now, job, 'cancelled', keepMs, '');
    if (place === 'listed') this.tombstones.set(id, tombstone + packedOf(job).slice(1, 3));
    return state;
  }

  // ── Dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────────

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
      this.exhume(id);
      job!.attempts = 0;
      job!.crashes = 0;
      this.place(job!, false);
      this.tell('replayed', id);
      record.moved++;
      this.rouse();
    }
    return [record.moved, record.began];
  }

  discard(operation: string, ids: string[], now: Moment): Foretold {
    const record = this.#operation(operation, now);
    for (const id of ids) {
      const letter = this.dead.get(id);
      if (!letter || letter.died.ms > record.began.ms) continue;
      this.exhume(id);
      this.finish(now, this.jobs.get(id)!, 'cancelled', 0, '');
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
      this.exhume(id);
      this.finish(now, this.jobs.get(id)!, 'cancelled', 0, '');
    }
    return dropped.length;
  }

  amend(operation: string, id: string, seen: string, replacement: ModelJob, now: Moment): Foretold {
    // Only one that moved something is remembered.
    const known = this.operations.has(operation);
    const record = this.#operation(operation, now);
    if (record.moved > 0) return 'REPLAYED';
    if (!known) this.operations.delete(operation);
    if (!this.dead.has(id)) return 'UNKNOWN';
    if (packedOf(this.jobs.get(id)!) !== seen) return 'CHANGED';
    const { u, uw } = optionsOf(replacement);
    if (u !== undefined && uw === undefined) {
      const holder = this.uniques.get(toWire(u));
      if (holder && holder.id !== id) return 'TAKEN';
      this.uniques.set(toWire(u), holder ?? { id, ends: false });
    }
    this.exhume(id);
    replacement.attempts = 0;
    replacement.crashes = 0;
    this.jobs.set(id, replacement);
    this.place(replacement, false);
    this.tell('replayed', id);
    record.moved = 1;
    this.operations.set(operation, record);
    this.rouse();
    return 'REPLAYED';
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
        ? letters.filter((letter) => side(letter) < 0).toReversed()
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

  // ── Chains and schedules ─────────────────────────────────────────────────────────────────────────────────────────────

  depend(id: string, target: string, rememberMs: number, now: Moment): Foretold {
    const job = this.jobs.get(id);
    if (!job) {
      if (this.tombstones.has(id)) return 'cancelled';
      const memory = this.ended.get(id);
      if (!memory) return 'UNKNOWN';
      // The script counts in whole seconds here.
      const [from, to] = [now.from, now.to ?? now.from].map(
        (ms) => Math.floor(ms / 1000) * 1000 + rememberMs,
      );
      const until = memory.until.ms;
      memory.until = new Moment(Math.max(until, from!), Math.max(until, to!));
      return memory.result.startsWith('d') ? 'done' : 'cancelled';
    }
    this.singleOut(id);
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
      this.finish(now, this.jobs.get(id)!, 'cancelled', 3_600_000, '');
      return 'CANCELLED';
    }
    blocked.refs.delete(ref);
    if (blocked.refs.size > 0) return 'WAITING';
    this.blocked.delete(id);
    this.delayed.set(id, new Moment(0));
    this.rouse();
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
    this.rouse();
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
      this.place(job, false);
      this.tell('added', job.id);
    }
    if (next === '') {
      this.ticks.delete(name);
      this.schedules.delete(name);
    } else {
      this.ticks.set(name, next);
    }
    if (jobs.length > 0) this.rouse();
    return ['FIRED', now];
  }

  // ── Operators ────────────────────────────────────────────────────────────────────────────────────────────────────────

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
      this.openGroup(name);
    }
    this.rouse();
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
    for (const [field, by] of counts) this.figure(field, by);
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
      const { result = 'c', labels = '' } = this.ended.get(id) ?? {};
      return [state, '', 0, '', '', report, result, '', [], ...traces, labels];
    }
    const due = state === 'delayed' ? this.delayed.get(id)! : 0;
    const holder = this.holderOf(id);
    if (holder && this.baleOf(id)) this.onBale('seen');
    const refs = new Map([...(this.blocked.get(id)?.refs ?? [])].map((ref) => [ref, '']));
    const detail = this.dead.get(id)?.detail ?? '';
    const head = [state, packedOf(job), due, holder?.name ?? '', holder?.active.get(id) ?? '', report, ''];
    return [...head, detail, [...refs.keys()].sort(compareText), ...traces, ''];
  }

  count(now: Moment): Foretold {
    const heads: string[] = [];
    const firstOf = (ids: string[]) => {
      const id = ids.find((candidate) => this.jobs.has(candidate));
      if (id !== undefined) heads.push(packedOf(this.jobs.get(id)!).slice(0, 8));
    };
    for (const list of this.waits) {
      const first = this.entriesOf(list)
        .slice(0, headsLookedAt)
        .find((name) => this.bales.has(name) || this.jobs.has(name));
      const bale = first === undefined ? undefined : this.bales.get(first);
      if (bale) heads.push(String.fromCharCode(bale.loose ? flag.loose : flag.bale) + bale.head);
      else firstOf([first ?? '']);
    }
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
        this.held,
        this.tombstones.size,
        this.activeCount,
        this.sessions.size,
        this.dead.size,
        this.ended.size,
      ],
      ...[heads, this.firstDelayed()?.[1] ?? 0],
    ];
  }
}

/** Of a call that was made, or of one that was abandoned. */
function numberOf(seq: string): number {
  return Number(seq.replace('A', ''));
}
