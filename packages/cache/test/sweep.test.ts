// The memory of an invalidated group comes back, and nothing depends on it: indexes that are cut short, lost or evicted, sweeps that
// die, replies that are lost cost memory for a while and never a wrong answer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { RedisLink } from '@sluice/redis';
import { startCluster, startProxy, startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { families, defineCache } from '../src/index.js';
import type { Cache, CacheDefinition, CacheFamily } from '../src/index.js';
import { KeySpace } from '../src/keys.js';
import { scripts } from '../src/scripts.js';
import { commandCounts, eventually, openCache, sleep, useRedis } from './setup.js';

const bed = useRedis();
/** Three batches of a sweep. */
const memberCount = 1_200;
/** So many loads at once may take a busy machine longer than a lease usually lasts. */
const leaseMs = 60_000;
const ids = Array.from({ length: memberCount }, (_, id) => id);

interface Row {
  id: number;
  version: number;
}

/** A family whose values all belong to the group `all`. */
class Rows {
  version = 1;
  loads = 0;
  readonly family: CacheFamily<number, Row>;

  constructor(
    readonly cache: Cache,
    more: Partial<CacheDefinition<number, Row>> = {},
  ) {
    const loadMany = (keys: readonly number[]) => {
      this.loads += keys.length;
      return keys.map((id) => ({ id, version: this.version }));
    };
    this.family = cache.open(
      defineCache({
        name: 'row',
        key: (id: number) => id,
        loadMany,
        ttlMs: 600_000,
        groups: () => ['all'],
        ...more,
      }),
    );
  }
}

async function keysOf(redis: RedisServer, prefix: string, kind: string): Promise<string[]> {
  return ((await redis.command('KEYS', `${prefix}:cache:${kind}:*`)) as Buffer[]).map(String).sort();
}

async function openRows(t: TestContext, more: Partial<CacheDefinition<number, Row>> = {}) {
  const prefix = bed.prefix();
  const rows = new Rows(await bed.cache(t, { prefix, leaseMs }), more);
  return { prefix, rows, values: () => keysOf(bed.redis, prefix, 'value') };
}

/** All of them are in Redis and in the index. What a busy machine did not fill the first time is asked for again. */
async function fillAll({ family }: Rows, prefix: string, redis = bed.redis): Promise<void> {
  await eventually('all have joined', async () => {
    for (let at = 0; at < memberCount; at += 200) await family.getMany(ids.slice(at, at + 200));
    await sleep(20);
    const cards = (await keysOf(redis, prefix, 'members')).map((index) => redis.command('ZCARD', index));
    return (await Promise.all(cards)).includes(memberCount);
  });
}

test('a group that was invalidated frees its memory within seconds, and that of nobody else', async (t) => {
  const { prefix, rows, values } = await openRows(t);
  const other = rows.cache.open(
    defineCache({
      name: 'other',
      key: (id: number) => id,
      load: (id) => id,
      ttlMs: 600_000,
      groups: () => ['b'],
    }),
  );
  await other.getMany([1, 2, 3]);
  await fillAll(rows, prefix);
  assert.equal((await values()).length, memberCount + 3);
  assert.equal(await rows.cache.invalidateGroup('all'), 'applied');
  await eventually('they are gone', async () => (await values()).length === 3);
  await eventually('and their index is', async () => {
    const left = [
      ...(await keysOf(bed.redis, prefix, 'members')),
      ...(await keysOf(bed.redis, prefix, 'indexes')),
    ];
    return left.length === 2 && left.every((key) => key.includes('{b}'));
  });
  assert.equal(rows.cache.statistics().freedValues, memberCount);
});

test('values that were loaded again after the invalidation stay', async (t) => {
  const { prefix, rows, values } = await openRows(t);
  await fillAll(rows, prefix);
  rows.version = 2;
  await rows.cache.invalidateGroup('all');
  const again = ids.filter((id) => id % 4 === 0);
  // The sweep may meet values that are being filled; they are loaded once more.
  await eventually('the others are gone', async () => {
    await rows.family.getMany(again);
    return (await values()).length === again.length;
  });
  const { loads } = rows;
  for (const row of await rows.family.getMany(again)) assert.equal(row.version, 2);
  assert.equal(rows.loads, loads);
  for (const row of await rows.family.getMany(ids)) assert.equal(row.version, 2);
});

test('a hit costs nothing for the index, and values that are filled together join with one call', async (t) => {
  const { rows } = await openRows(t, { nearMs: 0 });
  const calls = async () => {
    const { sadd = 0, zadd = 0, mget = 0, evalsha = 0 } = await commandCounts(bed.redis);
    return { sadd, zadd, mget, evalsha };
  };
  await rows.family.getMany([-1]);
  await eventually('it has joined', async () => (await calls()).sadd > 0);
  const before = await calls();
  await rows.family.getMany(ids.slice(0, 100));
  await eventually('they have joined', async () => (await calls()).zadd >= before.zadd + 100);
  const filled = await calls();
  assert.ok(filled.sadd - before.sadd <= 3, `${filled.sadd - before.sadd} calls for a hundred values`);
  for (let i = 0; i < 10; i++) await rows.family.get(1);
  const after = await calls();
  assert.deepEqual(after, { ...filled, mget: filled.mget + 10 });
});

test('an index holds what lives: expired members leave it, and a full one takes nobody else', async (t) => {
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  const keys = new KeySpace(bed.prefix());
  const places = { indexes: keys.indexes('g'), members: keys.members('g', 'one') };
  const nowMs = Number(((await link.call('TIME', [])) as Buffer[])[0]) * 1_000;
  const join = (most: number, ...entries: [string, number][]) =>
    link.run(scripts.join, places, { generation: 'one', entries: JSON.stringify(entries), most });
  const members = async () => ((await link.call('ZRANGE', [places.members, 0, -1])) as Buffer[]).map(String);
  const hourMs = 3_600_000;
  await link.call('ZADD', [places.members, 1, 'old', 2, 'older', nowMs - 1, 'just over']);
  assert.equal(await join(3, ['a', nowMs + hourMs], ['b', nowMs + 2 * hourMs]), 2);
  assert.deepEqual(await members(), ['a', 'b']);
  assert.equal(await join(3, ['c', nowMs + hourMs], ['d', nowMs + hourMs]), 1);
  assert.deepEqual(await members(), ['a', 'c', 'b']);
  // One that is in it already is kept up to date.
  assert.equal(await join(3, ['a', nowMs + 3 * hourMs], ['e', nowMs + hourMs]), 0);
  assert.deepEqual(await members(), ['c', 'b', 'a']);
  for (const key of Object.values(places)) {
    const leftMs = Number(await link.call('PTTL', [key]));
    assert.ok(leftMs > 2.9 * hourMs && leftMs <= 3.1 * hourMs, 'it ends with its last member');
  }
});

test('indexes that are evicted, in part or as a whole, change nothing but memory', async (t) => {
  for (const kind of ['members', 'indexes', 'generation']) {
    const { prefix, rows, values } = await openRows(t);
    await fillAll(rows, prefix);
    await bed.redis.command('DEL', ...(await keysOf(bed.redis, prefix, kind)));
    rows.version = 2;
    await rows.cache.invalidateGroup('all');
    for (const row of await rows.family.getMany(ids.slice(0, 10))) assert.equal(row.version, 2, kind);
    await sleep(1_500);
    // The sweep may meet values that are being filled; they are loaded once more.
    await eventually('all are there again', async () => {
      for (const row of await rows.family.getMany(ids)) assert.equal(row.version, 2, kind);
      return (await values()).length === memberCount;
    });
  }
});

test('what a process that died had not swept is swept with the next invalidation, by whoever makes it', async (t) => {
  const prefix = bed.prefix();
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const dying = new Rows(await bed.cache(t, { redis: proxy.url, leaseMs, prefix }));
  const living = new Rows(await bed.cache(t, { prefix, leaseMs }));
  await fillAll(dying, prefix);
  await dying.cache.invalidateGroup('all');
  // Its sweep begins, and it dies after the first batch was taken.
  const lost = proxy.loseReplies({ when: (request) => request.includes('ZPOPMIN') });
  await lost;
  dying.cache.close();
  const left = (await keysOf(bed.redis, prefix, 'value')).length;
  assert.ok(left > 0, 'something is left');
  living.version = 2;
  for (const row of await living.family.getMany(ids.slice(0, 5))) assert.equal(row.version, 2);
  await living.cache.invalidateGroup('all');
  await eventually('all but what the dead one had taken is gone', async () => {
    return (
      (await keysOf(bed.redis, prefix, 'value')).length <= 500 && living.cache.statistics().freedValues >= 700
    );
  });
  living.version = 3;
  await living.cache.invalidateGroup('all');
  for (const row of await living.family.getMany(ids)) assert.equal(row.version, 3);
});

test('a sweep whose replies are lost goes on, and values stay right', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const prefix = bed.prefix();
  for (const command of ['SMEMBERS', 'ZPOPMIN', 'UNLINK', 'SREM']) {
    // Leases whose replies were lost with the connection are waited for.
    const options = { redis: proxy.url, leaseMs: 2_000, patienceMs: 1_000, prefix: `${prefix}${command}` };
    const rows = new Rows(await bed.cache(t, options));
    await fillAll(rows, `${prefix}${command}`);
    rows.version = 2;
    await rows.cache.invalidateGroup('all');
    await proxy.loseReplies({ when: (request) => request.includes(command) });
    await eventually('the cache reads from Redis', () => rows.cache.statistics().breaker === 'closed');
    for (const row of await rows.family.getMany(ids)) assert.equal(row.version, 2, command);
    // Whatever is left of the sweep meets values of the new generation only.
    await sleep(200);
    for (const row of await rows.family.getMany(ids)) assert.equal(row.version, 2, command);
    rows.cache.close();
  }
});

