// The questions: jobs, a job, dead letters, workers, schedules, series.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { createChain, GiveUp } from '@sluice/queue';
import { commandsOf, eventually, useRedis } from './setup.js';

const bed = useRedis();

test('jobs are found by id, state, payload field, label and error', async (t) => {
  const queue = bed.queue<{ user: { id: number }; fail?: string }>(t);
  const inspect = bed.inspect(t, [queue]);
  queue.work((job) => {
    if (job.data.fail) throw new GiveUp(job.data.fail);
  });
  await queue.add({ user: { id: 1 }, fail: 'no such bucket' }, { id: 'one', labels: { tenant: 'a' } });
  await queue.add({ user: { id: 2 }, fail: 'timed out' }, { id: 'two', labels: { tenant: 'b' } });
  await queue.add({ user: { id: 3 } }, { id: 'three', delayMs: 3_600_000, labels: { tenant: 'a' } });
  await eventually(async () => (await queue.dead.count()) === 2);
  const ids = async (question: Parameters<typeof inspect.jobs>[1]) => {
    const page = await inspect.jobs(queue.name, question);
    assert.equal(page.complete, true);
    return page.items.map(({ id }) => id).sort();
  };
  assert.deepEqual(await ids({ id: 'one' }), ['one']);
  assert.deepEqual(await ids({ id: 'nobody' }), []);
  assert.deepEqual(await ids({ states: ['delayed'] }), ['three']);
  assert.deepEqual(await ids({ field: { path: 'user.id', equals: '2' } }), ['two']);
  assert.deepEqual(await ids({ field: { path: 'constructor.name', equals: 'Object' } }), []);
  assert.deepEqual(await ids({ labels: { tenant: 'a' } }), ['one', 'three']);
  assert.deepEqual(await ids({ labels: { tenant: 'b' }, id: 'one' }), []);
  assert.deepEqual(await ids({ error: 'bucket' }), ['one']);
  assert.deepEqual(await ids({ error: 'bucket', states: ['waiting'] }), []);
  const [group] = (await inspect.deadGroups()).items;
  assert.equal((await ids({ fingerprint: group!.fingerprint })).length, 1);
  assert.deepEqual(
    (await inspect.jobsById('three')).map(({ queue: name, preview }) => [name, preview]),
    [[queue.name, '{"user":{"id":3}}']],
  );
});

test('a search says how far it looked, and goes on from there', async (t) => {
  const queue = bed.queue<{ n: number }>(t);
  const inspect = bed.inspect(t, [queue]);
  await queue.addMany(Array.from({ length: 11_000 }, (_, n) => ({ data: { n } })));
  let [scanned, pages, found] = [0, 0, 0];
  for (let cursor: string | undefined; ;) {
    const field = { path: 'n', equals: '7' };
    const page = await inspect.jobs(queue.name, { field, ...(cursor !== undefined && { cursor }) });
    assert.ok(page.scanned <= 5_100);
    scanned += page.scanned;
    found += page.items.length;
    pages++;
    if (page.cursor === null) break;
    assert.equal(page.complete, false);
    cursor = page.cursor;
  }
  assert.deepEqual([scanned, found, pages], [11_000, 1, 3]);
});

test('a job is told with its timeline, logs, stack and chain', async (t) => {
  const queue = bed.queue<string>(t, { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } });
  const inspect = bed.inspect(t, [queue]);
  const { jobs } = await createChain([
    { key: 'first', queue, data: 'fails' },
    { key: 'second', queue, data: 'waits', after: ['first'], onDependencyFailure: 'wait' },
  ]);
  const [first, second] = [jobs['first']!.id, jobs['second']!.id];
  queue.work(async (job) => {
    await job.log('begins');
    throw new Error('no luck');
  });
  await eventually(async () => (await queue.job(first))?.state === 'dead');
  const job = (await inspect.job(queue.name, first))!;
  assert.deepEqual(
    job.timeline.map(({ what }) => what),
    ['added', 'failed', 'failed', 'died'],
  );
  assert.match(job.timeline[1]!.message!, /no luck/);
  assert.ok(job.logs.length >= 1);
  assert.match(job.error!.stack, /questions\.test/);
  assert.deepEqual(job.chain.jobs.map(({ id }) => id).sort(), [first, second].sort());
  assert.equal(job.chain.complete, true);
  assert.equal(await inspect.job(queue.name, 'nobody'), null);
});

