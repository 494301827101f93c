/** Schedules on a real Redis: one job per tick whoever looks, what becomes of missed ticks, and times that say their zone. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { startProxy, startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import { randomName } from '../src/ids.js';
import { Queue, type QueueOptions } from '../src/queue.js';
import { maxMissedTicks } from '../src/schedule.js';

let redis: RedisServer;
const queues: Queue[] = [];

before(async () => {
  redis = await startRedis({ appendonly: false });
});

after(async () => {
  await Promise.all(queues.map((queue) => queue.close()));
  await redis.stop();
});

function newQueue(options: Partial<QueueOptions<unknown>> = {}, name = `q${randomName()}`): Queue {
  const queue = new Queue(name, { redis: redis.url, ...options });
  queues.push(queue);
  return queue;
}

async function redisNowMs(): Promise<number> {
  const [seconds, micros] = (await redis.command('TIME')) as [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}

async function runDue(queue: Queue): Promise<void> {
  for (const partition of queue.partitions) await queue.schedules.runDue(partition);
}

/** Ids of the jobs that wait at the default priority. */
async function waitingIds(queue: Queue): Promise<string[]> {
  const lists = await Promise.all(
    queue.partitions.map(({ keys }) => redis.command('LRANGE', keys.wait3, 0, -1)),
  );
  return lists.flat() as string[];
}

/** As though the schedule had stood still since then. */
async function leaveSince(queue: Queue, name: string, dueMs: number): Promise<void> {
  await redis.command('ZADD', queue.partitions[0]!.keys.ticks, dueMs, name);
}

const minuteMs = 60_000;
const periodMs = 6 * 60 * minuteMs;
/** No tick falls into a test by itself: the last was half a period ago, the next is as far. */
const seldom = { everyMs: periodMs, anchorMs: Date.now() - periodMs / 2 };

test('five schedulers in twenty ticks make exactly twenty jobs', async () => {
  const name = `q${randomName()}`;
  const schedulers = Array.from({ length: 5 }, () => newQueue({}, name));
  await Promise.all(schedulers.map((queue) => queue.ready()));
  const firstMs = Math.ceil(((await redisNowMs()) + 1_000) / 100) * 100;
  const lastMs = firstMs + 19 * 100;
  // A machine that stood still for seconds makes up for all ticks, so that they can be counted.
  const span = { startMs: firstMs, endMs: lastMs, missed: 'all' } as const;
  await schedulers[0]!.schedules.set('beat', { everyMs: 100 }, { n: 1 }, span);

  await Promise.all(
    schedulers.map(async (queue, i) => {
      while (await queue.schedules.get('beat')) {
        await queue.schedules.runDue(queue.partitions[0]!);
        await wait(5 + 3 * i);
      }
    }),
  );
  const expected = Array.from({ length: 20 }, (_, i) => `beat@${firstMs + i * 100}`);
  assert.deepEqual(await waitingIds(schedulers[0]!), expected);
  assert.deepEqual(await schedulers[0]!.schedules.list(), []);
});

test('workers fire schedules while they work, each tick once', async () => {
  const name = `q${randomName()}`;
  const ran: string[] = [];
  const workers = [1, 2]
    .map(() => newQueue({}, name))
    .map((queue) => queue.work((job) => void ran.push(job.id)));
  const queue = newQueue({}, name);
  await queue.ready();
  const firstMs = Math.ceil(((await redisNowMs()) + 1_000) / 100) * 100;
  const lastMs = firstMs + 9 * 100;
  // As above.
  const span = { startMs: firstMs, endMs: lastMs, missed: 'all' } as const;
  await queue.schedules.set('beat', { everyMs: 100 }, null, span);
  await waitUntil('the schedule has ended', async () => (await queue.schedules.get('beat')) === null);
  await waitUntil('ten jobs have run', () => ran.length >= 10);
  await Promise.all(workers.map((worker) => worker.stop()));
  // Ticks that are made up for together are shared by the two.
  assert.deepEqual(
    ran.toSorted(),
    Array.from({ length: 10 }, (_, i) => `beat@${firstMs + i * 100}`),
  );
});

test('a tick whose reply is lost makes one job', async () => {
  const proxy = await startProxy(redis.port);
  try {
    const queue = newQueue({ redis: proxy.url });
    const other = newQueue({}, queue.name);
    const dueMs = (await queue.schedules.set('slow', seldom, 1)).nextMs! - periodMs;
    await leaveSince(queue, 'slow', dueMs);
    const lost = proxy.loseReplies({ when: (request) => request.includes(`slow@${dueMs}`) });
    await runDue(queue);
    await lost;
    await runDue(other);
    assert.deepEqual(await waitingIds(queue), [`slow@${dueMs}`]);
    await queue.close();
  } finally {
    await proxy.stop();
  }
});

