// One queue in several partitions on one server: whoever adds or works does not notice, and what must meet meets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Queue } from '../src/index.js';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();
const partitions = 4;

/** How many jobs each partition has. */
function jobsPerPartition(queue: Queue<number>): Promise<number[]> {
  return Promise.all(
    queue.partitions.map(async (partition) => ((await partition.run('count', {})) as number[])[1]!),
  );
}

test('plain jobs spread evenly over the partitions', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  await queue.addMany(Array.from({ length: 2_000 }, (_, data) => ({ data })));
  for (const count of await jobsPerPartition(queue))
    assert.ok(count > 400 && count < 600, `${count} of 2,000`);
});

test('jobs of an idle queue with four partitions start promptly', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  const waits = new Gathering<number>();
  await queue.work((job) => waits.push(performance.now() - job.data)).start();
  await sleep(200);
  for (let i = 0; i < 60; i++) {
    await queue.add(performance.now());
    await sleep(10);
  }
  const sorted = (await waits.reach(60)).toSorted((a, b) => a - b);
  t.diagnostic(`median ${sorted[30]!.toFixed(1)} ms, slowest ${sorted[59]!.toFixed(1)} ms`);
  // Nobody waits for the end of a nap, which is 8 s.
  assert.ok(sorted[30]! < 200, `median ${sorted[30]} ms`);
  assert.ok(sorted[59]! < 2_000, `slowest ${sorted[59]} ms`);
});

test('a worker that has just become free hears of a job in whichever partition it is', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  const ended = new Gathering<number>();
  const waits = new Gathering<number>();
  // Busy for longer than a nap: meanwhile the sleepers of the other partitions have woken and found no room.
  await queue
    .work(
      async (job) => {
        waits.push(performance.now() - job.data);
        if (ended.items.length === 0) await sleep(9_000);
        ended.push(job.data);
      },
      { concurrency: 1 },
    )
    .start();
  await queue.add(performance.now());
  await ended.reach(1);
  for (let i = 0; i < 8; i++) {
    await sleep(20);
    await queue.add(performance.now());
    await ended.reach(i + 2);
  }
  const slowest = Math.max(...waits.items.slice(1));
  t.diagnostic(`slowest ${slowest.toFixed(1)} ms`);
  assert.ok(slowest < 2_000, `${slowest} ms`);
});

test('a worker that runs one job at a time serves all partitions in turn', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  await queue.addMany(Array.from({ length: 400 }, (_, data) => ({ data })));
  const served = new Gathering<number>();
  queue.work(
    async (job) => {
      await sleep(1);
      served.push(queue.partitionNamed(job.id).index);
    },
    { concurrency: 1 },
  );
  const first = (await served.reach(100)).slice(0, 100);
  const shares = queue.partitions.map(({ index }) => first.filter((partition) => partition === index).length);
  t.diagnostic(`of the first hundred: ${shares.join(', ')}`);
  assert.ok(Math.min(...shares) >= 15, `of the first hundred: ${shares.join(', ')}`);
});

test('a worker uses all its slots, however the jobs are spread', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  let running = 0;
  let most = 0;
  const done = new Gathering<number>();
  const handler = async (job: { data: number }) => {
    most = Math.max(most, ++running);
    await sleep(20);
    running--;
    done.push(job.data);
  };
  await queue.work(handler, { concurrency: 10 }).start();
  // All in one partition: a group is never spread.
  await queue.addMany(Array.from({ length: 60 }, (_, data) => ({ data, group: 'one' })));
  await done.reach(60);
  assert.equal(most, 10);
});

test('what must meet meets in one partition: own ids, unique keys, groups', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  const other = bed.twin(t, queue);
  for (let i = 0; i < 25; i++) {
    const [one, two] = await Promise.all([queue.add(i, { id: `id-${i}` }), other.add(i, { id: `id-${i}` })]);
    assert.equal(one.duplicate, !two.duplicate);
    const [three, four] = await Promise.all([
      queue.add(i, { unique: `key-${i}` }),
      other.add(i, { unique: `key-${i}` }),
    ]);
    assert.equal(three.duplicate, !four.duplicate);
    assert.equal(three.id, four.id);
  }
  assert.equal((await queue.counts()).waiting, 50);
  for (const { id } of [{ id: 'id-3' }, { id: 'id-17' }])
    assert.equal((await queue.job(id))?.state, 'waiting');
});

test('a limit per group holds although several workers serve several partitions', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  const other = bed.twin(t, queue);
  await queue.limit({ perGroup: { maxActive: 1 } });
  const running = new Map<string, number>();
  let most = 0;
  const done = new Gathering<number>();
  const handler = async (job: { data: number; group: string | undefined }) => {
    const count = (running.get(job.group!) ?? 0) + 1;
    running.set(job.group!, count);
    most = Math.max(most, count);
    await sleep(5);
    running.set(job.group!, count - 1);
    done.push(job.data);
  };
  await Promise.all([queue.work(handler).start(), other.work(handler).start()]);
  await queue.addMany(Array.from({ length: 120 }, (_, data) => ({ data, group: `group-${data % 8}` })));
  await done.reach(120);
  assert.equal(most, 1);
});

test('a foreign message lands where its own id, unique key or group belongs', async (t) => {
  const queue = bed.queue<number>(t, { partitions });
  await queue.add(0, { id: 'known' });
  await queue.add(0, { unique: 'held' });
  const messages = [
    '{"data":1,"id":"known"}',
    '{"data":2,"unique":"held"}',
    '{"data":3,"id":"new"}',
    '{"data":4,"group":"g"}',
    '{"data":5}',
  ];
  // The same into every inbox, as producers would that do not know of partitions.
  for (const { keys } of queue.partitions)
    for (const message of messages) await bed.redis.command('RPUSH', keys.inbox, message);
  await queue.pause();
  await queue.work(() => {}).start();
  await waitUntil('the inboxes are empty', async () => (await queue.counts()).inbox === 0);
  // known, held and new are there once; the group and the plain message once for each push.
  assert.equal((await queue.counts()).waiting, 3 + 4 + 4);
  const home = queue.partitionNamed('g');
  assert.equal(Number(await home.link.call('ZCARD', [`${home.keys.group}g`])), 4);
});
