// What happens when a handler fails: attempts, waits between them, and what is known of a job that died.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RetryAt } from '../src/index.js';
import { eventually, Gathering, useRedis } from './setup.js';

const bed = useRedis();

/** The wait is not shorter; a busy machine may make it longer, but not as long as the default backoff or a nap of 8 s would. */
function assertBetween(waitedMs: number, leastMs: number, limitMs: number): void {
  assert.ok(waitedMs >= leastMs && waitedMs < limitMs, `waited ${waitedMs} ms`);
}

test('a failing job runs three times by default, with 3 s and 9 s between', async (t) => {
  const queue = bed.queue<number>(t);
  const { id } = await queue.add(1);
  const runs = new Gathering<number>();
  queue.work(() => {
    runs.push(performance.now());
    throw new Error('no');
  });
  const [first, second, third] = await runs.reach(3);
  assertBetween(second! - first!, 2_600, 5_000);
  assertBetween(third! - second!, 8_600, 13_000);
  await eventually(async () => (await queue.job(id))!.state === 'dead');
});

test('a custom backoff decides, and one that throws falls back to the default', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 3, backoff: (attempt) => attempt * 50 });
  await queue.add(1);
  const runs = new Gathering<number>();
  queue.work(() => {
    runs.push(performance.now());
    throw new Error('no');
  });
  const [first, second, third] = await runs.reach(3);
  assertBetween(second! - first!, 45, 2_500);
  assertBetween(third! - second!, 95, 2_500);
});

test('a handler can ask for a retry at a time of its choice, returned or thrown', async (t) => {
  const queue = bed.queue<string>(t, { attempts: 2 });
  await queue.addMany([{ data: 'returned' }, { data: 'thrown' }]);
  const runs = new Gathering<[string, number, number]>();
  queue.work((job) => {
    runs.push([job.data, job.attempt, Date.now()]);
    if (job.attempt === 2) return undefined;
    const again = new RetryAt(Date.now() + 200);
    if (job.data === 'thrown') throw again;
    return again;
  });
  const all = await runs.reach(4);
  for (const name of ['returned', 'thrown']) {
    const [first, second] = all.filter(([data]) => data === name);
    assert.deepEqual([first![1], second![1]], [1, 2]);
    assertBetween(second![2] - first![2], 195, 2_500);
  }
});

test('a dead letter keeps payload, error, stack, history, times and worker', async (t) => {
  const queue = bed.queue<{ n: number }>(t, { attempts: 2, backoff: { type: 'fixed', delayMs: 20 } });
  const { id } = await queue.add({ n: 7 });
  queue.work(
    (job) => {
      throw new TypeError(`number ${job.data.n} is odd (attempt ${job.attempt})`);
    },
    { name: 'worker-a' },
  );
  await eventually(async () => (await queue.counts()).dead === 1);
  const letter = (await queue.dead.get(id))!;
  assert.deepEqual(letter.data, { n: 7 });
  assert.equal(letter.error.name, 'TypeError');
  assert.equal(letter.error.message, 'number 7 is odd (attempt 2)');
  assert.match(letter.error.stack, /fail\.test/);
  assert.equal(letter.attempts.length, 2);
  assert.deepEqual(
    letter.attempts.map((attempt) => attempt.worker),
    ['worker-a', 'worker-a'],
  );
  assert.ok(letter.firstFailureMs < letter.lastFailureMs);
  assert.equal(letter.worker, 'worker-a');
});

test('the history of a job that fails often keeps the first and the last 19 attempts', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 30, backoff: { type: 'fixed', delayMs: 1 } });
  const { id } = await queue.add(1);
  queue.work((job) => {
    throw new Error(`attempt ${job.attempt}`);
  });
  await eventually(async () => (await queue.counts()).dead === 1, 20_000);
  const letter = (await queue.dead.get(id))!;
  assert.deepEqual(
    letter.attempts.map((attempt) => attempt.attempt),
    [1, ...Array.from({ length: 19 }, (_, i) => 12 + i)],
  );
});

test('jobs that die of the same error are one group, whatever the numbers in the message', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  await queue.addMany(Array.from({ length: 20 }, (_, data) => ({ data })));
  queue.work((job) => {
    if (job.data % 2 === 0) throw new Error(`order ${job.data} not found`);
    throw new RangeError('too far');
  });
  await eventually(async () => (await queue.counts()).dead === 20);
  const groups = await queue.dead.groups();
  assert.deepEqual(
    groups.map((group) => group.count),
    [10, 10],
  );
});

test('replaying a dead letter runs it again with fresh attempts, and a second replay finds nothing', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 2, backoff: { type: 'fixed', delayMs: 1 } });
  const { id } = await queue.add(1);
  let broken = true;
  const attempts = new Gathering<number>();
  queue.work((job) => {
    attempts.push(job.attempt);
    if (broken) throw new Error('broken');
  });
  await eventually(async () => (await queue.counts()).dead === 1);
  broken = false;
  assert.equal((await queue.dead.replay({ ids: [id] })).moved, 1);
  assert.equal((await queue.dead.replay({ ids: [id] })).moved, 0);
  assert.deepEqual(await attempts.reach(3), [1, 2, 1]);
  await eventually(async () => (await queue.job(id)) === null);
});

test('a handler that throws something odd is still a failed attempt', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  const odd: unknown[] = [
    undefined,
    null,
    'text',
    7,
    {},
    Object.create(null),
    new Proxy(
      {},
      {
        get: () => {
          throw new Error('trap');
        },
      },
    ),
  ];
  await queue.addMany(odd.map((_, data) => ({ data })));
  queue.work((job) => {
    throw odd[job.data];
  });
  await eventually(async () => (await queue.counts()).dead === odd.length);
});
