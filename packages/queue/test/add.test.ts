// What happens when a job is added: once, many, twice, too large, from outside.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { z } from 'zod';
import { startProxy } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { eventually, Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();
const code = (expected: string) => (error: { code?: string }) => error.code === expected;

test('a job that was added reaches a handler with its data', async (t) => {
  const queue = bed.queue<{ to: string }>(t);
  const seen = new Gathering<string>();
  const { id, duplicate } = await queue.add({ to: 'ada' });
  queue.work(async (job) => {
    assert.equal(job.id, id);
    assert.equal(job.attempt, 1);
    seen.push(job.data.to);
  });
  assert.deepEqual(await seen.reach(1), ['ada']);
  assert.equal(duplicate, false);
});

test('many jobs are added in order and all arrive', async (t) => {
  const queue = bed.queue<number>(t);
  const added = await queue.addMany(Array.from({ length: 2_500 }, (_, data) => ({ data })));
  assert.equal(new Set(added.map((job) => job.id)).size, 2_500);
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { concurrency: 1 });
  assert.deepEqual(
    await seen.reach(2_500),
    Array.from({ length: 2_500 }, (_, i) => i),
  );
});

test('every JSON value survives, also undefined, and empty arrays stay arrays', async (t) => {
  const queue = bed.queue(t);
  const values = [null, undefined, [], {}, [[]], '', 'ü€😀', 0, -1.5, true, { a: { b: [] } }];
  await queue.addMany(values.map((data) => ({ data })));
  const seen = new Gathering<unknown>();
  queue.work((job) => seen.push(job.data), { concurrency: 1 });
  assert.deepEqual(await seen.reach(values.length), values);
});

test('a binary payload arrives byte for byte and is not inflated', async (t) => {
  const queue = bed.queue<Uint8Array>(t);
  const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, i) => i % 256));
  await queue.add(bytes);
  const stored = await queue.partitions[0]!.link.call('hvals', [queue.partitions[0]!.keys.jobs]);
  assert.ok((stored as Buffer[])[0]!.length < bytes.length + 16);
  const seen = new Gathering<Uint8Array>();
  queue.work((job) => seen.push(Buffer.from(job.data)));
  assert.deepEqual((await seen.reach(1))[0], bytes);
});

test('an earlier delayed job wakes a sleeper that waits for a later one', async (t) => {
  const queue = bed.queue<string>(t);
  const seen = new Gathering<string>();
  await queue.work((job) => seen.push(job.data)).start();
  await queue.add('late', { delayMs: 60_000 });
  await sleep(100);
  const began = performance.now();
  await queue.add('soon', { delayMs: 100 });
  assert.deepEqual(await seen.reach(1), ['soon']);
  assert.ok(performance.now() - began < 5_000);
});

test('urgent jobs go first, and the lowest priority still gets a sixteenth of the claims', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.addMany(Array.from({ length: 1_600 }, () => ({ data: 0, priority: 0 as const })));
  await queue.addMany(Array.from({ length: 400 }, () => ({ data: 5, priority: 5 as const })));
  const seen = new Gathering<number>();
  queue.work((job) => seen.push(job.data), { concurrency: 1 });
  const first = (await seen.reach(800)).slice(0, 800);
  const low = first.filter((priority) => priority === 5).length;
  assert.ok(low >= 50 && low <= 100, `${low} of 800 were of the lowest priority`);
});

test('an own id is accepted once, also after the job ended, until its window has passed', async (t) => {
  const queue = bed.queue<number>(t);
  const seen = new Gathering<number>();
  assert.equal((await queue.add(1, { id: 'invoice:7' })).duplicate, false);
  assert.equal((await queue.add(2, { id: 'invoice:7' })).duplicate, true);
  const worker = queue.work((job) => seen.push(job.data));
  await seen.reach(1);
  await worker.idle();
  assert.equal((await queue.add(3, { id: 'invoice:7' })).duplicate, true);
  // The window of another one passes, however late somebody asks.
  assert.equal((await queue.add(4, { id: 'invoice:8', rememberMs: 500 })).duplicate, false);
  await eventually(async () => !(await queue.add(5, { id: 'invoice:8' })).duplicate);
  assert.deepEqual(await seen.reach(3), [1, 4, 5]);
});

