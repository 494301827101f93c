// A worker: runs a handler for the jobs that its claimers bring. It owns the slots (how many run at once), the outcome of each
// run, the time limits, and the orderly end. It knows nothing of Redis; claimers do (claimer.ts), one per partition.
//
//   begin ──▶ handler ──▶ done ──▶ ack, or settle when something remembers the job
//                    └──▶ failed ─▶ retry.ts decides: try again later, or bury
import { failPoint } from '@sluice/base';
import { EventEmitter } from 'node:events';
import { hostname } from 'node:os';
import type { Logger } from '@sluice/base';
import { ChildPool } from './children.js';
import { Claimer } from './claimer.js';
import { queueErrors } from './errors.js';
import { Heartbeat } from './heartbeat.js';
import { randomName } from './ids.js';
import { GiveUp, isOutcome } from './outcome.js';
import type { Outcome } from './outcome.js';
import { LatencyTally, encodeResult } from './inspect.js';
import { Job } from './job.js';
import { checkCount, checkMs } from './options.js';
import type { UnpackedJob } from './packed.js';
import type { Queue } from './queue.js';
import { decideFailure } from './retry.js';
import { validateWith } from './schema.js';
import { everyTick, tickMs } from './ticker.js';
import { runInSpan } from './trace.js';
import { pack } from './wire.js';

const defaultConcurrency = 10;
const maxConcurrency = 100_000;
const defaultLeaseMs = 15_000;
const shortestLeaseMs = 500;
const defaultDrainMs = 10_000;
const tallyEveryMs = 1_000;
/** A worker with nothing to do looks after itself this much less often: a process may have thousands of them. */
const ticksPerSleepyTick = 8;
/** Handlers that typically take less than this may be claimed for ahead: see `keepForThisTurn`. */
const quickMs = 2;
const smallestQuickSlots = 16;
/** So many times its slots is what a worker with quick handlers claims. */
const claimedAhead = 3;
/** How long a partition that does not answer holds up the others. */
const answerPatienceMs = 1_000;
/** How much the newest run counts in what is typical. A few hundred quick runs in a row make a worker quick, one slow run ends it. */
const typicalShare = 0.02;
/** A job that was running whenever its worker died, this often, is taken for the cause. */
const maxCrashes = 3;

export type Handler<Data, Result> = (
  job: Job<Data>,
) => Promise<Result | Outcome | void> | Result | Outcome | void;

/** One outcome per job, in order: a result, an outcome, or an Error for a job that failed. Nothing: all are done. */
export type BatchHandler<Data, Result> = (
  jobs: Job<Data>[],
) => Promise<(Result | Outcome | Error)[] | void> | (Result | Outcome | Error)[] | void;

export interface WorkerOptions {
  /** How many handlers run at once. */
  concurrency?: number;
  /** How long a worker may be silent until others take its jobs. */
  leaseMs?: number;
  /** How long `stop` waits for running handlers. */
  drainMs?: number;
  /** Shown in dead letters and by `inspect`. */
  name?: string;
}

export interface BatchOptions extends WorkerOptions {
  /** The most jobs that one call of the handler gets. */
  batchSize: number;
}

export interface ChildOptions extends WorkerOptions {
  /** Arguments for node, for example --max-old-space-size. */
  execArgv?: string[];
}

export type Work<Data, Result> =
  | { kind: 'single'; handler: Handler<Data, Result> }
  | { kind: 'batch'; handler: BatchHandler<Data, Result> }
  | { kind: 'child'; module: URL };

interface WorkerEvents {
  started: [];
  done: [job: Job<never>, result: unknown];
  failed: [job: Job<never>, error: unknown];
  dead: [job: Job<never>, error: unknown];
  /** The books did not accept an outcome: the job was cancelled, or ended by somebody else. */
  refused: [id: string];
  leaseLost: [ids: string[], reason: string];
  degraded: [error: unknown];
  recovered: [];
  drained: [];
  stopped: [];
}

/** What the jobs of one reply have in common. */
export interface Claim {
  claimer: Claimer;
  token: string;
  alone: boolean;
  redisNowMs: number;
  startedMs: number;
}

interface Run<Data> {
  job: Job<Data>;
  claim: Claim;
  timeoutMs: number;
}

