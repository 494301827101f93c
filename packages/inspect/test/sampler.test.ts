// One sampler for all viewers: what it costs, what it says, and what it does when Redis is away.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRedis } from '@sluice/testbed';
import { Queue } from '@sluice/queue';
import { Inspect } from '../src/index.js';
import type { Snapshot } from '../src/index.js';
import { ratesBetween } from '../src/snapshot.js';
import { commandsOf, eventually, useRedis } from './setup.js';

const bed = useRedis();
const idle = { cancelled: 0, waitMs: null, runMs: null };

test('ten viewers get the same snapshots as one, at the same cost', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const queue = new Queue('mail', { redis: redis.url });
  t.after(() => queue.close());
  const inspect = new Inspect({ redis: redis.url, queues: [queue], everyMs: 50, history: false });
  t.after(() => inspect.close());
  await inspect.start();

  const costPerLook = async (viewers: number) => {
    const seen: Snapshot[][] = Array.from({ length: viewers }, () => []);
    // Counted while nobody watches: otherwise looks go on while the commands are asked for.
    const count = async () => ({
      looks: (await inspect.snapshot()).cost.looks,
      commands: await commandsOf(redis),
    });
    const before = await count();
    const ends = seen.map((list) => inspect.watch((snapshot) => list.push(snapshot)));
    await eventually(() => (seen[0]!.at(-1)?.cost.looks ?? 0) >= before.looks + 30);
    for (const end of ends) end();
    for (const list of seen) assert.equal(list.at(-1), seen[0]!.at(-1));
    const after = await count();
    return (after.commands - before.commands) / (after.looks - before.looks);
  };
  const one = await costPerLook(1);
  const ten = await costPerLook(10);
  // A look more or less at either end of the count.
  assert.ok(ten <= one * 1.25, `${one} commands for one viewer, ${ten} for ten`);
});

test('who asks while a look is under way, or while the last one is fresh, costs nothing', async (t) => {
  const queue = bed.queue(t);
  const inspect = bed.inspect(t, [queue], { everyMs: 60_000, history: false });
  const answers = await Promise.all(Array.from({ length: 20 }, () => inspect.snapshot()));
  assert.equal(new Set(answers).size, 1);
  assert.equal((await inspect.overview()).cost.looks, 1);
});

test('nobody watches: no look is taken but for the history', async (t) => {
  const queue = bed.queue(t);
  const inspect = bed.inspect(t, [queue], { everyMs: 20, history: false });
  await inspect.start();
  let seen = 0;
  const end = inspect.watch(() => seen++);
  await eventually(() => seen >= 3);
  end();
  const { looks } = (await inspect.snapshot()).cost;
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.ok((await inspect.snapshot()).cost.looks <= looks + 2);
});

test('with many partitions looks become rarer instead of dearer', async (t) => {
  const small = bed.inspect(t, [bed.queue(t)]);
  const large = bed.inspect(t, [bed.queue(t, { partitions: 200 })]);
  assert.equal((await small.snapshot()).everyMs, 2_000);
  const snapshot = await large.snapshot();
  assert.ok(snapshot.everyMs >= 6_000, String(snapshot.everyMs));
  assert.equal(snapshot.cost.calls, 601);
});

test('a snapshot tells the states of every queue, rates, latency, workers, and how Redis is', async (t) => {
  const queue = bed.queue(t);
  const other = bed.queue(t);
  const inspect = bed.inspect(t, [queue, other], { everyMs: 50 });
  await inspect.start();
  const seen: Snapshot[] = [];
  inspect.watch((snapshot) => seen.push(snapshot));
  await eventually(() => seen.length > 0);
  await queue.add('later', { delayMs: 3_600_000 });
  await other.pause();
  let ended = 0;
  await queue.work(() => void ended++).start();
  await queue.addMany(Array.from({ length: 200 }, (_, n) => ({ data: n })));
  await eventually(() => ended === 200);
  const rates = () =>
    seen.flatMap(({ queues }) => queues.find(({ name }) => name === queue.name)?.rates ?? []);
  await eventually(() => rates().some(({ done, added }) => done > 0 && added >= 0));
  await eventually(() => seen.some(({ queues }) => queues[0]!.minute.runMs !== null));
  await eventually(() => seen.at(-1)!.queues[1]!.paused);
  const last = seen.at(-1)!;
  assert.deepEqual(
    last.queues.map(({ name, paused }) => [name, paused]),
    [
      [queue.name, false],
      [other.name, true],
    ],
  );
  assert.deepEqual([last.queues[0]!.counts.delayed, last.queues[0]!.counts.workers], [1, 1]);
  assert.ok(last.redis!.usedBytes > 0 && last.redis!.keys > 0 && last.redis!.clients > 0);
  assert.ok(Math.abs(last.atMs - Date.now()) < 60_000);
  assert.equal(last.redis!.aof.enabled, true);
  const overview = await inspect.overview();
  assert.deepEqual([overview.queues, overview.workers, overview.counts.delayed], [2, 1, 1]);
  assert.deepEqual(overview.problems, []);
});

