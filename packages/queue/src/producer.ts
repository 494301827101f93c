// Where a job is accepted. Adds of one tick become one call; calls travel in lanes.
//
// A lane sends one call at a time and numbers its calls. The script remembers each lane's last number for ten minutes, so
// that a call which is repeated after a lost reply adds nothing twice: the request id of a call is producer, lane and
// number, and remembering costs one small hash per producer instead of one entry per call.
//
// When Redis does not answer until the deadline, the outcome is unknown. The lane is then retired, because its call may
// still be on its way, and the error carries the request id: producer, lane, number, and the position of the job in its call.
// A repetition under that id asks the script first: if the original arrived, its answer holds; if not, it is marked as
// abandoned (a late arrival is then refused) and the job is added under its id.
import { failPoint, isSluiceError } from '@sluice/base';
import { Call, isPlain, maxJobsPerCall, packItems } from './call.js';
import type { AddAnswer, NewJob } from './call.js';
import { queueErrors } from './errors.js';
import { randomName } from './ids.js';
import type { PartitionKeys } from './keys.js';
import type { Partition } from './partition.js';

/** Singles that meet in one tick are sent in calls of this size, so that Redis and this process work at the same time. */
const coalescedJobs = 250;
const maxLanes = 8;
/** More pending adds than this means that nobody awaits them. */
const maxPendingJobs = 1_000_000;
const rememberMs = 600_000;

interface Lane {
  number: number;
  seq: number;
}

export class Producer {
  readonly id = randomName();
  readonly #queue: string;
  readonly #partition: Partition;
  readonly #keys: PartitionKeys;
  readonly #deadlineMs: number;
  readonly #newStem: () => string;
  #idleLanes: Lane[] = [];
  #lanesMade = 0;
  #lanesInUse = 0;
  readonly #open: OpenCalls;
  #ready: Call[] = [];
  #pendingJobs = 0;
  #flushPlanned = false;

  /** `newStem` makes the ids of plain jobs; whoever sends none needs none. */
  constructor(queue: string, partition: Partition, deadlineMs: number, newStem = randomName) {
    this.#queue = queue;
    this.#newStem = newStem;
    this.#partition = partition;
    this.#keys = { ...partition.keys, producer: partition.keys.producer + this.id };
    this.#deadlineMs = deadlineMs;
    this.#open = this.openCalls(coalescedJobs, (call) => this.#ready.push(call));
  }

  /** Accepts one job; it travels with whatever else is added in this tick. */
  add(job: NewJob): Promise<AddAnswer> {
    this.#countOne();
    const [call, position] = this.#open.add(job);
    if (!this.#flushPlanned) {
      this.#flushPlanned = true;
      setImmediate(() => {
        this.#flushPlanned = false;
        this.#open.close();
        this.#pump();
      });
    }
    const { id } = job;
    // One promise per add: an async function would make three, and this runs a hundred thousand times a second.
    return call.promise.then(
      (answers) => answers?.[position] ?? { queue: this.#queue, id, duplicate: false },
      (error: unknown) => {
        throw this.#explain(error, id, `${call.request}.${position}`);
      },
    );
  }

  /** Many jobs that one call of the user adds. */
  gather(): Batch {
    return new Batch(this);
  }

  /** @internal */
  openCalls(most: number, full: (call: Call) => void): OpenCalls {
    return new OpenCalls(most, this.#partition, this.#newStem, full);
  }

  /** @internal Sends calls as lanes become free, and waits until all are answered; throws what went wrong with the first that was not. */
  async sendAll(calls: readonly Call[]): Promise<void> {
    for (const call of calls) {
      this.#pendingJobs += call.size;
      this.#ready.push(call);
    }
    this.#pump();
    const outcomes = await Promise.allSettled(calls.map((call) => call.promise));
    outcomes.forEach((outcome, i) => {
      if (outcome.status === 'fulfilled') return;
      throw this.#explain(outcome.reason, calls[i]!.firstId, `${calls[i]!.request}.0`);
    });
  }

  /** One call of its own, outside the lanes: a repetition, a call on another connection, or messages from the inbox. */
  async addApart(
    jobs: NewJob[],
    how: { requestId?: string; partition?: Partition; inbox?: { taken: string; count: number } },
  ): Promise<{ status: string; answers: AddAnswer[] }> {
    const partition = how.partition ?? this.#partition;
    const { requestId, inbox } = how;
    if (requestId !== undefined) {
      failPoint('repeat.asked');
      const [producerId, lane, seq, position] = parseRequestId(requestId);
      const keys = { ...partition.keys, producer: partition.keys.producer + producerId };
      try {
        return await this.#sendSpecial(partition, keys, `=${lane}`, seq, jobs, { inbox, position });
      } catch (error) {
        throw this.#explain(error, jobs[0]!.id, requestId);
      }
    }
    const lane = this.#takeLane();
    try {
      const sent = await this.#sendSpecial(partition, this.#keys, String(lane.number), lane.seq, jobs, {
        inbox,
      });
      this.#idleLanes.push(lane);
      return sent;
    } catch (error) {
      throw this.#explain(error, jobs[0]?.id ?? '', `${this.id}.${lane.number}.${lane.seq}.0`);
    }
  }

