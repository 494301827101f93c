// Misses: one load for all readers of all processes, and nothing that was invalidated comes back.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isSluiceError, ManualClock } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { defineCache } from '../src/index.js';
import type { Cache, CacheDefinition, CacheFamily } from '../src/index.js';
import { latch } from '@sluice/testbed';
import { commandCounts, eventually, sleep, Table, untilWatching, useRedis } from './setup.js';

const bed = useRedis();
type Row = { key: string; version: number };

async function processes(
  t: TestContext,
  count: number,
  table: Table,
  more: Partial<CacheDefinition<string, Row>> = {},
) {
  const prefix = bed.prefix();
  const caches: Cache[] = [];
  const families: CacheFamily<string, Row>[] = [];
  for (let i = 0; i < count; i++) {
    const cache = await bed.cache(t, { prefix });
    caches.push(cache);
    families.push(
      cache.open(
        defineCache({
          name: 'row',
          key: (key: string) => key,
          load: (key) => table.read(key),
          ttlMs: 60_000,
          groups: (key) => ['all', ['of', key]],
          ...more,
        }),
      ),
    );
  }
  return { prefix, caches, families };
}

/** What is left of the lease grows only when it is renewed. */
async function untilRenewed(prefix: string): Promise<void> {
  let leastMs = Infinity;
  await eventually('the lease is renewed', async () => {
    const leftMs = Number(await bed.redis.command('PTTL', `${prefix}:cache:lease:{row:a}`));
    const isRenewed = leftMs > leastMs;
    leastMs = leftMs < 0 ? Infinity : leftMs;
    return isRenewed;
  });
}

test('five processes with a hundred readers each load once', async (t) => {
  const table = new Table();
  const { caches, families } = await processes(t, 5, table);
  await untilWatching(...caches);
  const loading = latch();
  table.hold = loading.opened;
  const before = await commandCounts(bed.redis);
  const readers = families.flatMap((rows) => Array.from({ length: 100 }, () => rows.get('a')));
  const sum = (name: 'coalesced' | 'loads' | 'loaded' | 'misses') =>
    families.reduce((total, rows) => total + rows.statistics()[name], 0);
  // All but the one that loads: those of its process who share its flight, and in the others one waits in line for the rest.
  // They may see the claim before the process that made it hears that it did.
  await eventually('one loads, all others wait', () => sum('coalesced') === 499 && sum('loads') === 1);
  assert.equal(sum('loaded'), 0);
  await sleep(300);
  loading.open();
  for (const value of await Promise.all(readers)) assert.deepEqual(value, { key: 'a', version: 0 });
  const after = await commandCounts(bed.redis);
  assert.equal(table.reads, 1);
  const asked = (after['mget'] ?? 0) - (before['mget'] ?? 0);
  assert.ok(asked < 100, `waiting readers ask rarely: ${asked} MGETs`);
  assert.deepEqual([sum('coalesced'), sum('loads'), sum('loaded'), sum('misses')], [499, 1, 1, 500]);
});

test('how long a load took is counted, and kept with the value', async (t) => {
  const clock = new ManualClock();
  const cache = await bed.cache(t, { parts: { clock } });
  const loading = latch();
  const table = new Table();
  table.hold = loading.opened;
  const rows = cache.open(
    defineCache({ name: 'row', key: (key: string) => key, load: (key) => table.read(key), ttlMs: 60_000 }),
  );
  const reading = rows.get('a');
  await eventually('the load has begun', () => table.reads === 1);
  await clock.advance(250);
  loading.open();
  await reading;
  const { loadMs, averageLoadMs } = rows.statistics();
  assert.deepEqual([loadMs, averageLoadMs], [250, 250]);
  assert.equal((await rows.explain('a')).redis!.loadMs, 250);
});