export class Worker<Data = unknown, Result = unknown> extends EventEmitter<WorkerEvents> {
  readonly queue: Queue<Data, Result>;
  readonly name: string;
  readonly leaseMs: number;
  readonly logger: Logger;
  readonly #work: Work<Data, Result>;
  readonly #concurrency: number;
  readonly #drainMs: number;
  readonly #batchSize: number;
  readonly #children: ChildPool | undefined;
  readonly #runs = new Set<Run<Data>>();
  readonly #tally = new LatencyTally();
  /** Jobs of the reply being read, until the batch handler gets them. */
  #gathered: Run<Data>[] = [];
  #claimers: Claimer[] = [];
  #reserved = 0;
  /** Claimed ahead, until the end of this turn of the loop. */
  #unstarted: Run<Data>[] = [];
  #typicalMs = 1_000;
  #turns = 0;
  #state: 'new' | 'running' | 'stopping' | 'stopped' = 'new';
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;
  /** A suspect runs: nothing else is claimed until it ends. */
  #aloneRuns = 0;
  /** Since when a call is under way that may bring a suspect. */
  #suspectAskedMs = -Infinity;
  /** Lets its jobs end, in order to run a suspect alone. */
  #nursing: Claimer | undefined;
  /** Who of us, claimers and the worker that starts, gets no answer from Redis. */
  readonly #unanswered = new Set<unknown>();
  #stopTicking: (() => void) | undefined;
  #lastTallyMs = 0;
  #ticksAsleep = 0;
  #drained: (() => void)[] = [];
  /** The same in all sessions of this worker. */
  readonly #id = randomName();
  /** Those whose sessions an operator wishes to drain. */
  readonly #draining = new Set<Claimer>();
  /** @internal It drains, and nothing runs. */
  isDrained = false;

