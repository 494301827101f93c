// The queue on a real cluster of three masters with replicas: everything works there, slots move and masters die under load.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestContext } from 'node:test';
import { startCluster, waitUntil } from '@sluice/testbed';
import type { RedisCluster, RedisServer } from '@sluice/testbed';
import { GiveUp, Queue, createChain } from '../src/index.js';
import type { QueueOptions } from '../src/index.js';
import { Load } from './load.js';
import { Gathering, sleep } from './setup.js';

let cluster: RedisCluster;
const partitions = 6;

before(async () => {
  cluster = await startCluster({ masters: 3, replicasPer: 1 });
});
after(() => cluster.stop());

function open<Data, Result = unknown>(
  t: TestContext,
  name: string,
  options: Partial<QueueOptions<Data>> = {},
): Queue<Data, Result> {
  const queue = new Queue<Data, Result>(name, { redis: cluster.url, partitions, ...options });
  t.after(() => queue.close(500));
  return queue;
}

async function ownerOf(
  queue: Queue<never>,
  partition: number,
): Promise<{ slot: number; owner: RedisServer }> {
  const slot = await cluster.slotOf(queue.partitions[partition]!.keys.cfg);
  return { slot, owner: await cluster.ownerOf(slot) };
}

test('a queue with six partitions spreads over all shards, and all its jobs run', async (t) => {
  const queue = open<number>(t, 'spread');
  await queue.addMany(Array.from({ length: 600 }, (_, data) => ({ data })));
  const owners = await Promise.all(queue.partitions.map((_, i) => ownerOf(queue as never, i)));
  assert.equal(new Set(owners.map(({ owner }) => owner)).size, 3);
  for (const partition of queue.partitions) {
    const count = ((await partition.run('count', {})) as number[])[1]!;
    assert.ok(count > 50 && count < 150, `${count} of 600 jobs are in one of six partitions`);
  }
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { concurrency: 20 });
  await seen.reach(600);
  assert.equal(new Set(seen.items).size, 600);
});

test('a job added to an idle queue on a cluster starts promptly, in whichever partition', async (t) => {
  const queue = open<number>(t, 'prompt');
  const waits = new Gathering<number>();
  await queue.work((job) => waits.push(performance.now() - job.data)).start();
  for (let i = 0; i < 30; i++) {
    await sleep(10);
    await queue.add(performance.now());
  }
  const sorted = (await waits.reach(30)).toSorted((a, b) => a - b);
  assert.ok(sorted[15]! < 200, `median ${sorted[15]} ms`);
});

test('own ids, unique keys and groups meet on a cluster', async (t) => {
  const queue = open<number>(t, 'meet');
  for (let i = 0; i < 20; i++) {
    assert.equal((await queue.add(i, { id: `id-${i}` })).duplicate, false);
    assert.equal((await queue.add(i, { id: `id-${i}` })).duplicate, true);
    assert.equal((await queue.add(i, { unique: `key-${i}` })).duplicate, false);
    assert.equal((await queue.add(i, { unique: `key-${i}` })).duplicate, true);
    await queue.add(i, { group: `group-${i % 3}` });
  }
  assert.equal((await queue.counts()).waiting, 60);
});

test('failures, retries, dead letters and replays work on a cluster', async (t) => {
  const queue = open<number>(t, 'fail', { attempts: 2, backoff: { type: 'fixed', delayMs: 10 } });
  await queue.addMany(Array.from({ length: 30 }, (_, data) => ({ data })));
  let broken = true;
  const seen = new Gathering<number>();
  queue.work((job) => {
    if (broken && job.data % 3 === 0) throw new Error('broken today');
    if (broken && job.data % 3 === 1) throw new GiveUp('never');
    seen.push(job.data);
  });
  await waitUntil('twenty are dead', async () => (await queue.counts()).dead === 20);
  assert.equal(seen.items.length, 10);
  assert.equal((await queue.dead.list({ limit: 100 })).letters.length, 20);
  broken = false;
  await queue.dead.replay('all');
  await seen.reach(30);
});

