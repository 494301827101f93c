// An add that resolves only when copies of the job exist: on replicas (WAIT), or on disk (WAITAOF, Redis 7.2).
//
// Both commands ask about the writes of their own connection, so the add and the question travel over one connection, and
// if that was lost in between the add is repeated: a question on a new connection would be about nothing, and the server at
// its end may be a replica that was promoted without the job. Repeating is safe because the id is made an own one, which
// adds the job once. WAIT also blocks its connection, so these adds have one that they share with nobody else, and they go in
// rounds: whoever asks while a round is under way joins the next, and all of a round share one WAIT.
//
// On a cluster WAIT has no key that would lead it to the right node. The connection therefore goes to the one node that
// owns the partition, which the cluster is asked for, again whenever the node says that the slot has moved or says nothing.
//
// Too few copies in time is DURABILITY_UNKNOWN: the job is there and will run, but may be lost with the master. Nothing is
// taken back, because a copy may arrive a moment later. Adding it again with the same id asks once more.
import { setTimeout as pause } from 'node:timers/promises';
import { isSluiceError } from '@sluice/base';
import { RedisLink, redisErrors } from '@sluice/redis';
import type { RedisTarget } from '@sluice/redis';
import type { AddAnswer, NewJob } from './call.js';
import { queueErrors } from './errors.js';
import { checkCount, defaultRememberMs } from './options.js';
import type { Durability } from './options.js';
import { flag } from './packed.js';
import type { StoredOptions } from './packed.js';
import { Partition } from './partition.js';
import { Producer } from './producer.js';
import type { AddedJob, AnyQueue } from './queue.js';

const defaultTimeoutMs = 1_000;
const maxTimeoutMs = 600_000;
const maxReplicas = 100;
/** What the answer may take beyond the time that Redis was told to wait. */
const answerSlackMs = 3_000;
/** How often a round is repeated when its connection is lost. */
const maxTries = 3;
const defaultAddDeadlineMs = 10_000;
/** How long one node of a cluster is tried before the cluster is asked again who owns the slot: it may have died. */
const nodeDeadlineMs = 2_000;
/** A slot that is being moved belongs to two nodes for a moment. */
const movedPauseMs = 100;
const maxJobsPerRound = 1_000;

/** Adds a job and resolves when as many copies exist as were asked for. */
export async function confirmCopies(
  queue: AnyQueue,
  partition: Partition,
  job: NewJob,
  durability: Durability,
  requestId?: string,
): Promise<AddedJob> {
  const asked = checkDurability(durability);
  const own = withOwnId(job);
  const lines = linesOf(queue);
  const start = performance.now();
  const deadlineMs = queue.options.addDeadlineMs ?? defaultAddDeadlineMs;
  let repeats = requestId;
  for (;;) {
    try {
      const line = await lines.to(partition);
      if (asked.fsync) await line.checkFsync();
      const answer = await line.add({ partition, job: own, requestId: repeats, asked });
      // An id that was made for this call is nobody else's: what a repetition took for a duplicate is this very job.
      const isThisJob = job.options.ownId === undefined && answer.id === job.id;
      return isThisJob ? { ...answer, duplicate: false } : answer;
    } catch (error) {
      // The owner of a cluster slot may have changed; whoever comes next asks for it.
      lines.forget(partition);
      const moved = isSluiceError(error, 'REDIS_REFUSED') && /\b(MOVED|ASK)\b/.test(error.message);
      const unanswered = isSluiceError(error, 'ADD_UNKNOWN') && partition.link.target.mode === 'cluster';
      if (!moved && !unanswered) throw error;
      if (unanswered) repeats = String(error.details?.['requestId']);
      const waitedMs = Math.round(performance.now() - start);
      if (waitedMs > deadlineMs) throw unanswered ? error : notAdded(queue, own, repeats, waitedMs, error);
      await pause(movedPauseMs);
    }
  }
}

/** The deadline came while the slot moved. */
function notAdded(
  queue: AnyQueue,
  { id }: NewJob,
  requestId: string | undefined,
  waitedMs: number,
  cause: unknown,
) {
  if (requestId !== undefined)
    return queueErrors.ADD_UNKNOWN({ queue: queue.name, id, requestId }, { cause });
  const details = {
    what: 'add',
    waitedMs,
    outcomeUnknown: false,
    reason: 'the slot of the partition is on the move',
  };
  return redisErrors.REDIS_UNAVAILABLE(details, { cause });
}

/** Ends the connections that durable adds of this queue opened. Called when the queue is closed. */
export function closeDurability(queue: AnyQueue): void {
  linesByQueue.get(queue)?.close();
  linesByQueue.delete(queue);
}