  constructor(
    queue: Queue<Data, Result>,
    work: Work<Data, Result>,
    options: WorkerOptions & { batchSize?: number; execArgv?: string[] },
  ) {
    super();
    this.queue = queue;
    this.#work = work;
    this.#concurrency = options.concurrency ?? defaultConcurrency;
    checkCount('concurrency', this.#concurrency, maxConcurrency);
    this.leaseMs = options.leaseMs ?? defaultLeaseMs;
    checkMs('leaseMs', this.leaseMs);
    if (this.leaseMs < shortestLeaseMs) {
      throw queueErrors.OPTION_INVALID({
        option: 'leaseMs',
        value: this.leaseMs,
        allowed: `at least ${shortestLeaseMs}`,
      });
    }
    this.#drainMs = options.drainMs ?? defaultDrainMs;
    checkMs('drainMs', this.#drainMs);
    this.#batchSize = options.batchSize ?? 1;
    checkCount('batchSize', this.#batchSize, 1_000);
    this.name = options.name ?? `${hostname()}:${process.pid}`;
    this.logger = queue.logger;
    this.#children = work.kind === 'child' ? new ChildPool(work.module, options.execArgv ?? []) : undefined;
  }

  /** Resolves when every partition has a session. Called by queue.work. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /**
   * Claims nothing more, lets running handlers end until the deadline, then aborts them and gives their jobs back. Nothing
   * is lost either way.
   */
  stop(drainMs = this.#drainMs): Promise<void> {
    this.#stopping ??= this.#stop(drainMs);
    return this.#stopping;
  }

  /** Resolves when nothing is running and every outcome has reached Redis. */
  async idle(): Promise<void> {
    if (this.#isQuiet()) return;
    await new Promise<void>((resolve) => this.#drained.push(resolve));
  }

  get running(): number {
    return this.#runs.size;
  }

  /** An operator wishes that it claim nothing more: see `queue.drain`. */
  get isDraining(): boolean {
    return this.#draining.size > 0;
  }

  // What claimers ask and tell.

  /** @internal At least 65 bytes: see open.lua. */
  get description(): string {
    const about = {
      id: this.#id,
      name: this.name,
      host: hostname(),
      pid: process.pid,
      concurrency: this.#concurrency,
      startedMs: Date.now(),
    };
    return JSON.stringify(about).padEnd(80);
  }

  /** @internal A slot is free, or will be if a claim under way brings nothing. */
  hasRoom(): boolean {
    return this.#state === 'running' && !this.isDraining && this.#runs.size < this.#slots;
  }

  /** @internal How many jobs a claimer may claim now: hungry partitions share what is free, or take turns if it is too little. */
  claimable(claimer: Claimer, ahead: boolean): number {
    if (this.#state !== 'running' || this.isDraining || this.#aloneRuns > 0 || this.#mayGetSuspect())
      return 0;
    if (this.#nursing && this.#runs.size > 0) return 0;
    const slots = ahead && this.isQuick() ? this.#slots * claimedAhead : this.#slots;
    const free = Math.max(0, slots - this.#runs.size - this.#reserved);
    if (this.#claimers.length === 1) return free;
    let hungry = 0;
    let before = 0;
    for (const other of this.#claimers) {
      if (!other.hungry) continue;
      hungry++;
      if (other.lastTurn < claimer.lastTurn) before++;
    }
    if (free >= hungry) return Math.ceil(free / Math.max(1, hungry));
    return before < free ? 1 : 0;
  }

  /** @internal */
  nextTurn(): number {
    return ++this.#turns;
  }

  /**
   * @internal Keeps slots for the jobs that a call may bring, until the returned function is called. A partition that does not
   * answer must not keep them from the others for ever; what it brings later finds no slot and goes back.
   */
  reserve(count: number): () => void {
    this.#reserved += count;
    let isKept = true;
    const release = () => {
      if (!isKept) return;
      isKept = false;
      clearTimeout(timer);
      this.#reserved -= count;
      this.#offerSlots();
    };
    const timer = this.#claimers.length > 1 ? setTimeout(release, answerPatienceMs) : undefined;
    return release;
  }

  /** @internal Nothing runs and nothing is being claimed: a suspect may come. */
  isIdle(): boolean {
    return this.#runs.size === 0 && this.#reserved === 0;
  }

  /** @internal A call begins, or ends, that may bring a suspect. */
  asksForSuspect(asks: boolean): void {
    this.#suspectAskedMs = asks ? performance.now() : -Infinity;
  }

  /** @internal The ids of the jobs that a claimer brought and that have not ended. */
  *runningFor(claimer: Claimer): Generator<string> {
    for (const { job, claim } of this.#runs) if (claim.claimer === claimer) yield job.id;
  }

  /** @internal */
  nursing(claimer: Claimer, drain: boolean): void {
    if (drain) this.#nursing = claimer;
    else if (this.#nursing === claimer && this.#runs.size === 0) this.#nursing = undefined;
  }

  /** @internal A claimed job arrives. */
  begin(
    claim: Claim,
    name: string,
    place: number | undefined,
    stored: UnpackedJob,
    data: unknown,
    unreadable?: Error,
  ): void {
    const { claimer, token, alone, startedMs } = claim;
    const timeoutMs = stored.options?.t ?? this.queue.defaults.timeoutMs;
    const job = new Job<Data>(this.queue.name, name, place, token, stored, data as Data, claimer.holder);
    const run: Run<Data> = { job, claim, timeoutMs };
    this.#runs.add(run);
    claimer.noteDeadline(startedMs + timeoutMs);
    if (alone) this.#aloneRuns++;
    if (this.#state !== 'running') return this.#giveBack(run);
    if (unreadable !== undefined) return this.#bury(run, unreadable);
    if (stored.crashes >= maxCrashes)
      return this.#bury(run, queueErrors.WORKER_CRASHED({ crashes: stored.crashes }));
    if (this.#runs.size - this.#unstarted.length > this.#slots) this.#keepForThisTurn(run);
    else this.#admit(run);
  }

  /** @internal The reply has been read: what was gathered for batches runs now. */
  beginBatches(): void {
    while (this.#gathered.length > 0) this.#runBatch(this.#takeBatch());
  }

  /** @internal */
  cancelled(_claimer: Claimer, id: string): void {
    for (const run of this.#runs) {
      if (run.job.id !== id) continue;
      this.#forget(run);
      run.job.abort(queueErrors.NOT_HELD({ id }));
    }
  }

  /** @internal */
  refused(id: string): void {
    this.emit('refused', id);
  }

  /** @internal */
  lost(claimer: Claimer, error: Error, why: string): void {
    const mine = [...this.#runs].filter((run) => run.claim.claimer === claimer);
    for (const run of mine) {
      this.#forget(run);
      run.job.abort(error);
    }
    this.logger.warn(
      { queue: this.queue.name, jobs: mine.length, why },
      'the lease was lost; a new session begins',
    );
    this.emit(
      'leaseLost',
      mine.map((run) => run.job.id),
      why,
    );
  }

  /** @internal Says once that Redis is away, whoever of us notices. */
  degraded(error: unknown, who: Claimer | Worker<Data, Result>): void {
    const isNews = this.#unanswered.size === 0;
    this.#unanswered.add(who);
    if (!isNews) return;
    this.logger.error(
      { error, queue: this.queue.name },
      'degraded: Redis does not answer; nothing is claimed until it does',
    );
    this.emit('degraded', error);
  }

  /** @internal Says once that it is back, when it is back for all of us: partitions may be on different servers. */
  recovered(who: Claimer | Worker<Data, Result>): void {
    if (!this.#unanswered.delete(who) || this.#unanswered.size > 0) return;
    this.logger.info({ queue: this.queue.name }, 'Redis answers again');
    this.emit('recovered');
  }

  /** @internal */
  checkDrained(): void {
    if (this.#drained.length === 0 || !this.#isQuiet()) return;
    for (const resolve of this.#drained.splice(0)) resolve();
    this.emit('drained');
  }

  /**
   * @internal The wish of an operator, which one of the sessions heard of. What runs goes on to its end, and the duties that workers do
   * for each other go on too.
   */
  drain(claimer: Claimer, wished: boolean): void {
    const before = this.isDraining;
    if (wished) this.#draining.add(claimer);
    else this.#draining.delete(claimer);
    if (this.isDraining === before) return;
    const what = wished ? 'an operator drains this worker' : 'this worker claims again';
    this.logger.info({ queue: this.queue.name, worker: this.name }, what);
    if (wished) return void this.#sayWhenDrained();
    this.#setDrained(false);
    for (const each of this.#claimers) each.look();
  }

  #setDrained(isDrained: boolean): void {
    this.isDrained = isDrained;
    for (const claimer of this.#claimers) claimer.setDrained(isDrained);
  }

  async #sayWhenDrained(): Promise<void> {
    const isQuietAlready = this.#isQuiet();
    await this.idle();
    if (!this.isDraining) return;
    this.#setDrained(true);
    // Otherwise it was said by `checkDrained`.
    if (isQuietAlready) this.emit('drained');
  }

  /** @internal */
  get isStopping(): boolean {
    return this.#state !== 'running';
  }

  async #start(): Promise<void> {
    if (this.#state !== 'new') return;
    this.#state = 'running';
    for (;;) {
      try {
        await this.queue.ready();
        break;
      } catch (error) {
        const retryable = (error as { retryable?: boolean }).retryable;
        if (!retryable || this.#state !== 'running') {
          this.#state = 'stopped';
          this.logger.error({ error, queue: this.queue.name }, 'the worker cannot start');
          throw error;
        }
        this.degraded(error, this);
        // Redis may refuse at once, and go on doing so.
        await new Promise((resolve) => setTimeout(resolve, tickMs));
      }
    }
    failPoint('start.declared');
    this.#claimers = this.queue.partitions.map((partition) => new Claimer(this, partition));
    this.#stopTicking = everyTick(() => this.#tick());
    await Promise.all(this.#claimers.map((claimer) => claimer.open()));
    if (this.isStopping) return;
    this.recovered(this);
    this.emit('started');
  }

  async #stop(drainMs: number): Promise<void> {
    if (this.#state === 'new') this.#state = 'stopped';
    if (this.#state !== 'running') return;
    this.#state = 'stopping';
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, drainMs).unref());
    await Promise.race([this.#starting?.catch(() => {}), deadline]);
    await Promise.race([this.idle(), deadline]);
    failPoint('stop.drained');
    for (const run of [...this.#runs]) {
      run.job.abort(queueErrors.CLOSED({ what: `worker ${this.name}` }));
      this.#giveBack(run);
    }
    for (const claimer of this.#claimers) claimer.pump();
    await Promise.race([this.idle(), new Promise((resolve) => setTimeout(resolve, 2_000).unref())]);
    failPoint('stop.returned');
    this.#stopTicking?.();
    await this.#sendTally();
    failPoint('stop.tallied');
    await Promise.all(this.#claimers.map((claimer) => claimer.close()));
    this.#children?.close();
    this.#state = 'stopped';
    this.emit('stopped');
  }

  #admit(run: Run<Data>): void {
    if (this.queue.options.schema) void this.#checkThenStart(run);
    else this.#startRun(run);
  }

  /**
   * A job that was claimed ahead and found no free slot. While handlers are as quick as lately, one is free before this turn
   * of the loop ends. Otherwise the job goes back, to start elsewhere: it has waited for nobody longer than that.
   */
  #keepForThisTurn(run: Run<Data>): void {
    if (this.#unstarted.length === 0) {
      setImmediate(() => {
        for (const left of this.#unstarted.splice(0)) this.#giveBack(left);
      });
    }
    this.#unstarted.push(run);
  }

  /** @internal Handlers end in the turn of the loop in which they start, or nearly. */
  isQuick(): boolean {
    return this.#work.kind === 'single' && this.#slots >= smallestQuickSlots && this.#typicalMs < quickMs;
  }

  /** Nothing else is claimed meanwhile; but a partition that does not answer must not stop the others. */
  #mayGetSuspect(): boolean {
    return performance.now() - this.#suspectAskedMs < answerPatienceMs;
  }

  async #checkThenStart(run: Run<Data>): Promise<void> {
    try {
      const data = await validateWith(this.queue.options.schema!, run.job.data);
      (run.job as { data: Data }).data = data;
    } catch (error) {
      return this.#bury(run, error);
    }
    if (!this.#runs.has(run)) return;
    this.#startRun(run);
    if (this.#gathered.length > 0) this.beginBatches();
  }

  #startRun(run: Run<Data>): void {
    const work = this.#work;
    if (work.kind === 'batch') {
      this.#gathered.push(run);
      return;
    }
    const handler = work.kind === 'single' ? work.handler : this.#runInChild;
    const heartbeat = Heartbeat.current;
    let result: unknown;
    if (heartbeat) run.job.enter(heartbeat);
    try {
      result = this.queue.options.tracing
        ? runInSpan(run.job, run.job.options?.tr, () => handler(run.job))
        : handler(run.job);
    } catch (error) {
      return this.#failed(run, error);
    } finally {
      heartbeat?.leave();
    }
    if (result instanceof Promise) {
      result.then(
        (value) => this.#ended(run, value),
        (error: unknown) => this.#failed(run, error),
      );
    } else {
      this.#ended(run, result);
    }
  }

  #runInChild = (job: Job<Data>): Promise<Result> => this.#children!.run(job) as Promise<Result>;

  /** A job that failed before runs by itself: a batch that one job breaks must not break again. */
  #takeBatch(): Run<Data>[] {
    const first = this.#gathered.shift()!;
    if (first.job.attempt > 1) return [first];
    const batch = [first];
    while (
      batch.length < this.#batchSize &&
      this.#gathered.length > 0 &&
      this.#gathered[0]!.job.attempt === 1
    ) {
      batch.push(this.#gathered.shift()!);
    }
    return batch;
  }

  #runBatch(batch: Run<Data>[]): void {
    const { handler } = this.#work as { handler: BatchHandler<Data, Result> };
    void (async () => {
      try {
        const outcomes = await handler(batch.map((run) => run.job));
        if (outcomes && outcomes.length !== batch.length) {
          throw queueErrors.BATCH_OUTCOMES({ jobs: batch.length, outcomes: outcomes.length });
        }
        batch.forEach((run, i) => {
          const outcome = outcomes?.[i];
          if (outcome instanceof Error && !isOutcome(outcome)) this.#failed(run, outcome);
          else this.#ended(run, outcome);
        });
      } catch (error) {
        for (const run of batch) this.#failed(run, error);
      }
    })();
  }

  #ended(run: Run<Data>, value: unknown): void {
    if (value instanceof Error && isOutcome(value)) return this.#failed(run, value);
    if (!this.#forget(run)) return;
    const { job, claim } = run;
    const { claimer } = claim;
    const ranMs = performance.now() - claim.startedMs;
    this.#typicalMs += (ranMs - this.#typicalMs) * typicalShare;
    this.#tally.record(job.waitedMs(claim.redisNowMs), ranMs);
    const keepMs = job.options?.k ?? this.queue.defaults.keepResultMs;
    if (keepMs > 0 || job.leavesTraces) {
      let result: Uint8Array;
      try {
        result = keepMs > 0 || job.options?.w !== undefined ? encodeResult(value) : Buffer.alloc(0);
      } catch (error) {
        // The work is done; a result that cannot be written must not make it run again.
        this.logger.error({ error, job: job.id, queue: this.queue.name }, 'the result cannot be stored');
        result = Buffer.alloc(0);
      }
      claimer.settle([job.id, job.token, 'done', keepMs, result, '', '', '', '']);
    } else {
      claimer.ack(job);
    }
    if (this.listenerCount('done') > 0) this.emit('done', job as Job<never>, value);
  }

  #failed(run: Run<Data>, error: unknown): void {
    if (!this.#forget(run)) return;
    const decision = decideFailure(run.job, error, this.queue, this.name);
    const { claimer } = run.claim;
    if (decision.kind === 'dead') claimer.settle(decision.item);
    else claimer.giveBack(decision.item);
    if (decision.kind === 'snoozed') return;
    if (this.listenerCount('failed') > 0) this.emit('failed', run.job as Job<never>, error);
    if (decision.kind === 'dead') {
      this.logger.warn({ queue: this.queue.name, job: run.job.id, error }, 'a job died');
      if (this.listenerCount('dead') > 0) this.emit('dead', run.job as Job<never>, error);
    }
  }

  #bury(run: Run<Data>, error: unknown): void {
    this.#failed(run, new GiveUp(error instanceof Error ? error.message : String(error), { cause: error }));
  }

  #giveBack(run: Run<Data>): void {
    if (!this.#forget(run)) return;
    run.claim.claimer.giveBack([run.job.id, run.job.token, 'returned', '', '', '']);
  }

  /** The run is over, one way or another; false when it was over already. */
  #forget(run: Run<Data>): boolean {
    if (!this.#runs.delete(run)) return false;
    if (run.claim.alone) this.#aloneRuns--;
    if (this.#unstarted.length > 0) this.#startNext();
    run.claim.claimer.flushSoon();
    this.#offerSlots();
    if (this.#drained.length > 0) setImmediate(() => this.checkDrained());
    return true;
  }

  #startNext(): void {
    const next = this.#unstarted.shift()!;
    if (this.#runs.has(next)) this.#admit(next);
  }

  #offerSlots(): void {
    if (this.#claimers.length === 1) return;
    // Also those that have nothing to claim: with room again, they go to sleep on their token.
    for (const claimer of this.#claimers) claimer.flushSoon();
  }

  get #slots(): number {
    return this.#concurrency * this.#batchSize;
  }

  #isQuiet(): boolean {
    return this.#runs.size === 0 && this.#claimers.every((claimer) => claimer.quiet);
  }

  #tick(): void {
    const isAsleep =
      this.#runs.size === 0 && this.#tally.isEmpty && this.#claimers.every(({ sleeps }) => sleeps);
    if (isAsleep && this.#drained.length === 0 && ++this.#ticksAsleep % ticksPerSleepyTick !== 0) return;
    const nowMs = performance.now();
    const earliest = new Map<Claimer, number>();
    for (const run of [...this.#runs]) {
      const { job, claim, timeoutMs } = run;
      const deadlineMs = claim.startedMs + timeoutMs;
      if (deadlineMs <= nowMs) {
        const error = queueErrors.JOB_TIMEOUT({ timeoutMs });
        job.abort(error);
        this.#failed(run, error);
      } else if (deadlineMs < (earliest.get(claim.claimer) ?? Infinity)) {
        earliest.set(claim.claimer, deadlineMs);
      }
    }
    for (const claimer of this.#claimers) {
      claimer.setEarliestDeadline(earliest.get(claimer) ?? 0);
      claimer.tick(nowMs);
    }
    this.checkDrained();
    if (nowMs - this.#lastTallyMs > tallyEveryMs) {
      this.#lastTallyMs = nowMs;
      void this.#sendTally();
    }
  }

  /** Latencies are statistics: losing a second of them in a crash is fine, waiting for them is not. */
  async #sendTally(): Promise<void> {
    const counts = this.#tally.take();
    if (counts === undefined) return;
    try {
      await this.queue.partitions[0]!.run('tally', { counts: pack(counts) }, { deadlineMs: 1_000 });
    } catch {
      // Redis is away; the worker has said so already.
    }
  }
}

// oxlint-disable-next-line typescript/no-explicit-any -- see AnyQueue
export type AnyWorker = Worker<any, any>;