test('a scheduler that dies between looking and firing loses nothing', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('tick', { everyMs: 1_000 }, 1, { missed: 'all' });
  const dueMs = nextMs! - 2 * 1_000;
  await leaveSince(queue, 'tick', dueMs);
  // One looks and never comes back.
  const [, name] = (await queue.partitions[0]!.run('due', { limit: 10 })) as [number, Buffer];
  assert.equal(String(name), 'tick');
  await runDue(queue);
  const ids = await waitingIds(queue);
  assert.equal(ids[0], `tick@${dueMs}`);
  assert.equal(new Set(ids).size, ids.length);
});

test('missed ticks: "once" makes one job, that of the latest tick', async () => {
  const queue = newQueue();
  const { nextMs, missed } = await queue.schedules.set('s', seldom, 1);
  assert.equal(missed, 'once');
  await leaveSince(queue, 's', nextMs! - 6 * periodMs);
  await runDue(queue);
  assert.deepEqual(await waitingIds(queue), [`s@${nextMs! - periodMs}`]);
  assert.equal((await queue.schedules.get('s'))!.nextMs, nextMs);
});

test('missed ticks: "all" makes a job for each of them, oldest first', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, 1, { missed: 'all' });
  await leaveSince(queue, 's', nextMs! - 6 * periodMs);
  await runDue(queue);
  const expected = [6, 5, 4, 3, 2, 1].map((ago) => `s@${nextMs! - ago * periodMs}`);
  assert.deepEqual(await waitingIds(queue), expected);
});

test('missed ticks: "all" is bounded to the latest thousand', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, 1, { missed: 'all' });
  await leaveSince(queue, 's', nextMs! - 5_000 * periodMs);
  await runDue(queue);
  const ids = await waitingIds(queue);
  assert.equal(ids.length, maxMissedTicks);
  assert.equal(ids.at(-1), `s@${nextMs! - periodMs}`);
  assert.equal(ids[0], `s@${nextMs! - maxMissedTicks * periodMs}`);
});

test('missed ticks: "skip" makes none, unless the tick is on time', async () => {
  const queue = newQueue();
  const set = async (name: string) => {
    const nowMs = await redisNowMs();
    // A tick that is half a second old, and the one an hour before it.
    const anchorMs = nowMs - 500;
    await queue.schedules.set(name, { everyMs: 60 * minuteMs, anchorMs }, 1, { missed: 'skip' });
    return anchorMs;
  };
  const anchorMs = await set('recent');
  await leaveSince(queue, 'recent', anchorMs - 60 * minuteMs);
  await runDue(queue);
  assert.deepEqual(await waitingIds(queue), [`recent@${anchorMs}`]);

  const { nextMs } = await queue.schedules.set(
    'old',
    { everyMs: 60 * minuteMs, anchorMs: anchorMs - 30 * minuteMs },
    1,
    {
      missed: 'skip',
    },
  );
  await leaveSince(queue, 'old', nextMs! - 120 * minuteMs);
  await runDue(queue);
  assert.equal((await waitingIds(queue)).length, 1);
  assert.equal((await queue.schedules.get('old'))!.nextMs, nextMs);
});

test('a schedule that stood still for years catches up at once', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', { cron: '* * * * * *', timeZone: 'Europe/Berlin' }, 1);
  await leaveSince(queue, 's', nextMs! - 3 * 365 * 24 * 60 * minuteMs);
  const started = performance.now();
  await runDue(queue);
  assert.ok(performance.now() - started < 5_000, `took ${performance.now() - started} ms`);
  // The clock goes on meanwhile: a tick or two may have come.
  const { length } = await waitingIds(queue);
  assert.ok(length >= 1 && length < 10, `${length} jobs`);
});