test('a sweep that met a Redis that was away is made when it is back', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const prefix = bed.prefix();
  const rows = new Rows(await bed.cache(t, { redis: proxy.url, prefix, leaseMs }));
  await fillAll(rows, prefix);
  assert.equal(await rows.cache.invalidateGroup('all'), 'applied');
  await proxy.loseReplies({ when: (request) => request.includes('SMEMBERS') });
  await eventually('all are gone', async () => (await keysOf(bed.redis, prefix, 'value')).length === 0);
});

test('several processes that sweep one group share the work', async (t) => {
  const prefix = bed.prefix();
  const all: Rows[] = [];
  for (let i = 0; i < 3; i++) all.push(new Rows(await bed.cache(t, { prefix, leaseMs })));
  await fillAll(all[0]!, prefix);
  await Promise.all(all.map(({ cache }) => cache.invalidateGroup('all')));
  await eventually('all are gone', async () => (await keysOf(bed.redis, prefix, 'value')).length === 0);
  // Whoever removes values counts them when it hears that they are gone.
  const freed = () => all.reduce((sum, { cache }) => sum + cache.statistics().freedValues, 0);
  await eventually('all are counted', () => freed() >= memberCount);
  assert.equal(freed(), memberCount, 'each once');
});

test('a value of two groups is freed by either, and the other index does not mind', async (t) => {
  const { prefix, rows, values } = await openRows(t, { groups: (id) => ['all', ['of', id % 2]] });
  await eventually('all have joined', async () => {
    await rows.family.getMany(ids);
    const cards = await Promise.all(
      (await keysOf(bed.redis, prefix, 'members')).map((key) => bed.redis.command('ZCARD', key)),
    );
    return (
      cards.length === 3 && cards.reduce<number>((sum, card) => sum + Number(card), 0) === 2 * memberCount
    );
  });
  await rows.cache.invalidateGroup(['of', 0]);
  await eventually('half of them are gone', async () => (await values()).length === memberCount / 2);
  await rows.cache.invalidateGroup('all');
  await eventually('all are gone', async () => (await values()).length === 0);
});

