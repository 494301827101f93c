// A Redis that is away, slow, full, read-only, forgetful or misconfigured: callers get a typed error in time, workers say so once
// and resume by themselves, and nothing that was accepted is lost.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { isSluiceError } from '@sluice/base';
import type { SluiceError } from '@sluice/base';
import { startProxy, startRedis, waitUntil } from '@sluice/testbed';
import type { RedisServer, RedisServerOptions } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import type { QueueOptions, Worker } from '../src/index.js';
import { Load } from './load.js';
import { Gathering, sleep } from './setup.js';

/** What a busy machine may take on top of a deadline. */
const slackMs = 2_000;

/** What a test has started, ended in the right order: queues before their Redis. */
const started = new WeakMap<TestContext, (() => Promise<void>)[]>();

function endWith(t: TestContext, end: () => Promise<void>): void {
  const ends = started.get(t) ?? [];
  ends.push(end);
  if (started.has(t)) return;
  started.set(t, ends);
  t.after(async () => {
    for (const end of ends.toReversed()) await end();
  });
}

async function start(t: TestContext, options?: RedisServerOptions): Promise<RedisServer> {
  const redis = await startRedis(options);
  endWith(t, () => redis.stop());
  return redis;
}

function open<Data = number, Result = unknown>(
  t: TestContext,
  redis: RedisServer,
  options: Partial<QueueOptions<Data>> = {},
): Queue<Data, Result> {
  const queue = new Queue<Data, Result>('degrade', { redis: redis.url, ...options });
  endWith(t, () => queue.close(500));
  return queue;
}

/** What a worker says about Redis, in order. */
function listen<Data, Result>(worker: Worker<Data, Result>): string[] {
  const said: string[] = [];
  worker.on('degraded', () => said.push('degraded'));
  worker.on('recovered', () => said.push('recovered'));
  worker.on('leaseLost', () => said.push('lease lost'));
  return said;
}

/** The promise fails with one of the codes, not much after the deadline. */
async function failsInTime(promise: Promise<unknown>, codes: string[], deadlineMs: number): Promise<void> {
  const began = performance.now();
  await assert.rejects(
    promise,
    (error) => isSluiceError(error) && codes.includes(error.code) && error.retryable,
  );
  const tookMs = performance.now() - began;
  assert.ok(tookMs < deadlineMs + slackMs, `it took ${tookMs} ms`);
}

/** A load of two workers and some producers, while `happening` goes on; afterwards every accepted job has run once. */
async function survives(
  t: TestContext,
  redis: RedisServer,
  happening: (load: Load) => Promise<void>,
): Promise<Load> {
  const queue = open(t, redis);
  const load = new Load(queue).produce(6);
  const workers = [queue.work(load.handler, { concurrency: 8 }), open(t, redis).work(load.handler)];
  const said = workers.map((worker) => listen(worker));
  await waitUntil('the load runs', () => load.runs.size > 100);
  await happening(load);
  const ran = load.runs.size;
  await waitUntil('work goes on', () => load.runs.size > ran + 50, { timeoutMs: 20_000 });
  await load.finish();
  load.assertOnce();
  for (const words of said) assert.ok(!words.includes('lease lost'), 'no lease was lost');
  t.diagnostic(
    `${load.accepted.size} jobs ran once; troubles of adds: ${JSON.stringify([...load.troubles])}`,
  );
  return load;
}

test('a worker that has no session yet stops in time, also when Redis is gone for good', async (t) => {
  const redis = await start(t);
  const queue = open(t, redis, { partitions: 2 });
  await queue.ready();
  await redis.kill9();
  const worker = queue.work(() => {});
  const said = listen(worker);
  void worker.start().catch(() => {});
  await sleep(50);
  const began = performance.now();
  await queue.close(500);
  // Its deadline, and what it allows for telling Redis that it goes.
  assert.ok(performance.now() - began < 500 + 2 * 2_000 + slackMs, `${performance.now() - began} ms`);
  assert.deepEqual(said, []);
});

test('with Redis down at the start an add fails in time, and a worker begins by itself when it comes up', async (t) => {
  const redis = await start(t);
  await redis.kill9();
  const queue = open(t, redis, { addDeadlineMs: 500 });
  const seen = new Gathering<number>();
  const worker = queue.work((job) => seen.push(job.data));
  const said = listen(worker);
  await failsInTime(queue.add(1), ['REDIS_UNAVAILABLE', 'ADD_UNKNOWN'], 500);
  await failsInTime(queue.addMany([{ data: 1 }]), ['REDIS_UNAVAILABLE', 'ADD_UNKNOWN'], 500);
  await waitUntil('the worker says that it is degraded', () => said.length === 1);
  await redis.restart();
  await worker.start();
  await open(t, redis).add(2);
  assert.deepEqual(await seen.reach(1), [2]);
  assert.deepEqual(said, ['degraded', 'recovered']);
});

