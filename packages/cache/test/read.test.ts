// Reading: what is loaded is read from Redis, in one round trip, and then from this process.
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { isSluiceError, ManualClock } from '@sluice/base';
import { z } from 'zod';
import { Cache, defineCache } from '../src/index.js';
import { commandCounts, eventually, Table, untilWatching, useRedis } from './setup.js';

const bed = useRedis();
const row = (table: Table, more = {}) =>
  defineCache({
    name: 'row',
    key: (key: string) => key,
    load: (key) => table.read(key),
    ttlMs: 60_000,
    ...more,
  });

test('a value is loaded once, then read from Redis, then from this process', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t);
  await untilWatching(cache);
  const rows = cache.open(row(table));
  assert.deepEqual(await rows.get('a'), { key: 'a', version: 0 });
  await eventually('a copy is kept', async () => {
    await rows.get('a');
    return cache.statistics().nearEntries === 1;
  });
  const { nearHits } = rows.statistics();
  const first = rows.get('a');
  assert.equal(rows.get('a'), first, 'a copy is handed out without making anything');
  assert.deepEqual(await first, { key: 'a', version: 0 });
  assert.equal(table.reads, 1);
  const { misses, redisHits, loads, nearHits: after } = rows.statistics();
  assert.deepEqual({ misses, loads }, { misses: 1, loads: 1 });
  assert.ok(redisHits >= 1);
  assert.equal(after, nearHits + 2);
});

test('a hit is one round trip and no script, also with groups', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t);
  const groups = () => ['all', ['some', 'x:y']] as const;
  const rows = cache.open(row(table, { nearMs: 0, groups }));
  await rows.get('a');
  const before = await commandCounts(bed.redis);
  await rows.get('a');
  const after = await commandCounts(bed.redis);
  assert.equal(after['mget']! - before['mget']!, 1);
  assert.equal(after['evalsha'], before['evalsha']);
  assert.equal(after['get'], before['get']);
  assert.equal(table.reads, 1);
});

test('what is asked for in one turn of the loop goes out as one MGET', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t);
  const rows = cache.open(row(table, { nearMs: 0 }));
  const keys = Array.from({ length: 50 }, (_, i) => `k${i}`);
  await Promise.all(keys.map((key) => rows.get(key)));
  const before = await commandCounts(bed.redis);
  const values = await Promise.all([...keys, ...keys].map((key) => rows.get(key)));
  const after = await commandCounts(bed.redis);
  assert.equal(after['mget']! - before['mget']!, 1);
  assert.deepEqual(
    values.map(({ key }) => key),
    [...keys, ...keys],
  );
});

test('many values take one MGET and one call of the batch loader, in their order', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t);
  const rows = cache.open(
    row(table, { nearMs: 0, load: undefined, loadMany: (keys: readonly string[]) => table.readMany(keys) }),
  );
  await rows.get('k5');
  const keys = Array.from({ length: 100 }, (_, i) => `k${i}`);
  const values = await rows.getMany([...keys, 'k7']);
  assert.deepEqual(
    values.map(({ key }) => key),
    [...keys, 'k7'],
  );
  assert.deepEqual(table.batches, [1, 99]);
  const before = await commandCounts(bed.redis);
  await rows.getMany(keys);
  const after = await commandCounts(bed.redis);
  assert.equal(after['mget']! - before['mget']!, 1);
  assert.deepEqual(table.batches, [1, 99]);
  assert.deepEqual(await rows.getMany([]), []);
});

test('a batch loader that returns too few results fails, and nothing is stored', async (t) => {
  const cache = await bed.cache(t);
  const rows = cache.open(
    defineCache<string, number>({ name: 'short', key: (key) => key, ttlMs: 1_000, loadMany: () => [1] }),
  );
  await assert.rejects(rows.getMany(['a', 'b']), (error) => isSluiceError(error, 'BATCH_RESULTS'));
  assert.equal((await rows.explain('a')).state, 'missing');
});