test('a unique key admits one job until it ends, or one per window', async (t) => {
  const queue = bed.queue<number>(t);
  const first = await queue.add(1, { unique: 'report' });
  const second = await queue.add(2, { unique: 'report' });
  assert.deepEqual([second.duplicate, second.id], [true, first.id]);
  const seen = new Gathering<number>();
  const worker = queue.work((job) => seen.push(job.data));
  await seen.reach(1);
  await worker.idle();
  assert.equal((await queue.add(3, { unique: 'report' })).duplicate, false);
  const hourly = { key: 'hourly', windowMs: 3_600_000 };
  assert.equal((await queue.add(4, { unique: hourly })).duplicate, false);
  await seen.reach(3);
  await worker.idle();
  assert.equal((await queue.add(5, { unique: hourly })).duplicate, true);
  const often = { key: 'often', windowMs: 500 };
  assert.equal((await queue.add(6, { unique: often })).duplicate, false);
  await eventually(async () => !(await queue.add(7, { unique: often })).duplicate);
});

test('a payload that does not fit its schema is refused by the producer', async (t) => {
  const withZod = bed.queue<{ to: string }>(t, { schema: z.object({ to: z.email() }) });
  await assert.rejects(withZod.add({ to: 'nobody' }), code('PAYLOAD_INVALID'));
  const withValibot = bed.queue<{ to: string }>(t, {
    schema: v.object({ to: v.pipe(v.string(), v.email()) }),
  });
  await assert.rejects(withValibot.add({ to: 'nobody' }), code('PAYLOAD_INVALID'));
  assert.equal((await withZod.counts()).waiting, 0);
});

test('a payload that does not fit the schema of the worker is buried, and its bytes are kept', async (t) => {
  const loose = bed.queue<{ to: unknown }>(t);
  const strict = bed.twin(t, loose, { schema: z.object({ to: z.string() }) });
  const { id } = await loose.add({ to: 7 });
  strict.work(() => assert.fail('the handler must not see it'));
  await eventually(async () => (await loose.counts()).dead === 1);
  assert.equal((await loose.dead.get(id))?.payload.toString(), '{"to":7}');
});

test('a payload above the limit, or one that is not JSON, gets a clear error and changes nothing', async (t) => {
  const queue = bed.queue(t, { maxPayloadBytes: 1_000 });
  await assert.rejects(queue.add('x'.repeat(1_001)), code('PAYLOAD_TOO_LARGE'));
  await assert.rejects(queue.add(new Uint8Array(1_001)), code('PAYLOAD_TOO_LARGE'));
  await assert.rejects(queue.add(10n), code('PAYLOAD_NOT_JSON'));
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  await assert.rejects(queue.add(loop), code('PAYLOAD_NOT_JSON'));
  await assert.rejects(
    queue.add(() => 1),
    code('PAYLOAD_NOT_JSON'),
  );
  assert.equal((await queue.counts()).waiting, 0);
});

test('wrong options are refused by name and change nothing', async (t) => {
  const queue = bed.queue<number>(t);
  const wrong: object[] = [
    { priority: 6 },
    { priority: -1 },
    { priority: 1.5 },
    { delayMs: -1 },
    { delayMs: Number.NaN },
    { delayMs: 2 ** 53 },
    { runAt: new Date('nonsense') },
    { delayMs: 5, runAt: new Date() },
    { id: '' },
    { id: '#1' },
    { id: 'a\u0000b' },
    { id: 'x'.repeat(257) },
    { group: '' },
    { unique: { key: 'k', windowMs: 0 } },
    { attempts: 0 },
    { attempts: 256 },
    { timeoutMs: -5 },
    { requestId: 'nonsense' },
  ];
  for (const options of wrong) {
    await assert.rejects(queue.add(1, options), code('OPTION_INVALID'), JSON.stringify(options));
  }
  assert.equal((await queue.counts()).waiting, 0);
});