test('of several values that are loaded one by one, one that fails or is slow leaves the others alone', async (t) => {
  const slow = latch();
  const load = async (key: string): Promise<Row> => {
    if (key === 'bad') throw new Error('broken');
    if (key === 'slow') await slow.opened;
    return { key, version: 7 };
  };
  const { families } = await processes(t, 1, new Table(), { load, nearMs: 0 });
  const [rows] = families as [CacheFamily<string, Row>];
  const keys = ['slow', 'bad', 'good'];
  const together = rows.getMany(keys);
  together.catch(() => {});
  await eventually('they are loaded', () => rows.statistics().loads === 3);
  const readers = keys.map((key) => rows.get(key));
  const settled = Promise.allSettled(readers);
  const [reading, , good] = readers;
  await assert.rejects(together, /broken/);
  assert.equal((await good!).version, 7, 'it waits neither for the slow one nor fails with the bad one');
  slow.open();
  assert.equal((await reading!).version, 7);
  await settled;
  const { loads, loaded, loadErrors } = rows.statistics();
  // Who asks for the bad one after it failed has it loaded once more.
  assert.deepEqual([loads, loaded, loadErrors], [2 + loadErrors, 2, loadErrors]);
  await assert.rejects(rows.warm(['bad', ...Array.from({ length: 600 }, (_, i) => `w${i}`)]), /broken/);
  assert.equal((await rows.explain('w599')).state, 'fresh', 'the rest is warm');
});

test('what was invalidated during its load is not stored, whichever way it was invalidated', async (t) => {
  const ways: ((cache: Cache, rows: CacheFamily<string, Row>) => Promise<unknown>)[] = [
    (_, rows) => rows.invalidate('a'),
    (cache) => cache.invalidateGroup('all'),
    (cache) => cache.invalidateGroup(['of', 'a']),
    (cache) => cache.kill({ names: ['row:a'], groups: [] }),
  ];
  for (const way of ways) {
    for (const invalidator of [0, 1]) {
      const table = new Table();
      const { caches, families } = await processes(t, 2, table);
      const [mine, other] = families as [CacheFamily<string, Row>, CacheFamily<string, Row>];
      const { opened, open } = latch();
      table.hold = opened;
      const early = mine.get('a');
      await eventually('the load has begun', () => table.reads === 1);
      table.write('a');
      assert.equal(await way(caches[invalidator]!, families[invalidator]!), 'applied');
      const late = [mine.get('a'), other.get('a')];
      open();
      // Who asked before the change may see either; who asked after the invalidation sees the new value.
      assert.ok((await early).version <= 1);
      for (const value of await Promise.all(late)) assert.equal(value.version, 1);
      assert.equal((await mine.get('a')).version, 1);
      assert.equal((await other.get('a')).version, 1);
    }
  }
});

test('the loader of a process that died is replaced once its lease ends', async (t) => {
  const table = new Table();
  const { prefix, families } = await processes(t, 2, table);
  // A process that took the lease and was killed.
  await bed.redis.command('SET', `${prefix}:cache:lease:{row:a}`, 'dead', 'PX', 400);
  const values = await Promise.all(families.flatMap((rows) => [rows.get('a'), rows.get('a')]));
  for (const value of values) assert.equal(value.version, 0);
  assert.equal(table.reads, 1);
});

test('a process that is killed while it loads costs one more load, and readers of others are served', async (t) => {
  const table = new Table();
  const prefix = bed.prefix();
  const leaseMs = 3_000;
  const program = fileURLToPath(new URL('dyingLoader.js', import.meta.url));
  const dying = fork(program, [bed.redis.url, prefix, `${leaseMs}`]);
  t.after(() => dying.kill('SIGKILL'));
  await once(dying, 'message');
  const open = async () =>
    (await bed.cache(t, { prefix, leaseMs })).open(
      defineCache({ name: 'row', key: (key: string) => key, load: (key) => table.read(key), ttlMs: 60_000 }),
    );
  const families = [await open(), await open()];
  const readers = families.flatMap((rows) => Array.from({ length: 10 }, () => rows.get('a')));
  // It renews its lease as long as it lives.
  await untilRenewed(prefix);
  assert.equal(table.reads, 0);
  dying.kill('SIGKILL');
  for (const value of await Promise.all(readers)) assert.equal(value.version, 0);
  assert.equal(table.reads, 1);
});

