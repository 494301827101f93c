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
import { isSluiceError } from '@sluice/base';
import { queueErrors } from './errors.js';
import { failPoint } from './failPoint.js';
import { randomName } from './ids.js';
import type { PartitionKeys } from './keys.js';
import type { FailurePolicy, PreparedOptions } from './options.js';
import { headerBytes, makeHeader, writeHeader } from './packed.js';
import type { Partition } from './partition.js';
import { Packer } from './wire.js';

/** Singles that meet in one tick are sent in calls of this size, so that Redis and this process work at the same time. */
const coalescedJobs = 250;
export const maxJobsPerCall = 1_000;
const maxBytesPerCall = 1024 * 1024;
const maxLanes = 8;
/** More pending adds than this means that nobody awaits them. */
const maxPendingJobs = 1_000_000;
const rememberMs = 600_000;

export interface NewJob {
  id: string;
  payload: string | Uint8Array;
  flags: number;
  options: PreparedOptions;
  after?: { refs: string[]; policy: FailurePolicy } | undefined;
  dead?: { detail: string; print: string; title: string } | undefined;
}

export interface AddAnswer {
  queue: string;
  id: string;
  duplicate: boolean;
}

interface Call {
  jobs: NewJob[];
  bytes: number;
  /** Producer, lane and number, once it has been sent. With a job's position in the call that is the job's request id. */
  request: string;
  /** The answers, or nothing when all jobs were added as they are: that is all a plain call can say. */
  promise: Promise<AddAnswer[] | undefined>;
  resolve: (answers: AddAnswer[] | undefined) => void;
  reject: (error: unknown) => void;
}

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
  #idleLanes: Lane[] = [];
  #lanesMade = 0;
  #lanesInUse = 0;
  #open: { plain: Call | undefined; special: Call | undefined } = { plain: undefined, special: undefined };
  #ready: Call[] = [];
  #pendingJobs = 0;
  #flushPlanned = false;

  constructor(queue: string, partition: Partition, deadlineMs: number) {
    this.#queue = queue;
    this.#partition = partition;
    this.#keys = { ...partition.keys, producer: partition.keys.producer + this.id };
    this.#deadlineMs = deadlineMs;
  }

  /** Accepts one job; it travels with whatever else is added in this tick. */
  add(job: NewJob): Promise<AddAnswer> {
    const call = this.#join(job, coalescedJobs);
    const position = call.jobs.length - 1;
    if (!this.#flushPlanned) {
      this.#flushPlanned = true;
      setImmediate(() => {
        this.#flushPlanned = false;
        this.#closeOpenCalls();
        this.#pump();
      });
    }
    // One promise per add: an async function would make three, and this runs a hundred thousand times a second.
    return call.promise.then(
      (answers) => answers?.[position] ?? { queue: this.#queue, id: job.id, duplicate: false },
      (error: unknown) => {
        throw this.#explain(error, job.id, `${call.request}.${position}`);
      },
    );
  }

  /** Accepts many jobs; the answers are in their order, or nothing when all of them were added as they are. */
  async addMany(jobs: NewJob[]): Promise<AddAnswer[] | undefined> {
    const joined = new Set<Call>();
    // A call holds either plain or special jobs. Only the answers of special ones say more than "added".
    const places = new Map<number, [Call, number]>();
    for (let i = 0; i < jobs.length; i++) {
      const call = this.#join(jobs[i]!, maxJobsPerCall);
      joined.add(call);
      if (!isPlain(jobs[i]!)) places.set(i, [call, call.jobs.length - 1]);
    }
    this.#closeOpenCalls();
    this.#pump();
    const calls = [...joined];
    const outcomes = await Promise.allSettled(calls.map((call) => call.promise));
    outcomes.forEach((outcome, i) => {
      if (outcome.status === 'fulfilled') return;
      throw this.#explain(outcome.reason, calls[i]!.jobs[0]!.id, `${calls[i]!.request}.0`);
    });
    if (places.size === 0) return undefined;
    const answers = await Promise.all(
      jobs.map(async (job, i) => {
        const place = places.get(i);
        return place
          ? (await place[0].promise)![place[1]]!
          : { queue: this.#queue, id: job.id, duplicate: false };
      }),
    );
    return answers;
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

  #join(job: NewJob, most: number): Call {
    if (this.#pendingJobs >= maxPendingJobs) {
      throw queueErrors.ADD_BACKLOG({ queue: this.#queue, pending: this.#pendingJobs });
    }
    const kind = isPlain(job) ? 'plain' : 'special';
    const bytes = boundOf(job);
    let call = this.#open[kind];
    if (call && (call.jobs.length >= most || call.bytes + bytes > maxBytesPerCall)) {
      this.#ready.push(call);
      call = undefined;
    }
    if (!call) {
      call = newCall();
      this.#open[kind] = call;
    }
    call.jobs.push(job);
    call.bytes += bytes;
    this.#pendingJobs++;
    return call;
  }

  #closeOpenCalls(): void {
    const { plain, special } = this.#open;
    if (plain) this.#ready.push(plain);
    if (special) this.#ready.push(special);
    this.#open = { plain: undefined, special: undefined };
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
      const answers = isPlain(call.jobs[0]!)
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
      this.#pendingJobs -= call.jobs.length;
      this.#pump();
    }
  }

  async #sendPlain(lane: Lane, call: Call): Promise<undefined> {
    const { jobs } = call;
    const createdMs = this.#partition.clock.nowMs();
    const entries = new Packer(call.bytes + 5);
    const idsByPriority: string[][] = [];
    entries.array(jobs.length * 2);
    const headers: Buffer[] = [];
    for (const job of jobs) {
      const kind = job.flags * 8 + job.options.priority;
      headers[kind] ??= makeHeader(job.flags, job.options.priority, createdMs);
      entries.short(job.id);
      const start = entries.begin();
      entries.rawBytes(headers[kind]);
      writePayload(entries, job);
      entries.end(start);
      (idsByPriority[job.options.priority] ??= []).push(job.id);
    }
    const lists = new Packer(jobs.length * 33 + 100);
    lists.array(idsByPriority.filter(Boolean).length * 2);
    idsByPriority.forEach((ids, priority) => {
      lists.int(priority);
      lists.array(ids.length);
      for (const id of ids) lists.short(id);
    });
    failPoint('add.packed');
    const reply = (await this.#partition.runWith(
      this.#keys,
      'add',
      { lane: lane.number, seq: lane.seq, rememberMs, entries: entries.take(), lists: lists.take() },
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
    const createdMs = partition.clock.nowMs();
    const items = new Packer(jobs.reduce((sum, job) => sum + itemBound(job), 100));
    items.array(jobs.length);
    for (const job of jobs) writeItem(items, job, createdMs);
    const inboxTaken = inbox?.taken ?? '0';
    const inboxCount = inbox?.count ?? 0;
    failPoint('addEach.packed');
    const reply = (await partition.runWith(
      keys,
      'addEach',
      { lane, seq, rememberMs, items: items.take(), inboxTaken, inboxCount },
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

function isPlain(job: NewJob): boolean {
  return job.options.plain && !job.after && !job.dead;
}

function newCall(): Call {
  let resolve!: Call['resolve'];
  let reject!: Call['reject'];
  const promise = new Promise<AddAnswer[] | undefined>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // A call that fails while its callers are still being collected must not end the process.
  promise.catch(() => {});
  return { jobs: [], bytes: 0, request: '', promise, resolve, reject };
}

/** An upper bound of what a job takes on the wire: exact lengths would mean encoding it twice. */
function boundOf(job: NewJob): number {
  if (!isPlain(job)) return itemBound(job);
  return payloadBound(job) + job.id.length * 3 + headerBytes + 16;
}

/** The same for an item of addEach.lua, which has twelve fields whatever the job is. */
function itemBound(job: NewJob): number {
  const refs = job.after ? job.after.refs.reduce((sum, ref) => sum + ref.length * 3 + 5, 0) : 0;
  const dead = job.dead ? (job.dead.detail.length + job.dead.title.length) * 3 + 64 : 0;
  const { json, uniqueKey } = job.options;
  return (
    payloadBound(job) + (job.id.length + json.length + uniqueKey.length) * 3 + refs + dead + headerBytes + 200
  );
}

function payloadBound({ payload }: NewJob): number {
  return typeof payload === 'string' ? payload.length * 3 : payload.length;
}

function writePayload(to: Packer, { payload }: NewJob): void {
  if (typeof payload === 'string') to.raw(payload);
  else to.rawBytes(payload);
}

function writeJob(to: Packer, job: NewJob, createdMs: number): void {
  const start = to.begin();
  writeHeader(to, job.options.flags | job.flags, job.options.priority, createdMs, job.options.json);
  writePayload(to, job);
  to.end(start);
}

function writeItem(to: Packer, job: NewJob, createdMs: number): void {
  const { ownId, delayMs, runAtMs, uniqueKey, uniqueWindowMs } = job.options;
  to.array(12);
  to.text(job.id);
  writeJob(to, job, createdMs);
  to.int(ownId === undefined ? 0 : 1);
  to.text(delayMs === undefined ? '' : String(delayMs));
  to.text(runAtMs === undefined ? '' : String(Math.floor(runAtMs)));
  to.text(uniqueKey);
  to.text(uniqueWindowMs === undefined ? '' : String(uniqueWindowMs));
  to.value(job.after?.refs ?? []);
  to.text(job.after?.policy ?? '');
  to.text(job.dead?.detail ?? '');
  to.text(job.dead?.print ?? '');
  to.text(job.dead?.title ?? '');
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
