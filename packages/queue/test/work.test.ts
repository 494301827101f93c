// What a worker does with a job: run it, in batches, in children, within its time, to an orderly end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GiveUp, Snooze } from '../src/index.js';
import type { Job } from '../src/index.js';
import { eventually, Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();

test('no more handlers run at once than the concurrency allows', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.addMany(Array.from({ length: 200 }, (_, data) => ({ data })));
  let running = 0;
  let most = 0;
  const seen = new Gathering<number>();
  queue.work(
    async (job) => {
      most = Math.max(most, ++running);
      await sleep(2);
      running--;
      seen.push(job.data);
    },
    { concurrency: 7 },
  );
  await seen.reach(200);
  assert.equal(most, 7);
});

test('two workers of concurrency 1 start two long jobs at once', async (t) => {
  const queue = bed.queue<number>(t);
  const other = bed.twin(t, queue);
  const starts = new Gathering<number>();
  // Neither ends before the test does.
  const handler = async (job: Job<number>) => {
    starts.push(performance.now());
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
  };
  await Promise.all([
    queue.work(handler, { concurrency: 1 }).start(),
    other.work(handler, { concurrency: 1 }).start(),
  ]);
  await sleep(200);
  const addedMs = performance.now();
  await queue.addMany([{ data: 1 }, { data: 2 }]);
  // One that was not woken would start after its nap of 8 s.
  for (const startMs of await starts.reach(2))
    assert.ok(startMs - addedMs < 4_000, `${startMs - addedMs} ms after it was added`);
});

test('jobs of quick handlers end once each, also when some fail, some leave traces and some are cancelled', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } });
  const jobs = await queue.addMany(Array.from({ length: 6_000 }, (_, data) => ({ data })));
  const runs = new Map<number, number>();
  const refused: string[] = [];
  const worker = queue.work(
    async (job) => {
      runs.set(job.data, (runs.get(job.data) ?? 0) + 1);
      if (job.data % 251 === 3 && job.attempt === 1) throw new Error('once more');
      if (job.data % 503 === 5) await job.progress(job.data);
    },
    { concurrency: 100 },
  );
  worker.on('refused', (id) => refused.push(id));
  const cancelled = new Set<string>();
  for (let i = 0; (await queue.counts()).waiting > 0; i++) {
    const { id } = jobs[(i * 397) % jobs.length]!;
    if ((await queue.cancel(id)) !== null) cancelled.add(id);
  }
  await eventually(async () => {
    const { waiting, active, delayed } = await queue.counts();
    return waiting + active + delayed === 0;
  });
  await worker.stop();
  jobs.forEach(({ id }, i) => {
    const expected = i % 251 === 3 ? 2 : 1;
    if (!cancelled.has(id)) assert.equal(runs.get(i), expected, `job ${i}`);
  });
  assert.ok(refused.every((id) => cancelled.has(id)));
  assert.deepEqual(await queue.counts().then(({ dead, tombstones }) => ({ dead, tombstones })), {
    dead: 0,
    tombstones: 0,
  });
});

test('a job added to an idle queue starts within milliseconds', async (t) => {
  const queue = bed.queue<number>(t);
  const waits = new Gathering<number>();
  await queue.work((job) => waits.push(performance.now() - job.data)).start();
  for (let i = 0; i < 50; i++) {
    await sleep(10);
    await queue.add(performance.now());
  }
  const sorted = (await waits.reach(50)).toSorted((a, b) => a - b);
  assert.ok(sorted[25]! < 100, `median ${sorted[25]} ms`);
});

test('a batch handler gets several jobs and decides about each', async (t) => {
  const queue = bed.queue<number, number>(t, { attempts: 1, keepResultMs: 60_000 });
  const added = await queue.addMany([{ data: 1 }, { data: 2 }, { data: 3 }]);
  const sizes: number[] = [];
  queue.workBatches(
    (jobs) => {
      sizes.push(jobs.length);
      return jobs.map((job) => (job.data === 2 ? new Error('no even numbers') : job.data * 10));
    },
    { batchSize: 10, concurrency: 1 },
  );
  assert.equal(await queue.result(added[0]!.id), 10);
  assert.equal(await queue.result(added[2]!.id), 30);
  await assert.rejects(queue.result(added[1]!.id));
  assert.deepEqual(sizes, [3]);
});

test('a batch handler that throws fails all its jobs, which then run one by one', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 3, backoff: { type: 'fixed', delayMs: 1 } });
  await queue.addMany([{ data: 1 }, { data: 2 }, { data: 3 }, { data: 4 }]);
  const calls = new Gathering<number[]>();
  queue.workBatches(
    (jobs) => {
      calls.push(jobs.map((job) => job.data));
      if (jobs.length > 1) throw new Error('one of them is bad, who knows which');
    },
    { batchSize: 4, concurrency: 1 },
  );
  const all = await calls.reach(5);
  assert.equal(all[0]!.length, 4);
  assert.deepEqual(
    all.slice(1).map((batch) => batch.length),
    [1, 1, 1, 1],
  );
});

