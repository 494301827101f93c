// The list of all queues: who is on it, who writes it, and that nothing depends on it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RedisLink } from '@sluice/redis';
import { startCluster, startRedis } from '@sluice/testbed';
import { Queue, listQueues } from '../src/index.js';
import { Gathering, useRedis } from './setup.js';

const bed = useRedis();
let prefixes = 0;
const newPrefix = () => `list${process.pid}-${prefixes++}`;

test('every queue that a producer or a worker of any process opens is found, with its partitions', async (t) => {
  const prefix = newPrefix();
  const open = (name: string, partitions = 1) => {
    const queue = new Queue<string>(name, { redis: bed.redis.url, prefix, partitions });
    t.after(() => queue.close(500));
    return queue;
  };
  assert.deepEqual(await listQueues(bed.redis.url, { prefix }), []);
  await open('mail').add('hello');
  await open('thumbnails', 3)
    .work(() => {})
    .start();
  open('never-used');
  const expected = [
    { name: 'mail', partitions: 1 },
    { name: 'thumbnails', partitions: 3 },
  ];
  assert.deepEqual(await listQueues(bed.redis.url, { prefix }), expected);
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  assert.deepEqual(await listQueues(link, { prefix }), expected);
});

test('jobs cost the list nothing: it is written when a queue is opened, once per process', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const queue = new Queue<number>('mail', { redis: redis.url });
  t.after(() => queue.close(500));
  const seen = new Gathering<number>();
  await queue
    .work((job) => {
      seen.push(job.data);
    })
    .start();
  await redis.command('HDEL', 'sluice:queues', 'mail');
  await queue.addMany(Array.from({ length: 100 }, (_, data) => ({ data })));
  await queue.add(100);
  await seen.reach(101);
  assert.deepEqual(await listQueues(redis.url), []);
});

test('a queue without jobs, workers and schedules can be forgotten; opening it again lists it again', async (t) => {
  const prefix = newPrefix();
  const queue = bed.queue<string>(t, { prefix });
  const names = async () => (await listQueues(bed.redis.url, { prefix })).map(({ name }) => name);
  const { id } = await queue.add('x', { delayMs: 3_600_000 });
  assert.equal(await queue.forget(), false);
  await queue.cancel(id);
  await queue.schedules.set('nightly', { cron: '0 3 * * *' }, 'x');
  assert.equal(await queue.forget(), false);
  await queue.schedules.remove('nightly');
  const worker = queue.work(() => {});
  await worker.start();
  assert.equal(await queue.forget(), false);
  await worker.stop();
  assert.deepEqual(await names(), [queue.name]);
  assert.equal(await queue.forget(), true);
  assert.deepEqual(await names(), []);
  await bed.twin(t, queue).ready();
  assert.deepEqual(await names(), [queue.name]);
});

test('a user whose rights end at one queue works as ever, and is told that it is not listed', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~sluice:{mail:*', '+@all');
  const warnings: string[] = [];
  const say = () => {};
  const logger = {
    debug: say,
    info: say,
    error: say,
    warn: (_: unknown, text: string) => warnings.push(text),
  };
  const queue = new Queue<string>('mail', { redis: redis.urlAs('narrow', 'secret'), logger });
  t.after(() => queue.close(500));
  assert.equal((await queue.add('x')).duplicate, false);
  assert.match(warnings.join('\n'), /enter itself into the list/);
  assert.deepEqual(await listQueues(redis.url), []);
});

test('a queue is listed also when memory is full, so that a worker can start', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.command('CONFIG', 'SET', 'maxmemory', '1');
  const queue = new Queue<string>('mail', { redis: redis.url });
  t.after(() => queue.close(500));
  await queue.work(() => {}).start();
  assert.deepEqual(await listQueues(redis.url), [{ name: 'mail', partitions: 1 }]);
});

test('on a cluster the list has a slot of its own, and names the queues of all slots', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  t.after(() => cluster.stop());
  for (const name of ['a', 'b', 'c', 'd']) {
    const queue = new Queue<string>(name, { redis: cluster.url, partitions: 2 });
    t.after(() => queue.close(500));
    await queue.add('x');
  }
  assert.deepEqual(
    (await listQueues(cluster.url)).map(({ name, partitions }) => `${name}${partitions}`),
    ['a2', 'b2', 'c2', 'd2'],
  );
});
