// What most tests of the cache share: one real Redis per test file, caches that are closed when their test ends, each test with a
// prefix of its own, and a database that counts how often it is asked.
import { after, before } from 'node:test';
import type { TestContext } from 'node:test';
import { startRedis, waitUntil } from '@sluice/testbed';
import type { RedisServer, RedisServerOptions } from '@sluice/testbed';
import { Cache } from '../src/index.js';
import type { CacheOptions } from '../src/index.js';

let prefixes = 0;

export interface Bed {
  readonly redis: RedisServer;
  /** A cache as one process has it; several with the same prefix are several processes. */
  cache(t: TestContext, options?: Partial<CacheOptions>): Promise<Cache>;
  /** A prefix that nobody else uses. */
  prefix(): string;
}

export function useRedis(options?: RedisServerOptions): Bed {
  let redis: RedisServer | undefined;
  before(async () => {
    redis = await startRedis({ appendonly: false, ...options });
  });
  after(async () => {
    await redis?.stop();
  });
  return {
    get redis() {
      return redis!;
    },
    prefix: makePrefix,
    cache: (t, more = {}) => openCache(t, { redis: redis!.url, ...more }),
  };
}

export function makePrefix(): string {
  return `c${process.pid}-${prefixes++}`;
}

export async function openCache(
  t: TestContext,
  options: Partial<CacheOptions> & Pick<CacheOptions, 'redis'>,
): Promise<Cache> {
  // A slow machine must not look like a Redis that is away; tests of that say how long they wait. What is published now and then
  // would be among the commands that tests count.
  const cache = new Cache({ prefix: makePrefix(), patienceMs: 10_000, publishMs: 0, ...options });
  t.after(() => cache.close());
  await cache.start();
  return cache;
}

/**
 * What `start` says of the Redis. A Redis that does not answer within two seconds is looked at later, and nothing is said of it: then another
 * cache is started, for a busy machine may be that slow.
 */
export async function adviceOn(t: TestContext, options: CacheOptions): Promise<string[]> {
  let advice: string[] = [];
  for (let tries = 0; tries < 5 && advice.length === 0; tries++) {
    const cache = new Cache({ publishMs: 0, ...options });
    t.after(() => cache.close());
    advice = (await cache.start()).map(({ code }) => code);
  }
  return advice;
}

/** Copies are kept once tracking has begun. */
export async function untilWatching(...caches: Cache[]): Promise<void> {
  await eventually('tracking has begun', () => caches.every((cache) => cache.statistics().isWatching));
}

export async function eventually(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  await waitUntil(what, condition, { timeoutMs: 20_000, everyMs: 10 });
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A table with numbered versions of each row, which counts how often it is read. */
export class Table {
  readonly #rows = new Map<string, number>();
  reads = 0;
  batches: number[] = [];
  /** Every read waits for it, after it has read. */
  hold: Promise<void> | undefined;

  async read(key: string): Promise<{ key: string; version: number }> {
    this.reads += 1;
    const row = { key, version: this.#rows.get(key) ?? 0 };
    await this.hold;
    return row;
  }

  async readMany(keys: readonly string[]): Promise<{ key: string; version: number }[]> {
    this.batches.push(keys.length);
    return keys.map((key) => ({ key, version: this.#rows.get(key) ?? 0 }));
  }

  write(key: string): number {
    const version = (this.#rows.get(key) ?? 0) + 1;
    this.#rows.set(key, version);
    return version;
  }
}

/** How often Redis has run each command. */
export async function commandCounts(redis: RedisServer): Promise<Record<string, number>> {
  const stats = await redis.info('commandstats');
  return Object.fromEntries(
    Object.entries(stats).map(([name, text]) => [
      name.replace('cmdstat_', ''),
      Number(/calls=(\d+)/.exec(text)?.[1]),
    ]),
  );
}
