// The documents that Sluice grew from describe queues with defects. Each defect is a test here: first the old way, re-enacted
// with plain Redis commands, fails as described; then ours is put into the same situation and does not.
//
// 001 is a queue of documents: a list, a set "processing", a hash "attempts", a sorted set "delayed". 003 moves each message
// with BRPOPLPUSH to a key of its own that has a time to live. 004 has retry queues, dead letters with metadata, and caches.
// One defect of 004, invalidation of caches by pattern, belongs to the cache and has its test there.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { startRedis, waitUntil } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();
const leaseMs = 1_000;
const backoff = { type: 'fixed', delayMs: 10 } as const;
let names = 0;

/** A name for the keys of one re-enactment. */
const oldQueue = (): string => `old${process.pid}-${names++}`;
const redis = (...args: (string | number)[]): Promise<unknown> => bed.redis.command(...args);
/** RPOPLPUSH and BRPOPLPUSH differ only in waiting. */
const moveToProcessing = (queue: string): Promise<unknown> =>
  redis('RPOPLPUSH', queue, `${queue}:processing:1`);

/** A worker in a process of its own that claims whatever comes and dies by kill -9 while it has it. */
async function killedWhileWorking(t: TestContext, queue: string): Promise<void> {
  const settings = { redis: bed.redis.url, queue, mode: 'hang', leaseMs };
  const child = fork(new URL('./workerProcess.js', import.meta.url), [JSON.stringify(settings)]);
  t.after(() => child.kill('SIGKILL'));
  const heard = new Gathering<unknown>();
  child.on('message', (message) => heard.push(message));
  await heard.reach(2); // it is ready, and a job has begun
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}

// ── 001: a persistent queue of documents ────────────────────────────────────────────────────────────────────────────

test('seed 001: taking a document and marking it are two steps, and a crash between them loses it; a claim is one step', async (t) => {
  const old = oldQueue();
  await redis('RPUSH', old, 'document-1');
  assert.equal(await redis('LPOP', old), 'document-1');
  // Here the worker dies. SADD processing document-1 never comes.
  assert.deepEqual([await redis('LLEN', old), await redis('SCARD', `${old}:processing`)], [0, 0]);

  const queue = bed.queue<string>(t);
  const { id } = await queue.add('document-1');
  await killedWhileWorking(t, queue.name);
  assert.equal((await queue.job(id))?.state, 'active', 'the books say who has it');
  const seen = new Gathering<string>();
  queue.work((job) => seen.push(job.data), { leaseMs });
  assert.deepEqual(await seen.reach(1), ['document-1']);
});

test('seed 001: recovery at start takes documents from live workers; a worker that starts touches nothing of theirs', async (t) => {
  const old = oldQueue();
  await redis('RPUSH', old, 'document-1');
  const atWork = [await redis('LPOP', old)];
  await redis('SADD', `${old}:processing`, 'document-1');
  // A second server starts: it clears the set and requeues whatever was in it.
  const stuck = (await redis('SMEMBERS', `${old}:processing`)) as string[];
  await redis('DEL', `${old}:processing`);
  await redis('RPUSH', old, ...stuck);
  atWork.push(await redis('LPOP', old));
  assert.deepEqual(atWork, ['document-1', 'document-1'], 'two workers have it at the same time');

  const queue = bed.queue<string>(t);
  const runs = new Gathering<string>();
  queue.work(
    async (job) => {
      runs.push(job.data);
      await sleep(leaseMs * 2);
    },
    { leaseMs },
  );
  await queue.add('document-1');
  await runs.reach(1);
  for (let server = 2; server <= 4; server++) {
    await bed
      .twin(t, queue)
      .work((job) => runs.push(job.data), { leaseMs })
      .start();
  }
  await waitUntil('it is done', async () => (await queue.counts()).active === 0);
  assert.deepEqual(runs.items, ['document-1']);
});

