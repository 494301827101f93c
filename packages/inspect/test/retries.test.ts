// Retries, schedules, timelines and labels: what operators ask, in the order of time and for one tenant only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { GiveUp } from '@sluice/queue';
import { commandsOf, eventually, useRedis } from './setup.js';

const bed = useRedis();
const hourMs = 3_600_000;

test('retries of all queues come in the order in which they are due, page by page, each once', async (t) => {
  const queues = [bed.queue<number>(t, { partitions: 2 }), bed.queue<number>(t), bed.queue<number>(t)];
  const inspect = bed.inspect(t, queues);
  for (const [q, queue] of queues.entries()) {
    queue.work(() => {
      throw new Error('no luck');
    });
    for (let n = 0; n < 10; n++) {
      const backoff = { type: 'fixed', delayMs: hourMs + ((n * 7 + q) % 5) * 1_000 } as const;
      await queue.add(n, { id: `job${n}`, attempts: 3, backoff, labels: { tenant: n < 3 ? 'a' : 'b' } });
    }
  }
  await eventually(async () => (await inspect.retrySummary()).count === 30);
  const walk = async (question: Parameters<typeof inspect.retries>[0]) => {
    const rows = [];
    for (let cursor: string | undefined; ;) {
      const page = await inspect.retries({ ...question, ...(cursor !== undefined && { cursor }) });
      rows.push(...page.items);
      if (page.cursor === null) return rows;
      cursor = page.cursor;
    }
  };
  for (const limit of [1, 7, 30, 100]) {
    const rows = await walk({ limit });
    assert.equal(new Set(rows.map(({ queue, id }) => `${queue}/${id}`)).size, 30, `limit ${limit}`);
    assert.equal(rows.length, 30);
    const due = rows.map(({ dueMs }) => dueMs);
    assert.deepEqual(
      due,
      due.toSorted((a, b) => a - b),
    );
  }
  const [first] = (await inspect.retries()).items;
  assert.deepEqual([first!.error, first!.attempt], ['Error: no luck', 2]);
  assert.ok(first!.failedMs! > 0);
  const summary = await inspect.retrySummary();
  assert.equal(summary.nextMs, first!.dueMs);
  assert.deepEqual(
    summary.queues.map(({ count, complete }) => [count, complete]),
    [
      [10, true],
      [10, true],
      [10, true],
    ],
  );
  assert.deepEqual([summary.queues[0]!.queue, summary.queues[0]!.nextMs], [first!.queue, first!.dueMs]);
  assert.equal((await walk({ queue: queues[1]!.name })).length, 10);
  assert.equal((await walk({ labels: { tenant: 'a' }, limit: 4 })).length, 9);
  assert.deepEqual(await inspect.retrySummary({ labels: { tenant: 'nobody' } }), {
    ...{ count: 0, complete: true, nextMs: null, queues: [] },
  });
});

test('a cursor that is none is refused', async (t) => {
  const queue = bed.queue(t);
  const inspect = bed.inspect(t, [queue]);
  const broken = ['x', Buffer.from('[1]').toString('base64url'), Buffer.from('{}').toString('base64url')];
  for (const cursor of [...broken, Buffer.from('["1","q",0,""]').toString('base64url')]) {
    const invalid = (error: unknown) => isSluiceError(error, 'QUESTION_INVALID');
    await assert.rejects(inspect.retries({ cursor }), invalid, cursor);
    await assert.rejects(inspect.schedules({ cursor }), invalid, cursor);
  }
});

test('schedules come by their next tick, page by page, at a cost that does not grow with their number', async (t) => {
  const cost = async (count: number) => {
    const queue = bed.queue<number>(t, { partitions: 2 });
    const inspect = bed.inspect(t, [queue]);
    for (let n = 0; n < count; n++) {
      await queue.schedules.set(`s${n}`, { everyMs: 1_000_000 + n * 1_000 }, n);
    }
    const before = await commandsOf(bed.redis);
    const page = await inspect.schedules({ limit: 10 });
    const commands = (await commandsOf(bed.redis)) - before;
    assert.equal(page.items.length, 10);
    const names = new Set<string>();
    for (let cursor: string | null = null, first = true; first || cursor !== null; first = false) {
      const next = await inspect.schedules({ limit: 7, ...(cursor !== null && { cursor }) });
      for (const { name } of next.items) names.add(name);
      cursor = next.cursor;
    }
    assert.equal(names.size, count);
    return commands;
  };
  const [few, many] = [await cost(20), await cost(300)];
  // Two searches more: the places of a page are found by halving.
  assert.ok(many <= few + 30, `${few} commands for 20 schedules, ${many} for 300`);
});