test('a batch handler that returns too few outcomes fails all its jobs', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  await queue.addMany([{ data: 1 }, { data: 2 }]);
  queue.workBatches((jobs) => jobs.slice(1).map(() => 'x'), { batchSize: 2 });
  await eventually(async () => (await queue.counts()).dead === 2);
});

test('a job that runs longer than its timeout is aborted and counts a failed attempt', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1, timeoutMs: 200 });
  const aborted = new Gathering<string>();
  const { id } = await queue.add(1);
  queue.work(async (job) => {
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
    aborted.push((job.signal.reason as { code: string }).code);
  });
  assert.deepEqual(await aborted.reach(1), ['JOB_TIMEOUT']);
  await eventually(async () => (await queue.counts()).dead === 1);
  assert.match((await queue.dead.get(id))!.error.message, /longer than its 200 ms/);
});

test('progress and log lines are readable while the job runs, and bounded', async (t) => {
  const queue = bed.queue<number>(t, { keepResultMs: 60_000 });
  const { id } = await queue.add(1);
  let go = () => {};
  const gate = new Promise<void>((resolve) => (go = resolve));
  queue.work(async (job) => {
    await job.progress({ page: 3, of: 10 });
    for (let i = 0; i < 1_050; i++) await job.log(`line ${i}`);
    await gate;
  });
  await eventually(async () => (await queue.job(id))?.logs.at(-1) === 'line 1049', 60_000);
  const view = await queue.job(id);
  assert.deepEqual(view!.progress, { page: 3, of: 10 });
  assert.equal(view!.logs.length, 1_000);
  assert.equal(view!.state, 'active');
  go();
  await eventually(async () => (await queue.job(id))?.state === 'done');
});

test('a result is kept as long as asked, also a binary one', async (t) => {
  const queue = bed.queue<string>(t);
  const json = await queue.add('json', { keepResultMs: 60_000 });
  const bytes = await queue.add('bytes', { keepResultMs: 60_000 });
  const short = await queue.add('short', { keepResultMs: 300 });
  queue.work((job) => (job.data === 'bytes' ? Buffer.from([0, 255, 1]) : { said: job.data, list: [] }));
  assert.deepEqual(await queue.result(json.id), { said: 'json', list: [] });
  assert.deepEqual(Buffer.from((await queue.result(bytes.id)) as Uint8Array), Buffer.from([0, 255, 1]));
  await queue.result(short.id);
  // A worker sweeps every few seconds.
  await eventually(async () => (await queue.job(short.id)) === null, 40_000);
});

test('a waiting job can be cancelled and never runs', async (t) => {
  const queue = bed.queue<number>(t);
  const jobs = await queue.addMany([{ data: 1 }, { data: 2 }, { data: 3 }]);
  assert.equal(await queue.cancel(jobs[1]!.id), 'waiting');
  assert.equal(await queue.cancel(jobs[1]!.id), null);
  assert.equal((await queue.job(jobs[1]!.id))!.state, 'cancelled');
  assert.equal((await queue.counts()).waiting, 2);
  const seen = new Gathering<number>();
  const worker = queue.work((job) => seen.push(job.data), { concurrency: 1 });
  assert.deepEqual(await seen.reach(2), [1, 3]);
  await worker.idle();
  assert.equal((await queue.counts()).waiting, 0);
});

test('a delayed job can be cancelled', async (t) => {
  const queue = bed.queue<number>(t);
  const { id } = await queue.add(1, { delayMs: 60_000 });
  assert.equal(await queue.cancel(id), 'delayed');
  assert.equal((await queue.counts()).delayed, 0);
});

test('a running job that is cancelled gets its signal within a second or two, and its result is refused', async (t) => {
  const queue = bed.queue<number>(t);
  const { id } = await queue.add(1);
  const aborted = new Gathering<boolean>();
  const refused = new Gathering<string>();
  const worker = queue.work(async (job) => {
    await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
    aborted.push(true);
  });
  worker.on('refused', (refusedId) => refused.push(refusedId));
  await eventually(async () => (await queue.counts()).active === 1);
  assert.equal(await queue.cancel(id), 'active');
  assert.equal((await queue.job(id))!.state, 'cancelled');
  await aborted.reach(1, 3_000);
  assert.equal((await queue.counts()).active, 0);
});

test('a paused queue starts nothing, and goes on when resumed', async (t) => {
  const queue = bed.queue<number>(t);
  const seen = new Gathering<number>();
  await queue.work((job) => seen.push(job.data)).start();
  await queue.pause();
  await queue.addMany([{ data: 1 }, { data: 2 }]);
  await sleep(300);
  assert.equal(seen.items.length, 0);
  await queue.resume();
  await seen.reach(2, 2_000);
});