test('a lease whose answer came too late, or without a generation, is given back', async (t) => {
  const troubles = {
    late: async (script: string, run: () => Promise<unknown>, healed: Promise<void>) => {
      const reply = await run();
      if (script === 'lease') await healed;
      return reply;
    },
    alone: async (script: string, run: () => Promise<unknown>) => {
      if (script === 'generation') throw new Error('refused');
      return run();
    },
  };
  for (const [name, trouble] of Object.entries(troubles)) {
    const link = new RedisLink(bed.redis.url);
    t.after(() => link.close());
    await link.call('PING', []);
    const { opened, open } = latch();
    const run: RedisLink['run'] = (script, keys, args, options) =>
      trouble(script.name, () => link.run(script, keys, args, options), opened);
    const wire = { call: link.call.bind(link), run };
    const prefix = bed.prefix();
    const cache = await bed.cache(t, { prefix, patienceMs: 500, leaseMs: 600_000, parts: { wire } });
    const table = new Table();
    const family = defineCache({
      name: 'row',
      key: (key: string) => key,
      load: (key) => table.read(key),
      ttlMs: 60_000,
      groups: () => ['all'],
    });
    assert.equal((await cache.open(family).get('a')).version, 0);
    open();
    const lease = `${prefix}:cache:lease:{row:a}`;
    await eventually(`${name}: it is gone`, async () => (await bed.redis.command('EXISTS', lease)) === 0);
    const other = (await bed.cache(t, { prefix })).open(family);
    assert.equal((await other.get('a')).version, 0, 'and does not keep others waiting');
  }
});

test('the lease is renewed as long as the load goes on', async (t) => {
  const table = new Table();
  const prefix = bed.prefix();
  const open = async () => {
    const cache = await bed.cache(t, { prefix, leaseMs: 6_000 });
    return cache.open(
      defineCache({ name: 'row', key: (key: string) => key, load: (key) => table.read(key), ttlMs: 60_000 }),
    );
  };
  const [first, second] = [await open(), await open()];
  const loading = latch();
  table.hold = loading.opened;
  const readers = [first.get('a'), second.get('a')];
  for (let times = 0; times < 3; times++) await untilRenewed(prefix);
  loading.open();
  await Promise.all(readers);
  assert.equal(table.reads, 1);
});

test('a lease that was lost or evicted costs a load, never a wrong value', async (t) => {
  const table = new Table();
  const { prefix, families } = await processes(t, 1, table);
  const { opened, open } = latch();
  table.hold = opened;
  const reading = families[0]!.get('a');
  await eventually('the load has begun', () => table.reads === 1);
  await bed.redis.command('DEL', `${prefix}:cache:lease:{row:a}`);
  open();
  assert.equal((await reading).version, 0);
  assert.equal((await families[0]!.explain('a')).state, 'missing');
  assert.equal(families[0]!.statistics().fillsRefused, 1);
});

test('what a family does not keep is served to all who wait, and loaded again for the next', async (t) => {
  const cache = await bed.cache(t);
  let loads = 0;
  let status = 'PENDING';
  const load = () => ({ status, loads: ++loads });
  const keeps = (value: { status: string; loads: number }) => value.status === 'ACTIVE';
  const files = cache.open(
    defineCache({ name: 'file', key: (id: number) => id, ttlMs: 60_000, load, keeps }),
  );
  const together = await Promise.all([files.get(1), files.get(1)]);
  assert.deepEqual(together, [
    { status, loads: 1 },
    { status, loads: 1 },
  ]);
  assert.equal((await files.get(1)).loads, 2);
  assert.deepEqual(await bed.redis.command('KEYS', '*file*'), [], 'neither value nor lease is left');
  status = 'ACTIVE';
  assert.equal((await files.get(1)).loads, 3);
  assert.equal((await files.get(1)).loads, 3);
});

test('a load that fails gives its lease back at once', async (t) => {
  let isBroken = true;
  const prefix = bed.prefix();
  const load = async (key: string): Promise<Row> => {
    if (isBroken) throw new Error('broken');
    return { key, version: 7 };
  };
  const open = async () =>
    (await bed.cache(t, { prefix, leaseMs: 60_000 })).open(
      defineCache({ name: 'row', key: (key: string) => key, load, ttlMs: 60_000 }),
    );
  const [first, second] = [await open(), await open()];
  await assert.rejects(first.get('a'), /broken/);
  isBroken = false;
  assert.equal((await second.get('a')).version, 7);
});