test('groups of values with a short life are not indexed unless somebody wants it', async (t) => {
  const { prefix, rows } = await openRows(t, { ttlMs: 59_000 });
  const wanted = new Rows(await bed.cache(t, { prefix: `${prefix}w` }), { ttlMs: 59_000, indexed: true });
  const unwanted = new Rows(await bed.cache(t, { prefix: `${prefix}u` }), { indexed: false });
  for (const { family } of [rows, unwanted, wanted]) await family.getMany(ids);
  await eventually('the wanted one is there', async () => {
    return (await keysOf(bed.redis, `${prefix}w`, 'members')).length === 1;
  });
  assert.deepEqual(await keysOf(bed.redis, prefix, 'members'), []);
  assert.deepEqual(await keysOf(bed.redis, `${prefix}u`, 'members'), []);
  for (const name of ['vectorSearch', 'graph', 'usersAnalysts'] as const) {
    assert.equal(families[name].indexed, true, name);
  }
});

test('on a cluster a group is freed on all masters', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  t.after(() => cluster.stop());
  const rows = new Rows(await openCache(t, { redis: cluster.url, prefix: 'p', leaseMs }));
  const count = async (kind: string) => {
    const found = await Promise.all(cluster.nodes.map((node) => keysOf(node, 'p', kind)));
    return found.flat().length;
  };
  const some = ids.slice(0, 300);
  await eventually('all are there', async () => {
    await rows.family.getMany(some);
    return (await count('value')) === some.length && (await count('members')) === 1;
  });
  rows.version = 2;
  await rows.cache.invalidateGroup('all');
  const again = some.slice(0, 100);
  for (const row of await rows.family.getMany(again)) assert.equal(row.version, 2);
  await eventually('the others are gone', async () => {
    await rows.family.getMany(again);
    return (await count('value')) === again.length;
  });
  rows.cache.close();
});

test('a Redis that is full and never evicts gets its memory back too', async (t) => {
  const redis = await startRedis({ appendonly: false });
  t.after(() => redis.stop());
  const rows = new Rows(await openCache(t, { redis: redis.url, prefix: 'p', leaseMs }));
  await fillAll(rows, 'p', redis);
  await redis.command('CONFIG', 'SET', 'maxmemory', 1_000_000);
  rows.version = 2;
  await rows.cache.invalidateGroup('all');
  await eventually('they are gone', async () => (await keysOf(redis, 'p', 'value')).length === 0);
  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  for (const row of await rows.family.getMany(ids)) assert.equal(row.version, 2);
});