test('with the event stream on, a timeline tells claims, the end and a replay; without it, the present claim', async (t) => {
  const queue = bed.queue<string>(t, { attempts: 1 });
  const inspect = bed.inspect(t, [queue]);
  await queue.limit({ events: 10_000 });
  let broken = true;
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  queue.work(async (job) => {
    if (job.data === 'held') await held;
    if (broken && job.data === 'dies') throw new GiveUp('no way');
  });
  await queue.add('dies', { id: 'one' });
  await eventually(async () => (await queue.dead.count()) === 1);
  broken = false;
  await queue.dead.replay({ ids: ['one'] });
  await eventually(async () => (await queue.job('one'))?.state === 'done');
  const told = (await inspect.job(queue.name, 'one'))!;
  assert.deepEqual(
    told.timeline.map(({ what }) => what),
    ['claimed', 'replayed', 'claimed', 'done'],
  );
  assert.equal(told.events?.complete, true);
  await queue.limit({ events: null });
  await queue.add('held', { id: 'two' });
  await eventually(async () => (await queue.job('two'))?.state === 'active');
  const running = (await inspect.job(queue.name, 'two'))!;
  assert.deepEqual(
    running.timeline.map(({ what }) => what),
    ['added', 'claimed'],
  );
  assert.equal(running.events, null);
  release();
});

test('what happened to a job within one millisecond is told in the order in which it happened', async (t) => {
  const queue = bed.queue<string>(t, { partitions: 1 });
  const inspect = bed.inspect(t, [queue]);
  await queue.limit({ events: 10_000 });
  await queue.add('waits', { id: 'one', delayMs: hourMs });
  const createdMs = (await queue.job('one'))!.createdMs!;
  const { link, keys } = queue.partitions[0]!;
  await link.call('DEL', [keys.events]);
  for (const type of ['claimed', 'replayed', 'claimed', 'cancelled']) {
    await link.call('XADD', [keys.events, `${createdMs}-*`, 'type', type, 'id', 'one']);
  }
  const told = (await inspect.job(queue.name, 'one'))!;
  assert.deepEqual(
    told.timeline.map(({ what }) => what),
    ['added', 'claimed', 'replayed', 'claimed', 'cancelled', 'due'],
  );
});

test('for one tenant only its own jobs, causes and letters are there', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  const inspect = bed.inspect(t, [queue]);
  queue.work((job) => {
    throw new GiveUp(job.data % 2 === 0 ? 'disk is full' : 'no such bucket');
  });
  for (let n = 0; n < 10; n++) {
    await queue.add(n, { id: `job${n}`, labels: { tenant: n < 4 ? 'a' : 'b' } });
  }
  await eventually(async () => (await queue.dead.count()) === 10);
  const mine = { labels: { tenant: 'a' } };
  await queue.add(10, { id: 'ended', labels: { tenant: 'a' }, delayMs: hourMs });
  await queue.cancel('ended');
  assert.equal((await inspect.job(queue.name, 'ended', mine))?.state, 'cancelled');
  assert.equal(await inspect.job(queue.name, 'ended', { labels: { tenant: 'b' } }), null);
  assert.ok(await inspect.job(queue.name, 'job1', mine));
  assert.equal(await inspect.job(queue.name, 'job7', mine), null);
  assert.equal((await inspect.jobsById('job1', mine)).length, 1);
  assert.equal((await inspect.jobsById('job7', mine)).length, 0);
  assert.equal((await inspect.jobs(queue.name, { error: 'disk', ...mine })).items.length, 2);
  const groups = await inspect.deadGroups(mine);
  assert.deepEqual(
    groups.items.map(({ queue: of, count }) => [of, count]),
    [
      [queue.name, 2],
      [queue.name, 2],
    ],
  );
  assert.deepEqual([groups.letters, groups.scanned, groups.complete], [4, 10, true]);
  const [first] = (await inspect.deadGroups({ trend: true })).items;
  assert.deepEqual([first!.perHour?.length, first!.perHour?.at(-1)], [24, 5]);
});

test('a worker that is drained says so in its row', async (t) => {
  const queue = bed.queue<number>(t, { partitions: 2 });
  const inspect = bed.inspect(t, [queue]);
  await queue.work(() => {}, { leaseMs: 1_500, name: 'smith' }).start();
  const row = async () => (await inspect.workers()).items[0];
  await eventually(async () => (await row())?.sessions === 2);
  assert.equal((await row())!.drain, null);
  await queue.drain((await row())!.session);
  await eventually(async () => (await row())?.drain === 'drained');
});
