// Plain jobs that were added together lie together in Redis (bale.lua). Nobody who adds, works, asks, cancels or waits notices.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startProxy } from '@sluice/testbed';
import type { Job, Queue } from '../src/index.js';
import { Gathering, eventually, sleep, useRedis } from './setup.js';

const bed = useRedis();

async function fields(queue: Queue<number>): Promise<Buffer[]> {
  const { keys, link } = queue.partitions[0]!;
  return (await link.call('HKEYS', [keys.jobs])) as Buffer[];
}

async function addNumbers(queue: Queue<number>, count: number): Promise<string[]> {
  const added = await queue.addMany(Array.from({ length: count }, (_, data) => ({ data })));
  return added.map(({ id }) => id);
}

test('forty jobs of one call take three fields, and each is found under its own id', async (t) => {
  const queue = bed.queue<number>(t);
  const ids = await addNumbers(queue, 40);
  assert.equal((await fields(queue)).length, 3);
  assert.equal(new Set(ids).size, 40);
  for (const [i, id] of ids.entries()) {
    const job = await queue.job(id);
    assert.deepEqual([job?.state, job?.data, job?.attempt], ['waiting', i, 1]);
  }
  const { waiting, byPriority } = await queue.counts();
  assert.deepEqual([waiting, byPriority[3]], [40, 40]);
});

test('what only looks like the id of a neighbour is unknown', async (t) => {
  const queue = bed.queue<number>(t);
  const [first] = await addNumbers(queue, 5);
  const stem = first!.slice(0, first!.indexOf('.'));
  for (const id of [stem, `=${stem}`, `${stem}.5`, `${stem}.00`, `${stem}.-1`, `${stem}.`]) {
    assert.equal(await queue.job(id), null, id);
    assert.equal(await queue.cancel(id), null, id);
  }
  await assert.rejects(queue.add(1, { id: `=${stem}` }), /does not start with # or =/);
  assert.equal((await queue.counts()).waiting, 5);
});

test('a worker with one slot gets the jobs of a bale one by one and in order', async (t) => {
  const queue = bed.queue<number>(t);
  await addNumbers(queue, 40);
  const seen = new Gathering<number>();
  let running = 0;
  const work = async ({ data }: { data: number }) => {
    assert.equal(++running, 1);
    await sleep(1);
    running--;
    seen.push(data);
  };
  queue.work(work, { concurrency: 1 });
  const order = await seen.reach(40);
  assert.deepEqual(
    order,
    Array.from({ length: 40 }, (_, i) => i),
  );
});

test('two workers share one bale', async (t) => {
  const queue = bed.queue<number>(t);
  const busy = new Gathering<number>();
  const work = async (job: Job<number>) => {
    busy.push(job.data);
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
  };
  await Promise.all([1, 2].map(() => queue.work(work, { concurrency: 2 }).start()));
  await addNumbers(queue, 4);
  // All four run although none of them ends before the test does.
  await busy.reach(4, 4_000);
});

test('one job of a bale is cancelled, and its neighbours run in their order', async (t) => {
  const queue = bed.queue<number>(t);
  const ids = await addNumbers(queue, 10);
  assert.equal(await queue.cancel(ids[4]!), 'waiting');
  assert.equal(await queue.cancel(ids[4]!), null);
  assert.equal((await queue.job(ids[4]!))?.state, 'cancelled');
  assert.equal((await queue.job(ids[5]!))?.state, 'waiting');
  assert.equal((await queue.counts()).waiting, 9);
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { concurrency: 1 });
  assert.deepEqual(await seen.reach(9), [0, 1, 2, 3, 5, 6, 7, 8, 9]);
  await eventually(async () => (await fields(queue)).length === 0);
  const { waiting, active, tombstones, byPriority } = await queue.counts();
  assert.deepEqual([waiting, active, tombstones, byPriority[3]], [0, 0, 0, 0]);
});

