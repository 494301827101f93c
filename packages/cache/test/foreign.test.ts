// Families that other processes have opened: their values are looked at, explained and invalidated here, without their definitions.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { defineCache, families } from '../src/index.js';
import { eventually, untilWatching, useRedis } from './setup.js';

const bed = useRedis();

const prices = defineCache({
  name: 'shop:price',
  key: ({ id, currency }: { id: number; currency: string }) => [id, currency],
  ttlMs: 600_000,
  groups: ({ id }) => [['shop:product', id]],
});

test('a value of a family that was opened elsewhere is found by the parts of its key', async (t) => {
  const prefix = bed.prefix();
  const [there, here] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  // Large ones are compressed.
  const value = { amount: 12, note: 'x'.repeat(20_000) };
  await there.open(prices, { load: async () => value }).get({ id: 17, currency: 'EUR' });
  const foreign = here.foreign('shop:price');
  assert.deepEqual(await foreign.peek([17, 'EUR']), { value });
  assert.equal(await foreign.peek([17, 'USD']), undefined);
  const { name, state, because, groups, redis } = await foreign.explain(['17', 'EUR']);
  assert.deepEqual([name, state, because], ['shop:price:17:EUR', 'fresh', 'It is in Redis and fresh.']);
  assert.deepEqual(
    groups.map(({ group, carried, current }) => [group, carried === current]),
    [['shop:product:17', true]],
  );
  assert.equal(redis!.isCompressed, true);
  await assert.rejects(foreign.peek({ id: 17, currency: 'EUR' }), (error) =>
    isSluiceError(error, 'PARTS_WANTED'),
  );
});

test('what its group was invalidated for is not shown, and the explanation says so', async (t) => {
  const prefix = bed.prefix();
  const [there, here] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  await there.open(prices, { load: async () => 12 }).get({ id: 17, currency: 'EUR' });
  const foreign = here.foreign('shop:price');
  await bed.redis.command('DEL', `${prefix}:cache:generation:{shop:product:17}`);
  assert.equal(await foreign.peek([17, 'EUR']), undefined);
  const { state, because } = await foreign.explain([17, 'EUR']);
  assert.deepEqual(
    [state, because],
    ['missing', 'Its group shop:product:17 was invalidated after it was loaded.'],
  );
});

test('an invalidation from elsewhere reaches the copies in the process that has them', async (t) => {
  const prefix = bed.prefix();
  const [there, here] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  let amount = 12;
  const opened = there.open(prices, { load: async () => amount });
  const key = { id: 17, currency: 'EUR' };
  await untilWatching(there);
  const isCopied = async () => {
    await opened.get(key);
    return there.statistics().nearEntries === 1;
  };
  await eventually('there is a copy', isCopied);
  amount = 13;
  assert.equal(await here.foreign('shop:price').invalidate([17, 'EUR']), 'applied');
  // A copy that only became too old would stay among them until somebody asks for it.
  await eventually('the copy is gone', () => there.statistics().nearEntries === 0);
  assert.equal(await opened.get(key), 13);
});

test('a load that is under way elsewhere does not bring back what was invalidated here', async (t) => {
  const prefix = bed.prefix();
  const [there, here] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  const loads: ((amount: number) => void)[] = [];
  const opened = there.open(prices, { load: () => new Promise<number>((resolve) => loads.push(resolve)) });
  const reading = opened.get({ id: 17, currency: 'EUR' });
  await eventually('it is being loaded', () => loads.length === 1);
  const foreign = here.foreign('shop:price');
  assert.equal((await foreign.explain([17, 'EUR'])).because, 'It is not there, and somebody loads it now.');
  await foreign.invalidate([17, 'EUR']);
  loads[0]!(12);
  // Whoever asked before the change may get what was there before it; nobody else.
  assert.equal(await reading, 12);
  assert.equal(await foreign.peek([17, 'EUR']), undefined);
});

test('families of the catalogue are known by their names, and asked for by their keys', async (t) => {
  const prefix = bed.prefix();
  const [there, here] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  const key = { query: 'sluice gates', jobId: 'j1' };
  const hits = [{ chunk_text: 'a gate', score: 0.9 }];
  await there.open(families.vectorSearch, { load: async () => hits }).get(key);
  const foreign = here.foreign('vector:search');
  assert.deepEqual(await foreign.peek(key), { value: hits });
  assert.equal(await foreign.invalidate(key), 'applied');
  assert.equal((await foreign.explain(key)).state, 'missing');
});

test('of an expired value it is said that only its own processes know what it is worth', async (t) => {
  const prefix = bed.prefix();
  const [there, here] = [await bed.cache(t, { prefix }), await bed.cache(t, { prefix })];
  const brief = defineCache({ name: 'brief', key: (id: number) => id, ttlMs: 1, staleMs: 600_000 });
  await there.open(brief, { load: async () => 'old' }).get(1);
  const foreign = here.foreign('brief');
  await eventually('it has expired', async () => (await foreign.explain(1)).state === 'aged');
  assert.match((await foreign.explain(1)).because, /known to those that opened its family/);
  assert.deepEqual(await foreign.peek(1), { value: 'old' });
});