test('a worker says once that Redis is away and once that it is back, also in the log', async (t) => {
  const redis = await start(t);
  const logged: string[] = [];
  const log = (level: string) => (_fields: object, message: string) =>
    void logged.push(`${level}: ${message}`);
  const logger = { debug: () => {}, info: log('info'), warn: () => {}, error: log('error') };
  const queue = open(t, redis, { logger: logger as never, partitions: 2 });
  const seen = new Gathering<number>();
  // One runs, with outcomes to report, while the other sleeps.
  const busy = queue.work(
    async (job) => {
      await sleep(300);
      seen.push(job.data);
    },
    { concurrency: 4 },
  );
  const said = listen(busy);
  await busy.start();
  await queue.addMany([1, 2, 3, 4].map((data) => ({ data })));
  await waitUntil('they run', () => busy.running === 4);
  await redis.kill9();
  await waitUntil('the worker says so', () => said.length === 1, { timeoutMs: 20_000 });
  await redis.restart();
  await waitUntil('it is back', () => said.length === 2, { timeoutMs: 20_000 });
  await queue.add(5);
  await seen.reach(5);
  await waitUntil('all outcomes are in the books', async () => (await queue.counts()).active === 0);
  await sleep(1_000);
  assert.deepEqual(said, ['degraded', 'recovered']);
  assert.equal(logged.filter((line) => line.startsWith('error: degraded')).length, 1, logged.join('\n'));
  assert.equal(logged.filter((line) => line === 'info: Redis answers again').length, 1);
  assert.deepEqual(new Set(seen.items), new Set([1, 2, 3, 4, 5]));
  assert.equal(seen.items.length, 5);
});

test('a queue whose Redis is away is closed in time, with its workers', async (t) => {
  const redis = await start(t);
  const queue = open(t, redis, { partitions: 2 });
  const worker = queue.work((job) => new Promise((end) => job.signal.addEventListener('abort', end)), {
    concurrency: 2,
  });
  await queue.addMany([{ data: 1 }, { data: 2 }, { data: 3 }, { data: 4 }]);
  await waitUntil('it is busy', () => worker.running === 2);
  await redis.kill9();
  // A call of each kind is under way.
  await sleep(1_500);
  const began = performance.now();
  await queue.close(500);
  const tookMs = performance.now() - began;
  t.diagnostic(`closed after ${Math.round(tookMs)} ms`);
  assert.ok(tookMs < 500 + 5_000 + slackMs, `it took ${tookMs} ms`);
});

test('Redis is killed and restarted under load: with the append-only file nothing is lost and nothing runs twice', async (t) => {
  // With everysec a kill -9 may cost what a busy disk had not taken yet; here the promise is tested, not the disk.
  const redis = await start(t, { config: { appendfsync: 'always' } });
  await survives(t, redis, async () => {
    for (let i = 0; i < 3; i++) {
      await redis.kill9();
      await sleep(200);
      await redis.restart();
      await sleep(300);
    }
  });
});

test('Redis freezes for three seconds under load: nothing is lost and nothing runs twice', async (t) => {
  const redis = await start(t);
  await survives(t, redis, async () => {
    const impatient = open(t, redis, { addDeadlineMs: 400 });
    await impatient.ready();
    redis.pause();
    await failsInTime(impatient.add(-1, { id: 'frozen' }), ['ADD_UNKNOWN'], 400);
    await sleep(3_000);
    redis.resume();
    await impatient.cancel('frozen');
  });
});

test('Redis loads its data under load: nothing is lost and nothing runs twice', async (t) => {
  const redis = await start(t, {
    config: {
      'enable-debug-command': 'yes',
      'loading-process-events-interval-bytes': 1_024,
      rdbcompression: 'no',
    },
  });
  for (let i = 0; i < 100; i++) await redis.command('SET', `filler:${i}`, 'x'.repeat(2_000));
  await survives(t, redis, async () => {
    await redis.command('CONFIG', 'SET', 'key-load-delay', 10_000);
    await redis.command('DEBUG', 'RELOAD');
    await redis.command('CONFIG', 'SET', 'key-load-delay', 0);
  });
});

