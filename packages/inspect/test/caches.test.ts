// What the caches of several processes do, added up: in answers, in rates and in the history.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { Cache, countsBetween, defineCache, FamilyCounts, readPublished } from '@sluice/cache';
import type { PublishedCache } from '@sluice/cache';
import { RedisLink } from '@sluice/redis';
import { startCluster, startRedis } from '@sluice/testbed';
import { cacheFigures, toNamed } from '../src/figures.js';
import { History } from '../src/history.js';
import { Inspect } from '../src/index.js';
import { inspectKeys } from '../src/keys.js';
import { cacheSeriesOf, Roller } from '../src/roller.js';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();
const minuteMs = 60_000;
/** A process is taken for gone after four times as long: a busy machine must not look like that. */
const publishMs = 500;

function openCache(t: TestContext, redis: string, prefix: string): Cache {
  const cache = new Cache({ redis, prefix, publishMs, patienceMs: 10_000 });
  t.after(() => cache.close());
  return cache;
}

const row = (name: string) =>
  defineCache({ name, key: (id: number) => id, load: (id) => ({ id }), ttlMs: 600_000, nearMs: 0 });

test('what all processes have counted is added up, family by family', async (t) => {
  const prefix = bed.prefix();
  const caches = Array.from({ length: 3 }, () => openCache(t, bed.redis.url, prefix));
  const inspect = bed.inspect(t, [], { cache: { redis: bed.redis.url, prefix }, everyMs: 20 });
  for (const [i, cache] of caches.entries()) {
    const users = cache.open(row('user'));
    for (let id = 0; id < 10; id++) await users.get(id);
    if (i === 0) await cache.open(row('drive')).get(1);
  }
  const users = async () => (await inspect.caches())?.families.find(({ family }) => family === 'user');
  // Each process publishes when its time comes.
  await eventually(async () => {
    const seen = await inspect.caches();
    return seen?.total.processes === 3 && seen.total.redisHits === 20 && seen.total.loads === 11;
  });
  const seen = (await users())!;
  assert.deepEqual([seen.misses, seen.loads, seen.openBreakers], [10, 10, 0]);
  assert.ok(Math.abs(seen.hitRate! - 2 / 3) < 0.001);
  assert.ok(seen.averageRemainingTtlMs! > 400_000 && seen.averageRemainingTtlMs! <= 600_000);
  const { families, total, processes } = (await inspect.caches())!;
  assert.deepEqual(
    families.map(({ family, processes: having }) => [family, having]),
    [
      ['drive', 1],
      ['user', 3],
    ],
  );
  assert.deepEqual([total.loads, total.misses, total.processes], [11, 11, 3]);
  assert.ok(processes.every(({ isAlive, pid, breaker }) => isAlive && pid === process.pid && breaker));
  assert.equal((await inspect.overview()).cache?.loads, 11);
});

test('what the definition of a family says of it is told beside what it does', async (t) => {
  const prefix = bed.prefix();
  const cache = openCache(t, bed.redis.url, prefix);
  cache.open({ ...row('text'), hitGoal: 0.85, from: 'storage' });
  cache.open(row('plain'));
  const inspect = bed.inspect(t, [], { cache: { redis: bed.redis.url, prefix }, everyMs: 20 });
  await eventually(async () => (await inspect.caches())?.families.length === 2);
  const { families, total } = (await inspect.caches())!;
  assert.deepEqual(
    [...families, total].map(({ family, hitGoal, from }) => [family, hitGoal, from]),
    [
      ['plain', null, null],
      ['text', 0.85, 'storage'],
      ['*', null, null],
    ],
  );
});

test('a process that ended stays in the sums for a while, and is told from those that live', async (t) => {
  const prefix = bed.prefix();
  const [ending, living] = [openCache(t, bed.redis.url, prefix), openCache(t, bed.redis.url, prefix)];
  const inspect = bed.inspect(t, [], { cache: { redis: bed.redis.url, prefix }, everyMs: 20 });
  for (const cache of [ending, living]) await cache.open(row('user')).get(1);
  const rows = async () => (await inspect.caches())!.processes.map(({ isAlive }) => isAlive);
  await eventually(async () => {
    const { total } = (await inspect.caches())!;
    return total.loads === 1 && total.redisHits === 1;
  });
  ending.close();
  await eventually(async () => (await rows()).filter((isAlive) => isAlive).length === 1);
  const { total } = (await inspect.caches())!;
  assert.deepEqual([total.loads, total.redisHits, total.processes], [1, 1, 1]);
});

test('entries of processes that have been silent for long are removed by those that publish', async (t) => {
  const prefix = bed.prefix();
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  const old = JSON.stringify({ id: 'old', atMs: Date.now(), families: [] });
  await link.call('HSET', [`${prefix}:cache:statistics:{processes}`, 'old', old]);
  await link.call('ZADD', [`${prefix}:cache:published:{processes}`, 1, 'old']);
  await link.call('HSET', [`${prefix}:cache:statistics:{processes}`, 'damaged', 'no JSON']);
  assert.equal((await readPublished(link, { prefix })).length, 1);
  openCache(t, bed.redis.url, prefix);
  await eventually(async () => {
    const found = await readPublished(link, { prefix });
    return found.length === 1 && found[0]!.id !== 'old';
  });
  const keepMs = Number(await link.call('PTTL', [`${prefix}:cache:statistics:{processes}`]));
  assert.ok(keepMs > 0 && keepMs <= 120_000);
});