test('seed 001: recovery resets attempts, so that a poison document is tried for ever; ours keeps them and buries it', async (t) => {
  const old = oldQueue();
  for (let restart = 1; restart <= 10; restart++) {
    assert.equal(
      await redis('HINCRBY', `${old}:attempts`, 'poison', 1),
      1,
      'never more than the first attempt',
    );
    // The document kills the process; the next start resets its counter.
    await redis('HSET', `${old}:attempts`, 'poison', 0);
  }

  const queue = bed.queue<string>(t, { backoff });
  const { id } = await queue.add('poison');
  // An ordinary failure counts an attempt …
  const failing = bed.twin(t, queue);
  const failed = new Gathering<number>();
  const worker = failing.work(
    (job) => {
      failed.push(job.attempt);
      if (failed.items.length === 1) throw new Error('unreadable');
      return new Promise<void>((resolve) => job.signal.addEventListener('abort', () => resolve()));
    },
    { leaseMs },
  );
  assert.deepEqual(await failed.reach(2), [1, 2]);
  await worker.stop(0);
  // … which survives the death of workers, and each death counts as well.
  for (let death = 1; death <= 3; death++) {
    await killedWhileWorking(t, queue.name);
    const { attempt, crashes } = (await queue.job(id))!;
    assert.deepEqual([attempt, crashes], [2, death - 1]);
  }
  queue.work(() => assert.fail('it must not run again'), { leaseMs });
  await waitUntil('it is buried', async () => (await queue.counts()).dead === 1, { timeoutMs: 20_000 });
  const letter = (await queue.dead.get(id))!;
  assert.match(letter.error.message, /its worker died, 3 times/);
  assert.equal(letter.data, 'poison');
});

test('seed 001: polling every 3 s makes a document wait for seconds; ours starts within milliseconds', async (t) => {
  const old = oldQueue();
  assert.equal(await redis('LPOP', old), null);
  const addedMs = performance.now();
  await redis('RPUSH', old, 'document-1');
  await sleep(3_000);
  assert.equal(await redis('LPOP', old), 'document-1');
  assert.ok(performance.now() - addedMs >= 2_900);

  const queue = bed.queue<number>(t);
  const waits = new Gathering<number>();
  await queue.work((job) => waits.push(performance.now() - job.data)).start();
  await sleep(200);
  await queue.add(performance.now());
  const [waitedMs] = await waits.reach(1);
  assert.ok(waitedMs! < 1_000, `${waitedMs} ms`);
});

test('seed 001: two that move due documents in pipelines move them twice; ours are moved once, whoever looks', async (t) => {
  const old = oldQueue();
  await redis('ZADD', `${old}:delayed`, 1, 'document-1');
  const due = () => redis('ZRANGEBYSCORE', `${old}:delayed`, '-inf', 2) as Promise<string[]>;
  const seenByBoth = await Promise.all([due(), due()]);
  for (const documents of seenByBoth) {
    await redis('ZREM', `${old}:delayed`, ...documents);
    await redis('RPUSH', old, ...documents);
  }
  assert.deepEqual(await redis('LRANGE', old, 0, -1), ['document-1', 'document-1']);

  const queue = bed.queue<number>(t);
  const runs = new Gathering<number>();
  for (let i = 0; i < 5; i++) {
    const worker = bed.twin(t, queue).work((job) => runs.push(job.data), { concurrency: 3 });
    await worker.start();
  }
  const documents = Array.from({ length: 200 }, (_, data) => ({ data, runAt: Date.now() + 300 }));
  await queue.addMany(documents);
  await runs.reach(200);
  await sleep(300);
  assert.deepEqual(
    runs.items.toSorted((a, b) => a - b),
    documents.map(({ data }) => data),
  );
});

test('seed 001: a pipeline that breaks in the middle has happened by half; a transition of ours happens or does not', async (t) => {
  const old = oldQueue();
  // A pipeline only saves round trips: its commands succeed and fail one by one.
  await redis('ZADD', `${old}:delayed`, 1, 'document-1');
  await redis('SET', old, 'not a list');
  await redis('ZREM', `${old}:delayed`, 'document-1');
  await assert.rejects(redis('RPUSH', old, 'document-1'), /WRONGTYPE/);
  assert.equal(await redis('ZCARD', `${old}:delayed`), 0, 'it left the one place and reached no other');

  // A full memory is what breaks writes in the middle in practice.
  const full = await startRedis({ config: { maxmemory: '3mb' } });
  t.after(() => full.stop());
  const queue = new Queue<string>('documents', { redis: full.url });
  t.after(() => queue.close(100));
  await queue.add('first');
  await full.command('CONFIG', 'SET', 'maxmemory', '1mb');
  const many = Array.from({ length: 100 }, (_, i) => ({ data: `document-${i}`, id: `id-${i}` }));
  await assert.rejects(queue.addMany(many), (error: { code?: string }) => error.code === 'QUEUE_FULL');
  assert.equal((await queue.counts()).waiting, 1, 'nothing of it was added');
  await full.command('CONFIG', 'SET', 'maxmemory', '0');
  await queue.addMany(many);
  assert.equal((await queue.counts()).waiting, 101, 'and all of it can be added again');
});