test('Redis is a replica for a while under load: nothing is lost and nothing runs twice', async (t) => {
  const redis = await start(t);
  await survives(t, redis, async () => {
    await redis.command('REPLICAOF', '127.0.0.1', 1);
    await sleep(1_500);
    await redis.command('REPLICAOF', 'NO', 'ONE');
  });
});

test('Redis forgets its scripts again and again under load, and nobody notices', async (t) => {
  const redis = await start(t);
  const load = await survives(t, redis, async () => {
    for (let i = 0; i < 50; i++) {
      await redis.command('SCRIPT', 'FLUSH');
      await sleep(20);
    }
  });
  assert.equal(load.troubles.size, 0);
});

test('Redis has no room for more clients: who is in goes on, who comes gets a typed error and later gets in', async (t) => {
  const redis = await start(t);
  const inside = open(t, redis);
  const seen = new Gathering<number>();
  await inside.work((job) => seen.push(job.data)).start();
  await inside.add(1);
  await seen.reach(1);
  const connected = Number((await redis.info('clients'))['connected_clients']);
  await redis.command('CONFIG', 'SET', 'maxclients', connected - 1);
  const outside = open(t, redis, { addDeadlineMs: 500 });
  await failsInTime(outside.add(2), ['REDIS_UNAVAILABLE', 'ADD_UNKNOWN'], 500);
  await inside.add(3);
  assert.deepEqual(await seen.reach(2), [1, 3]);
  await inside.partitions[0]!.link.call('CONFIG', ['SET', 'maxclients', 1_000]);
  // When the link knocks next is its own affair, and may be later than this queue waits.
  await waitUntil('it gets in', () => outside.add(4, { id: 'four' }).then(() => true));
  assert.deepEqual(await seen.reach(3), [1, 3, 4]);
});

test('a full Redis refuses adds; acks, failures, rescues and cancels work, the queue drains, and adds work again', async (t) => {
  const redis = await start(t);
  const leaseMs = 2_000;
  const queue = open<string>(t, redis, { attempts: 2, backoff: { type: 'fixed', delayMs: 50 } });
  // A worker that dies with a job in its hands, to be rescued while the memory is full.
  const doomed = fork(new URL('./workerProcess.js', import.meta.url), [
    JSON.stringify({ redis: redis.url, queue: queue.name, mode: 'hang', leaseMs, concurrency: 1 }),
  ]);
  t.after(() => doomed.kill('SIGKILL'));
  const taken = new Promise<string>((resolve) => {
    doomed.on('message', (message: { id?: string }) => message.id && resolve(message.id));
  });
  const rescued = await queue.add('rescued');
  assert.equal(await taken, rescued.id);
  const filler = 'x'.repeat(2_000);
  const fillers = await queue.addMany(Array.from({ length: 1_500 }, () => ({ data: filler })));
  await queue.add('dies', { priority: 0 });
  const unwanted = await queue.add('unwanted');
  await redis.command('RPUSH', queue.partitions[0]!.keys.inbox, '{"data":"foreign"}');
  await redis.command(
    'CONFIG',
    'SET',
    'maxmemory',
    Number((await redis.info('memory'))['used_memory']) - 200_000,
  );
  for (const add of [
    () => queue.add('plain'),
    () => queue.add('special', { id: 'own' }),
    () => queue.add('delayed', { delayMs: 5 }),
    () => queue.addMany([{ data: 'one' }, { data: 'two' }]),
    () => queue.add('after', { after: [fillers[0]!] }),
  ]) {
    await failsInTime(add(), ['QUEUE_FULL'], 0);
  }
  doomed.kill('SIGKILL');
  assert.equal(await queue.cancel(unwanted.id), 'waiting');
  // Whoever is started while the memory is full works, too.
  const late = open<string>(t, redis, { attempts: 2, backoff: { type: 'fixed', delayMs: 50 } });
  const seen = new Gathering<string>();
  const ids = new Set<string>();
  await late
    .work(
      (job) => {
        if (job.data === 'dies') throw new Error('dies');
        seen.push(job.data);
        ids.add(job.id);
      },
      { leaseMs },
    )
    .start();
  await waitUntil('it has drained', async () => {
    const { waiting, active, delayed, dead } = await queue.counts();
    return waiting + active + delayed === 0 && dead === 1;
  });
  assert.ok(seen.items.includes('rescued'));
  assert.ok(seen.items.includes('foreign'), 'what foreign producers had left is taken once there is room');
  assert.ok(!seen.items.includes('unwanted'));
  assert.equal(ids.size, 1_502);
  await queue.add('again');
  await waitUntil('it runs', () => seen.items.includes('again'));
});