test('a busy queue stops at once when it is paused', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.addMany(Array.from({ length: 20_000 }, (_, data) => ({ data })));
  let count = 0;
  queue.work(() => void count++, { concurrency: 10 });
  await eventually(() => count > 100);
  await queue.pause();
  // What was claimed before may still be on its way.
  await eventually(async () => (await queue.counts()).active === 0);
  const stopped = count;
  await sleep(200);
  assert.equal(count, stopped);
  assert.ok(stopped < 20_000);
});

test('stop lets running handlers end, and unstarted jobs stay for others', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.addMany(Array.from({ length: 20 }, (_, data) => ({ data })));
  const done = new Gathering<number>();
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const worker = queue.work(
    async (job) => {
      await finished;
      done.push(job.data);
    },
    { concurrency: 5 },
  );
  await eventually(() => worker.running === 5);
  const stopping = worker.stop();
  finish();
  await stopping;
  assert.equal(done.items.length, 5);
  const counts = await queue.counts();
  assert.deepEqual([counts.waiting, counts.active, counts.workers], [15, 0, 0]);
});

test('stop at its deadline aborts handlers and gives their jobs back without an attempt', async (t) => {
  const queue = bed.queue<number>(t);
  const { id } = await queue.add(1);
  const worker = queue.work((job) => new Promise((resolve) => job.signal.addEventListener('abort', resolve)));
  await eventually(() => worker.running === 1);
  const began = performance.now();
  await worker.stop(300);
  assert.ok(performance.now() - began < 3_000);
  const view = await queue.job(id);
  assert.deepEqual([view!.state, view!.attempt], ['waiting', 1]);
});

test('a snoozed job runs again later and has used no attempt', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  await queue.add(1);
  const attempts = new Gathering<number>();
  queue.work((job) => {
    attempts.push(job.attempt);
    if (attempts.items.length < 3) throw new Snooze(50);
  });
  assert.deepEqual(await attempts.reach(3), [1, 1, 1]);
});

test('a handler in a child process gets the job and returns its result', async (t) => {
  const queue = bed.queue<{ n: number }, number>(t, { keepResultMs: 60_000 });
  const { id } = await queue.add({ n: 6 });
  queue.workInChildren(new URL('./childHandler.js', import.meta.url), { concurrency: 2 });
  assert.equal(await queue.result(id), 36);
  assert.deepEqual((await queue.job(id))!.logs, ['squaring 6']);
});

test('the death of a child is a failed attempt, and the worker goes on', async (t) => {
  const queue = bed.queue<{ n: number }, number>(t, {
    attempts: 2,
    backoff: { type: 'fixed', delayMs: 10 },
    keepResultMs: 60_000,
  });
  const bad = await queue.add({ n: -1 });
  const good = await queue.add({ n: 3 });
  queue.workInChildren(new URL('./childHandler.js', import.meta.url), { concurrency: 1 });
  assert.equal(await queue.result(good.id), 9);
  await eventually(async () => (await queue.counts()).dead === 1);
  const letter = await queue.dead.get(bad.id);
  assert.equal(letter!.attempts.length, 2);
  assert.match(letter!.error.message, /died/);
});

test('a child that runs longer than the timeout is killed', async (t) => {
  const queue = bed.queue<{ n: number }, number>(t, { attempts: 1, timeoutMs: 500, keepResultMs: 60_000 });
  await queue.add({ n: -2 });
  queue.workInChildren(new URL('./childHandler.js', import.meta.url), { concurrency: 1 });
  await eventually(async () => (await queue.counts()).dead === 1);
  // A new child takes a while to start on a busy machine.
  const good = await queue.add({ n: 2 }, { timeoutMs: 30_000 });
  assert.equal(await queue.result(good.id), 4);
});

test('a handler that gives up sends its job to the dead letters at once', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 5 });
  const { id } = await queue.add(1);
  let runs = 0;
  queue.work(() => {
    runs++;
    return new GiveUp('the account is closed');
  });
  await eventually(async () => (await queue.counts()).dead === 1);
  assert.equal(runs, 1);
  assert.equal((await queue.dead.get(id))!.error.message, 'the account is closed');
});

test('a handler in a child process can give up', async (t) => {
  const queue = bed.queue<{ n: number }, number>(t, { attempts: 5 });
  const { id } = await queue.add({ n: -3 });
  queue.workInChildren(new URL('./childHandler.js', import.meta.url), { concurrency: 1 });
  await eventually(async () => (await queue.counts()).dead === 1);
  const letter = await queue.dead.get(id);
  assert.deepEqual([letter!.attempts.length, letter!.error.message], [1, 'not a number for squares']);
});