  #countOne(): void {
    if (this.#pendingJobs >= maxPendingJobs) {
      throw queueErrors.ADD_BACKLOG({ queue: this.#queue, pending: this.#pendingJobs });
    }
    this.#pendingJobs++;
  }

  #pump(): void {
    while (this.#ready.length > 0 && this.#lanesInUse < maxLanes) {
      const call = this.#ready.shift()!;
      const lane = this.#takeLane();
      this.#lanesInUse++;
      void this.#send(lane, call);
    }
  }

  #takeLane(): Lane {
    const lane = this.#idleLanes.pop() ?? { number: this.#lanesMade++, seq: 0 };
    lane.seq++;
    return lane;
  }

  async #send(lane: Lane, call: Call): Promise<void> {
    call.request = `${this.id}.${lane.number}.${lane.seq}`;
    try {
      const answers = call.isPlain
        ? await this.#sendPlain(lane, call)
        : (await this.#sendSpecial(this.#partition, this.#keys, String(lane.number), lane.seq, call.jobs))
            .answers;
      this.#idleLanes.push(lane);
      call.resolve(answers);
    } catch (error) {
      // A refused call leaves the lane usable; an unanswered one may still arrive, so its lane is never used again.
      if (!isSluiceError(error, 'REDIS_UNAVAILABLE')) this.#idleLanes.push(lane);
      call.reject(error);
    } finally {
      this.#lanesInUse--;
      this.#pendingJobs -= call.size;
      this.#pump();
    }
  }

  async #sendPlain(lane: Lane, call: Call): Promise<undefined> {
    const { entries, priority, baled } = call.finish();
    failPoint('add.packed');
    const reply = (await this.#partition.runWith(
      this.#keys,
      'add',
      { lane: lane.number, seq: lane.seq, rememberMs, entries, priority, baled },
      { deadlineMs: this.#deadlineMs },
    )) as [Buffer, number];
    failPoint('add.replied');
    this.#partition.clock.observe(reply[1]);
  }

  async #sendSpecial(
    partition: Partition,
    keys: PartitionKeys,
    lane: string,
    seq: number,
    jobs: NewJob[],
    how: { inbox?: { taken: string; count: number } | undefined; position?: number } = {},
  ): Promise<{ status: string; answers: AddAnswer[] }> {
    const { inbox, position = 0 } = how;
    const items = packItems(jobs, partition.clock.nowMs());
    const inboxTaken = inbox?.taken ?? '0';
    const inboxCount = inbox?.count ?? 0;
    failPoint('addEach.packed');
    const reply = (await partition.runWith(
      keys,
      'addEach',
      { lane, seq, rememberMs, items, inboxTaken, inboxCount },
      { deadlineMs: this.#deadlineMs },
    )) as [Buffer, number, Buffer[]];
    failPoint('addEach.replied');
    partition.clock.observe(reply[1]);
    const status = reply[0].toString();
    // A repetition asks for one job of its call; the script answers for all of them.
    return {
      status,
      answers: decodeAnswers(this.#queue, reply[2], jobs, status === 'REPEAT' ? position : 0),
    };
  }

  #explain(error: unknown, id: string, requestId: string): unknown {
    if (isSluiceError(error, 'REDIS_FULL'))
      return queueErrors.QUEUE_FULL({ queue: this.#queue }, { cause: error });
    if (isSluiceError(error, 'REDIS_UNAVAILABLE')) {
      return queueErrors.ADD_UNKNOWN({ queue: this.#queue, id, requestId }, { cause: error });
    }
    return error;
  }
}

/** The calls that are being filled: one for plain jobs, one for special ones. Full ones are handed on. */
class OpenCalls {
  readonly #most: number;
  readonly #partition: Partition;
  readonly #newStem: () => string;
  readonly #full: (call: Call) => void;
  #plain: Call | undefined;
  #special: Call | undefined;

  constructor(most: number, partition: Partition, newStem: () => string, full: (call: Call) => void) {
    this.#most = most;
    this.#partition = partition;
    this.#newStem = newStem;
    this.#full = full;
  }

  /** The call that the job travels with, and its position there. */
  add(job: NewJob): [Call, number] {
    const plain = isPlain(job);
    let call = plain ? this.#plain : this.#special;
    if (!call?.hasRoomFor(job, this.#most)) {
      if (call) this.#full(call);
      call = new Call(plain, this.#partition.clock.nowMs(), this.#newStem);
      if (plain) this.#plain = call;
      else this.#special = call;
    }
    return [call, call.add(job)];
  }

  /** Several plain jobs at once; returns the stem of their ids. */
  addBale(size: number, lines: string, priority: number): string {
    if (!this.#plain?.hasRoomForBale(size, lines, this.#most)) {
      if (this.#plain) this.#full(this.#plain);
      this.#plain = new Call(true, this.#partition.clock.nowMs(), this.#newStem);
    }
    return this.#plain.addBale(size, lines, priority);
  }

  close(): void {
    if (this.#plain) this.#full(this.#plain);
    if (this.#special) this.#full(this.#special);
    this.#plain = undefined;
    this.#special = undefined;
  }
}

/** Jobs that are added by one call of the user: packed as they come, sent together. */
export class Batch {
  readonly #calls: Call[] = [];
  readonly #open: OpenCalls;
  readonly #producer: Producer;
  /** Where the special jobs are, by their names. Only their answers say more than "added". */
  readonly #special = new Map<number, [Call, number]>();

  constructor(producer: Producer) {
    this.#producer = producer;
    this.#open = producer.openCalls(maxJobsPerCall, (call) => this.#calls.push(call));
  }

  /** `name`: under which its answer is returned, if that says more than "added". */
  add(job: NewJob, name: number): void {
    const place = this.#open.add(job);
    if (!place[0].isPlain) this.#special.set(name, place);
  }

  addBale(size: number, lines: string, priority: number): string {
    return this.#open.addBale(size, lines, priority);
  }

  /** Resolves when all of them are added; the answers that say more than that, by the names of their jobs. */
  async send(): Promise<Map<number, AddAnswer>> {
    this.#open.close();
    await this.#producer.sendAll(this.#calls);
    const answers = new Map<number, AddAnswer>();
    for (const [name, [call, position]] of this.#special) {
      answers.set(name, (await call.promise)![position]!);
    }
    return answers;
  }
}

function parseRequestId(requestId: string): [string, string, number, number] {
  const match = /^([\w-]+)\.(\d+)\.(\d+)\.(\d+)$/.exec(requestId);
  if (!match) {
    throw queueErrors.OPTION_INVALID({
      option: 'requestId',
      value: requestId,
      allowed: 'the requestId of an ADD_UNKNOWN error',
    });
  }
  return [match[1]!, match[2]!, Number(match[3]), Number(match[4])];
}

function decodeAnswers(queue: string, words: Buffer[], jobs: NewJob[], from: number): AddAnswer[] {
  // A repetition of a plain call has no stored answer: all of its jobs were added.
  if (words.length === 0) return jobs.map(({ id }) => ({ queue, id, duplicate: false }));
  return jobs.map((_, i) => ({
    queue,
    id: words[2 * (from + i) + 1]!.toString(),
    duplicate: words[2 * (from + i)]!.toString() === 'DUPLICATE',
  }));
}
