// Draining a worker from outside: it learns of it with its lease, claims nothing more, and says when it is done.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import type { Queue, Worker } from '../src/index.js';
import { Gathering, eventually, sleep, useRedis } from './setup.js';

const bed = useRedis();
/** Renewed every half second. */
const leaseMs = 1_500;

async function memberOf(queue: Queue<string>, name: string) {
  return (await queue.crew()).members.find((member) => member.name === name);
}

async function sessionOf(queue: Queue<string>, name: string): Promise<string> {
  await eventually(async () => (await memberOf(queue, name)) !== undefined);
  return (await memberOf(queue, name))!.session;
}

const stateOf = async (queue: Queue<string>, name: string) => (await memberOf(queue, name))?.drain;

test('a drained worker claims nothing more, lets its jobs end, says so, and works again when told', async (t) => {
  const queue = bed.queue<string>(t);
  const started = new Gathering<string>();
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const worker = queue.work(
    async (job) => {
      started.push(job.data);
      await finished;
    },
    { name: 'smith', leaseMs, concurrency: 5 },
  );
  let drainedEvents = 0;
  worker.on('drained', () => drainedEvents++);
  await queue.add('running');
  await started.reach(1);
  const session = await sessionOf(queue, 'smith');
  assert.equal(await queue.drain(session), 'asked');
  assert.match((await queue.drain(session))!, /asked|draining/, 'asking again changes nothing');
  await eventually(() => worker.isDraining);
  await eventually(async () => (await stateOf(queue, 'smith')) === 'draining');
  await queue.addMany([{ data: 'late' }, { data: 'later' }]);
  await sleep(2_500);
  assert.deepEqual([started.items, drainedEvents], [['running'], 0]);
  finish();
  await eventually(() => drainedEvents === 1);
  await eventually(async () => (await stateOf(queue, 'smith')) === 'drained');
  assert.equal((await memberOf(queue, 'smith'))!.active, 0);
  assert.equal((await queue.counts()).waiting, 2);
  assert.equal(await queue.drain(session, false), 'working');
  await started.reach(3);
  assert.equal(await stateOf(queue, 'smith'), null);
  assert.equal(worker.isDraining, false);
  assert.equal(await queue.drain('nobody'), null);
});

test('a drained worker takes no work away: the others get every job, at once', async (t) => {
  const queue = bed.queue<string>(t);
  const ran = new Gathering<string>();
  const work = (name: string): Worker<string> =>
    queue.work(
      () => {
        ran.push(name);
      },
      { name, leaseMs, concurrency: 1 },
    );
  const smith = work('smith');
  await smith.start();
  const drained = once(smith, 'drained');
  await queue.drain(await sessionOf(queue, 'smith'));
  await drained;
  await work('jones').start();
  for (let n = 1; n <= 20; n++) {
    await queue.add('x');
    await ran.reach(n);
  }
  await queue.add('x', { delayMs: 200 });
  await ran.reach(21);
  assert.deepEqual([...new Set(ran.items)], ['jones']);
});

test('one session stands for its worker in all partitions, and for no other worker', async (t) => {
  const queue = bed.queue<string>(t, { partitions: 3 });
  const ran = new Gathering<string>();
  for (const name of ['smith', 'jones']) {
    await queue
      .work(
        () => {
          ran.push(name);
        },
        { name, leaseMs },
      )
      .start();
  }
  const sessions = async () => (await queue.crew()).members.filter(({ name }) => name === 'smith');
  await eventually(async () => (await sessions()).length === 3);
  const [first, , last] = await sessions();
  await queue.drain(last!.session);
  await eventually(async () => (await sessions()).every(({ drain }) => drain === 'drained'));
  assert.ok((await queue.crew()).members.every(({ name, drain }) => name === 'smith' || drain === null));
  await queue.addMany(Array.from({ length: 60 }, () => ({ data: 'x' })));
  await ran.reach(60);
  assert.deepEqual([...new Set(ran.items)], ['jones']);
  await queue.drain(first!.session, false);
  await eventually(async () => (await sessions()).every(({ drain }) => drain === null));
  await eventually(async () => {
    await queue.addMany(Array.from({ length: 60 }, () => ({ data: 'x' })));
    return ran.items.includes('smith');
  });
});

test('a renewal whose reply is lost loses no wish: the next one brings it', async (t) => {
  const queue = bed.queue<string>(t);
  const worker = queue.work(() => {}, { name: 'smith', leaseMs });
  await worker.start();
  const session = await sessionOf(queue, 'smith');
  await queue.drain(session);
  // Redis has answered somebody, who is not the worker.
  const answer = (await queue.partitions[0]!.run('renew', { session, leaseMs, drained: '0' })) as unknown[];
  assert.equal(answer[2], 1);
  await eventually(() => worker.isDraining);
});

test('a worker that loses its lease while it drains goes on draining under its new session', async (t) => {
  const queue = bed.queue<string>(t);
  const ran = new Gathering<string>();
  const worker = queue.work(
    (job) => {
      ran.push(job.data);
    },
    { name: 'smith', leaseMs },
  );
  const session = await sessionOf(queue, 'smith');
  await queue.drain(session);
  await eventually(() => worker.isDraining);
  const { link, keys } = queue.partitions[0]!;
  const lost = once(worker, 'leaseLost');
  await link.call('ZREM', [keys.sessions, session]);
  await lost;
  await eventually(async () => (await memberOf(queue, 'smith'))?.drain === 'drained');
  const replaced = await sessionOf(queue, 'smith');
  assert.notEqual(replaced, session);
  assert.equal(await queue.drain(session, false), null, 'the old session is gone');
  await queue.add('x');
  await sleep(1_500);
  assert.deepEqual(ran.items, []);
  assert.equal(await queue.drain(replaced, false), 'working');
  await ran.reach(1);
});

test('a worker that dies while it drains is rescued like any other, and leaves no wish behind', async (t) => {
  const queue = bed.queue<string>(t);
  const { id } = await queue.add('x');
  const child = fork(new URL('./workerProcess.js', import.meta.url), [
    JSON.stringify({ redis: bed.redis.url, queue: queue.name, mode: 'hang', leaseMs }),
  ]);
  t.after(() => child.kill('SIGKILL'));
  const name = `process-${child.pid}`;
  const session = await sessionOf(queue, name);
  await eventually(async () => (await queue.job(id))?.state === 'active');
  await queue.drain(session);
  await eventually(async () => (await stateOf(queue, name)) === 'draining');
  child.kill('SIGKILL');
  const ran = new Gathering<number>();
  queue.work(
    (job) => {
      ran.push(job.crashes);
    },
    { leaseMs },
  );
  assert.deepEqual(await ran.reach(1), [1]);
  await eventually(async () => (await memberOf(queue, name)) === undefined);
  const { link, keys } = queue.partitions[0]!;
  assert.equal(await link.call('EXISTS', [keys.lanes + session]), 0);
  assert.equal(await queue.drain(session), null);
});

test('a drained worker can be stopped', async (t) => {
  const queue = bed.queue<string>(t);
  const worker = queue.work(() => {}, { name: 'smith', leaseMs });
  await queue.drain(await sessionOf(queue, 'smith'));
  await eventually(() => worker.isDraining);
  await worker.stop();
  assert.deepEqual((await queue.crew()).members, []);
});
