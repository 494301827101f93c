// Redis is away: readers get their answer from the loader, invalidations are kept, and everything is as before when it is back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isSluiceError, ManualClock } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { latch, startProxy, startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { defineCache } from '../src/index.js';
import { eventually, openCache, Table, untilWatching, useRedis } from './setup.js';

const bed = useRedis();

const row = (table: Table) =>
  defineCache({
    name: 'row',
    key: (key: string) => key,
    load: (key) => table.read(key),
    ttlMs: 600_000,
    groups: (key) => [['of', key]],
  });

async function ownRedis(t: TestContext): Promise<RedisServer> {
  const redis = await startRedis({ appendonly: false });
  t.after(() => redis.stop());
  return redis;
}

interface Outage {
  name: string;
  begin: (redis: RedisServer) => Promise<void> | void;
  end: (redis: RedisServer) => Promise<void> | void;
}

const outages: Outage[] = [
  {
    name: 'killed',
    begin: (redis: RedisServer) => redis.kill9(),
    end: (redis: RedisServer) => redis.restart(),
  },
  {
    name: 'stopped with SIGSTOP',
    begin: (redis: RedisServer) => redis.pause(),
    end: (redis: RedisServer) => redis.resume(),
  },
];

for (const { name, begin, end } of outages) {
  test(`with Redis ${name} readers are answered by the loader, and by Redis again when it is back`, async (t) => {
    const redis = await ownRedis(t);
    const table = new Table();
    const cache = await openCache(t, { redis: redis.url, patienceMs: 50 });
    const rows = cache.open(row(table));
    await rows.get('a');
    await begin(redis);
    table.write('a');
    for (let i = 0; i < 10; i++) {
      assert.equal((await rows.get(`b${i}`)).version, 0);
      assert.equal((await rows.getMany(['c', 'd'])).length, 2);
    }
    await eventually('the breaker is open', () => cache.statistics().breaker === 'open');
    const { bypassed } = rows.statistics();
    assert.ok(bypassed > 0);
    await end(redis);
    await eventually('it is closed again', () => cache.statistics().breaker === 'closed');
    // On a busy machine Redis may now and then be later than the patience, and the loader answers once more.
    await eventually('what is there is read from Redis', async () => {
      await rows.get('z');
      const { loads } = rows.statistics();
      await rows.get('z');
      await rows.getMany(['z', 'z']);
      return rows.statistics().loads === loads;
    });
  });

  test(`an invalidation with Redis ${name} is kept, and applied before the value is read again`, async (t) => {
    const redis = await ownRedis(t);
    // Killed, it must come back with its old values, or there would be nothing to invalidate.
    if (name === 'killed') await redis.restart({ appendonly: 'yes', appendfsync: 'always' });
    const table = new Table();
    const cache = await openCache(t, { redis: redis.url, patienceMs: 50 });
    await untilWatching(cache);
    const rows = cache.open(row(table));
    for (const key of ['a', 'b', 'c']) await rows.get(key);
    await begin(redis);
    for (const key of ['a', 'b']) table.write(key);
    assert.equal(await rows.invalidate('a'), 'kept');
    assert.equal(await cache.invalidateGroup(['of', 'b']), 'kept');
    assert.equal(cache.statistics().keptInvalidations, 2);
    assert.equal((await rows.get('a')).version, 1);
    assert.equal((await rows.explain('a')).isKept, true);
    await end(redis);
    while (cache.statistics().keptInvalidations > 0) {
      // Whatever moment it is, the old value is not read.
      assert.equal((await rows.get('a')).version, 1);
      assert.equal((await rows.get('b')).version, 1);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal((await rows.get('a')).version, 1);
    assert.equal((await rows.get('b')).version, 1);
    await eventually('it is closed again', () => cache.statistics().breaker === 'closed');
    assert.equal((await rows.get('c')).version, 0);
    await eventually('Redis takes it again', async () => (await rows.invalidate('a')) === 'applied');
  });
}

test('an invalidation whose reply was lost is repeated', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const table = new Table();
  const cache = await openCache(t, { redis: proxy.url });
  const rows = cache.open(row(table));
  for (let i = 0; i < 5; i++) {
    await rows.get('a');
    const version = table.write('a');
    const lost = proxy.loseReplies({ when: (request) => request.includes('UNLINK') });
    await rows.invalidate('a');
    await lost;
    await eventually('nothing is kept', () => cache.statistics().keptInvalidations === 0);
    assert.equal((await rows.get('a')).version, version);
  }
});

