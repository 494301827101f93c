// Looking at all queues that anybody opens, without being told which.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { Queue } from '@sluice/queue';
import { startRedis } from '@sluice/testbed';
import { Inspect } from '../src/index.js';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();

test('queues that appear later are found, and forgotten ones go', async (t) => {
  const prefix = bed.prefix();
  const inspect = new Inspect({ redis: bed.redis.url, prefix, queues: 'all', history: false, everyMs: 50 });
  t.after(() => inspect.close());
  const names = async () => (await inspect.queues()).map(({ name }) => name).sort();
  assert.deepEqual(await names(), []);
  const mail = bed.queue<string>(t, { prefix });
  await mail.add('hello', { id: 'one', delayMs: 3_600_000 });
  // Asked for by name it is there at once, whatever the last look saw.
  assert.equal((await inspect.job(mail.name, 'one'))?.state, 'delayed');
  const wide = bed.queue<string>(t, { prefix, partitions: 3 });
  await wide.addMany(Array.from({ length: 30 }, () => ({ data: 'x' })));
  await eventually(async () => (await names()).length === 2);
  assert.equal((await inspect.jobs(wide.name, { limit: 100 })).items.length, 30);
  assert.equal((await inspect.queue(wide.name))?.partitions, 3);
  assert.deepEqual(
    (await inspect.jobsById('one')).map(({ queue }) => queue),
    [mail.name],
  );
  await mail.cancel('one');
  assert.equal(await mail.forget(), true);
  await eventually(async () => (await names()).join() === wide.name);
  await assert.rejects(inspect.jobs(mail.name), (error) => isSluiceError(error, 'UNKNOWN_QUEUE'));
});

test('however many queues there are, they are looked at over one connection', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  for (let n = 0; n < 20; n++) {
    const queue = new Queue<number>(`q${n}`, { redis: redis.url });
    await queue.add(n);
    await queue.close();
  }
  const inspect = new Inspect({ redis: redis.url, queues: 'all', history: false });
  t.after(() => inspect.close());
  assert.equal((await inspect.overview()).queues, 20);
  const clients = String(await redis.command('CLIENT', 'LIST')).match(/name=sluice-\S+/g);
  assert.deepEqual(clients, ['name=sluice-inspect']);
});

test('what somebody else wrote into the list is passed over', async (t) => {
  const prefix = bed.prefix();
  const mail = bed.queue<string>(t, { prefix });
  await mail.add('hello');
  await bed.redis.command('HSET', `${prefix}:queues`, 'no queue at all', '1', 'half', '0.5');
  const inspect = new Inspect({ redis: bed.redis.url, prefix, queues: 'all', history: false });
  t.after(() => inspect.close());
  assert.deepEqual(
    (await inspect.queues()).map(({ name }) => name),
    [mail.name],
  );
});

test('while Redis is away the last figures stay, with the problem beside them', async (t) => {
  const redis = await startRedis();
  const queue = new Queue<string>('mail', { redis: redis.url });
  t.after(() => queue.close(100));
  await queue.add('hello');
  const inspect = new Inspect({ redis: redis.url, queues: 'all', history: false, everyMs: 10 });
  t.after(() => inspect.close());
  assert.equal((await inspect.queues()).length, 1);
  await redis.stop();
  await eventually(async () => (await inspect.snapshot()).problem !== undefined);
  assert.equal((await inspect.queues())[0]?.counts.waiting, 1);
});