test('a group without generation, and one that was evicted, is a miss', async (t) => {
  const table = new Table();
  const { prefix, families } = await processes(t, 1, table, { nearMs: 0 });
  const [rows] = families as [CacheFamily<string, Row>];
  await rows.get('a');
  await rows.get('a');
  assert.equal(table.reads, 1);
  await bed.redis.command('DEL', `${prefix}:cache:generation:{of:a}`);
  assert.match((await rows.explain('a')).because, /group of:a/);
  await rows.get('a');
  assert.equal(table.reads, 2);
});

test('a value that expired is served while one reader refreshes it, unless it was invalidated', async (t) => {
  const table = new Table();
  const { caches, families } = await processes(t, 2, table, {
    ttlMs: 50,
    jitter: 0,
    staleMs: 60_000,
    nearMs: 0,
  });
  const [rows, other] = families as [CacheFamily<string, Row>, CacheFamily<string, Row>];
  await rows.get('a');
  table.write('a');
  await sleep(100);
  assert.equal((await rows.get('a')).version, 0, 'stale, but it is only as old as its TTL allows');
  await eventually('it was refreshed', async () => (await other.get('a')).version === 1);
  assert.ok(rows.statistics().staleServed >= 1);
  await sleep(100);
  table.write('a');
  await rows.invalidate('a');
  assert.equal((await other.get('a')).version, 2, 'invalidated, so it is not served although it is stale');
  await sleep(100);
  table.write('a');
  await caches[1]!.invalidateGroup('all');
  assert.equal((await rows.get('a')).version, 3);
});

test('a value that expired stands in for a load that fails, unless it was invalidated', async (t) => {
  let isBroken = false;
  let version = 0;
  const load = async (key: string): Promise<Row> => {
    if (isBroken) throw new Error('broken');
    return { key, version };
  };
  const table = new Table();
  const { caches, families } = await processes(t, 2, table, {
    load,
    ttlMs: 50,
    jitter: 0,
    staleIfErrorMs: 60_000,
    nearMs: 0,
  });
  const [rows, other] = families as [CacheFamily<string, Row>, CacheFamily<string, Row>];
  await rows.get('a');
  await rows.get('b');
  isBroken = true;
  version = 1;
  await sleep(100);
  for (const { version: old } of await Promise.all([rows.get('a'), rows.get('a'), rows.get('a')]))
    assert.equal(old, 0);
  const { staleServed, misses, hitRate } = rows.statistics();
  assert.deepEqual([staleServed, misses, hitRate], [3, 2, 0.6], 'each read is counted once');
  await rows.invalidate('a');
  await assert.rejects(other.get('a'), /broken/);
  await caches[1]!.invalidateGroup(['of', 'b']);
  await assert.rejects(rows.get('b'), /broken/);
  isBroken = false;
  assert.equal((await rows.get('a')).version, 1);
});

test('a value that is invalidated while its load fails does not stand in for it', async (t) => {
  const failing = latch();
  let isBroken = false;
  const load = async (key: string): Promise<Row> => {
    if (!isBroken) return { key, version: 0 };
    await failing.opened;
    throw new Error('broken');
  };
  const { families } = await processes(t, 2, new Table(), {
    load,
    ttlMs: 50,
    jitter: 0,
    staleIfErrorMs: 60_000,
    nearMs: 0,
  });
  const [rows, other] = families as [CacheFamily<string, Row>, CacheFamily<string, Row>];
  await rows.get('a');
  isBroken = true;
  await sleep(100);
  const reading = rows.get('a');
  reading.catch(() => {});
  await eventually('the load has begun', () => rows.statistics().loads === 2);
  await other.invalidate('a');
  failing.open();
  await assert.rejects(reading, /broken/);
});