test('an invalidation waits for Redis for as long as a reader would', async (t) => {
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  const clock = new ManualClock();
  const slow = latch();
  const call: RedisLink['call'] = async (command, ...rest) => {
    const reply = await link.call(command, ...rest);
    if (command === 'UNLINK') await slow.opened;
    return reply;
  };
  const wire = { call, run: link.run.bind(link) };
  const cache = await bed.cache(t, { patienceMs: 10_000, parts: { wire, clock } });
  const rows = cache.open(row(new Table()));
  const invalidating = rows.invalidate('a');
  await clock.advance(9_999);
  slow.open();
  assert.equal(await invalidating, 'applied');
});

test('the first read without any Redis is answered by the loader', async (t) => {
  const table = new Table();
  const redis = await ownRedis(t);
  await redis.kill9();
  const cache = await openCache(t, { redis: redis.url, patienceMs: 50 });
  const rows = cache.open(row(table));
  assert.equal((await rows.get('a')).version, 0);
});

test('while Redis is away only so many loads run at once, the rest wait, and too many are refused', async (t) => {
  const redis = await ownRedis(t);
  const cache = await openCache(t, {
    redis: redis.url,
    patienceMs: 50,
    bypass: { loadsAtOnce: 3, maxWaiting: 5 },
  });
  const { opened, open } = latch();
  let running = 0;
  let most = 0;
  const load = async (id: number): Promise<number> => {
    running += 1;
    most = Math.max(most, running);
    await opened;
    running -= 1;
    return id;
  };
  const rows = cache.open(defineCache({ name: 'slow', key: (id: number) => id, load, ttlMs: 60_000 }));
  await redis.kill9();
  await eventually('the breaker is open', () => cache.statistics().breaker === 'open');
  const readers = Array.from({ length: 20 }, (_, id) => rows.get(id));
  const settled = Promise.allSettled(readers);
  const same = Promise.all(Array.from({ length: 50 }, () => rows.get(0)));
  await eventually(
    'all have been let in, wait or were refused',
    () => cache.statistics().bypassLoadsWaiting === 5,
  );
  open();
  const results = await settled;
  assert.deepEqual(
    results.slice(0, 8).map((result) => result.status),
    Array.from({ length: 8 }, () => 'fulfilled'),
  );
  for (const result of results.slice(8)) {
    assert.ok(isSluiceError((result as PromiseRejectedResult).reason, 'LOAD_OVERLOAD'));
  }
  assert.equal(most, 3);
  assert.deepEqual(new Set(await same), new Set([0]));
});

test('while Redis is away a load that reads other values through the cache needs no second place', async (t) => {
  const redis = await ownRedis(t);
  const cache = await openCache(t, {
    redis: redis.url,
    patienceMs: 50,
    bypass: { loadsAtOnce: 2, maxWaiting: 100 },
  });
  const define = (name: string, load: (id: number) => Promise<number>) =>
    cache.open(defineCache({ name, key: (id: number) => id, load, ttlMs: 60_000 }));
  const inner = define('inner', async (id) => id);
  const { opened, open } = latch();
  let waiting = 0;
  const outer = define('outer', async (id) => {
    waiting += 1;
    await opened;
    const [one, many] = await Promise.all([inner.get(id), inner.getMany([id, 100 + id])]);
    return one + many.length;
  });
  await redis.kill9();
  await eventually('the breaker is open', () => cache.statistics().breaker === 'open');
  const readers = [1, 2, 3, 4].map((id) => outer.get(id));
  await eventually('all places are taken', () => waiting === 2);
  // Somebody outside was first to ask for what the loads need, and waits in line with it.
  const outside = [1, 2].map((id) => inner.get(id));
  await eventually('it waits', () => cache.statistics().bypassLoadsWaiting === 4);
  open();
  assert.deepEqual(await Promise.all(readers), [3, 4, 5, 6]);
  assert.deepEqual(await Promise.all(outside), [1, 2]);
  const { bypassLoadsRunning, bypassLoadsWaiting } = cache.statistics();
  assert.deepEqual([bypassLoadsRunning, bypassLoadsWaiting], [0, 0]);
});

test('a Redis whose memory is full refuses to store, and readers do not notice', async (t) => {
  const redis = await startRedis({ appendonly: false, config: { maxmemory: '1mb' } });
  t.after(() => redis.stop());
  const table = new Table();
  const cache = await openCache(t, { redis: redis.url });
  const rows = cache.open(row(table));
  assert.equal((await rows.get('a')).version, 0);
  table.write('a');
  assert.equal(await rows.invalidate('a'), 'applied');
  assert.equal((await rows.get('a')).version, 1);
  assert.equal(cache.statistics().breaker, 'closed');
});