test('a job of a bale can be waited for, while it waits and while it runs', async (t) => {
  const queue = bed.queue<number>(t);
  const ids = await addNumbers(queue, 10);
  await queue.add(100, { after: [{ queue: queue.name, id: ids[3]! }] });
  const seen = new Gathering<number>();
  let others: Promise<unknown> | undefined;
  const work = async ({ data }: { data: number }) => {
    if (data === 7) {
      others = queue.add(200, { after: [{ queue: queue.name, id: ids[7]! }] });
      await others;
    }
    seen.push(data);
  };
  queue.work(work, { concurrency: 20 });
  const order = await seen.reach(12);
  assert.ok(order.indexOf(100) > order.indexOf(3));
  assert.ok(order.indexOf(200) > order.indexOf(7));
});

test('one job of a bale fails, and its neighbours are done', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 2, backoff: { type: 'fixed', delayMs: 10 } });
  const seen = new Gathering<string>();
  const work = ({ data, attempt, payload }: { data: number; attempt: number; payload: Buffer }) => {
    assert.equal(payload.toString(), String(data));
    seen.push(`${data}/${attempt}`);
    if (data === 5_003) throw new Error('this one');
  };
  // Quick enough for the short way, where bales are claimed as they are.
  queue.work(work, { concurrency: 100 });
  await addNumbers(queue, 10_000);
  await seen.reach(10_001);
  await eventually(async () => (await queue.dead.count()) === 1);
  assert.equal(seen.items.filter((run) => run.startsWith('5003/')).length, 2);
  assert.equal(new Set(seen.items).size, 10_001);
  await eventually(async () => (await queue.counts()).active === 0);
  assert.deepEqual((await fields(queue)).length, 1);
});

test('a quick worker that is far from Redis gets bales too', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const queue = bed.queue<number>(t);
  const far = bed.twin(t, queue, { redis: proxy.url });
  await addNumbers(queue, 5_000);
  const seen = new Gathering<number>();
  const worker = far.work((job) => seen.push(job.data), { concurrency: 100 });
  await worker.start();
  // A round trip now takes longer than a worker may go on without a proper look.
  proxy.delay(15);
  await seen.reach(5_000);
  assert.equal(new Set(seen.items).size, 5_000);
  proxy.heal();
  await far.close();
});

test('somebody spoils a line of a bale: that job dies with its bytes, the others run', async (t) => {
  const queue = bed.queue<number>(t);
  const { keys, link } = queue.partitions[0]!;
  const ids = await addNumbers(queue, 3);
  const [name] = await fields(queue);
  const bale = (await link.call('HGET', [keys.jobs, name!])) as Buffer;
  bale[bale.indexOf('1,\n')] = 0x7b; // "{"
  await link.call('HSET', [keys.jobs, name!, bale]);
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { concurrency: 20 });
  assert.deepEqual(new Set(await seen.reach(2)), new Set([0, 2]));
  await eventually(async () => (await queue.dead.count()) === 1);
  assert.equal((await queue.dead.get(ids[1]!))?.payload.toString(), '{');
});

test('large, empty and binary payloads travel alone among jobs in bales', async (t) => {
  const queue = bed.queue(t);
  const large = 'ü'.repeat(5_000);
  const data = [1, 'a,\nb', undefined, { deep: ['\n', ',\n'] }, large, Buffer.from('1,\n2'), null, 2, 3];
  await queue.addMany(data.map((item) => ({ data: item })));
  const seen = new Gathering<unknown>();
  queue.work((job) => seen.push(job.data), { concurrency: 1 });
  assert.deepEqual(await seen.reach(data.length), data);
});

test('priorities do not mix in a bale, and urgent jobs of one call go first', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.addMany(Array.from({ length: 60 }, (_, data) => ({ data, priority: data < 30 ? 4 : 0 })));
  const { byPriority } = await queue.counts();
  assert.deepEqual([byPriority[0], byPriority[4]], [30, 30]);
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { concurrency: 1 });
  await seen.reach(60);
  assert.ok(seen.items.slice(0, 20).filter((data) => data >= 30).length >= 18);
});
