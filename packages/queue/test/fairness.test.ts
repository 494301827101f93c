// Limits and fairness: a busy group starves nobody, a limit is never exceeded and always used, and waiting for it costs little.
//
// When a job started is read from its token, which is the time of its claim in µs by the clock of Redis: the moment that the
// limits are about. (When the handler runs depends on how busy this process is.)
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import type { Job, Queue } from '../src/index.js';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();

function startedMs(job: Job): number {
  return Math.floor(Number(job.token) / 1_000);
}

/** The most starts in any span of `perMs`. */
function mostWithin(starts: number[], perMs: number): number {
  const sorted = starts.toSorted((a, b) => a - b);
  let most = 0;
  let first = 0;
  for (let last = 0; last < sorted.length; last++) {
    while (sorted[last]! - sorted[first]! >= perMs) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

async function commandsPerSecond(spanMs: number): Promise<number> {
  const count = async () => {
    const stats = await bed.redis.info('commandstats');
    // What scripts do counts there as well; these are the commands that clients send.
    return ['evalsha', 'eval', 'blpop', 'blmove'].reduce(
      (sum, name) => sum + Number(/calls=(\d+)/.exec(stats[`cmdstat_${name}`] ?? '')?.[1] ?? 0),
      0,
    );
  };
  const before = await count();
  await sleep(spanMs);
  return ((await count()) - before) / (spanMs / 1_000);
}

async function addGroup(queue: Queue<string>, group: string, count: number, data = group): Promise<void> {
  for (let left = count; left > 0; left -= 10_000) {
    await queue.addMany(Array.from({ length: Math.min(left, 10_000) }, () => ({ data, group })));
  }
}

test('among 10,000 groups with a backlog, of which one has 100,000 waiting jobs, the single job of another starts within two batches', async (t) => {
  const queue = bed.queue<string>(t);
  await addGroup(queue, 'large', 100_000);
  for (let round = 0; round < 3; round++) {
    await queue.addMany(
      Array.from({ length: 9_998 }, (_, i) => ({ data: `small-${i}`, group: `small-${i}` })),
    );
  }
  const claims: string[] = [];
  const served = new Map<string, number>();
  const found = new Gathering<number>();
  const worker = queue.work(
    async (job) => {
      if (claims.at(-1) !== job.token) claims.push(job.token);
      served.set(job.data, (served.get(job.data) ?? 0) + 1);
      if (job.data === 'single') found.push(claims.length);
      await sleep(1);
    },
    { concurrency: 50 },
  );
  // Groups that have just become busy come before those with a backlog; first they all have their turn.
  await waitUntil('every group was served once', () => served.size === 9_999, { timeoutMs: 60_000 });
  const { large } = Object.fromEntries(served) as { large: number };
  assert.ok(large < 200, `the large group was served ${large} times meanwhile`);
  const batches: number[] = [];
  for (let i = 0; i < 5; i++) {
    // Held for a moment, so that it is certain which claims came after the add.
    await queue.pause();
    await waitUntil('it stands still', () => worker.running === 0);
    await queue.add('single', { group: 'single' });
    const before = claims.length;
    await queue.resume();
    batches.push((await found.reach(i + 1)).at(-1)! - before);
  }
  await worker.stop();
  const { waiting } = await queue.counts();
  t.diagnostic(`it started with batch ${batches.join(', ')}; ${waiting} jobs were waiting`);
  assert.ok(waiting > 100_000);
  assert.ok(Math.max(...batches) <= 2, batches.join(', '));
});

test('groups and jobs without a group take turns', async (t) => {
  const queue = bed.queue<string>(t);
  await addGroup(queue, 'grouped', 200);
  await queue.addMany(Array.from({ length: 200 }, () => ({ data: 'plain' })));
  const seen = new Gathering<string>();
  queue.work((job) => seen.push(job.data), { concurrency: 4 });
  const first = (await seen.reach(100)).slice(0, 100);
  const grouped = first.filter((data) => data === 'grouped').length;
  assert.ok(grouped >= 30 && grouped <= 70, `${grouped} of the first hundred were of the group`);
});

test('a group at its limit blocks nobody else and uses its limit fully', async (t) => {
  const queue = bed.queue<string>(t);
  await queue.limit({ perGroup: { maxActive: 3 } });
  await addGroup(queue, 'large', 60);
  await addGroup(queue, 'other', 20);
  const running = new Map<string, number>();
  const most = new Map<string, number>();
  const full = new Gathering<number>();
  const done = new Gathering<string>();
  let begin = () => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  await queue
    .work(
      async (job) => {
        const count = (running.get(job.data) ?? 0) + 1;
        running.set(job.data, count);
        most.set(job.data, Math.max(most.get(job.data) ?? 0, count));
        if (job.data === 'large' && count === 3) full.push(done.items.length);
        await begun;
        await sleep(50);
        running.set(job.data, running.get(job.data)! - 1);
        done.push(job.data);
      },
      { concurrency: 30 },
    )
    .start();
  // Nobody ends before all are there: a late add is not to be taken for one that had to wait.
  await queue.addMany(Array.from({ length: 30 }, () => ({ data: 'plain' })));
  begin();
  await done.reach(110);
  assert.deepEqual([most.get('large'), most.get('other')], [3, 3]);
  const lastOfOthers = Math.max(done.items.lastIndexOf('other'), done.items.lastIndexOf('plain'));
  assert.ok(lastOfOthers < 100, 'the others did not wait for the large group');
  assert.ok(full.items.length > 15, `the limit was reached ${full.items.length} times in 60 jobs`);
});

test('the limit of a queue is never exceeded by several workers, and fully used', async (t) => {
  const queue = bed.queue<number>(t);
  const maxActive = 7;
  await queue.limit({ maxActive });
  await queue.addMany(Array.from({ length: 70 }, (_, data) => ({ data })));
  let running = 0;
  let most = 0;
  const done = new Gathering<number>();
  const handler = async (job: Job<number>) => {
    most = Math.max(most, ++running);
    await sleep(150 + Math.random() * 50);
    running--;
    done.push(job.data);
  };
  for (const each of [queue, bed.twin(t, queue), bed.twin(t, queue)]) each.work(handler, { concurrency: 5 });
  await done.reach(14);
  const samples: number[] = [];
  const sampling = setInterval(() => samples.push(running), 5);
  await done.reach(60);
  clearInterval(sampling);
  assert.equal(most, maxActive);
  const used = samples.reduce((sum, count) => sum + count, 0) / samples.length / maxActive;
  t.diagnostic(`${Math.round(used * 100)} % of the limit was in use`);
  assert.ok(used > 0.7, `only ${used * 100} % of the limit was in use`);
  await done.reach(70);
});

test('a queue at its limit sleeps: it neither stalls nor asks again and again', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.limit({ maxActive: 2 });
  await queue.addMany(Array.from({ length: 20 }, (_, data) => ({ data })));
  const gates: (() => void)[] = [];
  const started = new Gathering<number>();
  const handler = (job: Job<number>) => {
    started.push(job.data);
    return new Promise<void>((resolve) => gates.push(resolve));
  };
  queue.work(handler, { concurrency: 10 });
  bed.twin(t, queue).work(handler, { concurrency: 10 });
  await started.reach(2);
  await sleep(300);
  const perSecond = await commandsPerSecond(3_000);
  t.diagnostic(`two workers at the limit send ${perSecond.toFixed(1)} commands per second`);
  assert.ok(perSecond < 15, `${perSecond} commands per second`);
  assert.equal(started.items.length, 2);
  for (let i = 3; i <= 20; i++) {
    gates.shift()!();
    await started.reach(i, 5_000);
  }
  for (const open of gates) open();
});

test('a rate limit of a queue holds in every window, is used, and costs little while it is reached', async (t) => {
  const queue = bed.queue<number>(t);
  const [max, perMs] = [20, 500];
  await queue.limit({ rate: { max, perMs } });
  await queue.addMany(Array.from({ length: 200 }, (_, data) => ({ data })));
  const starts = new Gathering<number>();
  const handler = (job: Job<number>) => starts.push(startedMs(job));
  const began = performance.now();
  queue.work(handler, { concurrency: 30 });
  bed.twin(t, queue).work(handler, { concurrency: 30 });
  await starts.reach(max);
  const perSecond = await commandsPerSecond(2_000);
  await starts.reach(120);
  const tookMs = performance.now() - began;
  // 120 jobs are six windows of twenty: the sixth begins after 2.5 s.
  t.diagnostic(`120 starts took ${Math.round(tookMs)} ms; ${perSecond.toFixed(1)} commands per second`);
  assert.equal(mostWithin(starts.items, perMs), max, 'never more, and not less');
  assert.ok(tookMs > 2_400 && tookMs < 5_000, `it took ${tookMs} ms`);
  assert.ok(perSecond < 60, `${perSecond} commands per second`);
});

test('a rate limit per group holds in every window of every group, and groups do not wait for each other', async (t) => {
  const queue = bed.queue<string>(t);
  const [max, perMs] = [5, 400];
  await queue.limit({ perGroup: { rate: { max, perMs } } });
  for (const group of ['a', 'b', 'c']) await addGroup(queue, group, 20);
  await queue.addMany(Array.from({ length: 50 }, () => ({ data: 'plain' })));
  const starts = new Map<string, number[]>();
  const all = new Gathering<string>();
  const handler = (job: Job<string>) => {
    starts.set(job.data, [...(starts.get(job.data) ?? []), startedMs(job)]);
    all.push(job.data);
  };
  const began = performance.now();
  queue.work(handler, { concurrency: 20 });
  bed.twin(t, queue).work(handler, { concurrency: 20 });
  await all.reach(110);
  const tookMs = performance.now() - began;
  for (const group of ['a', 'b', 'c']) assert.equal(mostWithin(starts.get(group)!, perMs), max, group);
  assert.ok(all.items.lastIndexOf('plain') < 80, 'jobs without a group did not wait');
  // Twenty jobs at five per window: the last five start after three windows.
  assert.ok(tookMs > 1_150 && tookMs < 4_000, `it took ${tookMs} ms`);
});

test('limits can be changed and removed while jobs run', async (t) => {
  const queue = bed.queue<string>(t);
  await queue.limit({ maxActive: 1 });
  await queue.addMany(Array.from({ length: 3_000 }, () => ({ data: 'x', group: 'g' })));
  let running = 0;
  let most = 0;
  const done = new Gathering<number>();
  queue.work(
    async () => {
      most = Math.max(most, ++running);
      // Long beside the way to Redis and back, or the next would come when its neighbours have ended, and the limit not be seen.
      await sleep(50);
      running--;
      done.push(1);
    },
    { concurrency: 20 },
  );
  const mostOfNext = async (count: number): Promise<number> => {
    await sleep(200); // those that started under the old limit end
    most = 0;
    await done.reach(done.items.length + count);
    return most;
  };
  assert.equal(await mostOfNext(5), 1);
  await queue.limit({ maxActive: 4 });
  assert.equal(await mostOfNext(15), 4);
  await queue.limit({ maxActive: null, perGroup: { maxActive: 2 } });
  assert.equal(await mostOfNext(5), 2);
  await queue.limit({ perGroup: { maxActive: null } });
  const atOnce = await mostOfNext(50);
  assert.ok(atOnce > 4, `${atOnce} at once without a limit`);
  await queue.limit({ rate: { max: 1, perMs: 60_000 } });
  await sleep(300);
  const count = done.items.length;
  await sleep(300);
  assert.equal(done.items.length, count, 'it stands still');
  await queue.limit({ rate: null });
  await done.reach(count + 50);
});