test('a schedule states its time zone, and ticks by its clock', async () => {
  const queue = newQueue();
  const daily = async (timeZone: string | undefined, startMs: number) => {
    const when = { cron: '30 2 * * *', ...(timeZone && { timeZone }) };
    const { nextMs } = await queue.schedules.set('daily', when, 1, { startMs });
    return new Date(nextMs!).toISOString();
  };
  assert.equal(await daily(undefined, Date.UTC(2035, 0, 10)), '2035-01-10T02:30:00.000Z');
  assert.deepEqual((await queue.schedules.get('daily'))!.when, { cron: '30 2 * * *', timeZone: 'UTC' });
  assert.equal(await daily('Europe/Berlin', Date.UTC(2035, 0, 10)), '2035-01-10T01:30:00.000Z');
  assert.equal(await daily('Europe/Berlin', Date.UTC(2035, 6, 10)), '2035-07-10T00:30:00.000Z');
  assert.equal(await daily('America/New_York', Date.UTC(2035, 0, 10)), '2035-01-10T07:30:00.000Z');
  assert.deepEqual((await queue.schedules.get('daily'))!.when, {
    cron: '30 2 * * *',
    timeZone: 'America/New_York',
  });
  // On 25 March 2035 Berlin has no 2:30; the tick is at the end of the gap, 3:00 summer time.
  assert.equal(await daily('Europe/Berlin', Date.UTC(2035, 2, 25)), '2035-03-25T01:00:00.000Z');
  // On 28 October 2035 it has two; the tick is the first, in summer time.
  assert.equal(await daily('Europe/Berlin', Date.UTC(2035, 9, 28)), '2035-10-28T00:30:00.000Z');
});

test('setting the same schedule again keeps its next tick, also with another payload', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, { v: 1 });
  const overdueMs = nextMs! - periodMs;
  await leaveSince(queue, 's', overdueMs);
  assert.equal((await queue.schedules.set('s', seldom, { v: 1 })).nextMs, overdueMs);
  const changed = await queue.schedules.set('s', seldom, { v: 2 }, { priority: 1 });
  assert.deepEqual([changed.nextMs, changed.data, changed.options], [overdueMs, { v: 2 }, { priority: 1 }]);
  const moved = await queue.schedules.set('s', { everyMs: 2 * periodMs }, { v: 2 });
  assert.ok(moved.nextMs! > (await redisNowMs()) && moved.nextMs! % (2 * periodMs) === 0);
});

test('a schedule that is removed and set again does not repeat a tick', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, 1);
  const dueMs = nextMs! - periodMs;
  await leaveSince(queue, 's', dueMs);
  const ran: string[] = [];
  const worker = queue.work((job) => void ran.push(job.id));
  await waitUntil('the tick has run', () => ran.length === 1);
  await worker.stop();
  assert.equal(await queue.schedules.remove('s'), true);
  assert.equal(await queue.schedules.remove('s'), false);
  await queue.schedules.set('s', seldom, 1);
  await leaveSince(queue, 's', dueMs);
  await runDue(queue);
  assert.deepEqual(await waitingIds(queue), []);
  assert.ok(((await queue.schedules.get('s'))!.nextMs ?? 0) > dueMs);
});

test('with a unique key a schedule does not overlap itself', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, 1, {
    unique: 'one',
    missed: 'all',
  });
  const dueMs = nextMs! - 3 * periodMs;
  await leaveSince(queue, 's', dueMs);
  await runDue(queue);
  assert.deepEqual(await waitingIds(queue), [`s@${dueMs}`]);
  await queue.cancel(`s@${dueMs}`);
  await leaveSince(queue, 's', nextMs! - periodMs);
  await runDue(queue);
  assert.equal((await queue.counts()).waiting, 1);
});

test('a scheduled job has the options of the schedule and its payload unchanged', async () => {
  const queue = newQueue();
  const data = { empty: [], text: 'ü"', nested: { a: null } };
  const options = {
    priority: 1,
    attempts: 5,
    timeoutMs: 9_000,
    labels: { tenant: 't' },
    group: 'g',
  } as const;
  const { nextMs } = await queue.schedules.set('s', seldom, data, options);
  await queue.schedules.set('bytes', seldom, Buffer.from([0, 255, 1]));
  for (const name of ['s', 'bytes']) await leaveSince(queue, name, nextMs! - periodMs);
  const jobs = new Map<
    string,
    { data: unknown; priority: number; labels: object; group: string | undefined; payload: Buffer }
  >();
  const worker = queue.work((job) => void jobs.set(job.id.split('@')[0]!, job));
  await waitUntil('both have run', () => jobs.size === 2);
  await worker.stop();
  const job = jobs.get('s')!;
  assert.equal(job.payload.toString(), JSON.stringify(data));
  assert.deepEqual([job.priority, job.labels, job.group], [1, { tenant: 't' }, 'g']);
  assert.deepEqual(jobs.get('bytes')!.data, Buffer.from([0, 255, 1]));
});

