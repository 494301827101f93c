// What happens when a worker dies, stalls or loses its lease.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pack } from '../src/wire.js';
import { eventually, Gathering, sleep, useRedis } from './setup.js';
import { leaseMs, startWorker } from './startWorker.js';

const bed = useRedis();

test('the jobs of live workers are never touched, however long they run', async (t) => {
  const queue = bed.queue<number>(t);
  let runs = 0;
  queue.work(
    async () => {
      runs++;
      await sleep(leaseMs * 3);
    },
    { leaseMs },
  );
  await queue.addMany([{ data: 1 }]);
  await eventually(() => runs === 1);
  const other = bed.twin(t, queue);
  await other.work(() => void runs++, { leaseMs, concurrency: 1 }).start();
  await sleep(leaseMs * 3 + 500);
  await eventually(async () => (await queue.counts()).active === 0);
  assert.equal(runs, 1);
});

test('of two workers that die together also the second is looked after when its lease is over', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.ready();
  const { keys, link } = queue.partitions[0]!;
  const [seconds] = (await link.call('TIME', [])) as Buffer[];
  const nowMs = Number(seconds) * 1_000;
  // The first kept watch for all; nobody else has a reason to look before their own leases are over.
  await link.call('HSET', [keys.cfg, 'watch', 'first']);
  await link.call('ZADD', [keys.sessions, nowMs - 10, 'first', nowMs + 2_000, 'second']);
  await queue.work(() => {}, { leaseMs: 30_000 }).start();
  const isThere = async (session: string) => (await link.call('ZSCORE', [keys.sessions, session])) !== null;
  await eventually(async () => !(await isThere('first')));
  await eventually(async () => !(await isThere('second')), 2_000 + 4_000);
});

test('a worker whose event loop is busy for longer than its lease keeps its job', async (t) => {
  const queue = bed.queue<number>(t);
  const { heard } = await startWorker(t, bed, queue.name, 'block', { blockMs: leaseMs * 3 });
  const stolen = new Gathering<string>();
  await queue.add(1);
  await heard.reach(1);
  const other = bed.twin(t, queue);
  await other.work((job) => stolen.push(job.id), { leaseMs }).start();
  await eventually(async () => (await queue.counts()).active === 0);
  assert.equal(stolen.items.length, 0);
});

test('a worker that was stopped beyond its lease finds its job taken, and changes nothing', async (t) => {
  const queue = bed.queue<number, string>(t, { keepResultMs: 60_000 });
  const { child, heard } = await startWorker(t, bed, queue.name, 'answer', {
    answer: 'stale',
    afterMs: 1_000,
    keepResultMs: 60_000,
  });
  const { id } = await queue.add(1);
  const [first] = await heard.reach(1);
  child.kill('SIGSTOP');
  const tokens = new Gathering<string>();
  queue.work(
    async (job) => {
      tokens.push(job.token);
      await sleep(800);
      return 'fresh';
    },
    { leaseMs },
  );
  await tokens.reach(1);
  child.kill('SIGCONT');
  assert.equal(await queue.result(id), 'fresh');
  assert.ok(BigInt(tokens.items[0]!) > BigInt(first!.token), 'the token of a later claim is larger');
});

test('a job that kills its worker three times is buried, and runs alone after the first time', async (t) => {
  const queue = bed.queue<string>(t);
  let over = false;
  t.after(() => (over = true));
  const start = async () => {
    const { child } = await startWorker(t, bed, queue.name, 'poison', { concurrency: 5 });
    child.on('exit', () => !over && void start());
  };
  const { id } = await queue.add('poison');
  await queue.addMany(Array.from({ length: 4 }, () => ({ data: 'fine' })));
  await start();
  await eventually(async () => (await queue.counts()).dead === 1, 30_000);
  const letter = (await queue.dead.get(id))!;
  assert.match(letter.error.message, /3 times/);
  await eventually(async () => (await queue.counts()).waiting === 0);
  assert.equal((await queue.counts()).dead, 1, 'its neighbours are not blamed');
  over = true;
});