/** The same job, whose id counts as its caller's own: adding it twice adds it once. */
export function withOwnId(job: NewJob, atLeastMs = 0): NewJob {
  const { options } = job;
  const stored = (options.json === '' ? {} : JSON.parse(options.json)) as StoredOptions;
  const rememberMs = Math.max(stored.w ?? defaultRememberMs, atLeastMs);
  if (options.ownId !== undefined && stored.w === rememberMs) return job;
  const json = JSON.stringify({ ...stored, w: rememberMs });
  return {
    ...job,
    options: { ...options, plain: false, flags: options.flags | flag.settles, json, ownId: job.id },
  };
}

interface Asked {
  replicas: number;
  fsync: boolean;
  timeoutMs: number;
}

interface Request {
  partition: Partition;
  job: NewJob;
  requestId: string | undefined;
  asked: Asked;
}

interface Pending extends Request {
  answer: AddAnswer | undefined;
  resolve: (answer: AddAnswer) => void;
  reject: (error: unknown) => void;
}

function checkDurability({ replicas, fsync = false, timeoutMs = defaultTimeoutMs }: Durability): Asked {
  if (replicas !== undefined && !(fsync && replicas === 0))
    checkCount('durability.replicas', replicas, maxReplicas);
  checkCount('durability.timeoutMs', timeoutMs, maxTimeoutMs);
  return { replicas: replicas ?? (fsync ? 0 : 1), fsync, timeoutMs };
}

/** One connection to the server that holds a job's master copy. */
class Line {
  readonly #queue: AnyQueue;
  readonly #link: RedisLink;
  readonly #deadlineMs: number;
  readonly #producers = new Map<number, Producer>();
  #pending: Pending[] = [];
  #running = false;
  /** Grows whenever the connection is lost or made: what was asked on the one before does not count on this one. */
  #connection = 0;
  #fsync: Promise<void> | undefined;