test('a process that ended long ago is not counted, also when Redis has evicted who published when', async (t) => {
  const prefix = bed.prefix();
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  const [statistics, published] = ['statistics', 'published'].map(
    (name) => `${prefix}:cache:${name}:{processes}`,
  );
  const gone = JSON.stringify({ id: 'gone', atMs: Date.now() - 121_000, families: [] });
  const recent = JSON.stringify({ id: 'recent', atMs: Date.now() - 60_000, families: [] });
  await link.call('HSET', [statistics!, 'gone', gone, 'recent', recent]);
  await link.call('ZADD', [published!, Date.now(), 'recent']);
  const ids = async () => (await readPublished(link, { prefix })).map(({ id }) => id);
  assert.deepEqual(await ids(), ['recent']);
  openCache(t, bed.redis.url, prefix);
  await eventually(async () => (await ids()).length === 2);
  await link.call('DEL', [published!]);
  await eventually(async () => (await link.call('HEXISTS', [statistics!, 'gone'])) === 0);
  await eventually(async () => (await ids()).length === 1);
});

test('what happened between two looks is found process by process, also when one begins or ends', () => {
  const counted = (id: string, sinceMs: number, redisHits: number): PublishedCache => {
    const counts = Object.assign(new FamilyCounts(), { family: 'user', redisHits });
    return { id, sinceMs, families: [counts] } as unknown as PublishedCache;
  };
  const before = [counted('a', 0, 100), counted('ended', 0, 50)];
  const now = [counted('a', 0, 130), counted('new', 2_000, 5), counted('unheard of', 500, 1_000)];
  assert.equal(countsBetween(before, 1_000, now).get('user')?.redisHits, 35);
  assert.equal(countsBetween(before, 1_000, [counted('a', 0, 90)]).get('user')?.redisHits, 0);
});

test('the history has a series of each family and one of all', async (t) => {
  const prefix = bed.prefix();
  const cache = openCache(t, bed.redis.url, prefix);
  const users = cache.open(row('user'));
  await users.get(1);
  const inspect = bed.inspect(t, [], {
    cache: { redis: bed.redis.url, prefix },
    everyMs: 10,
    history: false,
  });
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  const history = new History(link, inspectKeys(prefix));
  const roller = new Roller(history);
  const looked = async (loads: number, hits: number) => {
    await eventually(async () => {
      const total = (await inspect.caches())?.total;
      return total?.loads === loads && total.redisHits === hits;
    });
    return { snapshot: await inspect.snapshot(), caches: await readPublished(link, { prefix }) };
  };
  const first = await looked(1, 0);
  await roller.roll(first.snapshot, [], { atMs: first.snapshot.atMs, caches: first.caches });
  for (let i = 0; i < 9; i++) await users.get(1);
  await users.get(2);
  const second = await looked(2, 9);
  const atMs = second.snapshot.atMs + minuteMs;
  await roller.roll({ ...second.snapshot, atMs }, [], { atMs, caches: second.caches });
  const last = Math.floor((atMs - 2_000) / minuteMs) - 1;
  for (const family of ['user', '*']) {
    const [record] = await history.readMinutes(cacheSeriesOf(family), last, 1);
    const { reads, hits, loads, processes, openBreakers } = toNamed(cacheFigures, record!);
    assert.deepEqual([reads, hits, loads, processes, openBreakers], [10, 9, 1, 1, 0], family);
  }
  const series = await inspect.series({ cache: 'user', step: 'minute' });
  assert.equal(series.points.length, 60);
});

test('with the Redis of the cache away queues are looked at as before, and the problem is told', async (t) => {
  const redis = await startRedis({ appendonly: false });
  t.after(() => redis.stop());
  const queue = bed.queue(t);
  const cache = openCache(t, redis.url, 'sluice');
  const users = cache.open(row('user'));
  await users.get(1);
  const inspect = bed.inspect(t, [queue], { cache: { redis: redis.url }, everyMs: 20 });
  await eventually(async () => (await inspect.caches())?.total.loads === 1);
  await redis.kill9();
  await queue.add('x', { delayMs: 3_600_000 });
  await eventually(async () => {
    const snapshot = await inspect.snapshot();
    return snapshot.cache?.problem !== undefined && snapshot.queues[0]?.counts.delayed === 1;
  });
  const { problems } = await inspect.overview();
  assert.deepEqual(
    problems.map(({ of }) => of),
    ['cache'],
  );
  assert.equal((await inspect.caches())!.total.loads, 1, 'the figures of before stay');
  assert.deepEqual(await users.get(1), { id: 1 });
  await redis.restart();
  await eventually(async () => {
    const seen = await inspect.caches();
    return seen?.problem === undefined && seen!.total.bypassed > 0;
  });
  // Away, it could not say so there; back, it says until when it was.
  const { total, families, processes } = (await inspect.caches())!;
  assert.deepEqual([total.openBreakers, families[0]!.openBreakers], [1, 1]);
  assert.ok(processes[0]!.awayUntilMs! > Date.now() - 60_000);
});

test('on a cluster what the processes published lies in one place', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  t.after(() => cluster.stop());
  const caches = [openCache(t, cluster.url, 'sluice'), openCache(t, cluster.url, 'sluice')];
  for (const cache of caches) await cache.open(row('user')).get(1);
  const inspect = new Inspect({
    redis: cluster.url,
    queues: [],
    cache: { redis: cluster.url },
    history: false,
  });
  t.after(() => inspect.close());
  await eventually(async () => (await inspect.caches())?.total.processes === 2);
  for (const cache of caches) cache.close();
});
