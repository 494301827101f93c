// Where a job is claimed. A claimer works on one partition for one worker: it holds a session there, sends acknowledgements
// and claims together, and sleeps when there is nothing.
//
//   pump ──▶ call (ack finished + claim next) ──▶ reply ──▶ jobs to the worker, duties, sleep or pump again
//
// Calls travel in lanes. A lane sends one numbered call at a time and repeats it, with the same number, until it is answered:
// the script answers a repetition as it answered the first. Two lanes keep Redis and this process busy at the same time. A
// claim asks for no more than there are free slots, so that no claimed job waits while another worker is idle; while handlers take
// no time at all it asks for more, and what cannot start in the same turn of the loop goes back at once (worker.ts).
import { failPoint, isSluiceError } from '@sluice/base';
import { Audit } from './audit.js';
import { readJobs } from './bale.js';
import type { Visit } from './bale.js';
import { Duties } from './duties.js';
import { queueErrors } from './errors.js';
import { Heartbeat } from './heartbeat.js';
import type { Beat } from './heartbeat.js';
import { randomName } from './ids.js';
import type { Holder, Job } from './job.js';
import type { PartitionKeys } from './keys.js';
import { unpackJob } from './packed.js';
import type { UnpackedJob } from './packed.js';
import type { Partition } from './partition.js';
import { Waiter } from './waiter.js';
import { Packer, pack, readStrings } from './wire.js';
import type { WireValue } from './wire.js';
import type { AnyWorker, Claim } from './worker.js';

const laneCount = 2;
/** A claim of this size or less is not split over the lanes. */
const smallClaim = 16;
const maxClaim = 500;
const maxAcksPerCall = 1_000;
const maxItemsPerCall = 100;
/** A worker that runs something looks around (cancelled jobs, rescue, due jobs, inbox) at least this often. */
const busyLookMs = 1_000;
/** How long take.lua may be used until the next proper look: what it overlooks waits that long at most. */
const lookEveryMs = 10;
/** Redis is near when a look takes no longer. */
const nearMs = 5;
const callDeadlineMs = 10_000;
/** How often what Redis takes for running here is compared with what runs here, while there is anything. */
const auditsPerLease = 2;

