// Copies in a process: they follow what others invalidate, and never outlive the trust in them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ManualClock } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { latch, startProxy } from '@sluice/testbed';
import { defineCache } from '../src/index.js';
import type { Cache } from '../src/index.js';
import { NearCache } from '../src/near.js';
import type { CacheParts } from '../src/cache.js';
import { eventually, Table, untilWatching, useRedis } from './setup.js';

const bed = useRedis();
const row = (table: Table) =>
  defineCache({
    name: 'row',
    key: (key: string) => key,
    load: (key) => table.read(key),
    ttlMs: 600_000,
    groups: (key) => [['of', key]],
  });

async function pair(t: TestContext, table: Table) {
  const prefix = bed.prefix();
  const [one, two] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  await untilWatching(one, two);
  return { one, two, rows: one.open(row(table)), others: two.open(row(table)) };
}

/** Reads until the process keeps a copy. */
async function untilCopied(cache: Cache, read: () => Promise<unknown>): Promise<void> {
  await eventually('a copy is kept', async () => {
    await read();
    return cache.statistics().nearEntries > 0;
  });
}

test('the copies of other processes follow an invalidation of a key and of a group', async (t) => {
  const table = new Table();
  const { one, two, rows, others } = await pair(t, table);
  for (const kill of [() => rows.invalidate('a'), () => one.invalidateGroup(['of', 'a'])]) {
    await untilCopied(two, () => others.get('a'));
    const version = table.write('a');
    await kill();
    assert.equal((await rows.get('a')).version, version, 'here at once');
    await eventually('the other process sees it', async () => (await others.get('a')).version === version);
  }
});

test('an invalidation removes copies of this process, also those made while it was under way', async (t) => {
  const table = new Table();
  const { one, rows } = await pair(t, table);
  for (let round = 0; round < 50; round++) {
    await untilCopied(one, () => rows.get('a'));
    const version = table.write('a');
    const reading = rows.get('a');
    const killing = round % 2 === 0 ? rows.invalidate('a') : one.invalidateGroup(['of', 'a']);
    const during = rows.get('a');
    await killing;
    assert.equal((await rows.get('a')).version, version);
    await Promise.all([reading, during]);
    assert.equal((await rows.get('a')).version, version);
  }
});

/** Says that it watches, and never tells anything: what is dropped was dropped by the process itself. */
const silentWatch: NonNullable<CacheParts['watch']> = (handlers) => {
  queueMicrotask(() => handlers.onState('watching'));
  return { close: () => {} };
};

test('no copy is kept of a large value that was invalidated while it was decompressed', async (t) => {
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  let onRead = (): void => {};
  const call: RedisLink['call'] = async (command, args, options) => {
    const reply = await link.call(command, args, options);
    if (command === 'MGET') setImmediate(() => onRead());
    return reply;
  };
  const wire = { call, run: link.run.bind(link) };
  const cache = await bed.cache(t, { parts: { wire, watch: silentWatch } });
  const noise = Array.from({ length: 100_000 }, () => Math.random());
  let version = 0;
  const load = () => ({ version, noise });
  const large = cache.open(
    defineCache({ name: 'large', key: (key: string) => key, load, ttlMs: 600_000, groups: () => ['all'] }),
  );
  const kills = { one: () => large.invalidate('one'), group: () => cache.invalidateGroup('all') };
  for (const [key, kill] of Object.entries(kills)) {
    await large.get(key);
    const read = latch();
    onRead = read.open;
    const reading = large.get(key);
    await read.opened;
    version += 1;
    assert.equal(await kill(), 'applied');
    await reading;
    onRead = () => {};
    assert.equal((await large.get(key)).version, version, key);
  }
});

test('no copy is kept of a value that was invalidated while its schema looked at it', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t, { parts: { watch: silentWatch } });
  let looks = 0;
  let looking = latch();
  looking.open();
  const validate = async (value: unknown) => {
    looks += 1;
    await looking.opened;
    return { value: value as { key: string; version: number } };
  };
  const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
  const rows = cache.open(defineCache({ ...row(table), schema }));
  const kills = { one: () => rows.invalidate('one'), group: () => cache.invalidateGroup(['of', 'group']) };
  for (const [key, kill] of Object.entries(kills)) {
    await rows.get(key);
    looking = latch();
    const before = looks;
    const reading = rows.get(key);
    await eventually('it looks', () => looks > before);
    const version = table.write(key);
    assert.equal(await kill(), 'applied');
    looking.open();
    await reading;
    assert.equal((await rows.get(key)).version, version);
  }
});

