// Everything that a cache does, under the rights that docs/acl.md grants and no others; and on a Redis that evicts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { isSluiceError, silentLogger } from '@sluice/base';
import { Queue } from '@sluice/queue';
import { RedisLink } from '@sluice/redis';
import { startCluster, startRedis } from '@sluice/testbed';
import { Cache, defineCache } from '../src/index.js';
import { scripts } from '../src/scripts.js';
import { adviceOn, eventually, openCache, Table, untilWatching } from './setup.js';

const password = 'secret';
const document = readFileSync(new URL('../../../../docs/acl.md', import.meta.url), 'utf8');
/** What a cache calls outside of its scripts. */
const directly = [
  'client|id',
  'client|setname',
  'client|tracking',
  'eval',
  'evalsha',
  'info',
  'mget',
  'ping',
];
const more = ['pttl', 'smembers', 'srem', 'subscribe', 'time', 'unlink', 'zmscore', 'zpopmin'];

function documented(): string[] {
  const line = /^ACL SETUSER sluice-cache (.*)$/m.exec(document)?.[1];
  assert.ok(line, 'docs/acl.md has no command for the cache');
  return line.replace('<password>', password).split(' ');
}

const row = (table: Table) =>
  defineCache({
    name: 'row',
    key: (key: string) => key,
    load: (key) => table.read(key),
    ttlMs: 600_000,
    groups: () => ['all'],
  });

async function useEverything(cache: Cache): Promise<void> {
  await untilWatching(cache);
  const table = new Table();
  const rows = cache.open(row(table));
  await rows.get('a');
  await rows.getMany(['a', 'b', 'c']);
  await rows.set('d', { key: 'd', version: 9 });
  await rows.warm(['e', 'f']);
  await rows.explain('a');
  await eventually('copies are kept', async () => {
    await rows.get('a');
    return cache.statistics().nearEntries > 0;
  });
  table.write('a');
  assert.equal(await rows.invalidate('a'), 'applied');
  assert.equal((await rows.get('a')).version, 1);
  assert.equal(await cache.invalidateGroup('all'), 'applied');
  await rows.get('a');
  await eventually('the rest of the group is swept', () => cache.statistics().freedValues > 0);
  table.hold = new Promise((resolve) => setTimeout(resolve, 300));
  await rows.get('slow');
}

