// A whole upload service for one test: a Redis, a PostgreSQL database, a store on disk, and the engine on top of them. Everything is
// real and belongs to the test alone.
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { consoleLogger } from '@sluice/base';
import { openRecords, type Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { DiskStore, type ObjectStore } from '@sluice/store';
import { startPostgres, startRedis, waitUntil, type PostgresServer, type RedisServer } from '@sluice/testbed';
import {
  Uploads,
  type ChunkAddress,
  type Digest,
  type NewUpload,
  type Receipt,
  type Settings,
  type UploadsOptions,
  type UploadView,
} from '../src/index.js';
import { keysOf, type UploadKeys } from '../src/keys.js';

export const tenant = 'acme';
export const mebibyte = 1_048_576;

let shared: Promise<{ redis: RedisServer; postgres: PostgresServer }> | undefined;

/** One Redis and one PostgreSQL per test file; every test has a prefix and a database of its own. */
export function servers(): Promise<{ redis: RedisServer; postgres: PostgresServer }> {
  shared ??= Promise.all([startRedis(), startPostgres({ fsync: false })]).then(([redis, postgres]) => ({
    redis,
    postgres,
  }));
  return shared;
}

/** At the end of a test file. */
export async function stopServers(): Promise<void> {
  const { redis, postgres } = await servers();
  await Promise.all([redis.stop(), postgres.stop()]);
}

/** What would be waited for after the end of an upload or of a file. */
const soon: Partial<Settings> = { lateMs: 0, deleteGraceMs: 0 };

/** Parts of one mebibyte, and waiting times that a test can wait for. */
export const quick: Partial<Settings> = {
  preferredPartBytes: mebibyte,
  wholeBytes: mebibyte,
  lookAgainMs: 300,
  attemptMs: 3_000,
  leaseMs: 3_000,
  roomWaitMs: 0,
  // So few that some frames come from memory and some from Redis.
  recentFrames: 2,
  ...soon,
};

export interface Service {
  uploads: Uploads;
  records: Records;
  store: ObjectStore;
  redis: RedisServer;
  link: RedisLink;
  prefix: string;
  folder: string;
  database: string;
  /** Of one upload; without an id, those that uploads share. */
  keys: (id?: string) => UploadKeys;
  /** Another instance of the same service. */
  another: (options?: Partial<UploadsOptions>) => Promise<Uploads>;
}

export async function startService(
  t: Pick<TestContext, 'after'>,
  options: Partial<UploadsOptions> & {
    redisServer?: RedisServer;
    wrap?: (store: ObjectStore) => ObjectStore;
  } = {},
): Promise<Service> {
  const { redis: sharedRedis, postgres } = await servers();
  const redis = options.redisServer ?? sharedRedis;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-upload-'));
  const disk = new DiskStore({ folder, fsync: false });
  const store = options.wrap ? options.wrap(disk) : disk;
  const database = await postgres.createDatabase();
  const records = await openRecords({ url: database });
  await records.drives.create({ tenant, name: 'main', bucket: 'files' });
  const prefix = `test-${randomBytes(4).toString('hex')}`;
  const link = new RedisLink(redis.url);
  const all: Uploads[] = [];
  const another = async (more: Partial<UploadsOptions> = {}): Promise<Uploads> => {
    const { redisServer: _, wrap: __, ...rest } = options;
    const uploads = new Uploads({
      redis: redis.url,
      records,
      storeOf: store,
      logger: consoleLogger({ level: 'error' }),
      ...rest,
      ...more,
      settings: { prefix, ...soon, ...rest.settings, ...more.settings },
    });
    await uploads.start();
    all.push(uploads);
    return uploads;
  };
  t.after(async () => {
    await Promise.all(all.map((uploads) => uploads.stop()));
    link.close();
    await records.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const keys = (id = ''): UploadKeys => keysOf(prefix, 0, id);
  const uploads = await another();
  return { uploads, records, store, redis, link, prefix, folder, database, keys, another };
}

/** Bytes that are the same for the same seed, and repeat nowhere. */
export function bytesOf(size: number, seed = 1): Buffer {
  const key = createHash('sha256').update(`seed ${seed}`).digest();
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size));
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export async function* stream(bytes: Buffer, pieceBytes = 65_536): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

/** Waits for an end and returns it. */
export async function ended(uploads: Uploads, id: string, withinMs = 20_000): Promise<UploadView> {
  const until = performance.now() + withinMs;
  for (;;) {
    const view = await uploads.status(id);
    if (['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'].includes(view.state)) return view;
    if (performance.now() > until) throw new Error(`still ${JSON.stringify(view)}`);
    await pause(10);
  }
}

export async function contentOf(
  { records, store }: Pick<Service, 'records' | 'store'>,
  path: string,
): Promise<Buffer> {
  const node = await records.nodes.getByPath(tenant, 'main', path);
  if (!node?.objectKey) throw new Error(`no file at ${path}`);
  const { stream: body } = await store.get(node.objectKey);
  const pieces: Buffer[] = [];
  for await (const piece of body as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces);
}

export function begin(uploads: Uploads, path: string, more: Partial<NewUpload> = {}): Promise<UploadView> {
  return uploads.initiate({ tenant, drive: 'main', path, ...more });
}

/** Sends bytes as one request. */
export function send(
  uploads: Uploads,
  id: string,
  address: ChunkAddress,
  bytes: Buffer,
  digest?: Digest,
): Promise<Receipt> {
  return uploads.receive(id, address, stream(bytes), bytes.length, digest);
}

/** Sends the bytes between two places of a file. */
export function sendRange(
  uploads: Uploads,
  id: string,
  bytes: Buffer,
  from: number,
  to = bytes.length,
): Promise<Receipt> {
  return send(uploads, id, { offset: from }, bytes.subarray(from, to));
}

/** Sends what the status says is missing, as clients do, until there is an end. */
export async function sendMissing(
  uploads: Uploads,
  id: string,
  bytes: Buffer,
  withinMs = 20_000,
): Promise<UploadView> {
  const until = performance.now() + withinMs;
  for (;;) {
    const view = await uploads.status(id);
    if (['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'].includes(view.state)) return view;
    if (performance.now() > until) throw new Error(`still ${JSON.stringify(view)}`);
    for (const [first, last] of view.missing) {
      const to = last === null ? bytes.length : last + 1;
      if (to > first) await sendRange(uploads, id, bytes, first, to).catch(() => {});
    }
    await pause(20);
  }
}

/** What is in the chunks Redis and in the store, and what is reserved and watched. */
export interface Remains {
  used: number;
  queued: number;
  attention: string[];
  frames: string[];
  objects: string[];
  multiparts: string[];
}

export async function remainsOf(service: Service, chunks?: RedisServer): Promise<Remains> {
  const { link, keys, store, prefix, redis } = service;
  const [used, queued] = (await link.call('HMGET', [keys().budget, 'used', 'queued'])) as (Buffer | null)[];
  const attention = (await link.call('ZRANGE', [keys().attention, 0, -1])) as Buffer[];
  const frames = (await (chunks ?? redis).command('KEYS', `${prefix}:{frames:*`)) as string[];
  return {
    used: Number(used ?? 0),
    queued: Number(queued ?? 0),
    attention: attention.map(String),
    frames,
    objects: (await store.list('')).objects.map(({ key }) => key),
    multiparts: (await store.listMultiparts('')).map(({ key }) => key),
  };
}

/** Nothing is left of uploads but these objects. */
export async function nothingLeftBut(
  service: Service,
  objects: string[],
  chunks?: RedisServer,
): Promise<void> {
  let last: Remains | undefined;
  const wanted = [...objects].sort().join();
  await waitUntil(
    'nothing is left',
    async () => {
      last = await remainsOf(service, chunks);
      const { used, queued, attention, frames, multiparts } = last;
      const counts = [used, queued, attention.length, frames.length, multiparts.length];
      return counts.every((count) => count === 0) && [...last.objects].sort().join() === wanted;
    },
    { timeoutMs: 15_000 },
  ).catch((error: unknown) => {
    throw new Error(`left over: ${JSON.stringify(last)}; wanted the objects ${wanted}`, { cause: error });
  });
}

export async function objectOf({ records }: Service, path: string): Promise<string> {
  const node = await records.nodes.getByPath(tenant, 'main', path);
  if (!node?.objectKey) throw new Error(`no file at ${path}`);
  return node.objectKey;
}

type Method = (...args: unknown[]) => Promise<unknown>;
/** As though nothing had come for so long; a test that waited for it would depend on how fast it is. */
export async function wasQuietFor(
  { link, keys }: Pick<Service, 'link' | 'keys'>,
  id: string,
  quietMs: number,
): Promise<void> {
  await link.call('HSET', [keys(id).state, 'updated_at', Date.now() - quietMs]);
  await link.call('ZADD', [keys(id).attention, 'XX', 1, id]);
}

export type Fault = (call: () => Promise<unknown>, ...args: unknown[]) => Promise<unknown>;

/** A store, or what else has methods, that can be told to misbehave: a fault gets the call and may fail, repeat, delay or falsify it. */
export function faulty<T extends object>(whole: T, faults: ReadonlyMap<keyof T, Fault>): T {
  return new Proxy(whole, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      const call = (value as Method).bind(target);
      return (...args: unknown[]) => {
        const fault = faults.get(name as keyof T);
        return fault ? fault(() => call(...args), ...args) : call(...args);
      };
    },
  });
}