test('the envelope in Redis is JSON that can be read: v, expires, loadMs, gens', async (t) => {
  const prefix = bed.prefix();
  const cache = await bed.cache(t, { prefix });
  const table = new Table();
  const rows = cache.open(row(table, { jitter: 0, groups: () => ['all'] }));
  const beforeMs = Date.now();
  await rows.get('a');
  const stored = JSON.parse(String(await bed.redis.command('GET', `${prefix}:cache:value:{row:a}`))) as {
    expires: number;
    loadMs: number;
  };
  assert.deepEqual(Object.keys(stored), ['v', 'expires', 'loadMs', 'gens']);
  const generation = await bed.redis.command('GET', `${prefix}:cache:generation:{all}`);
  assert.deepEqual(stored, {
    v: { key: 'a', version: 0 },
    expires: stored.expires,
    loadMs: stored.loadMs,
    gens: { all: generation },
  });
  assert.ok(Math.abs(stored.expires - (beforeMs + 60_000)) < 5_000);
  assert.ok(stored.loadMs >= 0 && stored.loadMs < 5_000, `${stored.loadMs} ms`);
});

test('values expire by the clock of Redis from the first one on, also without start', async (t) => {
  const prefix = bed.prefix();
  // By its own clock this process lives in the past.
  const clock = new ManualClock(Date.now() - 3_600_000);
  const cache = new Cache({ redis: bed.redis.url, prefix, publishMs: 0, parts: { clock } });
  t.after(() => cache.close());
  const rows = cache.open(row(new Table(), { jitter: 0 }));
  await rows.get('a');
  const stored = String(await bed.redis.command('GET', `${prefix}:cache:value:{row:a}`));
  const { expires } = JSON.parse(stored) as { expires: number };
  assert.ok(Math.abs(expires - (Date.now() + 60_000)) < 30_000, `${expires - Date.now()} ms from now`);
});