test('a foreign producer adds with one RPUSH, and the job starts within a second', async (t) => {
  const queue = bed.queue(t);
  const seen = new Gathering<unknown>();
  await queue.work((job) => seen.push([job.data, job.priority])).start();
  await sleep(200);
  const began = performance.now();
  await bed.redis.command(
    'RPUSH',
    `sluice:{${queue.name}:0}:inbox`,
    '{"data":{"list":[],"n":1},"priority":1}',
  );
  assert.deepEqual(await seen.reach(1), [[{ list: [], n: 1 }, 1]]);
  assert.ok(performance.now() - began < 1_000);
});

test('a foreign message keeps its bytes: large integers and empty arrays are not rewritten', async (t) => {
  const queue = bed.queue(t);
  const seen = new Gathering<string>();
  const message = '{ "data": {"big": 9007199254740993, "none": [] } }';
  await bed.redis.command('RPUSH', `sluice:{${queue.name}:0}:inbox`, message);
  queue.work((job) => seen.push(job.payload.toString()));
  assert.deepEqual(await seen.reach(1), [message]);
});

test('malformed foreign messages end in the dead letters with their original bytes', async (t) => {
  const queue = bed.queue(t);
  const messages = [
    '',
    'not json',
    '[1,2]',
    '{"to":1}',
    '{"data":1,"priority":9}',
    '{"data":1,"colour":"red"}',
    '{"data":',
  ];
  for (const message of messages) await bed.redis.command('RPUSH', `sluice:{${queue.name}:0}:inbox`, message);
  queue.work(() => assert.fail('none of them is a job'));
  await eventually(async () => (await queue.counts()).dead === messages.length);
  const { letters } = await queue.dead.list({ limit: 100 });
  assert.deepEqual(letters.map((letter) => letter.payload.toString()).sort(), [...messages].sort());
});

test('an add whose reply is lost is repeated and adds once', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const queue = new Queue<number>(`lost${process.pid}`, { redis: proxy.url });
  t.after(() => queue.close(100));
  await queue.add(0);
  for (let i = 1; i <= 10; i++) {
    void proxy.loseReplies({ count: 1 });
    await queue.add(i);
    void proxy.loseReplies({ count: 1 });
    await queue.add(-i, { priority: 1, labels: { a: 'b' } });
  }
  assert.equal((await queue.counts()).waiting, 21);
});

test('an add whose outcome is unknown can be repeated under its request id, and is there once', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const name = `unknown${process.pid}`;
  const patient = new Queue<number>(name, { redis: bed.redis.url });
  t.after(() => patient.close(100));
  await patient.add(0);
  const queue = new Queue<number>(name, { redis: proxy.url, addDeadlineMs: 400 });
  t.after(() => queue.close(100));
  await queue.ready();
  for (const arrives of [true, false]) {
    if (arrives) void proxy.loseReplies({ count: 1_000 });
    else proxy.blackHole(true);
    const error = (await queue.add(1).then(
      () => assert.fail('must not resolve'),
      (e: unknown) => e,
    )) as { code: string; details: { id: string; requestId: string } };
    assert.equal(error.code, 'ADD_UNKNOWN');
    proxy.heal();
    const { id, requestId } = error.details;
    // The outcome of a repetition may be unknown too; repeating goes on being safe.
    await eventually(() =>
      queue.add(1, { id, requestId }).then(
        () => true,
        () => false,
      ),
    );
    await patient.add(1, { id, requestId });
    assert.equal((await patient.counts()).waiting, arrives ? 2 : 3);
  }
});