/** The flags of claim.lua. */
const flags = {
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

interface Lane {
  /** '#0', '#1': a field of the active hash. */
  name: string;
  seq: number;
  busy: boolean;
  /** When its call began, and the acknowledgements in it, by token. */
  sinceMs: number;
  /** Whether its last call was a proper look. */
  looked: boolean;
  acks: [token: string, jobs: Job[]][];
  /** Its last claim, when Redis keeps that tied together (sheaf.lua). */
  sheaf: { token: string; size: number } | undefined;
}

type ClaimReply = [
  Buffer,
  Buffer,
  number,
  Buffer | Buffer[],
  number,
  number,
  Buffer[],
  Buffer[],
  Buffer[],
  number,
];
type Acks = Record<'list' | 'runs' | 'whole', string | Buffer>;

export class Claimer {
  readonly partition: Partition;
  readonly duties: Duties;
  /** Never used twice: a rescued session stays rescued. */
  session = '';
  readonly #worker: AnyWorker;
  readonly #tokenWaiter: Waiter;
  readonly #inboxWaiter: Waiter;
  #lanes: Lane[] = [];
  #acks = new Map<string, Job[]>();
  #ackCount = 0;
  #settling: WireValue[] = [];
  #returning: WireValue[] = [];
  #itemsUnderWay = 0;
  /** Ids of those items. */
  readonly #ending = new Set<string>();
  readonly #audit: Audit;
  #beat: Beat | undefined;
  #isOpen = false;
  #closing = false;
  /** There may be work: the last look found some, or somebody woke us. */
  #hungry = true;
  /** Of all idle workers this one sees what arrives in the inbox. */
  #onWatch = false;
  /** A call is due even if nothing can be claimed. */
  #lookDue = false;
  /** The last look found jobs and gave none, so that take.lua gives them as they lie. */
  #leftToTake = false;
  #flushPlanned = false;
  #lastCallMs = 0;
  #lastLookMs = 0;
  #lookTookMs = 0;
  #answeredMs = 0;
  /** The list that take.lua may go on with; -1 for none. */
  #plainList = -1;
  readonly #listKeys: PartitionKeys[];
  #dueTimer: NodeJS.Timeout | undefined;
  /** 0 when nothing runs. */
  #earliestDeadlineMs = 0;

  constructor(worker: AnyWorker, partition: Partition) {
    this.#worker = worker;
    this.partition = partition;
    const { keys } = partition;
    const lists = [keys.wait0, keys.wait1, keys.wait2, keys.wait3, keys.wait4, keys.wait5];
    this.holder = { session: '', partition };
    this.#listKeys = lists.map((wait) => ({ ...keys, wait }));
    this.duties = new Duties(worker.queue, partition, worker.leaseMs, worker.logger);
    this.#audit = new Audit(partition, () => this.#known());
    const connect = () => partition.link.another({ name: `sluice-${worker.queue.name}-sleep` });
    this.#tokenWaiter = Waiter.forToken(connect, partition.keys.wake, (why) => {
      if (why === 'lost') this.#audit.request();
      this.look();
    });
    this.#inboxWaiter = Waiter.forInbox(connect, partition.keys.inbox, (why) => {
      if (why === 'woken') void this.duties.takeInbox().then(() => this.look());
      else if (this.#onWatch) this.#inboxWaiter.listen();
    });
  }

  /** What jobs of the present session need from it; a job of a lost session keeps the old one. */
  holder: Holder;

  /** Would claim if it had free slots. */
  get hungry(): boolean {
    return this.#isOpen && this.#hungry && this.busyLanes < laneCount;
  }

  /** Grows with every claim of this worker; whose is smallest has waited longest for a slot. */
  lastTurn = 0;

  get busyLanes(): number {
    return this.#lanes.filter((lane) => lane.busy).length;
  }

  /** Waits for its token: nothing to do until that comes, or the nap is over. */
  get sleeps(): boolean {
    return this.#tokenWaiter.listening;
  }

  /** Nothing is on its way to Redis. */
  get quiet(): boolean {
    return this.#ackCount === 0 && this.#itemsUnderWay === 0 && this.busyLanes === 0;
  }

  async open(): Promise<void> {
    const { leaseMs, description } = this.#worker;
    while (!this.#closing) {
      const session = randomName();
      const beat = Heartbeat.shared().watch(this.#worker, this.partition, session, {
        onLost: (why) => this.#lose(why),
        onDrain: (wished) => this.#worker.drain(this, wished),
      });
      try {
        await beat.ready;
        failPoint('open.ready');
        // What an operator wished of the session before holds for this one.
        const draining = this.#worker.isDraining ? '1' : '0';
        const [status, now] = (await this.partition.run('open', {
          ...{ session, leaseMs, description, draining },
        })) as [Buffer, number];
        if (status.toString() !== 'OK') {
          beat.stop();
          continue;
        }
        failPoint('open.opened');
        if (this.#closing) return beat.stop();
        beat.begin();
        this.partition.clock.observe(now);
        this.session = session;
        this.holder = { session, partition: this.partition };
        this.#lanes = Array.from({ length: laneCount }, (_, number) => ({
          name: `#${number}`,
          seq: 0,
          busy: false,
          sinceMs: 0,
          looked: false,
          acks: [],
          sheaf: undefined,
        }));
        this.#beat = beat;
        beat.setDrained(this.#worker.isDrained);
        this.#earliestDeadlineMs = 0;
        this.#isOpen = true;
        this.#hungry = true;
        this.#worker.recovered(this);
        this.pump();
        return;
      } catch (error) {
        beat.stop();
        if (!isSluiceError(error) || !error.retryable) throw error;
        // Who is about to go needs no session; one who waited for it would stay as long as Redis is away.
        if (this.#worker.isStopping) return;
        this.#worker.degraded(error, this);
      }
    }
  }

  /** The job ended well and leaves nothing behind. */
  ack(job: Job): void {
    const ended = this.#acks.get(job.token);
    if (ended) ended.push(job);
    else this.#acks.set(job.token, [job]);
    this.#ackCount++;
    this.flushSoon();
  }

  /** The job ends and leaves something behind: an item of settle.lua. */
  settle(item: WireValue): void {
    this.#settling.push(item);
    this.#itemsUnderWay++;
    this.#ending.add(idOf(item));
    this.flushSoon();
  }

  /** The job goes back: an item of retry.lua. */
  giveBack(item: WireValue): void {
    this.#returning.push(item);
    this.#itemsUnderWay++;
    this.#ending.add(idOf(item));
    this.flushSoon();
  }

  /** Whatever ends in this tick goes together. */
  flushSoon(): void {
    if (this.#flushPlanned) return;
    this.#flushPlanned = true;
    setImmediate(() => {
      this.#flushPlanned = false;
      this.pump();
    });
  }

  /** Somebody says that there may be something to do. */
  look(): void {
    this.#hungry = true;
    this.#lookDue = true;
    this.pump();
  }

  /** Called every now and then by the worker. */
  tick(nowMs: number): void {
    const idle = this.sleeps && this.#worker.running === 0;
    if (this.#isOpen && !idle && nowMs - this.#lastCallMs > busyLookMs) {
      this.#lookDue = true;
      this.pump();
    }
    if (this.#isOpen) void this.#returnStrangers();
  }

  /** The heartbeat tells it to whoever asked for it. */
  setDrained(isDrained: boolean): void {
    this.#beat?.setDrained(isDrained);
  }

  setEarliestDeadline(atMs: number): void {
    this.#earliestDeadlineMs = atMs;
    this.#beat?.setDeadline(atMs);
  }

  /** A job is about to start. The heartbeat thread must know when it is out of time before it can block the loop. */
  noteDeadline(atMs: number): void {
    if (this.#earliestDeadlineMs === 0 || atMs < this.#earliestDeadlineMs) this.setEarliestDeadline(atMs);
  }

  pump(): void {
    if (!this.#isOpen) return;
    this.#sendItems('settle', this.#settling);
    this.#sendItems('retry', this.#returning);
    for (;;) {
      const idle = this.#lanes.filter((lane) => !lane.busy);
      if (idle.length === 0) return;
      const short = !this.#lookDue && this.#mayTake();
      // A call that may bring a suspect, which runs alone, asks for all slots: no other claims until it is answered.
      const isIdle = !short && this.#worker.isIdle();
      const want = this.#wanted(isIdle ? 1 : idle.length, short);
      if (this.#ackCount === 0 && !this.#lookDue && !(this.#hungry && want > 0)) break;
      const lane = idle.find((each) => this.#endedSheaf(each)) ?? idle[0]!;
      void this.#call(lane, want, isIdle && want > 0, short);
    }
    if (!this.#hungry && this.#worker.hasRoom() && !this.#closing) this.#tokenWaiter.listen();
  }

  /** Ends the session. Everything must have been given back or acknowledged before. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#isOpen = false;
    clearTimeout(this.#dueTimer);
    this.#tokenWaiter.close();
    this.#inboxWaiter.close();
    await this.duties.stop();
    this.#beat?.stop();
    failPoint('close.stopped');
    try {
      await this.partition.run('close', { session: this.session }, { deadlineMs: 2_000 });
      failPoint('close.closed');
    } catch (error) {
      // The lease runs out by itself.
      this.#worker.logger.warn(
        { error, session: this.session },
        'the session could not be closed; its lease will expire',
      );
    }
  }

  /** The last look found one list of plain jobs, not long ago. */
  #mayTake(): boolean {
    return this.#plainList >= 0 && performance.now() - this.#lastLookMs < lookEveryMs;
  }

  #wanted(idleLanes: number, short: boolean): number {
    const free = this.#worker.claimable(this, short);
    if (free <= smallClaim) return free;
    return Math.min(maxClaim, Math.ceil(free / idleLanes));
  }

  /** The jobs of a lane's sheaf, once all of them have ended. */
  #endedSheaf({ sheaf }: Lane): Job[] | undefined {
    const jobs = sheaf && this.#acks.get(sheaf.token);
    return jobs?.length === sheaf?.size ? jobs : undefined;
  }

  /** Takes what this lane's next call acknowledges. */
  #takeAcks(lane: Lane): void {
    lane.acks = [];
    let room = maxAcksPerCall;
    const whole = this.#endedSheaf(lane);
    if (whole) {
      this.#acks.delete(lane.sheaf!.token);
      lane.acks.push([lane.sheaf!.token, whole]);
      room -= whole.length;
    } else {
      lane.sheaf = undefined; // The call will untie it.
    }
    const others = this.#lanes.filter((other) => other !== lane && this.#endedSheaf(other));
    for (const [token, finished] of this.#acks) {
      if (room <= 0) break;
      if (others.some(({ sheaf }) => sheaf!.token === token)) continue;
      const taken = finished.length <= room ? finished : finished.slice(0, room);
      if (taken === finished) this.#acks.delete(token);
      else this.#acks.set(token, finished.slice(taken.length));
      lane.acks.push([token, taken]);
      room -= taken.length;
    }
    this.#ackCount -= maxAcksPerCall - room;
  }

  async #call(lane: Lane, want: number, idle: boolean, short: boolean): Promise<void> {
    lane.busy = true;
    lane.seq++;
    this.#lookDue = false;
    this.#lastCallMs = performance.now();
    lane.sinceMs = this.#lastCallMs;
    lane.looked = false;
    if (want > 0) this.lastTurn = this.#worker.nextTurn();
    const release = this.#worker.reserve(want);
    if (idle) this.#worker.asksForSuspect(true);
    const { session } = this;
    this.#takeAcks(lane);
    failPoint('claim.collected');
    const reply = await this.#claim(lane, want, idle, short);
    failPoint('claim.replied');
    if (idle) this.#worker.asksForSuspect(false);
    lane.busy = false;
    lane.acks = [];
    release();
    // Another lane may have learned meanwhile that the session is gone, and opened a new one.
    if (session !== this.session || !reply) return;
    if (reply[0].toString() === 'LEASE_LOST') return this.#lose('LEASE_LOST');
    if (reply[0].toString() === 'STALE')
      throw new Error(`lane ${lane.name} of ${session} went back to ${lane.seq}`);
    this.#receive(lane, reply as ClaimReply);
  }

  async #claim(
    lane: Lane,
    want: number,
    idle: boolean,
    short: boolean,
  ): Promise<[Buffer, ...unknown[]] | undefined> {
    const { session } = this;
    const call = { session, lane: lane.name, seq: lane.seq, want };
    const tie = this.#worker.isQuick() ? '1' : '0';
    // A look that leaves its jobs to take.lua costs a round trip more: not worth it far away, and never twice in a row.
    const mayLeave = this.#leftToTake || this.#lookTookMs > nearMs ? '0' : tie;
    let acks = encodeAcks(lane, lane.sheaf !== undefined);
    if (short) {
      const level = this.#plainList;
      const reply = await this.#untilAnswered(
        'take',
        { ...call, ...acks, tie, level },
        this.#listKeys[level],
      );
      if (reply?.[0].toString() !== 'LOOK' && reply?.[0].toString() !== 'SPLIT') return reply;
    }
    lane.looked = true;
    for (;;) {
      const reply = await this.#untilAnswered('claim', {
        ...call,
        ...acks,
        tie: mayLeave,
        idle: idle ? '1' : '0',
      });
      if (reply?.[0].toString() !== 'SPLIT') return reply;
      // Somebody untied the sheaf: its jobs are named one by one.
      acks = encodeAcks(lane, false);
    }
  }

  #receive(lane: Lane, reply: ClaimReply): void {
    const [, token, nowMs, jobs, dueMs, bits, refused, special, cancelled, plainList] = reply;
    this.partition.clock.observe(nowMs);
    if (lane.looked) {
      this.#lastLookMs = performance.now();
      this.#lookTookMs = this.#lastLookMs - lane.sinceMs;
    }
    if (plainList >= 0) this.#plainList = plainList;
    else if (!(bits & flags.more)) this.#plainList = -1;
    for (const id of cancelled) this.#worker.cancelled(this, id.toString());
    for (const id of refused) this.#worker.refused(id.toString());
    // Somebody began to wait for these while they ran: they end with a notice.
    for (const id of special) this.#settleLate(id.toString());
    const name = token.toString('latin1');
    const count = this.#dispatch(name, jobs, (bits & flags.alone) !== 0, nowMs);
    lane.sheaf = bits & flags.sheaf ? { token: name, size: count } : undefined;
    failPoint('claim.dispatched');
    this.#worker.nursing(this, (bits & flags.drain) !== 0);
    this.#hungry = count > 0 || (bits & (flags.more | flags.drain)) === flags.more;
    // What take.lua does not find may be elsewhere: only a proper look tells when to wake up.
    if (count === 0 && !lane.looked) this.#lookDue = true;
    this.#leftToTake = count === 0 && lane.looked && (bits & flags.more) !== 0;
    if (count === 0) this.#wakeAt(dueMs, nowMs);
    else this.#audit.request();
    this.#onWatch = (bits & flags.watch) !== 0 && !this.#closing;
    if (this.#onWatch) this.#inboxWaiter.listen();
    if (bits & flags.inbox) void this.duties.takeInbox().then(() => this.look());
    if (bits & flags.rescue) void this.duties.rescue();
    if (bits & flags.notices) void this.duties.deliverNotices();
    if (bits & flags.ticks) void this.duties.runSchedules().then(() => this.look());
    this.duties.sweepSometimes();
    // Quick handlers end before the next turn of the loop: their acknowledgements then travel with the next claim.
    if (count > 0 && this.#worker.isQuick()) this.flushSoon();
    else this.pump();
    this.#worker.checkDrained();
  }

  #dispatch(token: string, jobs: Buffer | Buffer[], alone: boolean, nowMs: number): number {
    const claim: Claim = { claimer: this, token, alone, redisNowMs: nowMs, startedMs: performance.now() };
    let count = 0;
    const visit: Visit = (stem, place, stored, data, unreadable) =>
      this.#worker.begin(claim, stem, place, stored, data, unreadable);
    const begin = (name: string, stored: UnpackedJob) => (count += readJobs(name, stored, visit));
    if (Array.isArray(jobs)) {
      for (let i = 0; i < jobs.length; i += 2) begin(jobs[i]!.toString(), unpackJob(jobs[i + 1]!));
    } else {
      let name: string | undefined;
      readStrings(jobs, (start, end) => {
        if (name === undefined) {
          name = jobs.toString('utf8', start, end);
        } else {
          begin(name, unpackJob(jobs, start, end));
          name = undefined;
        }
      });
    }
    if (count > 0) this.#worker.beginBatches();
    return count;
  }

  #settleLate(id: string): void {
    // The acknowledgement was not applied, so the job is still ours under the token of its claim.
    this.#ending.add(id);
    void this.partition.link
      .call('hget', [this.partition.keys.active + this.session, id])
      .then(
        (token) => token && this.settle([id, (token as Buffer).toString(), 'done', 0, '', '', '', '', '']),
      )
      .catch((error: unknown) => {
        // The audit finds it, and it runs again.
        this.#ending.delete(id);
        this.#worker.degraded(error, this);
      });
  }

  /** Gives back what Redis takes for running here and nobody here knows of. */
  async #returnStrangers(): Promise<void> {
    const { session } = this;
    const everyMs = this.#worker.leaseMs / auditsPerLease;
    const oldestCallMs = () =>
      Math.min(...this.#lanes.map((lane) => (lane.busy ? lane.sinceMs : performance.now())));
    const strangers = await this.#audit.compare(session, everyMs, oldestCallMs);
    if (strangers.length === 0 || session !== this.session) return;
    this.#worker.logger.warn(
      { queue: this.#worker.queue.name, session, jobs: strangers.length },
      'Redis came back with an older state; jobs that had ended run again',
    );
    for (const { id, token } of strangers) this.giveBack([id, token, 'returned', '', '', '']);
  }

  /** The ids of all jobs that run here, or have ended here and are on their way to the books. */
  #known(): Set<string> {
    const known = new Set([...this.#worker.runningFor(this), ...this.#ending]);
    for (const acks of [this.#acks, ...this.#lanes.map((lane) => lane.acks)]) {
      for (const [, jobs] of acks) for (const job of jobs) known.add(job.id);
    }
    return known;
  }

  #wakeAt(dueMs: number, nowMs: number): void {
    clearTimeout(this.#dueTimer);
    if (dueMs <= 0 || this.#closing) return;
    const delayMs = Math.min(Math.max(0, dueMs - nowMs), 60_000);
    this.#dueTimer = setTimeout(() => this.look(), delayMs);
  }

  #sendItems(script: 'settle' | 'retry', items: WireValue[]): void {
    while (items.length > 0) void this.#sendChunk(script, items.splice(0, maxItemsPerCall));
  }

  async #sendChunk(script: 'settle' | 'retry', chunk: WireValue[]): Promise<void> {
    const { session } = this;
    failPoint(script === 'settle' ? 'settle.collected' : 'retry.collected');
    const reply = await this.#untilAnswered(script, { session, items: pack(chunk) });
    failPoint(script === 'settle' ? 'settle.replied' : 'retry.replied');
    // A session that was lost meanwhile has taken its items, and their count, with it.
    if (session !== this.session) return;
    this.#itemsUnderWay -= chunk.length;
    for (const item of chunk) this.#ending.delete(idOf(item));
    if (!reply) return;
    if (reply[0].toString() === 'LEASE_LOST') return this.#lose('LEASE_LOST');
    reply.slice(1).forEach((word, i) => {
      if (String(word) === 'ALREADY') this.#worker.refused(idOf(chunk[i]!));
    });
    this.#worker.checkDrained();
  }

  /** Repeats a call until it is answered or its session is gone. Every script here is safe to repeat. */
  async #untilAnswered(
    script: 'claim' | 'take' | 'settle' | 'retry',
    args: Record<string, string | number | Buffer>,
    keys = this.partition.keys,
  ) {
    const { session } = this;
    while (session === this.session) {
      try {
        const reply = await this.partition.runWith(keys, script, args as never, {
          deadlineMs: callDeadlineMs,
        });
        this.#answeredMs = performance.now();
        this.#worker.recovered(this);
        return reply as [Buffer, ...unknown[]];
      } catch (error) {
        if (isSluiceError(error, 'REDIS_CLOSED')) return undefined;
        const isRefused = !isSluiceError(error) || !error.retryable;
        // Another call may have been answered just now: then this one gave up a moment too early, and Redis is back.
        const isAway = performance.now() - this.#answeredMs > callDeadlineMs / 2;
        if (isRefused || isAway) this.#worker.degraded(error, this);
        if (isRefused) await new Promise((resolve) => setTimeout(resolve, 500));
      }
    }
    return undefined;
  }

  /** The session was rescued, or may be at any moment: what it holds is no longer ours. */
  #lose(why: string): void {
    const { session } = this;
    if (session === '') return;
    this.session = '';
    this.#isOpen = false;
    this.#beat?.stop();
    this.#acks.clear();
    this.#ackCount = 0;
    this.#itemsUnderWay = 0;
    this.#ending.clear();
    this.#audit.reset();
    this.#settling = [];
    this.#returning = [];
    this.#worker.lost(this, queueErrors.LEASE_LOST({ session }), why);
    failPoint('lease.lost');
    if (this.#closing) return;
    void this.open().catch((error: unknown) => this.#worker.degraded(error, this));
  }
}

/** As claim.lua wants them: all ids in one list, and how many belong to each token. The sheaf of the lane needs no names. */
function encodeAcks({ name, acks }: Lane, whole: boolean): Acks {
  const named = whole ? acks.slice(1) : acks;
  const ids = named.flatMap(([, jobs]) => jobs.map(({ id }) => id));
  const list = new Packer(ids.reduce((bytes, id) => bytes + 5 + id.length * 3, 20));
  list.array(2 + ids.length);
  list.short('#');
  list.short(name);
  for (const id of ids) list.text(id);
  const runs = pack(named.flatMap(([token, jobs]): WireValue[] => [token, jobs.length]));
  return { list: list.take(), runs, whole: whole ? '1' : '0' };
}

/** Items of settle.lua and retry.lua begin with the id. */
function idOf(item: WireValue): string {
  return String((item as WireValue[])[0]);
}
