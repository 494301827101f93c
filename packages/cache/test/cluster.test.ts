// On a cluster values, leases and generations are spread over all masters; everything works as on one server.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { latch, startCluster, type RedisCluster } from '@sluice/testbed';
import { defineCache } from '../src/index.js';
import { adviceOn, eventually, makePrefix, openCache, Table, untilWatching } from './setup.js';

let cluster: RedisCluster;
before(async () => {
  cluster = await startCluster({ masters: 3, replicasPer: 0 });
});
after(() => cluster.stop());

const row = (table: Table) =>
  defineCache({
    name: 'row',
    key: (key: string) => key,
    load: (key) => table.read(key),
    loadMany: (keys) => table.readMany(keys),
    ttlMs: 600_000,
    groups: (key) => ['all', ['of', key]],
  });

test('on a cluster values are read, loaded once, followed and invalidated, in all slots', async (t) => {
  const prefix = makePrefix();
  const table = new Table();
  const [one, two] = [
    await openCache(t, { redis: cluster.url, prefix }),
    await openCache(t, { redis: cluster.url, prefix }),
  ];
  await untilWatching(one, two);
  const [rows, others] = [one.open(row(table)), two.open(row(table))];
  const keys = Array.from({ length: 50 }, (_, i) => `k${i}`);
  assert.equal((await rows.getMany(keys)).length, 50);
  assert.deepEqual(table.batches, [50]);
  assert.equal((await others.getMany(keys)).length, 50);
  assert.deepEqual(table.batches, [50], 'the other process finds them');
  await eventually('copies are kept', async () => {
    await others.getMany(keys);
    return two.statistics().nearEntries === 50;
  });
  const version = table.write('k7');
  assert.equal(await rows.invalidate(...keys), 'applied');
  assert.equal((await rows.get('k7')).version, version);
  await eventually('the other process sees it', async () => (await others.get('k7')).version === version);
  const next = table.write('k7');
  assert.equal(await one.invalidateGroup('all'), 'applied');
  assert.equal((await rows.get('k7')).version, next);
  await eventually('the other process sees it', async () => (await others.get('k7')).version === next);
});

test('on a cluster what was invalidated during its load is not stored', async (t) => {
  const prefix = makePrefix();
  const cache = await openCache(t, { redis: cluster.url, prefix });
  const table = new Table();
  const rows = cache.open(row(table));
  for (const kill of [() => rows.invalidate('a'), () => cache.invalidateGroup(['of', 'a'])]) {
    const { opened, open } = latch();
    table.hold = opened;
    const reads = table.reads;
    const early = rows.get('a');
    await eventually('the load has begun', () => table.reads > reads);
    const version = table.write('a');
    await kill();
    const late = rows.get('a');
    open();
    await early;
    assert.equal((await late).version, version);
    assert.equal((await rows.get('a')).version, version);
    await rows.invalidate('a');
  }
});

test('a cache refuses an evicting cluster that is the queue’s too, whichever nodes answer', async (t) => {
  const policy = (name: string) =>
    Promise.all(cluster.nodes.map((node) => node.command('CONFIG', 'SET', 'maxmemory-policy', name)));
  await policy('allkeys-lru');
  t.after(() => policy('noeviction'));
  // Which node is asked is chance: six times that it is the same on both sides would be a lot of it.
  for (let attempt = 0; attempt < 6; attempt++) {
    const advice = adviceOn(t, { redis: cluster.url, queueRedis: cluster.url });
    await assert.rejects(advice, (error) => isSluiceError(error, 'EVICTING_QUEUE_REDIS'));
  }
});

test('on a cluster a value and its lease share a slot', async () => {
  for (const name of ['row:a', 'row:%7B', 'graph:job1:x']) {
    const slots = ['value', 'lease'].map((kind) => cluster.slotOf(`p:cache:${kind}:{${name}}`));
    const [value, lease] = await Promise.all(slots);
    assert.equal(value, lease);
  }
});
