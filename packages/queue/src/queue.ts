// A queue: the page that users read. Adding is here; everything else is one short method that leads to the file which does it.
import { consoleLogger, silentLogger } from '@sluice/base';
import type { Logger } from '@sluice/base';
import { RedisLink, parseTarget } from '@sluice/redis';
import type { RedisTarget } from '@sluice/redis';
import { checkBackoff, defaultAttempts, defaultBackoff } from './backoff.js';
import { maxBaleLength, maxJobsPerBale } from './bale.js';
import type { Backoff } from './backoff.js';
import { browseJobs } from './browse.js';
import type { BrowseOptions, JobPage } from './browse.js';
import type { NewJob } from './call.js';
import { deliverNotices, dependOn } from './chain.js';
import { DeadLetters } from './dead.js';
import { drainWorker, readCrew } from './crew.js';
import type { Crew, DrainState } from './crew.js';
import { closeDurability, confirmCopies } from './durability.js';
import { queueErrors } from './errors.js';
import { IdMaker, stemOf } from './ids.js';
import { countJobs, lookAtJob, readDependents, readMinutes, waitForEnd } from './inspect.js';
import type { JobState, JobView, MinuteStats, QueueCounts } from './inspect.js';
import { toJson, writeEach } from './json.js';
import { defaultPrefix, partitionKeys } from './keys.js';
import { checkCount, checkMs, plainOptions, prepareOptions } from './options.js';
import type { AddOptions, JobRef, PreparedOptions } from './options.js';
import { flag } from './packed.js';
import { Partition, RedisClock, partitionOf } from './partition.js';
import { Producer } from './producer.js';
import { enlist, forget } from './registry.js';
import { findRetries } from './retries.js';
import type { RetryOptions, RetryPage } from './retries.js';
import { changeRules } from './rules.js';
import type { Rules } from './rules.js';
import { Schedules } from './schedule.js';
import { checkSchema, validateWith } from './schema.js';
import type { StandardSchemaV1 } from './schema.js';
import { injectTrace } from './trace.js';
import { Worker } from './worker.js';
import type { BatchHandler, BatchOptions, ChildOptions, Handler, WorkerOptions } from './worker.js';

/** Changes whenever keys or packed jobs would be misread by an older version. */
const layout = '2';
const defaultMaxPayloadBytes = 1024 * 1024;
const largestPayloadBytes = 64 * 1024 * 1024;
const maxPartitions = 1_024;

export interface QueueOptions<Data> {
  /**
   * Where Redis is: redis://, rediss://, redis+cluster:// or redis+sentinel://. A link is shared with its owner, who closes it: for
   * whoever opens many queues to look at them.
   */
  redis: string | RedisTarget | RedisLink;
  prefix?: string;
  /** Checks payloads on both sides: zod, valibot, or any other Standard Schema. */
  schema?: StandardSchemaV1<Data>;
  /** Spreads one queue over several cluster shards. Fixed when the queue is first used. */
  partitions?: number;
  maxPayloadBytes?: number;
  /** How long an add may take until its outcome is called unknown. */
  addDeadlineMs?: number;
  /** What a job gets that does not say otherwise. */
  attempts?: number;
  backoff?: Backoff;
  timeoutMs?: number;
  keepResultMs?: number;
  /** Puts OpenTelemetry spans around adds and handlers, and lets the trace travel with the job. */
  tracing?: boolean;
  logger?: Logger | 'console';
}

export interface AddedJob extends JobRef {
  /** The job was there already; this add changed nothing. */
  duplicate: boolean;
}

export interface JobDefaults {
  attempts: number;
  backoff: Backoff;
  timeoutMs: number;
  keepResultMs: number;
}

export class Queue<Data = unknown, Result = unknown> {
  readonly name: string;
  readonly options: Readonly<QueueOptions<Data>>;
  readonly defaults: Readonly<JobDefaults>;
  readonly logger: Logger;
  /** Jobs that will not be tried again by themselves. */
  readonly dead: DeadLetters;
  /** Jobs that come back: cron and every-N. */
  readonly schedules: Schedules<Data>;
  /** @internal */
  readonly partitions: readonly Partition[];
  readonly #link: RedisLink;
  readonly #ownsLink: boolean;
  readonly #ids = new IdMaker();
  readonly #producers: Producer[];
  readonly #workers = new Set<Worker<Data, Result>>();
  readonly #deadlineMs: number;
  #round = 0;
  #declared: Promise<void> | undefined;
  #isDeclared = false;
  #closed = false;