test('all copies are dropped when tracking breaks, and none are kept until it works again', async (t) => {
  const table = new Table();
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const cache = await bed.cache(t, { redis: proxy.url });
  await untilWatching(cache);
  const rows = cache.open(row(table));
  await untilCopied(cache, () => rows.get('a'));
  proxy.refuse(true);
  await eventually('it noticed', () => !cache.statistics().isWatching);
  assert.equal(cache.statistics().nearEntries, 0);
  await rows.get('a');
  assert.equal(cache.statistics().nearEntries, 0);
  proxy.heal();
  await untilWatching(cache);
  await untilCopied(cache, () => rows.get('a'));
});

test('a tracking connection that is silently dead is noticed, and its copies are dropped', async (t) => {
  const table = new Table();
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const cache = await bed.cache(t, { redis: proxy.url });
  await untilWatching(cache);
  const rows = cache.open(row(table));
  await untilCopied(cache, () => rows.get('a'));
  proxy.blackHole(true);
  await eventually('it noticed', () => cache.statistics().nearEntries === 0);
  proxy.heal();
  await untilWatching(cache);
});

test('a copy is at most five seconds old, also when notices never come', async (t) => {
  const table = new Table();
  const clock = new ManualClock();
  const prefix = bed.prefix();
  const cache = await bed.cache(t, { prefix, parts: { clock, watch: silentWatch } });
  const other = await bed.cache(t, { prefix });
  const rows = cache.open(row(table));
  await rows.get('a');
  await rows.get('a');
  assert.equal(cache.statistics().nearEntries, 1);
  const version = table.write('a');
  await other.kill({ names: ['row:a'], groups: [] });
  await clock.advance(4_900);
  assert.equal((await rows.get('a')).version, 0, 'the copy');
  await clock.advance(101);
  assert.equal((await rows.get('a')).version, version);
});

test('FLUSHALL drops all copies', async (t) => {
  const table = new Table();
  const { one, rows } = await pair(t, table);
  await untilCopied(one, () => rows.get('a'));
  await bed.redis.command('FLUSHALL');
  await eventually('they are gone', () => one.statistics().nearEntries === 0);
});

test('copies are bounded in number and bytes, and those that are used stay', () => {
  const clock = new ManualClock();
  const near = new NearCache({ maxEntries: 10, maxBytes: 1_000 }, clock);
  near.put('hot', 'value', 1_000, 10, []);
  for (let i = 0; i < 100; i++) {
    assert.ok(near.find('hot'), `after ${i}`);
    near.put(`cold${i}`, 'value', 1_000, 10, []);
  }
  assert.equal(near.size, 10);
  near.put('large', 'value', 1_000, 950, []);
  assert.ok(near.bytes <= 1_000);
  near.put('too large', 'value', 1_000, 1_001, []);
  assert.equal(near.find('too large'), undefined);
  near.put('of a group', 'value', 1_000, 1, ['g']);
  assert.ok(near.find('of a group'));
  near.dropGroup('g');
  assert.equal(near.find('of a group'), undefined);
  near.clear();
  assert.deepEqual([near.size, near.bytes], [0, 0]);
});

test('a copy of several groups hears of each of them, also when older groups are forgotten for it', () => {
  for (let before = 0; before <= 10; before++) {
    const near = new NearCache({ maxEntries: 10, maxBytes: 1_000 }, new ManualClock());
    for (let i = 0; i < before; i++) near.put(`old${i}`, 'value', 1_000, 1, [`old${i}`]);
    for (const group of ['f', 'g', 'h']) {
      near.put('a', 'value', 1_000, 1, ['f', 'g', 'h']);
      assert.ok(near.find('a'));
      near.dropGroup(group);
      assert.equal(near.find('a'), undefined, `${group}, after ${before} other groups`);
    }
  }
});
