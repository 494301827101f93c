/*
 * What a cache is asked to do in its turn. Each turn opens the cache anew, in the process that its system keeps for the whole run.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis, type RedisServer } from '@sluice/testbed';
import { Redis } from 'ioredis';
import { openContender, type Contender, type ContenderName } from './contender.js';
import { CONCURRENCY, KEYS, MANY, NEAR_KEYS } from './sizes.js';
import { inLanes } from '../waiting.js';

export type Turn =
  | { kind: 'nearHit'; gets: number }
  | { kind: 'redisHit'; gets: number }
  | { kind: 'getMany'; calls: number }
  | { kind: 'stampede'; readers: number; loadMs: number; startAtMs: number }
  | { kind: 'stale'; rounds: number }
  | { kind: 'outage'; how: 'killed' | 'stopped'; hangsAfterMs: number };

export interface Taken {
  /** Nanoseconds or microseconds per call, loads, stale reads or milliseconds, as the measure has it. */
  figure: number;
  /** Outages: how long after the return of Redis values are read from it again. */
  recoveredMs?: number;
}

export async function takeTurn(turn: Turn, name: ContenderName, url: string): Promise<Taken> {
  switch (turn.kind) {
    case 'nearHit':
      return withContender(name, url, true, (cache) => nearHit(cache, turn.gets));
    case 'redisHit':
      return withContender(name, url, false, (cache) => redisHit(cache, turn.gets));
    case 'getMany':
      return withContender(name, url, false, (cache) => getMany(cache, turn.calls));
    case 'stampede':
      return stampede(name, url, turn);
    case 'stale':
      return stale(name, url, turn.rounds);
    case 'outage':
      return outage(name, turn.how, turn.hangsAfterMs);
  }
}

async function withContender(
  name: ContenderName,
  url: string,
  near: boolean,
  measure: (cache: Contender) => Promise<Taken>,
): Promise<Taken> {
  const cache = await openContender(name, { url, near, load: async (key) => makeValue(key) });
  try {
    return await measure(cache);
  } finally {
    await cache.close();
  }
}

async function nearHit(cache: Contender, gets: number): Promise<Taken> {
  const keys = Array.from({ length: NEAR_KEYS }, (_, i) => `user-${i}`);
  // Loaded, read from Redis, and then from memory, with time for notices of what was stored.
  for (let round = 0; round < 4; round++) {
    for (const key of keys) await cache.get(key);
    await sleep(50);
  }
  const startedAt = performance.now();
  for (let i = 0; i < gets; i++) await cache.get(keys[i % NEAR_KEYS]!);
  return { figure: ((performance.now() - startedAt) / gets) * 1e6 };
}

async function redisHit(cache: Contender, gets: number): Promise<Taken> {
  const keys = await fill(cache, KEYS);
  await inLanes(CONCURRENCY, gets / 4, (i) => cache.get(keys[i % KEYS]!));
  const startedAt = performance.now();
  await inLanes(CONCURRENCY, gets, (i) => cache.get(keys[i % KEYS]!));
  return { figure: ((performance.now() - startedAt) / gets) * 1e3 };
}

async function getMany(cache: Contender, calls: number): Promise<Taken> {
  const keys = await fill(cache, MANY);
  for (let i = 0; i < calls / 4; i++) await cache.getMany(keys);
  const startedAt = performance.now();
  for (let i = 0; i < calls; i++) await cache.getMany(keys);
  const figure = ((performance.now() - startedAt) / calls) * 1e3;
  const values = (await cache.getMany(keys)) as { id: string }[];
  if (values.some((value, i) => value.id !== keys[i])) throw new Error('getMany returned something else');
  return { figure };
}

async function fill(cache: Contender, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, (_, i) => `user-${i}`);
  await inLanes(CONCURRENCY, count, (i) => cache.get(keys[i]!));
  return keys;
}

/** One process of several: all of them begin at the same moment, and each counts its own loads. */
async function stampede(
  name: ContenderName,
  url: string,
  { readers, loadMs, startAtMs }: Extract<Turn, { kind: 'stampede' }>,
): Promise<Taken> {
  let loads = 0;
  const load = async (key: string): Promise<unknown> => {
    loads += 1;
    await sleep(loadMs);
    return makeValue(key);
  };
  const cache = await openContender(name, { url, near: true, load });
  try {
    await sleep(Math.max(0, startAtMs - Date.now()));
    await Promise.all(Array.from({ length: readers }, () => cache.get('hot')));
    return { figure: loads };
  } finally {
    await cache.close();
  }
}