test('the causes of many dead letters cost as much as those of a few', async (t) => {
  const cost = async (letters: number) => {
    const queue = bed.queue<number>(t, { attempts: 1 });
    const inspect = bed.inspect(t, [queue]);
    const worker = queue.work(
      (job) => {
        throw new GiveUp(job.data % 10 === 0 ? 'disk is full' : `user ${job.data} is unknown`);
      },
      { concurrency: 200 },
    );
    await queue.addMany(Array.from({ length: letters }, (_, n) => ({ data: n })));
    await eventually(async () => (await queue.dead.count()) === letters);
    await worker.stop();
    const before = await commandsOf(bed.redis);
    const groups = await inspect.deadGroups({ queue: queue.name });
    const commands = (await commandsOf(bed.redis)) - before;
    assert.deepEqual(
      groups.items.map(({ count }) => count),
      [letters * 0.9, letters * 0.1],
    );
    assert.deepEqual([groups.letters, groups.complete], [letters, true]);
    const detail = await inspect.queue(queue.name);
    assert.deepEqual([detail?.dead.letters, detail?.dead.averageAttempts], [letters, 1]);
    assert.equal(detail?.dead.topError?.count, letters * 0.9);
    return commands;
  };
  const [few, many] = [await cost(20), await cost(3_000)];
  assert.ok(many <= few + 5, `${few} commands for 20 letters, ${many} for 3,000`);
});

test('workers and schedules of all queues are told', async (t) => {
  const queue = bed.queue<string>(t, { partitions: 3 });
  const idle = bed.queue<string>(t);
  const inspect = bed.inspect(t, [queue, idle]);
  await queue.work(() => {}, { name: 'smith', concurrency: 7 }).start();
  await idle.schedules.set('nightly', { cron: '0 3 * * *' }, 'x');
  await queue.schedules.set('often', { everyMs: 1_000_000 }, 'x');
  await eventually(async () => (await inspect.workers()).items[0]?.sessions === 3);
  const workers = await inspect.workers();
  assert.deepEqual(
    workers.items.map(({ queue: name, name: worker, concurrency, pid }) => [name, worker, concurrency, pid]),
    [[queue.name, 'smith', 7, process.pid]],
  );
  assert.equal(workers.complete, true);
  assert.deepEqual((await inspect.workers({ queue: idle.name })).items, []);
  const { items } = await inspect.schedules();
  assert.deepEqual(
    items.map(({ queue: of, name }) => `${of} ${name}`).sort(),
    [`${idle.name} nightly`, `${queue.name} often`].sort(),
  );
});

test('a series has a point for every minute asked for, also where nothing is known', async (t) => {
  const queue = bed.queue(t);
  const inspect = bed.inspect(t, [queue]);
  const hour = await inspect.series({ queue: queue.name, step: 'minute' });
  assert.deepEqual([hour.points.length, hour.complete], [60, false]);
  assert.ok(hour.points.every(({ figures }) => figures === null));
  const longAgo = await inspect.series({ step: 'hour', fromMs: 0 });
  assert.deepEqual([longAgo.points.length, longAgo.complete], [90 * 24 - 1, false]);

  // Filled in from the books as soon as a minute is complete.
  await inspect.start();
  inspect.watch(() => {});
  await eventually(async () => {
    const { points } = await inspect.series({ queue: queue.name, step: 'minute' });
    return points.filter(({ figures }) => figures?.['done'] === 0).length >= 58;
  });
});

test('a question about nothing is refused with its name', async (t) => {
  const queue = bed.queue(t);
  const { name } = queue;
  const inspect = bed.inspect(t, [queue]);
  const unknown = (error: unknown) => isSluiceError(error, 'UNKNOWN_QUEUE');
  const invalid = (error: unknown) => isSluiceError(error, 'QUESTION_INVALID');
  await assert.rejects(async () => inspect.jobs('nobody'), unknown);
  await assert.rejects(async () => inspect.series({ queue: 'nobody', step: 'hour' }), unknown);
  await assert.rejects(async () => inspect.jobs(name, { limit: 0 }), invalid);
  await assert.rejects(async () => inspect.jobs(name, { field: { path: 'a..b', equals: '' } }), invalid);
  await assert.rejects(async () => inspect.series({ step: 'hour', fromMs: Number.NaN }), invalid);
  await assert.rejects(async () => inspect.deadGroups({ limit: 1e9 }), invalid);
});