test('what a full Redis refuses to workers is not tried again in a hurry', async (t) => {
  const redis = await start(t);
  const queue = open<string>(t, redis);
  await queue.schedules.set('often', { everyMs: 100 }, 'tick');
  await redis.command('RPUSH', queue.partitions[0]!.keys.inbox, '{"data":"foreign"}');
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  const seen = new Gathering<string>();
  await queue.work((job) => seen.push(job.data)).start();
  await sleep(500);
  const commands = async () => Number((await redis.info('stats'))['total_commands_processed']);
  const before = await commands();
  await sleep(2_000);
  const perSecond = ((await commands()) - before) / 2;
  t.diagnostic(`${perSecond} commands per second, those of scripts included`);
  assert.ok(perSecond < 500, `${perSecond} commands per second`);
  assert.ok(!seen.items.includes('tick'));
  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  await waitUntil('both have run', () => seen.items.includes('tick') && seen.items.includes('foreign'));
});

test('after a lost reply a full Redis does not make an add lie: its outcome is unknown, and repeated it is there once', async (t) => {
  const redis = await start(t);
  const proxy = await startProxy(redis.port);
  endWith(t, () => proxy.stop());
  const queue = open(t, redis, { redis: proxy.url, addDeadlineMs: 1_500 });
  await queue.add(0);
  await redis.command('SCRIPT', 'LOAD', 'return 1');
  const lost = proxy.loseReplies({ count: 1 });
  const adding = queue.add(1).then(
    () => undefined,
    (error: unknown) => error as SluiceError,
  );
  await lost;
  proxy.refuse(true);
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  proxy.refuse(false);
  const error = await adding;
  // The repetition may have overtaken us; then it was answered, and nothing is unknown.
  if (error) assert.equal(error.code, 'ADD_UNKNOWN', error.message);
  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  if (error) await queue.add(1, error.details);
  assert.equal((await queue.counts()).waiting, 2);
});

test('a Redis that may throw keys away is refused at the start, by producers and by workers', async (t) => {
  const redis = await start(t, { config: { 'maxmemory-policy': 'allkeys-lru' } });
  const queue = open(t, redis);
  const isEvicting = (error: unknown) =>
    isSluiceError(error, 'EVICTING_REDIS') && /allkeys-lru/.test(error.message);
  await assert.rejects(queue.add(1), isEvicting);
  await assert.rejects(queue.work(() => {}).start(), isEvicting);
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await queue.add(1);
});

test('a queue that is opened with another number of partitions is refused', async (t) => {
  const redis = await start(t);
  await open(t, redis, { partitions: 3 }).add(1);
  for (const partitions of [1, 2, 4]) {
    const queue = open(t, redis, { partitions });
    const isMismatch = (error: unknown) =>
      isSluiceError(error, 'PARTITIONS_MISMATCH') &&
      error.details?.['stored'] === 3 &&
      error.details['asked'] === partitions;
    await assert.rejects(queue.add(1), isMismatch);
    await assert.rejects(queue.work(() => {}).start(), isMismatch);
  }
});

test('a Redis that comes back with an older state makes the worker run again what was done after that state', async (t) => {
  const redis = await start(t, { appendonly: false });
  const queue = open(t, redis);
  const runs = new Gathering<string>();
  let finish = () => {};
  const newGate = () => new Promise<void>((resolve) => (finish = resolve));
  let gate = newGate();
  const worker = queue.work(
    async (job) => {
      await gate;
      runs.push(job.id);
    },
    { leaseMs: 2_000 },
  );
  const jobs = await queue.addMany([1, 2, 3, 4].map((data) => ({ data })));
  await waitUntil('all run', () => worker.running === 4);
  await redis.command('SAVE');
  finish();
  await runs.reach(4);
  await worker.idle();
  // What runs again stays in the books, however late they are read.
  gate = newGate();
  await redis.kill9();
  await redis.restart();
  await waitUntil('the books are older than the worker', async () => (await queue.counts()).active === 4);
  finish();
  await runs.reach(8);
  await waitUntil('the books are empty', async () => (await queue.counts()).active === 0);
  assert.deepEqual(runs.items.slice(4).sort(), jobs.map(({ id }) => id).sort());
});
