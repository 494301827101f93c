// `Uploads` is the engine as its users see it: it knows nothing of HTTP. It makes the connections, runs the jobs, and offers one
// method per thing that can be done to an upload; each method stands in a file of its own.
import { silentLogger, type Logger } from '@sluice/base';
import { Queue } from '@sluice/queue';
import type { Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import type { ObjectStore } from '@sluice/store';
import type { ChunkAddress } from './address.js';
import type { Source } from './body.js';
import type { Digest } from './digest.js';
import { cancel } from './end.js';
import type { Engine, Hooks, Settings } from './engine.js';
import { uploadErrors } from './errors.js';
import { Frames } from './frames.js';
import { PassingHashes } from './hashes.js';
import { initiate, type NewUpload } from './initiate.js';
import { keysOf } from './keys.js';
import { UploadMetrics } from './metrics.js';
import { RoomLines } from './roomLines.js';
import { Notes } from './notes.js';
import { Partitions } from './partitions.js';
import { PartMemory } from './partMemory.js';
import { preferredPartBytes } from './plan.js';
import { progressOf, ProgressHub, type Progress } from './progress.js';
import { receive, type Receipt } from './receive.js';
import { readState, stateOf, type State, type UploadRef } from './state.js';
import { declare, status, viewOf, type UploadView } from './status.js';
import { Caretaker } from './tend.js';
import { storeFile, untilCompleted, type StoredFile } from './whole.js';
import { attempts, backoff, startWork, type UploadJob } from './work.js';

const hourMs = 3_600_000;
const gibibyte = 1_073_741_824;

export interface UploadsOptions {
  /** State and jobs: a Redis that evicts nothing. */
  redis: string;
  /** Frames; the same Redis unless told otherwise. */
  chunksRedis?: string;
  records: Records;
  storeOf: Engine['storeOf'] | ObjectStore;
  settings?: Partial<Settings>;
  hooks?: Hooks;
  logger?: Logger;
  /** How many jobs run here at once. */
  workers?: number;
  /** The trace of a request travels with the jobs that it makes. */
  tracing?: boolean;
}

export const defaultSettings: Settings = {
  prefix: 'sluice',
  partitions: 1,
  budgetBytes: 256 * 1_048_576,
  uploadBudgetBytes: 64 * 1_048_576,
  idleMs: 24 * hourMs,
  keepMs: 24 * hourMs,
  spillAfterMs: 60_000,
  slowMs: 30_000,
  leaseMs: 15_000,
  attemptMs: 120_000,
  // Less than clients and the proxies before us wait for an answer.
  roomWaitMs: 15_000,
  lookAgainMs: 15_000,
  // Stores and the proxies before them give up a request that is silent after a minute or some; this is a multiple of that.
  lateMs: 600_000,
  // Whoever repeats a request after a month means another one.
  recordKeepMs: 30 * 24 * hourMs,
  // Most downloads are over by then; a day would keep every version of a file that is written again and again.
  deleteGraceMs: hourMs,
  maxFileBytes: 5 * 1_024 * gibibyte,
  maxChunks: 100_000,
  preferredPartBytes,
  windowChunks: 64,
  partMemoryBytes: 128 * 1_048_576,
  // Two parts of a fast upload, and what is on its way.
  recentFrames: 24,
  wholeBytes: preferredPartBytes,
};

const defaultWorkers = 20;
const shortestKeepMs = hourMs;
/** Longer than an upload lives without a byte: its frames are the only copies, also while nobody looks after it. */
const frameGraceMs = hourMs;

export class Uploads {
  readonly #engine: Engine;
  readonly #chunks: RedisLink;
  readonly #caretaker: Caretaker;
  readonly #progress: ProgressHub;
  readonly #workers: number;
  #working = false;

  constructor(options: UploadsOptions) {
    const settings = { ...defaultSettings, ...options.settings };
    settings.keepMs = Math.max(settings.keepMs, shortestKeepMs);
    // The second look needs the state of the upload, and the records to know which object is its file.
    settings.lateMs = Math.min(settings.lateMs, settings.keepMs / 2);
    settings.recordKeepMs = Math.max(settings.recordKeepMs, 2 * settings.keepMs);
    const logger = options.logger ?? silentLogger;
    const { storeOf } = options;
    const redis = new RedisLink(options.redis, { name: 'sluice-uploads' });
    this.#chunks = new RedisLink(options.chunksRedis ?? options.redis, { name: 'sluice-chunks' });
    this.#engine = {
      redis,
      frames: new Frames(
        this.#chunks,
        settings.prefix,
        settings.attemptMs,
        settings.idleMs + frameGraceMs,
        settings.recentFrames,
      ),
      records: options.records,
      queue: new Queue<UploadJob>('uploads', {
        redis: options.redis,
        prefix: settings.prefix,
        attempts,
        backoff,
        ...(options.tracing && { tracing: true }),
        logger,
      }),
      partitions: new Partitions(redis, settings.prefix, settings.partitions),
      hashes: new PassingHashes(),
      partMemory: new PartMemory(settings.partMemoryBytes),
      roomLines: new RoomLines(settings.roomWaitMs),
      notes: new Notes(redis, settings.prefix, settings.idleMs),
      drives: new Map(),
      metrics: new UploadMetrics(),
      logger,
      settings,
      hooks: options.hooks ?? {},
      storeOf: typeof storeOf === 'function' ? storeOf : () => storeOf,
    };
    this.#caretaker = new Caretaker(this.#engine);
    this.#progress = new ProgressHub(this.#engine);
    this.#workers = options.workers ?? defaultWorkers;
  }

  /** Begins to work on the jobs of all uploads; a process that only takes bytes in need not. */
  async start(): Promise<void> {
    await this.#engine.queue.ready();
    await this.#engine.partitions.refresh();
    if (this.#workers === 0) return;
    if (!this.#working) startWork(this.#engine, this.#workers);
    this.#working = true;
    this.#caretaker.start();
  }

  /** Refuses chunks that wait for room, now and from now on: whoever stops does not want to wait with them. */
  endWaits(): void {
    this.#engine.roomLines.close();
  }

  async stop(deadlineMs = 10_000): Promise<void> {
    this.endWaits();
    this.#progress.stop();
    await this.#caretaker.stop();
    await this.#engine.queue.close(deadlineMs);
    this.#chunks.close();
    this.#engine.redis.close();
  }

  async initiate(upload: NewUpload): Promise<UploadView> {
    return viewOf(this.#engine, await initiate(this.#engine, upload));
  }

  receive(
    upload: UploadRef,
    address: ChunkAddress,
    source: Source,
    length: number,
    digest?: Digest,
  ): Promise<Receipt> {
    return receive(this.#engine, upload, address, source, length, digest);
  }

  /** A whole file in one call; resolves when it is stored, verified and recorded. */
  store(upload: NewUpload, source: Source, length?: number): Promise<StoredFile> {
    return storeFile(this.#engine, upload, source, length);
  }

  status(upload: UploadRef): Promise<UploadView> {
    return status(this.#engine, upload);
  }

  /** Whose upload it is; throws UPLOAD_NOT_FOUND for everybody else's. */
  async owned(id: string, tenant: string): Promise<State> {
    const state = await readState(this.#engine, id);
    if (!state || state.tenant !== tenant) throw uploadErrors.UPLOAD_NOT_FOUND({ id });
    return state;
  }

  async declare(id: string, facts: { size?: number; sha256?: string }): Promise<UploadView> {
    await declare(this.#engine, id, facts);
    return status(this.#engine, id);
  }

  completed(
    id: string,
    signal?: AbortSignal,
  ): Promise<StoredFile | Awaited<ReturnType<typeof untilCompleted>>> {
    return untilCompleted(this.#engine, id, signal);
  }

  async cancel(id: string): Promise<UploadView> {
    return viewOf(this.#engine, await cancel(this.#engine, id));
  }

  /**
   * The state now, and every change after it. Whoever has seen changes up to `after` gets those that it missed first, if all of them are
   * still remembered: then it `resumes`, and the state now is what the last of them says.
   */
  async watch(
    id: string,
    listener: (progress: Progress) => void,
    after?: number,
  ): Promise<{ snapshot: Progress; resumes: boolean; stop: () => void }> {
    const state = await stateOf(this.#engine, id);
    const { sequence, receivedBytes, storedBytes, size } = state;
    const snapshot = progressOf(sequence, state.status, receivedBytes, storedBytes, size ?? null);
    const resumes = after !== undefined && (await this.#progress.remembers(id, after, sequence));
    return { snapshot, resumes, stop: this.#progress.watch(id, resumes ? after : sequence, listener) };
  }

  /** One round of looking after quiet uploads; done by itself every two seconds. */
  tend(): Promise<void> {
    return this.#caretaker.look();
  }

  async metrics(): Promise<string> {
    const { settings, redis, metrics, partitions, roomLines } = this.#engine;
    let [queuedChunks, reservedBytes] = [0, 0];
    for (const partition of partitions.all) {
      const { budget } = keysOf(settings.prefix, partition, '');
      const [queued, used] = (await redis.call('HMGET', [budget, 'queued', 'used'])) as (Buffer | null)[];
      queuedChunks += Number(queued ?? 0);
      reservedBytes += Number(used ?? 0);
    }
    const inRedis = { queuedChunks, reservedBytes, budgetBytes: settings.budgetBytes };
    return metrics.text(inRedis, roomLines.waiting);
  }

  async check(): Promise<void> {
    await Promise.all([this.#engine.redis.call('PING', []), this.#engine.frames.check()]);
  }
}