/** The value changes and is invalidated while it is being loaded; whoever asks afterwards must get the new one. */
async function stale(name: ContenderName, url: string, rounds: number): Promise<Taken> {
  let version = 0;
  let gate: Promise<void> | undefined;
  let begun = (): void => {};
  const load = async (): Promise<unknown> => {
    const seen = version;
    begun();
    await gate;
    return { version: seen };
  };
  const cache = await openContender(name, { url, near: true, load });
  let staleReads = 0;
  try {
    for (let round = 0; round < rounds; round++) {
      const key = `row-${round}`;
      let open = (): void => {};
      gate = new Promise<void>((resolve) => (open = resolve));
      const loading = new Promise<void>((resolve) => (begun = resolve));
      const early = cache.get(key);
      await loading;
      version += 1;
      await cache.invalidate(key);
      open();
      await early;
      const { version: read } = (await cache.get(key)) as { version: number };
      if (read < version) staleReads += 1;
    }
  } finally {
    await cache.close();
  }
  return { figure: staleReads };
}

const READS_DURING_OUTAGE = 5;
const OUTAGE_MS = 1_000;

async function outage(name: ContenderName, how: 'killed' | 'stopped', hangsAfterMs: number): Promise<Taken> {
  const redis = await startRedis({ appendonly: false });
  let loads = 0;
  const load = async (key: string): Promise<unknown> => {
    loads += 1;
    return makeValue(key);
  };
  const cache = await openContender(name, { url: redis.url, near: true, load });
  try {
    for (let i = 0; i < 10; i++) await cache.get(`before-${i}`);
    if (how === 'killed') await redis.kill9();
    else redis.pause();
    const figure = await slowestAnswer(cache, hangsAfterMs);
    if (figure >= hangsAfterMs) return { figure };
    await sleep(OUTAGE_MS);
    const recoveredMs = await recover(cache, redis, how, hangsAfterMs, () => loads);
    return { figure, recoveredMs };
  } finally {
    if (how === 'stopped') redis.resume();
    await cache.close();
    await redis.stop();
  }
}

/** Of a few reads of values that this process does not have. */
async function slowestAnswer(cache: Contender, hangsAfterMs: number): Promise<number> {
  let slowest = 0;
  for (let i = 0; i < READS_DURING_OUTAGE; i++) {
    const startedAt = performance.now();
    const answered = await Promise.race([
      cache.get(`during-${i}`).then(
        () => true,
        () => false,
      ),
      sleep(hangsAfterMs, false),
    ]);
    if (!answered) return hangsAfterMs;
    slowest = Math.max(slowest, performance.now() - startedAt);
  }
  return slowest;
}

/** From the return of Redis until what one reader loaded is in Redis, so that nobody else has to load it. */
async function recover(
  cache: Contender,
  redis: RedisServer,
  how: 'killed' | 'stopped',
  limitMs: number,
  loads: () => number,
): Promise<number> {
  if (how === 'killed') await redis.restart();
  else redis.resume();
  const startedAt = performance.now();
  const client = new Redis(redis.url);
  try {
    for (let i = 0; performance.now() - startedAt < limitMs; i++) {
      const before = loads();
      await cache.get(`after-${i}`);
      const isStored = (await client.dbsize()) > 0;
      await cache.get(`after-${i}`);
      if (isStored && loads() - before === 1) return performance.now() - startedAt;
      await sleep(5);
    }
    return limitMs;
  } finally {
    client.disconnect();
  }
}

/** About 400 bytes of JSON, as a user with rights might be. */
export function makeValue(key: string): { id: string } {
  return {
    id: key,
    ...{
      email: `${key}@example.com`,
      name: 'Ada Lovelace',
      rbac_level: 'analyst',
      can_upload: true,
      teams: ['reading', 'writing', 'arithmetic'],
      settings: { theme: 'dark', language: 'en', timeZone: 'Europe/London', pageSize: 50 },
      lastSeen: '2026-01-01T00:00:00.000Z',
      note: 'x'.repeat(120),
    },
  };
}