// ── 003: repository events, each moved to a key of its own ──────────────────────────────────────────────────────────

test('seed 003: a crash between BRPOPLPUSH and EXPIRE leaves a message that nobody recovers; a claim comes with its lease', async (t) => {
  const old = oldQueue();
  await redis('LPUSH', old, '{"repo":"a"}');
  await moveToProcessing(old);
  // Here the indexer dies. EXPIRE never comes.
  assert.equal(await redis('TTL', `${old}:processing:1`), -1);
  await assert.rejects(redis('GET', `${old}:processing:1`), /WRONGTYPE/);
  assert.equal(await redis('LLEN', old), 0);

  const queue = bed.queue<{ repo: string }>(t);
  await queue.add({ repo: 'a' });
  await killedWhileWorking(t, queue.name);
  const [session, deadlineMs] = (await redis(
    'ZRANGE',
    queue.partitions[0]!.keys.sessions,
    0,
    -1,
    'WITHSCORES',
  )) as [string, string];
  assert.ok(session, 'the session that claimed it is there');
  assert.ok(Number(deadlineMs) <= Date.now() + leaseMs, 'and ends by itself');
  const seen = new Gathering<string>();
  queue.work((job) => seen.push(job.data.repo), { leaseMs });
  assert.deepEqual(await seen.reach(1), ['a']);
});

test('seed 003: the time to live deletes the message itself; the end of our leases deletes nothing', async (t) => {
  const old = oldQueue();
  await redis('LPUSH', old, '{"repo":"a"}');
  await moveToProcessing(old);
  await redis('PEXPIRE', `${old}:processing:1`, 100);
  await sleep(200);
  assert.deepEqual(await redis('KEYS', `${old}*`), [], 'recovery comes and finds nothing');

  const queue = bed.queue<{ repo: string }>(t);
  const { id } = await queue.add({ repo: 'a' });
  await killedWhileWorking(t, queue.name);
  await sleep(leaseMs * 2);
  assert.deepEqual((await queue.job(id))?.data, { repo: 'a' });
  const ttl = await redis('PTTL', queue.partitions[0]!.keys.jobs);
  assert.equal(ttl, -1, 'where jobs are, nothing expires');
});

test('seed 003: recovery reads a list with GET, which is a type error; our rescue brings back every job of a dead worker', async (t) => {
  const old = oldQueue();
  await redis('LPUSH', old, '{"repo":"a"}');
  await moveToProcessing(old);
  await assert.rejects(redis('GET', `${old}:processing:1`), /WRONGTYPE/);

  const queue = bed.queue<number>(t);
  await queue.addMany([1, 2, 3, 4, 5].map((data) => ({ data })));
  await killedWhileWorking(t, queue.name);
  assert.equal((await queue.counts()).active, 5);
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { leaseMs });
  assert.deepEqual(new Set(await seen.reach(5)), new Set([1, 2, 3, 4, 5]));
});

test('seed 003: malformed messages are dropped; ours keep their bytes among the dead letters and can be repaired', async (t) => {
  const old = oldQueue();
  await redis('LPUSH', old, '{"repo": nonsense');
  const message = (await moveToProcessing(old)) as string;
  assert.throws(() => JSON.parse(message) as unknown);
  await redis('DEL', `${old}:processing:1`);
  assert.deepEqual(await redis('KEYS', `${old}*`), []);

  const queue = bed.queue<{ repo: string }>(t);
  const seen = new Gathering<string>();
  queue.work((job) => seen.push(job.data.repo));
  const good = Array.from({ length: 100 }, (_, i) => `{"data":{"repo":"${i}"}}`);
  await redis('RPUSH', queue.partitions[0]!.keys.inbox, ...good, '{"repo": nonsense', ...good);
  await seen.reach(200);
  await waitUntil('it is buried', async () => (await queue.dead.count()) === 1);
  const [letter] = (await queue.dead.list()).letters;
  assert.equal(letter!.payload.toString(), '{"repo": nonsense');
  await queue.dead.edit(letter!, { repo: 'sense' });
  await queue.dead.replay({ ids: [letter!.id] });
  assert.equal((await seen.reach(201)).at(-1), 'sense');
});