test('a process that hangs in a job ends, also when the job was taken from it meanwhile', async (t) => {
  const queue = bed.queue<number, string>(t, { timeoutMs: 500, keepResultMs: 60_000 });
  const { child, heard } = await startWorker(t, bed, queue.name, 'spin', { timeoutMs: 500 });
  const { id } = await queue.add(1);
  await heard.reach(1);
  child.kill('SIGSTOP');
  queue.work(() => 'elsewhere', { leaseMs });
  assert.equal(await queue.result(id), 'elsewhere');
  const gone = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
  child.kill('SIGCONT');
  assert.equal(await gone, 'SIGKILL');
});

test('what was claimed together with a job that hangs goes back without a failed attempt', async (t) => {
  const queue = bed.queue<string>(t, { timeoutMs: 500, backoff: { type: 'fixed', delayMs: 60_000 } });
  await queue.addMany(['spin', 'fine', 'fine', 'fine'].map((data) => ({ data })));
  const { child } = await startWorker(t, bed, queue.name, 'spinAtOnce', { timeoutMs: 500 });
  await new Promise((resolve) => child.once('exit', resolve));
  const attempts = new Gathering<number>();
  queue.work((job) => attempts.push(job.attempt));
  assert.deepEqual(await attempts.reach(3), [1, 1, 1]);
  assert.equal((await queue.counts()).delayed, 1, 'the one that hung waits for its second attempt');
});

test('a suspect runs alone on a worker that wakes up to many jobs at once', async (t) => {
  const queue = bed.queue<string>(t);
  await queue.add('suspect');
  const partition = queue.partitions[0]!;
  const description = JSON.stringify({ name: 'w' }).padEnd(80);
  const open = (session: string) =>
    partition.run('open', { session, leaseMs: 300, description, draining: '0' });
  await open('dies');
  const acks = { list: pack(['#', '#0']), runs: pack([]), whole: '0', tie: '0' };
  await partition.run('claim', { session: 'dies', lane: '#0', seq: 1, want: 1, ...acks, idle: '0' });
  await open('lives');
  await eventually(async () => {
    // Somebody renews: this is no outage.
    await partition.run('renew', { session: 'lives', leaseMs: 300, drained: '0' });
    return (
      String(((await partition.run('rescue', { leaseMs: 300, chunk: 10 })) as Buffer[])[0]) === 'RESCUED'
    );
  });
  await queue.addMany(Array.from({ length: 60 }, () => ({ data: 'bystander' })));
  const running = new Set<string>();
  const beside: number[] = [];
  const seen = new Gathering<string>();
  queue.work(
    async (job) => {
      running.add(job.id);
      await sleep(20);
      if (job.data === 'suspect') beside.push(running.size - 1);
      running.delete(job.id);
      seen.push(job.data);
    },
    { concurrency: 20 },
  );
  await seen.reach(61);
  assert.deepEqual(beside, [0]);
});

test('a job in a busy loop beyond its timeout is failed by the heartbeat thread, which ends the process', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  const { child, heard } = await startWorker(t, bed, queue.name, 'spin', { timeoutMs: 500, attempts: 1 });
  const gone = new Promise((resolve) => child.once('exit', (_code, signal) => resolve(signal)));
  const { id } = await queue.add(1);
  await heard.reach(1);
  assert.equal(await gone, 'SIGKILL');
  const letter = await queue.dead.get(id);
  assert.match(letter!.error.message, /longer than its 500 ms/);
});

test('after an outage longer than the lease, live workers keep their jobs', async (t) => {
  const queue = bed.queue<number, string>(t, { keepResultMs: 60_000 });
  const runs = new Gathering<string>();
  const worker = queue.work(
    async (job) => {
      runs.push(job.id);
      await sleep(5_000);
      return 'once';
    },
    { leaseMs },
  );
  await worker.start();
  const { id } = await queue.add(1);
  await runs.reach(1);
  const other = bed.twin(t, queue);
  await other.work((job) => runs.push(job.id), { leaseMs, concurrency: 1 }).start();
  bed.redis.pause();
  await sleep(leaseMs * 2.5);
  bed.redis.resume();
  assert.equal(await queue.result(id, { timeoutMs: 15_000 }), 'once');
  assert.equal(runs.items.length, 1);
});