test('docs/acl.md grants the cache what its scripts and its client call, and nothing else', () => {
  const needed = new Set([...directly, ...more]);
  for (const { source } of Object.values(scripts)) {
    for (const [, command] of source.matchAll(/redis\.call\('([A-Z]+)'/g)) needed.add(command!.toLowerCase());
  }
  const granted = documented().filter((word) => word.startsWith('+'));
  assert.deepEqual(
    granted,
    [...needed].sort().map((name) => `+${name}`),
  );
});

test('all that a cache does can be done under the minimal rights, and Redis denied nothing', async (t) => {
  const redis = await startRedis({ appendonly: false, acl: ['user default off'] });
  t.after(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'sluice-cache', ...documented());
  const cache = await openCache(t, {
    redis: redis.urlAs('sluice-cache', password),
    prefix: 'sluice',
    leaseMs: 300,
    publishMs: 20,
  });
  await useEverything(cache);
  await eventually('it has published', async () => {
    return (await redis.command('EXISTS', 'sluice:cache:statistics:{processes}')) === 1;
  });
  assert.deepEqual(await redis.command('ACL', 'LOG'), []);
  const link = new RedisLink(redis.urlAs('sluice-cache', password));
  t.after(() => link.close());
  for (const [command, ...args] of [
    ['KEYS', '*'],
    ['SCAN', '0'],
    ['FLUSHALL'],
    ['CONFIG', 'GET', 'maxmemory'],
    ['GET', 'sluice:{mail:0}:jobs'],
    ['SET', 'foreign', 'x'],
  ] as [string, ...string[]][]) {
    await assert.rejects(
      link.call(command, args),
      (error) => isSluiceError(error, 'REDIS_REFUSED') && error.message.includes('NOPERM'),
    );
  }
});

test('a cluster needs the few rights more that are documented, for the cache too', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  t.after(() => cluster.stop());
  const rights = /^- On a cluster[^`]*`([^`]+)`/m.exec(document)![1]!.split(' ');
  for (const node of cluster.nodes) {
    await node.command('ACL', 'SETUSER', 'sluice-cache', ...documented(), ...rights);
  }
  const redis = cluster.url.replace('://', `://sluice-cache:${password}@`);
  const cache = await openCache(t, { redis, prefix: 'sluice', leaseMs: 300 });
  await useEverything(cache);
  for (const node of cluster.nodes) assert.deepEqual(await node.command('ACL', 'LOG'), []);
  cache.close();
});

test('without the right to track, the cache works without copies', async (t) => {
  const redis = await startRedis({ appendonly: false, acl: ['user default off'] });
  t.after(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'sluice-cache', ...documented(), '-client|tracking');
  const cache = await openCache(t, { redis: redis.urlAs('sluice-cache', password), prefix: 'sluice' });
  const rows = cache.open(row(new Table()));
  for (let i = 0; i < 3; i++) await rows.get('a');
  assert.equal(rows.statistics().loads, 1);
  assert.equal(cache.statistics().nearEntries, 0);
});

test('with a Redis that evicts, values are loaded again and are never wrong', async (t) => {
  const config = { maxmemory: '3mb', 'maxmemory-policy': 'allkeys-lru' };
  const redis = await startRedis({ appendonly: false, config });
  t.after(() => redis.stop());
  // So many loads at once may take a busy machine longer than a lease usually lasts.
  const cache = await openCache(t, { redis: redis.url, near: { maxEntries: 10 }, leaseMs: 60_000 });
  let version = 1;
  const load = (id: number) => ({ id, version, text: Math.random().toString(36).repeat(200) });
  const rows = cache.open(
    defineCache({
      name: 'row',
      key: (id: number) => id,
      load,
      ttlMs: 600_000,
      groups: (id) => [['of', id % 10]],
    }),
  );
  const ids = Array.from({ length: 1_500 }, (_, id) => id);
  for (let round = 0; round < 3; round++) {
    version += 1;
    await cache.invalidateGroup(...Array.from({ length: 10 }, (_, i) => ['of', i] as const));
    for (const row of await rows.getMany(ids)) assert.ok(row.version === version);
    for (const row of await rows.getMany(ids.slice(0, 200))) assert.ok(row.version === version);
  }
  const evicted = Number((await redis.info('stats'))['evicted_keys']);
  assert.ok(evicted > 0, JSON.stringify(cache.statistics()));
});

test('a cache refuses to share a Redis that evicts with the queue, and so does the queue', async (t) => {
  const redis = await startRedis({ appendonly: false, config: { 'maxmemory-policy': 'allkeys-lru' } });
  t.after(() => redis.stop());
  const queueRedis = redis.url.replace('127.0.0.1', 'localhost');
  await assert.rejects(
    adviceOn(t, { redis: redis.url, queueRedis }),
    (error) => isSluiceError(error, 'EVICTING_QUEUE_REDIS') && /a Redis of its own/.test(error.message),
  );
  const queue = new Queue('mail', { redis: redis.url });
  t.after(() => queue.close(500));
  await assert.rejects(queue.add({}), (error) => isSluiceError(error, 'EVICTING_REDIS'));
});

test('a cache that starts without its Redis looks at it when it is there', async (t) => {
  const redis = await startRedis({ appendonly: false, config: { 'maxmemory-policy': 'allkeys-lru' } });
  t.after(() => redis.stop());
  await redis.kill9();
  const told: unknown[] = [];
  const error = (fields: object) => void told.push((fields as { error?: unknown }).error);
  const logger = { ...silentLogger, error };
  const cache = new Cache({ redis: redis.url, queueRedis: redis.url, publishMs: 0, logger });
  t.after(() => cache.close());
  assert.deepEqual(await cache.start(), []);
  await redis.restart();
  await eventually('it is told', () => told.some((one) => isSluiceError(one, 'EVICTING_QUEUE_REDIS')));
});

test('a cache says when it shares a Redis with the queue that does not evict, and when its own never does', async (t) => {
  const redis = await startRedis({ appendonly: false, config: { maxmemory: '100mb' } });
  const other = await startRedis({ appendonly: false });
  t.after(() => Promise.all([redis.stop(), other.stop()]));
  const advice = (queueRedis: string) => adviceOn(t, { redis: redis.url, queueRedis });
  assert.deepEqual(await advice(redis.url), ['SHARED_WITH_QUEUE']);
  assert.deepEqual(await advice(other.url), ['NEVER_EVICTS']);
});
