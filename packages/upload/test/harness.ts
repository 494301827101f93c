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
import { startPostgres, startRedis, type PostgresServer, type RedisServer } from '@sluice/testbed';
import { Uploads, type UploadsOptions, type UploadView } from '../src/index.js';

export const tenant = 'acme';
export const mebibyte = 1_048_576;

let shared: Promise<{ redis: RedisServer; postgres: PostgresServer }> | undefined;

/** One Redis and one PostgreSQL per test file; every test has a prefix and a database of its own. */
export function servers(): Promise<{ redis: RedisServer; postgres: PostgresServer }> {
  shared ??= Promise.all([startRedis(), startPostgres()]).then(([redis, postgres]) => ({ redis, postgres }));
  return shared;
}

export interface Service {
  uploads: Uploads;
  records: Records;
  store: ObjectStore;
  redis: RedisServer;
  link: RedisLink;
  prefix: string;
  folder: string;
  /** Another instance of the same service. */
  another(options?: Partial<UploadsOptions>): Promise<Uploads>;
}

export async function startService(
  t: TestContext,
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
  const records = await openRecords({ url: await postgres.createDatabase() });
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
      logger: consoleLogger({ level: 'warn' }),
      ...rest,
      ...more,
      settings: { prefix, ...rest.settings, ...more.settings },
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
  return { uploads: await another(), records, store, redis, link, prefix, folder, another };
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