test('a schedule lives in the partition of its group, so that limits per group count its jobs', async () => {
  const queue = newQueue({ partitions: 4 });
  for (let i = 0; i < 8; i++) await queue.schedules.set(`s${i}`, seldom, i, { group: 'g' });
  const held = await Promise.all(queue.partitions.map(({ keys }) => redis.command('HLEN', keys.schedules)));
  assert.equal(held[queue.partitionNamed('g').index], 8);
  // Without the group it moves to where its name belongs, and is there once.
  for (let i = 0; i < 8; i++) await queue.schedules.set(`s${i}`, seldom, i);
  const names = (await queue.schedules.list()).map(({ name }) => name);
  assert.deepEqual(names, ['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7']);
  const spread = await Promise.all(queue.partitions.map(({ keys }) => redis.command('ZCARD', keys.ticks)));
  assert.ok(spread.every((count) => Number(count) < 8));
  assert.equal((await queue.schedules.get('s3'))!.data, 3);
  assert.equal(await queue.schedules.remove('s3'), true);
  assert.equal(await queue.schedules.get('s3'), null);
});

test('a schedule begins and ends at its times', async () => {
  const queue = newQueue();
  const nowMs = await redisNowMs();
  const startMs = seldom.anchorMs + 10 * periodMs;
  const later = await queue.schedules.set('later', seldom, 1, { startMs });
  assert.equal(later.nextMs, startMs);
  const over = await queue.schedules.set('over', seldom, 1, { endMs: nowMs - 1 });
  assert.equal(over.nextMs, null);
  assert.equal(await queue.schedules.get('over'), null);
  const ending = await queue.schedules.set('ending', seldom, 1, { endMs: nowMs + periodMs });
  await leaveSince(queue, 'ending', ending.nextMs! - periodMs);
  await queue.schedules.set('ending', seldom, 1, { endMs: nowMs + periodMs });
  await runDue(queue);
  assert.equal((await waitingIds(queue)).length, 1);
  assert.equal((await queue.schedules.get('ending'))!.nextMs, ending.nextMs);
});

test('a schedule that cannot be read is passed over, and does not stop the others', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('good', seldom, 1);
  const { keys } = queue.partitions[0]!;
  await redis.command('HSET', keys.schedules, 'bad', '{"when":');
  await leaveSince(queue, 'bad', nextMs! - 2 * periodMs);
  await leaveSince(queue, 'orphan', nextMs! - 2 * periodMs);
  await leaveSince(queue, 'good', nextMs! - periodMs);
  await runDue(queue);
  assert.deepEqual(await waitingIds(queue), [`good@${nextMs! - periodMs}`]);
  assert.equal(await redis.command('ZSCORE', keys.ticks, 'orphan'), null);
  assert.ok(Number(await redis.command('ZSCORE', keys.ticks, 'bad')) > Date.now());
});

test('what cannot be a schedule is refused, and nothing changes', async () => {
  const queue = newQueue();
  const invalid = { code: 'SCHEDULE_INVALID' };
  const { schedules } = queue;
  await assert.rejects(schedules.set('s', { cron: 'every day' }, 1), invalid);
  await assert.rejects(schedules.set('s', { cron: '0 0 31 2 *' }, 1), invalid);
  await assert.rejects(schedules.set('s', { cron: '* * * * *', timeZone: 'Nowhere/Town' }, 1), invalid);
  await assert.rejects(schedules.set('s', { everyMs: 0 }, 1), invalid);
  await assert.rejects(schedules.set('s', { everyMs: 1_000 }, 1, { startMs: 2, endMs: 1 }), invalid);
  await assert.rejects(schedules.set('x'.repeat(201), { everyMs: 1_000 }, 1), invalid);
  await assert.rejects(schedules.set('s', { everyMs: 1_000 }, 1, { priority: 9 as never }), {
    code: 'OPTION_INVALID',
  });
  await assert.rejects(schedules.set('s', { everyMs: 1_000 }, 1, { missed: 'some' as never }), {
    code: 'OPTION_INVALID',
  });
  await assert.rejects(schedules.set('s', { everyMs: 1_000 }, 1, { rememberMs: 1 }), {
    code: 'OPTION_INVALID',
  });
  assert.deepEqual(await schedules.list(), []);
});

test('a tick that finds the memory of Redis full is fired when there is room', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, 1);
  await leaveSince(queue, 's', nextMs! - periodMs);
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  try {
    await assert.rejects(runDue(queue), { code: 'QUEUE_FULL' });
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  }
  await runDue(queue);
  assert.deepEqual(await waitingIds(queue), [`s@${nextMs! - periodMs}`]);
});

test('ticks with a large payload fire in several steps, each once', async () => {
  const queue = newQueue();
  const { nextMs } = await queue.schedules.set('s', seldom, 'x'.repeat(1_000_000), {
    missed: 'all',
  });
  await leaveSince(queue, 's', nextMs! - 20 * periodMs);
  await runDue(queue);
  const expected = Array.from({ length: 20 }, (_, i) => `s@${nextMs! - (20 - i) * periodMs}`);
  assert.deepEqual(await waitingIds(queue), expected);
});