test('what is larger than 8 KB is compressed, and comes back as it was', async (t) => {
  const prefix = bed.prefix();
  const cache = await bed.cache(t, { prefix });
  const text = 'ä'.repeat(50_000);
  const noise = Array.from({ length: 30_000 }, () => Math.random());
  const texts = cache.open(
    defineCache({ name: 'text', key: (_: void) => 'x', load: () => ({ text }), ttlMs: 60_000, nearMs: 0 }),
  );
  const noises = cache.open(
    defineCache({ name: 'noise', key: (_: void) => 'x', load: () => noise, ttlMs: 60_000, nearMs: 0 }),
  );
  for (let round = 0; round < 2; round++) {
    assert.deepEqual(await texts.get(), { text });
    assert.deepEqual(await noises.get(), noise);
  }
  assert.equal(texts.statistics().loads, 1);
  assert.equal(noises.statistics().loads, 1, 'a large one is decompressed by another thread');
  const client = new Redis(bed.redis.url);
  t.after(() => client.disconnect());
  const stored = (await client.getBuffer(`${prefix}:cache:value:{text:x}`))!;
  assert.ok(stored.length < 8_192);
  assert.match(gunzipSync(stored).toString(), /^\{"v":\{"text":"ä/);
});

test('a value that is too large is served and not stored', async (t) => {
  const cache = await bed.cache(t, { maxValueBytes: 1_000 });
  const rows = cache.open(
    defineCache({ name: 'big', key: (_: void) => 'x', load: () => 'y'.repeat(2_000), ttlMs: 60_000 }),
  );
  assert.equal((await rows.get()).length, 2_000);
  assert.equal((await rows.explain()).state, 'missing');
});

test('what the loader did not find is remembered for a shorter time', async (t) => {
  const cache = await bed.cache(t);
  let reads = 0;
  const define = (name: string, nothing: null | undefined) =>
    defineCache<number, { id: number } | null | undefined>({
      name,
      key: (id) => id,
      load: () => ((reads += 1), nothing),
      ttlMs: 600_000,
      negativeTtlMs: 5_000,
      nearMs: 0,
    });
  for (const nothing of [undefined, null]) {
    const rows = cache.open(define(nothing === null ? 'null' : 'undefined', nothing));
    for (let i = 0; i < 3; i++) assert.equal(await rows.get(1), nothing);
    assert.equal(rows.statistics().negativeHits, 2);
    const { redis, state } = await rows.explain(1);
    assert.equal(state, 'fresh');
    assert.ok(redis!.isNegative && redis!.keptForMs <= 5_000);
  }
  assert.equal(reads, 2);
});

test('keys with signs that mean something never meet', async (t) => {
  const cache = await bed.cache(t);
  const seen: string[][] = [];
  const pairs = cache.open(
    defineCache({
      name: 'pair',
      key: (pair: readonly [string, string]) => pair,
      load: (pair) => (seen.push([...pair]), pair.join('|')),
      ttlMs: 60_000,
    }),
  );
  const keys: [string, string][] = [
    ['a:b', 'c'],
    ['a', 'b:c'],
    ['}', '{'],
    ['{}', ''],
    ['', '{}'],
    ['a%3Ab', 'c'],
    ['a b', '\n'],
    ['\ud800', 'x'],
    ['\ud801', 'x'],
    ['ü', '日本'],
  ];
  for (const key of keys) await pairs.get(key);
  assert.deepEqual(seen, keys);
  assert.throws(
    () => void pairs.get(['x'.repeat(2_000), '']),
    (error) => isSluiceError(error, 'NAME_TOO_LONG'),
  );
});

test('a key with something missing in it is refused: all that have no id are not one value', async (t) => {
  const cache = await bed.cache(t, { prefix: bed.prefix() });
  const family = cache.open(
    defineCache<{ id?: string }, string>({ name: 'user', key: ({ id }) => ['of', id!], ttlMs: 1_000 }),
    { load: async () => 'somebody' },
  );
  for (const read of [() => family.get({}), async () => family.get(7 as never), () => family.invalidate({})])
    await assert.rejects(
      async () => read(),
      (error) => isSluiceError(error, 'KEY_INVALID'),
    );
});

test('a value of another shape, or no value at all, is a miss and is replaced', async (t) => {
  const prefix = bed.prefix();
  const cache = await bed.cache(t, { prefix });
  const schema = z.object({ id: z.number(), born: z.coerce.date() });
  const people = cache.open(
    defineCache({
      name: 'person',
      key: (id: number) => id,
      load: (id) => ({ id, born: new Date(0) }),
      ttlMs: 60_000,
      schema,
      nearMs: 0,
    }),
  );
  const key = `${prefix}:cache:value:{person:7}`;
  const expires = Date.now() + 60_000;
  const strangers = [
    '',
    '{',
    'null',
    '{"v":1}',
    '\x1f\x8bx',
    JSON.stringify({ v: { id: 'x' }, expires, loadMs: 1 }),
  ];
  for (const stranger of strangers) {
    await bed.redis.command('SET', key, stranger);
    assert.deepEqual(await people.get(7), { id: 7, born: new Date(0) }, stranger);
    assert.deepEqual(
      await people.get(7),
      { id: 7, born: new Date(0) },
      'the schema makes a date of it each time',
    );
  }
  assert.equal(people.statistics().loads, strangers.length);
  assert.equal(
    people.statistics().unreadable,
    2 * strangers.length,
    'each is read before and after the lease is taken',
  );
});

test('a schema that throws at what Redis has makes it a miss, and readers beside it are answered', async (t) => {
  const cache = await bed.cache(t);
  const makers = {
    atOnce: (value: unknown) => ({ value: (value as { id: number }).id.toFixed() }),
    later: async (value: unknown) => ({ value: (value as { id: number }).id.toFixed() }),
  };
  for (const [name, validate] of Object.entries(makers)) {
    const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const;
    const key = (id: number) => id;
    const load = (id: number) => ({ id }) as unknown as string;
    const strict = cache.open(defineCache({ name, key, load, ttlMs: 60_000, nearMs: 0, schema }));
    const plain = cache.open(
      defineCache({ name: `${name}-plain`, key, load: String, ttlMs: 60_000, nearMs: 0 }),
    );
    await Promise.all([strict.get(7), plain.get(7)]);
    const stored = JSON.stringify({ v: {}, expires: Date.now() + 60_000, loadMs: 1 });
    await bed.redis.command('SET', (await strict.explain(7)).redisKey, stored);
    const read = await Promise.all([strict.get(7), plain.get(7), strict.get(8)]);
    assert.deepEqual(read, ['7', '7', '8'], name);
    assert.ok(strict.statistics().unreadable > 0);
  }
});

test('what was loaded and does not fit the schema is an error, and is not stored', async (t) => {
  const cache = await bed.cache(t);
  const load = (): { id: number } => ({ id: 'seven' as unknown as number });
  const schema = z.object({ id: z.number() });
  const rows = cache.open(defineCache({ name: 'wrong', key: (_: void) => 'x', load, ttlMs: 60_000, schema }));
  await assert.rejects(
    rows.get(),
    (error) => isSluiceError(error, 'VALUE_INVALID') && /id/.test(error.message),
  );
  assert.equal((await rows.explain()).state, 'missing');
});

test('what cannot be written as JSON is an error', async (t) => {
  const cache = await bed.cache(t);
  const rows = cache.open(
    defineCache({ name: 'big', key: (_: void) => 'x', load: () => ({ n: 1n }), ttlMs: 1_000 }),
  );
  await assert.rejects(rows.get(), (error) => isSluiceError(error, 'VALUE_NOT_JSON'));
});

test('a value that somebody changes does not change for others', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t);
  await untilWatching(cache);
  const rows = cache.open(row(table));
  for (let i = 0; i < 4; i++) {
    const value = await rows.get('a');
    assert.throws(() => {
      value.version = 99;
    }, TypeError);
  }
});

test('an error of the loader reaches every reader as it is, and the next reader tries again', async (t) => {
  const cache = await bed.cache(t);
  const error = new Error('the database does not answer');
  let isBroken = true;
  const load = () => {
    if (isBroken) throw error;
    return 'well';
  };
  const rows = cache.open(defineCache({ name: 'broken', key: (_: void) => 'x', load, ttlMs: 60_000 }));
  for (const result of await Promise.allSettled([rows.get(), rows.get(), rows.getMany([undefined])])) {
    assert.equal((result as PromiseRejectedResult).reason, error);
  }
  isBroken = false;
  assert.equal(await rows.get(), 'well');
});

test('set stores what the caller knows, and warm loads what is missing', async (t) => {
  const table = new Table();
  const cache = await bed.cache(t);
  const rows = cache.open(row(table));
  assert.equal(await rows.set('a', { key: 'a', version: 41 }), 'set');
  assert.deepEqual(await rows.get('a'), { key: 'a', version: 41 });
  assert.deepEqual(await rows.warm(['a', 'b', 'c']), { present: 1, loaded: 2 });
  assert.deepEqual(await rows.warm(['a', 'b', 'c']), { present: 3, loaded: 0 });
  assert.equal(table.reads, 2);
});

test('wrong options and names are refused when they are made', async (t) => {
  const cache = await bed.cache(t);
  const base = { name: 'x', key: (id: number) => id, ttlMs: 1_000 };
  const wrong = [{ ttlMs: 0 }, { ttlMs: Number.NaN }, { nearMs: 5_001 }, { jitter: 2 }, { staleMs: -1 }];
  for (const options of wrong) {
    assert.throws(
      () => defineCache({ ...base, ...options }),
      (error) => isSluiceError(error, 'OPTION_INVALID'),
    );
  }
  for (const name of ['', 'a b', 'a:', ':a', '{a}', 'a::b']) {
    assert.throws(
      () => defineCache({ ...base, name }),
      (error) => isSluiceError(error, 'NAME_INVALID'),
    );
  }
  const rows = cache.open(defineCache<number, string>(base));
  assert.throws(
    () => cache.open(defineCache<number, string>(base)),
    (error) => isSluiceError(error, 'NAME_TAKEN'),
  );
  await assert.rejects(rows.get(1), (error) => isSluiceError(error, 'LOADER_MISSING'));
});