test('seed 003: a clone that fails is acknowledged and gone; a handler that fails acknowledges nothing', async (t) => {
  const old = oldQueue();
  await redis('LPUSH', old, '{"repo":"a"}');
  await moveToProcessing(old);
  // The clone fails, the handler returns Ok(()), and so the message is acknowledged.
  await redis('DEL', `${old}:processing:1`);
  assert.deepEqual(await redis('KEYS', `${old}*`), []);

  const queue = bed.queue<{ repo: string }>(t, { attempts: 3, backoff });
  const { id } = await queue.add({ repo: 'a' });
  const attempts = new Gathering<number>();
  const states: (string | undefined)[] = [];
  queue.work(async (job) => {
    states.push((await queue.job(id))?.state);
    attempts.push(job.attempt);
    throw new Error('the clone failed');
  });
  assert.deepEqual(await attempts.reach(3), [1, 2, 3]);
  await waitUntil('it is buried', async () => (await queue.counts()).dead === 1);
  assert.deepEqual(states, ['active', 'active', 'active'], 'it was in the books all the time');
  const letter = (await queue.dead.get(id))!;
  assert.deepEqual([letter.data, letter.attempts.length], [{ repo: 'a' }, 3]);
});

// ── 004: dead letters and caches ────────────────────────────────────────────────────────────────────────────────────

test('seed 004: dead letters of different files share their metadata when a name has a colon; ours never meet', async (t) => {
  const old = oldQueue();
  const metadata = (job: string, file: string): string => `${old}:dlq:metadata:${job}:${file}`;
  await redis('HSET', metadata('1', 'a:b.pdf'), 'error', 'the first error');
  await redis('HSET', metadata('1:a', 'b.pdf'), 'error', 'another error');
  assert.equal(await redis('HGET', metadata('1', 'a:b.pdf'), 'error'), 'another error');

  const queue = bed.queue<string>(t, { attempts: 2, backoff });
  const ids = ['1:a:b.pdf', '1', '1:a', 'a:b.pdf', ':', 'a}b', '{1}:a', '1/a:b.pdf', '1/a', 'ü:😀', 'a b'];
  await queue.addMany(ids.map((id) => ({ data: `file ${id}`, id, unique: id, group: id })));
  queue.work((job) => {
    throw new Error(`error of ${job.id}, attempt ${job.attempt}`);
  });
  await waitUntil('all are buried', async () => (await queue.counts()).dead === ids.length);
  for (const id of ids) {
    const letter = (await queue.dead.get(id))!;
    assert.equal(letter.data, `file ${id}`);
    assert.deepEqual(
      letter.attempts.map(({ message }) => message),
      [1, 2].map((attempt) => `error of ${id}, attempt ${attempt}`),
    );
  }
});

test('seed 004: a cache in the same evicting database throws queues away; such a database is refused at the start', async (t) => {
  const shared = await startRedis({ config: { maxmemory: '3mb', 'maxmemory-policy': 'allkeys-lru' } });
  t.after(() => shared.stop());
  await shared.command('RPUSH', 'document_queue', 'job-1');
  const fill =
    "for i = 1, 2000 do redis.call('SET', 'vector:search:' .. ARGV[1] .. ':' .. i, string.rep('x', 1000)) end";
  const isThere = async () => (await shared.command('EXISTS', 'document_queue')) === 1;
  for (let round = 0; round < 50 && (await isThere()); round++) await shared.command('EVAL', fill, 0, round);
  assert.equal(await isThere(), false, 'the queue and its job were evicted');

  for (const policy of ['allkeys-lru', 'allkeys-lfu', 'allkeys-random', 'volatile-lru', 'volatile-ttl']) {
    await shared.command('CONFIG', 'SET', 'maxmemory-policy', policy);
    const queue = new Queue<string>('documents', { redis: shared.url });
    t.after(() => queue.close(100));
    await assert.rejects(queue.add('job-1'), (error: { code?: string; message: string }) => {
      assert.equal(error.code, 'EVICTING_REDIS');
      assert.ok(error.message.includes(policy), error.message);
      return true;
    });
    const worker = queue.work(() => assert.fail('it must not start'));
    await assert.rejects(worker.start(), (error: { code?: string }) => error.code === 'EVICTING_REDIS');
  }
});