  constructor(name: string, options: QueueOptions<Data>) {
    if (!/^[A-Za-z0-9._-]{1,100}$/.test(name)) throw queueErrors.QUEUE_NAME_INVALID({ name });
    this.name = name;
    const shared = options.redis instanceof RedisLink ? options.redis : undefined;
    this.options = {
      ...options,
      redis: shared?.target ?? parseTarget(options.redis as string | RedisTarget),
    };
    this.defaults = checkDefaults(options);
    if (options.schema) checkSchema(options.schema);
    this.logger = options.logger === 'console' ? consoleLogger() : (options.logger ?? silentLogger);
    this.#link = shared ?? new RedisLink(this.options.redis as RedisTarget, { name: `sluice-${name}` });
    this.#ownsLink = shared === undefined;
    const count = options.partitions ?? 1;
    const clock = new RedisClock();
    this.partitions = Array.from({ length: count }, (_, index) => {
      return new Partition(
        index,
        partitionKeys(options.prefix ?? defaultPrefix, name, index),
        this.#link,
        clock,
      );
    });
    this.#deadlineMs = options.addDeadlineMs ?? 10_000;
    this.#producers = this.partitions.map((partition) => {
      const newStem = () => this.#ids.nextFor(partition.index, count);
      return new Producer(name, partition, this.#deadlineMs, newStem);
    });
    this.dead = new DeadLetters(this);
    this.schedules = new Schedules(this);
  }

  /** Adds one job. Resolves when Redis has it. */
  add(data: Data, options?: AddOptions): Promise<AddedJob> {
    const careful = options && (options.after || options.durability || options.requestId);
    if (!this.#isDeclared || this.options.schema || careful) return this.#addSlowly(data, options);
    try {
      const job = this.#prepare(data, options);
      return this.#producers[this.#partitionFor(job)]!.add(job);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Adds many jobs, in one call per thousand. */
  async addMany(jobs: readonly ({ data: Data } & AddOptions)[]): Promise<AddedJob[]> {
    await this.ready();
    for (const job of jobs) {
      if (job.after || job.durability || job.requestId) {
        throw queueErrors.OPTION_INVALID({
          option: 'after, durability and requestId',
          value: 'given',
          allowed: 'used with add(), one job at a time',
        });
      }
    }
    const data = this.options.schema ? await this.#checkEach(jobs) : jobs.map((job) => job.data);
    const options = this.#prepareEach(jobs);
    const batches = this.#producers.map((producer) => producer.gather());
    const added: AddedJob[] = [];
    const add = (id: string) => added.push({ queue: this.name, id, duplicate: false });
    for (const part of writeEach(data)) {
      const from = added.length;
      const priority = commonPriority(options, from, part.size);
      const mayBeBale = priority !== undefined && part.size > 1 && part.longest * 3 <= this.#maxPayloadBytes;
      const lines = mayBeBale ? part.lines() : undefined;
      if (lines !== undefined && lines.length <= maxBaleLength) {
        const stem = batches[this.#nextPartition(part.size)]!.addBale(part.size, lines, priority!);
        for (let i = 0; i < part.size; i++) add(`${stem}.${i}`);
      } else {
        part.cut().forEach((payload, i) => {
          this.#checkSize(payload);
          const job = this.#makeJob(payload, jobs[from + i]!.id, options[from + i] ?? plainOptions);
          batches[this.#partitionFor(job)]!.add(job, from + i);
          add(job.id);
        });
      }
    }
    // None is sent before the last one is known to be good.
    for (const answers of await Promise.all(batches.map((batch) => batch.send()))) {
      for (const [i, answer] of answers) added[i] = answer;
    }
    return added;
  }

  /** Runs `handler` for each job, up to `concurrency` at a time. */
  work(handler: Handler<Data, Result>, options: WorkerOptions = {}): Worker<Data, Result> {
    return this.#startWorker(new Worker<Data, Result>(this, { kind: 'single', handler }, options));
  }

  /** Runs `handler` for several jobs at once; it returns one outcome per job, or nothing when all are done. */
  workBatches(handler: BatchHandler<Data, Result>, options: BatchOptions): Worker<Data, Result> {
    return this.#startWorker(new Worker<Data, Result>(this, { kind: 'batch', handler }, options));
  }

  /** Runs the default export of a module in child processes: for work that keeps a CPU busy, or may crash. */
  workInChildren(module: URL, options: ChildOptions = {}): Worker<Data, Result> {
    return this.#startWorker(new Worker<Data, Result>(this, { kind: 'child', module }, options));
  }

  /** Everything the books say about a job, or null when they say nothing. */
  async job(id: string): Promise<JobView<Data, Result> | null> {
    await this.ready();
    return lookAtJob<Data, Result>(this.#likelyPartitions(id), id);
  }

  /** A page of jobs of some states; bounded, and the page says so. */
  async browse(options: BrowseOptions<Data> = {}): Promise<JobPage<Data>> {
    await this.ready();
    return browseJobs<Data>(this.partitions, options);
  }

  /** The jobs that wait for this one; each of them says in `waitsFor` what it waits for. */
  async dependents(id: string): Promise<JobRef[]> {
    await this.ready();
    return readDependents(this.#likelyPartitions(id), id);
  }

  /** The sessions of workers that hold a lease now. */
  async crew(options: { limit?: number } = {}): Promise<Crew> {
    await this.ready();
    return readCrew(this.partitions, options.limit);
  }

  /**
   * Lets the worker with this session claim nothing more, with its next renewal; running jobs end, then it stays idle. `false` takes that
   * back. Returns the state of the wish, `working` when there is none, or null when nobody has this session.
   */
  async drain(session: string, wished = true): Promise<DrainState | 'working' | null> {
    await this.ready();
    return drainWorker(this.partitions, session, wished);
  }

  /** Resolves with the result once the job is done; rejects when it dies or is cancelled. Needs `keepResultMs` or an own id. */
  async result(id: string, options: { timeoutMs?: number } = {}): Promise<Result> {
    await this.ready();
    return waitForEnd<Result>(this, id, options.timeoutMs ?? 60_000);
  }

  /** Ends a job, waiting or running. Returns the state it was in, or null when there was nothing to cancel. */
  async cancel(id: string): Promise<string | null> {
    await this.ready();
    for (const partition of this.#likelyPartitions(id)) {
      const was = String(await partition.run('cancel', { id, keepMs: 3_600_000 }));
      if (was === 'ENDED') return null;
      if (was !== 'UNKNOWN') {
        // Whoever waits for the job learns of it now, also when no worker is there to tell.
        await deliverNotices(this, partition);
        return was;
      }
    }
    return null;
  }

  /** A delayed job, one that waits for its next attempt included, is due now. Returns the state that the job was found in, or null. */
  async retryNow(id: string): Promise<JobState | null> {
    await this.ready();
    for (const partition of this.#likelyPartitions(id)) {
      if (String(await partition.run('hasten', { id })) === 'HASTENED') return 'delayed';
    }
    return (await lookAtJob(this.#likelyPartitions(id), id))?.state ?? null;
  }

  /** Jobs that failed and wait for their next attempt, soonest first; bounded, and the page says so. */
  async retries(options: RetryOptions = {}): Promise<RetryPage> {
    await this.ready();
    return findRetries(this.partitions, options);
  }

  /** No job is claimed until `resume`; running ones go on. */
  async pause(): Promise<void> {
    await changeRules(this, { paused: true });
  }

  async resume(): Promise<void> {
    await changeRules(this, { paused: null });
  }

  /** Limits of the whole queue and of each group, and the length of the event stream; null removes one. */
  async limit(rules: Rules): Promise<void> {
    await changeRules(this, rules);
  }

  async counts(): Promise<QueueCounts> {
    await this.ready();
    return countJobs(this.partitions);
  }

  /** Throughput and latency per minute, oldest first; kept for 24 hours. */
  async minutes(last = 60): Promise<MinuteStats[]> {
    await this.ready();
    return readMinutes(this.partitions, last);
  }

  /** Takes a queue that has no jobs, workers and schedules out of the list of all queues; false when it has. */
  async forget(): Promise<boolean> {
    await this.ready();
    return forget(this);
  }

  /** Ends the workers that this queue started, then its connections. */
  async close(deadlineMs?: number): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#isDeclared = false;
    await Promise.all([...this.#workers].map((worker) => worker.stop(deadlineMs)));
    closeDurability(this);
    if (this.#ownsLink) this.#link.close();
  }

  /** Checks the server and the layout once; called by everything that needs Redis. */
  ready(): Promise<void> {
    if (this.#closed) return Promise.reject(queueErrors.CLOSED({ what: `queue ${this.name}` }));
    this.#declared ??= this.#declare().catch((error: unknown) => {
      this.#declared = undefined;
      throw error;
    });
    return this.#declared;
  }

  /** @internal Makes a job, with an id, without adding it. */
  prepare(data: Data, options?: AddOptions): Promise<NewJob> | NewJob {
    const named = (job: NewJob) => this.#named(job);
    if (this.options.schema) return this.#prepareChecked(data, options).then(named);
    return named(this.#prepare(data, options));
  }

  /** @internal */
  producerFor(partition: Partition): Producer {
    return this.#producers[partition.index]!;
  }

  /** @internal Where what has this name is, or a plain job with this id. */
  partitionNamed(key: string): Partition {
    return this.partitions[partitionOf(stemOf(key), this.partitions.length)]!;
  }

  /** @internal */
  partitionOfJob(job: NewJob): Partition {
    return this.partitions[this.#partitionFor(job)]!;
  }

  async #prepareChecked(data: Data, options: AddOptions | undefined): Promise<NewJob> {
    const checked = await validateWith(this.options.schema!, data);
    return this.#prepare(checked, options);
  }

  async #checkEach(jobs: readonly { data: Data }[]): Promise<unknown[]> {
    const checked: unknown[] = [];
    for (const { data } of jobs) checked.push(await validateWith(this.options.schema!, data));
    return checked;
  }

  #prepare(data: unknown, options: AddOptions | undefined): NewJob {
    const payload = data instanceof Uint8Array ? data : toJson(data);
    this.#checkSize(payload);
    const prepared = prepareOptions(options, this.options.tracing ? injectTrace() : undefined);
    return this.#makeJob(payload, options?.id, prepared);
  }

  /** The options of each job that has any. */
  #prepareEach(jobs: readonly AddOptions[]): PreparedOptions[] {
    const trace = this.options.tracing ? injectTrace() : undefined;
    const prepared: PreparedOptions[] = [];
    jobs.forEach((job, i) => {
      if (trace || hasOptions(job)) prepared[i] = prepareOptions(job, trace);
    });
    return prepared;
  }

  #makeJob(payload: string | Uint8Array, id: string | undefined, options: PreparedOptions): NewJob {
    const flags = typeof payload === 'string' ? 0 : flag.binary;
    return { id: id ?? (options.plain ? '' : this.#ids.next()), payload, flags, options };
  }

  /** A plain job that does not travel with others needs an id of its own. */
  #named(job: NewJob): NewJob {
    if (job.id === '') job.id = this.#ids.next();
    return job;
  }

  get #maxPayloadBytes(): number {
    return this.options.maxPayloadBytes ?? defaultMaxPayloadBytes;
  }

  #checkSize(payload: string | Uint8Array): void {
    // A UTF-16 unit takes at most three bytes: most payloads need no exact count.
    if (payload.length * 3 <= this.#maxPayloadBytes) return;
    const bytes = Buffer.byteLength(payload);
    if (bytes > this.#maxPayloadBytes) {
      throw queueErrors.PAYLOAD_TOO_LARGE({ bytes, maxBytes: this.#maxPayloadBytes });
    }
  }

  /** Group, unique key and own id choose the partition, so that what must be compared meets; plain jobs go round. */
  #partitionFor(job: NewJob): number {
    const count = this.partitions.length;
    if (count === 1) return 0;
    if (job.id === '') return this.#nextPartition(1);
    const key = job.options.group ?? (job.options.uniqueKey || job.options.ownId);
    return partitionOf(key ?? job.id, count);
  }

  /** A bale's worth of plain jobs goes to one partition, then the next one has its turn. */
  #nextPartition(jobs: number): number {
    const partition = Math.floor(this.#round / maxJobsPerBale) % this.partitions.length;
    this.#round += jobs;
    return partition;
  }

  /** The partition that a job's id points to first, then the others: a group or unique key may have chosen another. */
  #likelyPartitions(id: string): Partition[] {
    const first = this.partitionNamed(id);
    return [first, ...this.partitions.filter((partition) => partition !== first)];
  }

  async #addSlowly(data: Data, options: AddOptions | undefined): Promise<AddedJob> {
    const job = this.options.schema
      ? await this.#prepareChecked(data, options)
      : this.#prepare(data, options);
    await this.ready();
    if (options && (options.after || options.durability || options.requestId))
      return this.#addWithCare(job, options);
    return this.#producers[this.#partitionFor(job)]!.add(job);
  }

  async #addWithCare(job: NewJob, options: AddOptions): Promise<AddedJob> {
    this.#named(job);
    const partition = this.partitionOfJob(job);
    if (options.after && (options.durability || options.requestId)) {
      throw queueErrors.OPTION_INVALID({
        option: 'after',
        value: 'given',
        allowed: 'used without durability and requestId: a blocked job spans several slots',
      });
    }
    if (options.after) return dependOn(this, job, options.after, options.onDependencyFailure ?? 'cancel');
    if (options.durability) return confirmCopies(this, partition, job, options.durability, options.requestId);
    const { answers } = await this.producerFor(partition).addApart([job], { requestId: options.requestId! });
    return answers[0]!;
  }

  #startWorker(worker: Worker<Data, Result>): Worker<Data, Result> {
    this.#workers.add(worker);
    void worker.start();
    return worker;
  }

  async #declare(): Promise<void> {
    const end = performance.now() + this.#deadlineMs;
    const inTime = () => ({ deadlineMs: end - performance.now() });
    for (const info of await this.#link.callEverywhere('INFO', [], inTime())) {
      const text = String(info);
      const policy = /maxmemory_policy:(\S+)/.exec(text)?.[1];
      if (policy && policy !== 'noeviction') throw queueErrors.EVICTING_REDIS({ policy });
      const version = /redis_version:(\S+)/.exec(text)?.[1];
      if (version && Number.parseInt(version, 10) < 7) throw queueErrors.OLD_REDIS({ version });
    }
    for (const partition of this.partitions) {
      const [status, first, second] = (await partition.run(
        'declare',
        { partitions: this.partitions.length, layout },
        inTime(),
      )) as [Buffer, number | Buffer, Buffer];
      if (status.toString() === 'OK') {
        partition.clock.observe(first as number);
      } else if (String(first) === String(this.partitions.length)) {
        throw queueErrors.LAYOUT_MISMATCH({ queue: this.name, stored: String(second), mine: layout });
      } else {
        throw queueErrors.PARTITIONS_MISMATCH({
          queue: this.name,
          stored: Number(first),
          asked: this.partitions.length,
        });
      }
    }
    await enlist(this, inTime());
    this.#isDeclared = !this.#closed;
  }
}

function hasOptions(job: object): boolean {
  for (const name in job) if (name !== 'data') return true;
  return false;
}

/** The priority of some jobs, if they are plain and have the same one. */
function commonPriority(
  options: readonly (PreparedOptions | undefined)[],
  from: number,
  count: number,
): number | undefined {
  const { priority } = options[from] ?? plainOptions;
  for (let i = from; i < from + count; i++) {
    const each = options[i] ?? plainOptions;
    if (!each.plain || each.priority !== priority) return undefined;
  }
  return priority;
}

function checkDefaults(options: Omit<QueueOptions<unknown>, 'schema'>): JobDefaults {
  if (options.partitions !== undefined) checkCount('partitions', options.partitions, maxPartitions);
  if (options.maxPayloadBytes !== undefined)
    checkCount('maxPayloadBytes', options.maxPayloadBytes, largestPayloadBytes);
  if (options.attempts !== undefined) checkCount('attempts', options.attempts, 255);
  if (options.backoff !== undefined) checkBackoff(options.backoff);
  if (options.timeoutMs !== undefined) checkMs('timeoutMs', options.timeoutMs);
  if (options.keepResultMs !== undefined) checkMs('keepResultMs', options.keepResultMs);
  return {
    attempts: options.attempts ?? defaultAttempts,
    backoff: options.backoff ?? defaultBackoff,
    timeoutMs: options.timeoutMs ?? 600_000,
    keepResultMs: options.keepResultMs ?? 0,
  };
}

/** For code inside this package to which the types of payload and result do not matter. */
// oxlint-disable-next-line typescript/no-explicit-any -- a queue of anything is both a source and a sink of payloads
export type AnyQueue = Queue<any, any>;
