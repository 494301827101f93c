// Rules: what a queue may do, kept in Redis, split over its partitions.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import { Queue } from '../src/queue.js';
import { changeRules, readRules } from '../src/rules.js';
import type { Rules } from '../src/rules.js';

let redis: RedisServer;
let tests = 0;
const opened: Queue[] = [];

before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());
afterEach(async () => {
  await Promise.all(opened.splice(0).map((queue) => queue.close()));
});

function open(partitions = 1): Queue {
  const queue = new Queue('jobs', { redis: redis.url, prefix: `rules${++tests}`, partitions });
  opened.push(queue);
  return queue;
}

async function stored(queue: Queue): Promise<Record<string, unknown>[]> {
  return Promise.all(
    queue.partitions.map(async ({ link, keys }) => {
      const [rules, events] = (await link.call('HMGET', [keys.cfg, 'rules', 'events'])) as (Buffer | null)[];
      return {
        ...(JSON.parse(rules?.toString() ?? '{}') as object),
        ...(events && { events: Number(events) }),
      };
    }),
  );
}

test('a limit of the queue is split over its partitions, and the shares add up to it', async () => {
  const queue = open(3);
  await changeRules(queue, { maxActive: 10, rate: { max: 100, perMs: 1_000 }, events: 1_001 });
  assert.deepEqual(await stored(queue), [
    { maxActive: 4, rateMax: 34, ratePerMs: 1_000, events: 334 },
    { maxActive: 3, rateMax: 33, ratePerMs: 1_000, events: 334 },
    { maxActive: 3, rateMax: 33, ratePerMs: 1_000, events: 333 },
  ]);
  assert.deepEqual(await readRules(queue), {
    maxActive: 10,
    rate: { max: 100, perMs: 1_000 },
    events: 1_001,
  });
});

test('limits per group are whole in every partition', async () => {
  const queue = open(2);
  const perGroup = { maxActive: 1, rate: { max: 5, perMs: 60_000 } };
  await changeRules(queue, { perGroup });
  for (const rules of await stored(queue)) {
    assert.deepEqual(rules, { keyMaxActive: 1, keyRateMax: 5, keyRatePerMs: 60_000 });
  }
  assert.deepEqual(await readRules(queue), { perGroup });
});

test('a rule that is not given stays, and null removes one', async () => {
  const queue = open(2);
  assert.deepEqual(await readRules(queue), {});
  await changeRules(queue, { maxActive: 4, perGroup: { maxActive: 2 }, events: 100 });
  await changeRules(queue, { paused: true, rate: { max: 8, perMs: 50 } });
  await changeRules(queue, { maxActive: null, perGroup: { rate: { max: 3, perMs: 10 } } });
  assert.deepEqual(await readRules(queue), {
    paused: true,
    rate: { max: 8, perMs: 50 },
    perGroup: { maxActive: 2, rate: { max: 3, perMs: 10 } },
    events: 100,
  });
  const nothing: Rules = {
    paused: false,
    rate: null,
    perGroup: { maxActive: null, rate: null },
    events: null,
  };
  await changeRules(queue, nothing);
  assert.deepEqual(await readRules(queue), {});
  assert.deepEqual(await stored(queue), [{}, {}]);
});

test('a limit below the number of partitions is refused, and the error says why', async () => {
  const queue = open(4);
  for (const rules of [{ maxActive: 3 }, { rate: { max: 1, perMs: 10 } }, { events: 2 }]) {
    await assert.rejects(changeRules(queue, rules), (error) => {
      return isSluiceError(error, 'OPTION_INVALID') && error.message.includes('at least 4');
    });
  }
  await changeRules(queue, { perGroup: { maxActive: 1 } });
  assert.deepEqual(await readRules(queue), { perGroup: { maxActive: 1 } });
});

test('a rule that is no sensible number is refused, and nothing changes', async () => {
  const queue = open();
  const wrong: Rules[] = [
    { maxActive: 0 },
    { maxActive: -1 },
    { maxActive: 1.5 },
    { maxActive: Number.NaN },
    { rate: { max: 10, perMs: 0 } },
    { rate: { max: 0, perMs: 10 } },
    { rate: { max: 1e9, perMs: 10 } },
    { perGroup: { maxActive: 0 } },
    { perGroup: { rate: { max: 1, perMs: Infinity } } },
    { events: 0.5 },
    { paused: true, events: -1 },
  ];
  for (const rules of wrong) {
    await assert.rejects(changeRules(queue, rules), (error) => isSluiceError(error, 'OPTION_INVALID'));
  }
  assert.deepEqual(await readRules(queue), {});
});

test('a paused queue starts nothing until it is resumed', async () => {
  const queue = open(2);
  await queue.pause();
  const ran: unknown[] = [];
  queue.work((job) => void ran.push(job.data));
  await queue.addMany([{ data: 1 }, { data: 2 }, { data: 3 }]);
  await waitUntil('the worker has come', async () => (await queue.counts()).workers === 1);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.deepEqual(ran, []);
  assert.equal((await queue.counts()).waiting, 3);
  await queue.resume();
  await waitUntil('all have run', () => ran.length === 3);
});

test('a lower rate counts what has already started', async () => {
  const queue = open();
  await queue.limit({ rate: { max: 100, perMs: 60_000 } });
  const ran: unknown[] = [];
  queue.work((job) => void ran.push(job.data), { concurrency: 50 });
  await queue.addMany(Array.from({ length: 50 }, (_, data) => ({ data })));
  await waitUntil('fifty have run', () => ran.length === 50);
  await queue.limit({ rate: { max: 20, perMs: 60_000 } });
  const { link, keys } = queue.partitions[0]!;
  assert.equal(await link.call('LLEN', [keys.rate]), 20);
  await queue.addMany([{ data: 'late' }]);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(ran.length, 50);
  await queue.limit({ rate: null });
  await waitUntil('the late one has run', () => ran.length === 51);
});

test('at most maxActive jobs of a queue run at once, whatever the workers offer', async () => {
  const queue = open(2);
  await queue.limit({ maxActive: 4 });
  let running = 0;
  let most = 0;
  const done: unknown[] = [];
  const handler = async (job: { data: unknown }): Promise<void> => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 10));
    running--;
    done.push(job.data);
  };
  queue.work(handler, { concurrency: 20 });
  queue.work(handler, { concurrency: 20 });
  await queue.addMany(Array.from({ length: 40 }, (_, data) => ({ data })));
  await waitUntil('all have run', () => done.length === 40, { timeoutMs: 20_000 });
  assert.ok(most <= 4, `${most} ran at once`);
});