test('a slow load is answered with the value that expired, and goes on', async (t) => {
  const slow = latch();
  let version = 0;
  const load = async (key: string): Promise<Row> => {
    const row = { key, version };
    if (version > 0) await slow.opened;
    return row;
  };
  const { families } = await processes(t, 1, new Table(), {
    load,
    ttlMs: 50,
    jitter: 0,
    staleIfErrorMs: 60_000,
    softTimeoutMs: 20,
    nearMs: 0,
  });
  const [rows] = families as [CacheFamily<string, Row>];
  await rows.get('a');
  version = 1;
  await sleep(100);
  for (const { version: old } of await Promise.all([rows.get('a'), rows.get('a')])) assert.equal(old, 0);
  const { staleServed, misses } = rows.statistics();
  assert.deepEqual([staleServed, misses], [2, 1], 'each read is counted once');
  slow.open();
  await eventually('the load has ended', async () => (await rows.get('a')).version === 1);
});

test('a load that takes longer than the hard timeout fails, and its signal fires', async (t) => {
  const signals: AbortSignal[] = [];
  const { families } = await processes(t, 1, new Table(), {
    load: (_key, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    },
    hardTimeoutMs: 50,
  });
  await assert.rejects(families[0]!.get('a'), (error) => isSluiceError(error, 'LOAD_TIMEOUT'));
  assert.ok(signals[0]!.aborted);
});

test('a value that took long to load is refreshed before it expires, by one reader, and nobody waits', async (t) => {
  const table = new Table();
  const prefix = bed.prefix();
  // The largest draw there is: every reader finds that it is time.
  const parts = { random: () => 1 - 1e-12 };
  const loading = latch();
  const families: CacheFamily<string, Row>[] = [];
  for (let i = 0; i < 3; i++) {
    const cache = await bed.cache(t, { prefix, parts });
    const load = async (key: string): Promise<Row> => {
      await (table.reads === 0 ? sleep(20) : loading.opened);
      return table.read(key);
    };
    families.push(
      cache.open(
        defineCache({
          name: 'row',
          key: (key: string) => key,
          load,
          ttlMs: 30_000,
          earlyRefresh: 100,
          nearMs: 0,
        }),
      ),
    );
  }
  await families[0]!.get('a');
  table.write('a');
  for (const rows of families) {
    for (let i = 0; i < 3; i++)
      assert.equal((await rows.get('a')).version, 0, 'nobody waits for the refresh');
  }
  loading.open();
  await eventually('it was refreshed', async () => (await families[1]!.get('a')).version === 1);
  const sums = families.map((rows) => rows.statistics());
  assert.equal(
    sums.reduce((sum, { misses }) => sum + misses, 0),
    1,
  );
  assert.ok(sums.some(({ earlyRefreshes }) => earlyRefreshes > 0));
});

test('what was loaded together does not expire together', async (t) => {
  const { families } = await processes(t, 1, new Table(), { ttlMs: 100_000, groups: () => [] });
  const [rows] = families as [CacheFamily<string, Row>];
  const keys = Array.from({ length: 40 }, (_, i) => `k${i}`);
  await rows.getMany(keys);
  const left = await Promise.all(keys.map(async (key) => (await rows.explain(key)).redis!.freshForMs));
  assert.ok(Math.max(...left) - Math.min(...left) > 1_000, `${Math.min(...left)}–${Math.max(...left)}`);
  assert.ok(
    left.every((ms) => ms > 85_000 && ms <= 100_000),
    'a tenth is taken off at most, and nothing is added',
  );
});

test('explain says why a key is in the state it is in', async (t) => {
  const table = new Table();
  const { caches, families } = await processes(t, 1, table, { nearMs: 0 });
  const [rows] = families as [CacheFamily<string, Row>];
  const because = async () => (await rows.explain('a')).because;
  assert.match(await because(), /not in Redis/);
  const { opened, open } = latch();
  table.hold = opened;
  const reading = rows.get('a');
  await eventually('the load has begun', () => table.reads === 1);
  const during = await rows.explain('a');
  assert.match(during.because, /somebody loads it now/);
  assert.ok(during.lease!.remainingMs > 0 && during.isUnderWay);
  open();
  await reading;
  const fresh = await rows.explain('a');
  assert.equal(fresh.because, 'It is in Redis and fresh.');
  assert.equal(fresh.state, 'fresh');
  assert.deepEqual(
    fresh.groups.map(({ group, carried, current }) => [group, carried === current]),
    [
      ['all', true],
      ['of:a', true],
    ],
  );
  await caches[0]!.invalidateGroup('all');
  assert.match(await because(), /group all was invalidated/);
});