  constructor(queue: AnyQueue, target: RedisTarget, deadlineMs: number) {
    this.#queue = queue;
    this.#deadlineMs = deadlineMs;
    this.#link = new RedisLink(target, {
      name: `sluice-${queue.name}-durable`,
      onState: () => this.#connection++,
    });
  }

  add(request: Request): Promise<AddAnswer> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ ...request, answer: undefined, resolve, reject });
      if (this.#running) return;
      this.#running = true;
      // Whoever adds in the same tick comes along.
      setImmediate(() => void this.#runRounds());
    });
  }

  /** Says whether the server can confirm what is on its disk, before anything is added. */
  checkFsync(): Promise<void> {
    this.#fsync ??= this.#link.call('WAITAOF', [1, 0, 1]).then(
      () => {},
      (error: unknown) => {
        this.#fsync = undefined;
        if (!isSluiceError(error, 'REDIS_REFUSED')) throw error;
        const reason = /unknown command/i.test(error.message)
          ? 'this server has no WAITAOF (Redis 7.2 and Valkey have it). Ask for replicas without fsync.'
          : `the server refuses WAITAOF: ${String(error.details?.['reason'])}`;
        throw queueErrors.DURABILITY_UNSUPPORTED({ reason }, { cause: error });
      },
    );
    return this.#fsync;
  }

  close(): void {
    this.#link.close();
  }

  async #runRounds(): Promise<void> {
    while (this.#pending.length > 0) {
      const { asked } = this.#pending[0]!;
      const alike = this.#pending
        .filter((request) => sameQuestion(request.asked, asked))
        .slice(0, maxJobsPerRound);
      this.#pending = this.#pending.filter((request) => !alike.includes(request));
      await this.#round(alike, asked);
    }
    this.#running = false;
  }

  async #round(requests: Pending[], asked: Asked): Promise<void> {
    let left = requests;
    let reached = 0;
    for (let tries = 1; tries <= maxTries && left.length > 0; tries++) {
      // Being connected first spares a new line its repetition.
      if (!this.#link.ready)
        await this.#link.call('PING', [], { deadlineMs: this.#deadlineMs }).catch(() => {});
      const connection = this.#connection;
      left = await this.#addAll(left);
      if (left.length === 0) return;
      await this.#mark(left);
      reached = await this.#countCopies(asked);
      if (connection === this.#connection) break;
      reached = 0;
    }
    const wanted = asked.replicas + (asked.fsync ? 1 : 0);
    for (const { job, answer, resolve, reject } of left) {
      if (reached >= wanted) resolve(answer!);
      else reject(queueErrors.DURABILITY_UNKNOWN({ queue: this.#queue.name, id: job.id, wanted, reached }));
    }
  }

  /** Adds the jobs and returns those that are there; the callers of the others have their error. */
  async #addAll(requests: Pending[]): Promise<Pending[]> {
    const outcomes = await Promise.allSettled(
      requests.map((request) => {
        const producer = this.#producerFor(request.partition);
        if (request.requestId === undefined) return producer.add(request.job);
        const repetition = producer.addApart([request.job], { requestId: request.requestId });
        return repetition.then(({ answers }) => answers[0]!);
      }),
    );
    return requests.filter((request, i) => {
      const outcome = outcomes[i]!;
      if (outcome.status === 'rejected') request.reject(outcome.reason);
      // A repetition of our own add finds a duplicate; what the first answer said counts.
      else request.answer ??= outcome.value;
      return outcome.status === 'fulfilled';
    });
  }

  /** A repetition that finds its answer writes nothing, and WAIT would ask about nothing: so something is written after it. */
  async #mark(requests: Pending[]): Promise<void> {
    const repeated = requests.filter(({ requestId }) => requestId !== undefined);
    for (const partition of new Set(repeated.map((request) => request.partition))) {
      await this.#link
        .call('HSET', [partition.keys.cfg, 'confirming', String(Date.now())], {
          deadlineMs: this.#deadlineMs,
        })
        .catch(() => this.#connection++);
    }
  }

  async #countCopies({ replicas, fsync, timeoutMs }: Asked): Promise<number> {
    try {
      if (!fsync)
        return Number(await this.#link.once('WAIT', [replicas, timeoutMs], timeoutMs + answerSlackMs));
      const reply = await this.#link.once('WAITAOF', [1, replicas, timeoutMs], timeoutMs + answerSlackMs);
      const [here, elsewhere] = reply as [number, number];
      return Math.min(here, 1) + Math.min(elsewhere, replicas);
    } catch {
      // The connection was lost, or the server is no master any more: nothing was confirmed.
      this.#connection++;
      return 0;
    }
  }

  #producerFor(partition: Partition): Producer {
    let producer = this.#producers.get(partition.index);
    if (!producer) {
      const here = new Partition(partition.index, partition.keys, this.#link, partition.clock);
      producer = new Producer(this.#queue.name, here, this.#deadlineMs);
      this.#producers.set(partition.index, producer);
    }
    return producer;
  }
}

function sameQuestion(a: Asked, b: Asked): boolean {
  return a.replicas === b.replicas && a.fsync === b.fsync && a.timeoutMs === b.timeoutMs;
}

/** The lines of one queue: one, or on a cluster one per node. */
class Lines {
  readonly #queue: AnyQueue;
  readonly #lines = new Map<string, Line>();
  readonly #owners = new Map<number, Promise<RedisTarget>>();

  constructor(queue: AnyQueue) {
    this.#queue = queue;
  }

  async to(partition: Partition): Promise<Line> {
    const target = await this.#ownerOf(partition);
    const name = target.hosts.map(({ host, port }) => `${host}:${port}`).join();
    let line = this.#lines.get(name);
    if (!line) {
      const deadlineMs = this.#queue.options.addDeadlineMs ?? defaultAddDeadlineMs;
      const isNode = partition.link.target.mode === 'cluster';
      line = new Line(this.#queue, target, isNode ? Math.min(deadlineMs, nodeDeadlineMs) : deadlineMs);
      this.#lines.set(name, line);
    }
    return line;
  }

  forget(partition: Partition): void {
    this.#owners.delete(partition.index);
  }

  close(): void {
    for (const line of this.#lines.values()) line.close();
    this.#lines.clear();
  }

  #ownerOf(partition: Partition): Promise<RedisTarget> {
    const { target } = partition.link;
    if (target.mode !== 'cluster') return Promise.resolve(target);
    let owner = this.#owners.get(partition.index);
    if (!owner) {
      owner = findOwner(partition).catch((error: unknown) => {
        this.forget(partition);
        throw error;
      });
      this.#owners.set(partition.index, owner);
    }
    return owner;
  }
}

const linesByQueue = new WeakMap<AnyQueue, Lines>();

function linesOf(queue: AnyQueue): Lines {
  let lines = linesByQueue.get(queue);
  if (!lines) {
    lines = new Lines(queue);
    linesByQueue.set(queue, lines);
  }
  return lines;
}

type SlotRange = [
  from: number,
  to: number,
  master: [host: Buffer | null, port: number, ...unknown[]],
  ...unknown[],
];

async function findOwner({ keys, link }: Partition): Promise<RedisTarget> {
  const slot = Number(await link.call('CLUSTER', ['KEYSLOT', keys.cfg]));
  const ranges = (await link.call('CLUSTER', ['SLOTS'])) as SlotRange[];
  const range = ranges.find(([from, to]) => from <= slot && slot <= to);
  if (!range)
    throw queueErrors.DURABILITY_UNSUPPORTED({ reason: `no node of the cluster serves slot ${slot} now.` });
  const [host, port] = range[2];
  const { hosts, username, password, tls } = link.target;
  return {
    mode: 'single',
    // A node that does not know its own address says nothing; then it is the one that was asked.
    hosts: [{ host: host?.toString() || hosts[0]!.host, port }],
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls }),
  };
}
