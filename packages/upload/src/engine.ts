// What every step of an upload works with: the connections, the records, the stores, the queue of its jobs, and the settings.
// The steps are functions in files of their own (`initiate.ts`, `receive.ts`, `writePart.ts`, `complete.ts`, `end.ts`, …);
// `uploads.ts` puts them together.
import { isSluiceError, type Logger } from '@sluice/base';
import type { Queue } from '@sluice/queue';
import { recordsErrors, type Drive, type Records } from '@sluice/records';
import type { RedisLink, ScriptArgument } from '@sluice/redis';
import type { ObjectStore } from '@sluice/store';
import { frameBytes, type Frames } from './frames.js';
import type { PassingHashes } from './hashes.js';
import { keysOf, partitionOf, type UploadKeys } from './keys.js';
import type { UploadMetrics } from './metrics.js';
import type { Notes } from './notes.js';
import type { Partitions } from './partitions.js';
import type { PartMemory } from './partMemory.js';
import type { RoomLines } from './roomLines.js';
import { scripts } from './scripts.js';
import type { UploadJob } from './work.js';

export interface Settings {
  prefix: string;
  /** New uploads are spread over so many slots. It may be changed at any time; the budget is shared with those used before. */
  partitions: number;
  /** What all uploads together may have in the chunks Redis. */
  budgetBytes: number;
  /** What one upload may have there. */
  uploadBudgetBytes: number;
  /** After so long without a byte an upload expires. */
  idleMs: number;
  /** How long the answer of an ended upload stays readable. */
  keepMs: number;
  /** After so long without a byte the tail of an upload leaves Redis for a staging object. */
  spillAfterMs: number;
  /** No bytes for so long while we are reading: the client is slow. */
  slowMs: number;
  /** The lease of whoever completes an upload, and of the workers that do its jobs. */
  leaseMs: number;
  /** How long bytes on their way into Redis are paid for, unless their request says that it goes on. */
  attemptMs: number;
  /** How long a chunk may wait for room before it is refused, with its bytes still at the client. */
  roomWaitMs: number;
  /** Soon enough after a step that somebody else would have to finish. */
  lookAgainMs: number;
  /** What a process sent to the store before it died arrives within this time, or never. */
  lateMs: number;
  /** So long after its end the records forget an upload, and with it its idempotency key. */
  recordKeepMs: number;
  /** The object of a file that was replaced or deleted stays so long for downloads that are under way. */
  deleteGraceMs: number;
  maxFileBytes: number;
  maxChunks: number;
  preferredPartBytes: number;
  windowChunks: number;
  /** Memory for parts on their way through this process. */
  partMemoryBytes: number;
  /** Frames that this process keeps in its memory until their part is written, a mebibyte each. */
  recentFrames: number;
  /** Files up to this size that come in one request are taken into memory and stored at once. */
  wholeBytes: number;
}

export interface Engine {
  readonly redis: RedisLink;
  readonly frames: Frames;
  readonly records: Records;
  readonly queue: Queue<UploadJob>;
  readonly partitions: Partitions;
  readonly hashes: PassingHashes;
  readonly partMemory: PartMemory;
  readonly roomLines: RoomLines;
  readonly notes: Notes;
  /** Drives that were asked for a moment ago. */
  readonly drives: Map<string, { drive: Drive; untilMs: number }>;
  readonly metrics: UploadMetrics;
  readonly logger: Logger;
  readonly settings: Settings;
  readonly hooks: Hooks;
  storeOf(drive: Pick<Drive, 'bucket' | 'prefix'>): ObjectStore;
}

/** What the owner of the service may say about uploads. */
export interface Hooks {
  /** Before an upload is accepted; whatever it throws refuses the upload. */
  beforeAccept?: (upload: {
    tenant: string;
    drive: string;
    path: string;
    size?: number;
    contentType?: string;
    metadata?: Record<string, string>;
  }) => Promise<void> | void;
  /** After an upload was completed; at least once. It runs as a job and is repeated when it throws. */
  afterComplete?: (upload: {
    id: string;
    nodeId: string;
    tenant: string;
    path: string;
    size: number;
  }) => Promise<void> | void;
}

type Scripts = typeof scripts;
type ArgumentsOf<N extends keyof Scripts> = { readonly [A in Scripts[N]['args'][number]]: ScriptArgument };

export function keysFor({ settings }: Engine, id: string): UploadKeys | undefined {
  const partition = partitionOf(id);
  return partition === undefined ? undefined : keysOf(settings.prefix, partition, id);
}

/** Runs a script on the keys of an upload; the answer as strings. Lists in it, which may be long, are laid out flat. */
export async function runScript<N extends keyof Scripts>(
  engine: Engine,
  name: N,
  id: string,
  args: ArgumentsOf<N>,
): Promise<string[]> {
  const keys = keysFor(engine, id);
  if (!keys) return ['GONE'];
  const reply = await engine.redis.run<string, string>(scripts[name], keys, args);
  return Array.isArray(reply) ? reply.flat().map(String) : [String(reply)];
}

/** How many bytes of memory a frame takes in Redis, at most: its allocator rounds large values up by a quarter. */
export function priceOf(bytes: number): number {
  return Math.ceil(bytes * 1.25) + 512;
}

/** What a chunk costs that is kept there in frames. */
export function chunkPriceOf(bytes: number): number {
  return priceOf(bytes) + 512 * Math.ceil(bytes / frameBytes);
}

/** What one upload, and all uploads of a partition together, may have in the chunks Redis. */
export function budgetOf({ settings, partitions }: Engine): { budgetBytes: number; uploadBytes: number } {
  const budgetBytes = Math.floor(settings.budgetBytes / partitions.all.length);
  return { budgetBytes, uploadBytes: Math.min(settings.uploadBudgetBytes, budgetBytes) };
}

export const defaultContentType = 'application/octet-stream';

/**
 * Drives hardly ever change, and every upload asks for one. What is remembered says where bytes go, never that they are taken: the
 * records are told of that place, and refuse the upload in its transaction if the drive is gone, or another with its name looks
 * elsewhere. Who is refused forgets it (`inDrive`), so that the next one asks. The cache instead of this memory would cost a round trip,
 * and would have to be checked in the same way.
 */
const driveKnownMs = 5_000;
const maxKnownDrives = 10_000;

export async function driveOf({ records, drives }: Engine, tenant: string, name: string): Promise<Drive> {
  const key = nameOf(tenant, name);
  const known = drives.get(key);
  if (known && known.untilMs > performance.now()) return known.drive;
  const drive = await records.drives.get(tenant, name);
  if (!drive) throw recordsErrors.DRIVE_NOT_FOUND({ drive: name });
  if (drives.size >= maxKnownDrives) drives.clear();
  drives.set(key, { drive, untilMs: performance.now() + driveKnownMs });
  return drive;
}

/** What the records say of a drive that is not there counts for those who come later, too. */
export async function inDrive<T>({ drives }: Engine, drive: Drive, writing: Promise<T>): Promise<T> {
  try {
    return await writing;
  } catch (error) {
    if (isSluiceError(error, 'DRIVE_NOT_FOUND')) drives.delete(nameOf(drive.tenant, drive.name));
    throw error;
  }
}

function nameOf(tenant: string, name: string): string {
  return `${tenant}\n${name.normalize('NFC')}`;
}