test('chains across queues and slots, cancellation and schedules work on a cluster', async (t) => {
  const queue = open<string, string>(t, 'chain', { keepResultMs: 60_000 });
  const other = open<string, string>(t, 'other', { keepResultMs: 60_000, partitions: 2 });
  const order = new Gathering<string>();
  const handler = (job: { data: string }) => {
    order.push(job.data);
    return job.data;
  };
  await Promise.all([queue.work(handler).start(), other.work(handler).start()]);
  const first = await queue.add('first', { delayMs: 200 });
  const second = await other.add('second', { after: [first] });
  const third = await queue.add('third', { after: [first, second] });
  assert.equal(await queue.result(third.id), 'third');
  assert.deepEqual(order.items, ['first', 'second', 'third']);
  await createChain([
    { key: 'a', queue, data: 'a' },
    { key: 'b', queue: other, data: 'b', after: ['a'] },
    { key: 'c', queue, data: 'c', after: ['a', 'b'] },
  ]);
  assert.deepEqual((await order.reach(6)).slice(3), ['a', 'b', 'c']);
  const late = await queue.add('late', { delayMs: 60_000 });
  const dependent = await other.add('dependent', { after: [late] });
  assert.equal(await queue.cancel(late.id), 'delayed');
  await waitUntil('its dependent is cancelled', async () => {
    return (await other.job(dependent.id))?.state === 'cancelled';
  });
  await queue.schedules.set('tick', { everyMs: 200 }, 'tick');
  await waitUntil('it ticked twice', () => order.items.filter((name) => name === 'tick').length >= 2);
  await queue.schedules.remove('tick');
});

test('a foreign producer reaches every partition of a cluster', async (t) => {
  const queue = open<number>(t, 'foreign');
  const seen = new Gathering<number>();
  await queue.work((job) => seen.push(job.data)).start();
  for (const [data, { keys, link }] of queue.partitions.entries()) {
    await link.call('RPUSH', [keys.inbox, JSON.stringify({ data })]);
  }
  assert.deepEqual(new Set(await seen.reach(partitions)), new Set([0, 1, 2, 3, 4, 5]));
});

test('slots move under load: nothing is lost and nothing runs twice', async (t) => {
  const queue = open<number>(t, 'reshard');
  const load = new Load(queue).produce(8);
  const workers = [
    queue.work(load.handler, { concurrency: 8 }),
    open<number>(t, 'reshard').work(load.handler),
  ];
  let lost = 0;
  for (const worker of workers) worker.on('leaseLost', () => lost++);
  const backlog = await queue.addMany(Array.from({ length: 2_000 }, (_, data) => ({ data })));
  for (const { id } of backlog) load.accepted.add(id);
  let moves = 0;
  for (const partition of [0, 1, 2, 0, 1, 2]) {
    const { slot, owner } = await ownerOf(queue as never, partition);
    const to = cluster.nodes.slice(0, 3).find((node) => node !== owner)!;
    await cluster.moveSlots(slot, slot, to);
    moves++;
    await sleep(100);
  }
  await load.finish();
  load.assertOnce();
  assert.equal(lost, 0, 'no lease was lost');
  t.diagnostic(
    `${moves} moves of slots, ${load.accepted.size} jobs, troubles ${JSON.stringify([...load.troubles])}`,
  );
});

test('a shard that hangs keeps no slots from the others', async (t) => {
  const queue = open<string>(t, 'hung');
  const jobs = Array.from({ length: 600 }, (_, i) => ({ data: `job-${i}`, id: `job-${i}` }));
  await queue.addMany(jobs);
  const { owner } = await ownerOf(queue as never, 0);
  const owners = await Promise.all(
    queue.partitions.map(async (_, i) => (await ownerOf(queue as never, i)).owner),
  );
  const elsewhere = jobs.filter(({ id }) => owners[queue.partitionNamed(id).index] !== owner);
  const done = new Set<string>();
  queue.work(
    async (job) => {
      await sleep(2);
      done.add(job.data);
    },
    { concurrency: 2 },
  );
  await waitUntil('the worker is busy', () => done.size > 50);
  owner.pause();
  t.after(() => owner.resume());
  await waitUntil('all jobs of the other shards ran', () => elsewhere.every(({ data }) => done.has(data)), {
    timeoutMs: 15_000,
  });
  owner.resume();
  await waitUntil('the rest ran', () => done.size === 600, { timeoutMs: 30_000 });
});

test('a master dies under load: what replicas had confirmed is there, and workers resume by themselves', async (t) => {
  const queue = open<number>(t, 'failover', { addDeadlineMs: 15_000 });
  const load = new Load(queue, { durability: { replicas: 1, timeoutMs: 2_000 } }).produce(4);
  await queue.work(load.handler, { concurrency: 8, leaseMs: 5_000 }).start();
  await waitUntil('the load runs', () => load.runs.size > 100);
  const { slot, owner } = await ownerOf(queue as never, 0);
  await cluster.failOver(slot);
  const before = load.accepted.size;
  await owner.restart();
  await waitUntil('adds go on', () => load.accepted.size > before + 50, { timeoutMs: 30_000 });
  await load.finish(60_000);
  t.diagnostic(
    `${load.accepted.size} jobs, ${load.doubled.length} ran twice, troubles ${JSON.stringify([...load.troubles])}`,
  );
});
