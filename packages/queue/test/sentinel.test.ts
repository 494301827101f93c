// The queue behind sentinels: the master is killed under load, another takes over, and nobody has to be told.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestContext } from 'node:test';
import { startSentinel, waitUntil } from '@sluice/testbed';
import type { SentinelSetup } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import type { QueueOptions } from '../src/index.js';
import { Load } from './load.js';
import { Gathering } from './setup.js';

let setup: SentinelSetup;

before(async () => {
  // One replica: the one that confirms is the one that takes over.
  setup = await startSentinel({ replicas: 1, sentinels: 3 });
});
after(() => setup.stop());

function open<Data>(t: TestContext, name: string, options: Partial<QueueOptions<Data>> = {}): Queue<Data> {
  const queue = new Queue<Data>(name, { redis: setup.url, ...options });
  t.after(() => queue.close(500));
  return queue;
}

test('the master is killed while jobs are added and run: what a replica had confirmed is there, and workers resume', async (t) => {
  const queue = open<number>(t, 'kill');
  const load = new Load(queue, { durability: { replicas: 1, timeoutMs: 2_000 } }).produce(8);
  const workers = [
    queue.work(load.handler, { concurrency: 4, leaseMs: 5_000 }),
    open<number>(t, 'kill').work(load.handler, { concurrency: 4, leaseMs: 5_000 }),
  ];
  await Promise.all(workers.map((worker) => worker.start()));
  await waitUntil('the load runs', () => load.runs.size > 300);
  const old = await setup.master();
  const began = performance.now();
  const master = await setup.failOver();
  const tookMs = Math.round(performance.now() - began);
  assert.notEqual(master, old);
  const before = load.accepted.size;
  // Adds that want a copy get none until the old master is back as a replica.
  await setup.takeBack(old);
  await waitUntil('adds go on', () => load.accepted.size > before + 100, { timeoutMs: 30_000 });
  const ran = load.runs.size;
  await waitUntil('work goes on', () => load.runs.size > ran + 100, { timeoutMs: 30_000 });
  await load.finish(30_000);
  t.diagnostic(
    `failover took ${tookMs} ms; ${load.accepted.size} jobs, ${load.doubled.length} ran twice, ` +
      `troubles ${JSON.stringify([...load.troubles])}`,
  );
});

test('after a failover, delayed jobs, schedules and dead letters are where they were', async (t) => {
  const queue = open<string>(t, 'kept', { attempts: 1 });
  const durability = { replicas: 1, timeoutMs: 10_000 };
  await waitUntil('the replica follows', async () => {
    return (await (await setup.master()).info('replication'))['connected_slaves'] === '1';
  });
  const worker = queue.work(() => {
    throw new Error('broken');
  });
  await queue.add('dies', { durability });
  await waitUntil('it died', async () => (await queue.counts()).dead === 1);
  await worker.stop();
  await queue.add('delayed', { delayMs: 60_000, durability });
  await queue.schedules.set('nightly', { cron: '0 3 * * *' }, 'tick');
  await queue.add('waits', { durability });
  const old = await setup.master();
  await setup.failOver();
  const { waiting, delayed, dead } = await queue.counts();
  assert.deepEqual({ waiting, delayed, dead }, { waiting: 1, delayed: 1, dead: 1 });
  assert.equal((await queue.schedules.list())[0]?.name, 'nightly');
  const seen = new Gathering<string>();
  queue.work((job) => seen.push(job.data));
  assert.deepEqual(await seen.reach(1), ['waits']);
  await queue.dead.replay('all');
  assert.deepEqual(await seen.reach(2), ['waits', 'dies']);
  await setup.takeBack(old);
});