test('rates come from what was counted between two looks, over the turn of a minute too', () => {
  const none = { failed: 0, dead: 0, cancelled: 0, waitMs: null, runMs: null };
  const before = { atMs: 0, live: 100, minutes: [{ minuteMs: 60_000, done: 40, ...none }] };
  const minutes = [
    { minuteMs: 60_000, done: 50, ...none },
    { minuteMs: 120_000, done: 10, ...none },
  ];
  const rates = ratesBetween(before, { atMs: 2_000, live: 90, minutes });
  assert.deepEqual(rates, { added: 5, done: 10, failed: 0, died: 0, cancelled: 0 });
  assert.equal(ratesBetween(undefined, before), null);
  const later = { atMs: 300_000, live: 90, minutes: [{ minuteMs: 360_000, done: 1, ...none }] };
  assert.equal(ratesBetween(before, later), null);
});

test('how attempts ended lately reaches back into the minute before, at no other cost than when it turns', async (t) => {
  const queue = bed.queue(t);
  const asked: number[] = [];
  let present = 7;
  // As many were done in a minute as its number says.
  queue.minutes = async (last?: number) => {
    const many = last ?? 60;
    asked.push(many);
    return Array.from({ length: many }, (_, i) => {
      const minute = present - many + 1 + i;
      return { minuteMs: minute * 60_000, done: minute, failed: 1, dead: 2, ...idle };
    });
  };
  const inspect = bed.inspect(t, [queue], { everyMs: 1, history: false });
  const lately = async (): Promise<unknown> => {
    const { looks } = (await inspect.snapshot()).cost;
    await eventually(async () => (await inspect.snapshot()).cost.looks > looks);
    return (await inspect.snapshot()).queues[0]!.lately;
  };
  assert.deepEqual(await lately(), { done: 13, failed: 2, died: 4 });
  present = 8;
  assert.deepEqual(await lately(), { done: 15, failed: 2, died: 4 });
  assert.deepEqual(await lately(), { done: 15, failed: 2, died: 4 });
  assert.equal(
    asked.filter((last) => last === 2).length,
    2,
    'for the first look, and when the minute turned',
  );
});

test('with Redis away viewers see the last figures and the problem, and then the present ones again', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const queue = new Queue('mail', { redis: redis.url });
  t.after(() => queue.close(0));
  await queue.add('x', { delayMs: 3_600_000 });
  const inspect = new Inspect({ redis: redis.url, queues: [queue], everyMs: 50 });
  t.after(() => inspect.close());
  await inspect.start();
  let last: Snapshot | undefined;
  inspect.watch((snapshot) => {
    last = snapshot;
  });
  await eventually(() => last?.queues[0]?.counts.delayed === 1);
  await redis.kill9();
  await eventually(() => last!.problem !== undefined && last!.queues[0]!.problem !== undefined);
  assert.equal(last!.queues[0]!.counts.delayed, 1);
  assert.equal((await inspect.overview()).problems.length, 2);
  await redis.restart();
  await eventually(() => last!.problem === undefined && last!.queues[0]!.problem === undefined);
  assert.equal(last!.queues[0]!.counts.delayed, 1);
});

test('a viewer that throws hurts nobody', async (t) => {
  const inspect = bed.inspect(t, [bed.queue(t)], { everyMs: 20, history: false });
  await inspect.start();
  let seen = 0;
  inspect.watch(() => {
    throw new Error('broken');
  });
  inspect.watch(() => seen++);
  await eventually(() => seen >= 3);
});

test('a list of queues that cannot be given this time is asked for again', async (t) => {
  const queue = bed.queue(t);
  let asked = 0;
  const queues = () => {
    if (++asked < 3) throw new Error('not yet');
    return [queue];
  };
  const inspect = new Inspect({ redis: bed.redis.url, queues, history: false });
  t.after(() => inspect.close());
  await assert.rejects(inspect.snapshot(), /not yet/);
  await inspect.start();
  let seen: Snapshot | undefined;
  inspect.watch((snapshot) => {
    seen = snapshot;
  });
  await eventually(() => seen?.queues.length === 1);
});
