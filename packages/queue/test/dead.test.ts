/** Dead letters on a real Redis: what they keep, how they are found, and that moving them counts each of them once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { spawnOwned, startProxy, startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import * as v from 'valibot';
import { buryDetail, type DeadLetter } from '../src/dead.js';
import { describeError } from '../src/fingerprint.js';
import { randomName } from '../src/ids.js';
import type { Job } from '../src/job.js';
import type { AddOptions } from '../src/options.js';
import { GiveUp } from '../src/outcome.js';
import { flag } from '../src/packed.js';
import { Queue, type QueueOptions } from '../src/queue.js';
import { pack } from '../src/wire.js';

let redis: RedisServer;
const queues: Queue[] = [];

before(async () => {
  redis = await startRedis({ appendonly: false });
});

after(async () => {
  await Promise.all(queues.map((queue) => queue.close()));
  await redis.stop();
});

function newQueue(options: Partial<QueueOptions<unknown>> = {}, name = `q${randomName()}`): Queue {
  const queue = new Queue(name, { redis: redis.url, ...options });
  queues.push(queue);
  return queue;
}

interface Burial extends AddOptions {
  data?: unknown;
  error?: Error;
}

/** Jobs that are dead from the start, as malformed messages are. */
async function bury(queue: Queue, burials: Burial[]): Promise<string[]> {
  await queue.ready();
  const jobs = burials.map(({ data, error, ...options }, i) => {
    const job = queue.prepare(data ?? { i }, options);
    assert.ok(!(job instanceof Promise));
    return { ...job, dead: buryDetail(describeError(error ?? new Error('it broke')), 'test', Date.now(), 1) };
  });
  for (const partition of queue.partitions) {
    const batch = queue.producerFor(partition).gather();
    for (const job of jobs) if (queue.partitionOfJob(job) === partition) batch.add(job, 0);
    await batch.send();
  }
  return jobs.map(({ id }) => id);
}

const soon = { type: 'fixed', delayMs: 1 } as const;
const many = (count: number, burial: Burial = {}) => Array.from({ length: count }, () => burial);
const numbered = (count: number, name: string) =>
  Array.from({ length: count }, (_, i) => ({ id: `${name}${i}` }));

/** Works until so many runs have ended, one at a time, and returns them in their order. */
async function runJobs(queue: Queue, count: number, handler: (job: Job) => void = () => {}): Promise<Job[]> {
  const runs: Job[] = [];
  const worker = queue.work(
    (job) => {
      runs.push(job);
      handler(job);
    },
    { concurrency: 1, name: 'hand' },
  );
  await waitUntil(`${count} jobs have run`, () => runs.length >= count);
  await worker.stop();
  return runs;
}

function die(): void {
  throw new GiveUp('no use');
}

async function keysOf(queue: Queue): Promise<string[]> {
  const all = (await redis.command('KEYS', `*{${queue.name}:*`)) as string[];
  return all.map((key) => key.slice(key.indexOf('}:') + 2)).sort();
}

const deadKeys = (keys: string[]) => keys.filter((key) => /^(dead|tries|replays)/.test(key));

test('a dead letter keeps everything that is known about its failures', async () => {
  const queue = newQueue();
  const options = { priority: 1, group: 'g', labels: { tenant: 't1' }, attempts: 2, backoff: soon } as const;
  const { id } = await queue.add({ list: [], n: 1 }, options);
  await runJobs(queue, 2, ({ attempt }) => {
    throw attempt === 1 ? new RangeError('first') : new TypeError('last');
  });

  const letter = await queue.dead.get(id);
  assert.ok(letter);
  assert.deepEqual(letter.data, { list: [], n: 1 });
  assert.equal(letter.payload.toString(), '{"list":[],"n":1}');
  assert.equal(letter.error.name, 'TypeError');
  assert.equal(letter.error.message, 'last');
  assert.match(letter.error.stack, /dead\.test/);
  assert.match(letter.title, /^TypeError: last/);
  assert.match(letter.fingerprint, /^[0-9a-f]{16}$/);
  assert.deepEqual(
    letter.attempts.map(({ attempt, name, worker }) => [attempt, name, worker]),
    [
      [1, 'RangeError', 'hand'],
      [2, 'TypeError', 'hand'],
    ],
  );
  assert.equal(letter.attemptCount, 2);
  assert.equal(letter.firstFailureMs, letter.attempts[0]!.atMs);
  assert.ok(
    letter.firstFailureMs <= letter.lastFailureMs && Math.abs(Date.now() - letter.lastFailureMs) < 10_000,
  );
  assert.deepEqual([letter.worker, letter.priority, letter.group], ['hand', 1, 'g']);
  assert.deepEqual(letter.labels, { tenant: 't1' });
  assert.ok(Math.abs(Date.now() - letter.createdMs) < 10_000);
  assert.equal(await queue.dead.get('nobody'), null);
});

test('the attempts of a dead letter are the first and the last 19', async () => {
  const queue = newQueue();
  const { id } = await queue.add(1, { attempts: 30, backoff: soon });
  await runJobs(queue, 30, ({ attempt }) => {
    throw new Error(`try ${attempt}`);
  });
  const letter = await queue.dead.get(id);
  const kept = [1, ...Array.from({ length: 19 }, (_, i) => 12 + i)];
  assert.deepEqual(
    letter!.attempts.map(({ attempt }) => attempt),
    kept,
  );
});

test('a list shows every letter once, newest first, across partitions', async () => {
  const queue = newQueue({ partitions: 3 });
  for (const name of ['a', 'b', 'c']) {
    await bury(queue, numbered(40, name));
    await wait(3);
  }
  const seen: DeadLetter[] = [];
  let cursor: string | undefined;
  do {
    const page = await queue.dead.list({ limit: 7, ...(cursor && { cursor }) });
    assert.equal(page.bounded, false);
    seen.push(...page.letters);
    cursor = page.cursor ?? undefined;
  } while (cursor);
  assert.equal(seen.length, 120);
  assert.equal(new Set(seen.map(({ id }) => id)).size, 120);
  const times = seen.map(({ lastFailureMs }) => lastFailureMs);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => b - a),
  );
  assert.deepEqual([...new Set(seen.map(({ id }) => id[0]))], ['c', 'b', 'a']);
  assert.equal(await queue.dead.count(), 120);
});

test('letters that come and go between two pages neither hide nor repeat others', async () => {
  const queue = newQueue();
  // One call buries them in one millisecond, so that their order is that of their ids.
  const ids = await bury(queue, numbered(300, 'l'));
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await queue.dead.list({ limit: 10, ...(cursor !== null && { cursor }) });
    seen.push(...page.letters.map(({ id }) => id));
    // The letter that the cursor points to goes, others come.
    await queue.dead.discard({ ids: seen.slice(-3) });
    await bury(queue, [{}]);
    cursor = page.cursor;
  } while (cursor !== null);
  assert.deepEqual(seen, [...ids].sort().toReversed());
});

test('letters are found by cause, time, text and any other condition', async () => {
  const queue = newQueue({ partitions: 2 });
  await bury(queue, many(5, { error: new RangeError('user 17 not found') }));
  await wait(5);
  const early = await queue.dead.list();
  const lastEarlyMs = early.letters[0]!.lastFailureMs;
  await bury(queue, many(7, { data: { big: true }, error: new SyntaxError('unexpected end') }));

  const found = async (filter: object) => (await queue.dead.list(filter)).letters.length;
  const print = early.letters[0]!.fingerprint;
  assert.equal(await found({}), 12);
  assert.equal(await found({ fingerprint: print }), 5);
  assert.equal(await found({ text: 'not found' }), 5);
  assert.equal(await found({ text: 'Syntax' }), 7);
  assert.equal(await found({ text: 'absent' }), 0);
  assert.equal(await found({ to: lastEarlyMs }), 5);
  assert.equal(await found({ from: lastEarlyMs + 1 }), 7);
  const lastEarly = early.letters.filter(({ lastFailureMs }) => lastFailureMs === lastEarlyMs).length;
  assert.equal(await found({ from: new Date(lastEarlyMs), to: lastEarlyMs }), lastEarly);
  assert.equal(await found({ from: lastEarlyMs + 3_600_000 }), 0);
  assert.equal(await found({ where: ({ data }: DeadLetter) => (data as { big?: boolean }).big === true }), 7);
  assert.equal(await found({ fingerprint: print, text: 'Syntax' }), 0);
  await assert.rejects(queue.dead.list({ cursor: 'x' }), { code: 'OPTION_INVALID' });
  await assert.rejects(queue.dead.list({ limit: 1_001 }), { code: 'OPTION_INVALID' });
});

test('a list that looks for the rare says that it stopped, and goes on from there', async () => {
  const queue = newQueue();
  const [rare] = await bury(queue, [{ data: 'needle' }]);
  await wait(3);
  await bury(queue, many(6_000));
  const where = ({ data }: DeadLetter) => data === 'needle';
  const first = await queue.dead.list({ where });
  assert.deepEqual([first.letters.length, first.bounded], [0, true]);
  const second = await queue.dead.list({ where, cursor: first.cursor! });
  assert.deepEqual(
    [second.letters.map(({ id }) => id), second.bounded, second.cursor],
    [[rare], false, null],
  );
});

test('the counts of groups are exact over partitions and after every removal', async () => {
  const queue = newQueue({ partitions: 4 });
  await bury(queue, many(30, { error: new RangeError('a') }));
  await bury(queue, many(10, { error: new TypeError('b') }));
  const counts = async () =>
    (await queue.dead.groups()).map(({ title, count }) => [title.split(' at ')[0], count]);
  assert.deepEqual(await counts(), [
    ['RangeError: a', 30],
    ['TypeError: b', 10],
  ]);
  const { letters } = await queue.dead.list({ text: 'Range' });
  await queue.dead.discard({ ids: letters.slice(0, 12).map(({ id }) => id) });
  await queue.dead.replay({ ids: letters.slice(12, 25).map(({ id }) => id) });
  for (const { id } of letters.slice(25, 29)) await queue.cancel(id);
  assert.deepEqual(await counts(), [
    ['TypeError: b', 10],
    ['RangeError: a', 1],
  ]);
  await queue.dead.discard('all');
  assert.deepEqual(await counts(), []);
});

test('an edited letter is replayed with its new data and its old options', async () => {
  const schema = v.object({ n: v.number() });
  const queue = newQueue({ schema });
  const plain = newQueue({}, queue.name);
  const [id] = await bury(plain, [
    { data: { n: 'wrong' }, priority: 2, labels: { tenant: 't' }, attempts: 7 },
  ]);
  await assert.rejects(queue.dead.edit(id!, { n: 'still wrong' }), { code: 'PAYLOAD_INVALID' });
  await assert.rejects(queue.dead.edit('nobody', { n: 1 }), { code: 'UNKNOWN_JOB' });
  await queue.dead.edit(id!, { n: 1 });
  assert.deepEqual((await queue.dead.get(id!))!.data, { n: 1 });
  assert.deepEqual(await queue.dead.replay({ ids: [id!] }), { moved: 1, total: 1, finished: true });

  const [job] = await runJobs(queue, 1);
  assert.deepEqual(job!.data, { n: 1 });
  assert.deepEqual([job!.priority, job!.options?.a, job!.labels, job!.attempt], [2, 7, { tenant: 't' }, 1]);
  await assert.rejects(queue.dead.edit(id!, { n: 2 }), { code: 'UNKNOWN_JOB' });
});

test('of two edits of the same letter the second is told of the first', async () => {
  const queue = newQueue();
  const [id] = await bury(queue, [{ data: 'old' }]);
  const [mine, theirs] = [await queue.dead.get(id!), await queue.dead.get(id!)];
  await queue.dead.edit(theirs!, 'theirs');
  await assert.rejects(queue.dead.edit(mine!, 'mine'), { code: 'EDIT_CONFLICT' });
  assert.equal((await queue.dead.get(id!))!.data, 'theirs');
  // The same edit again, as after a lost reply, is no conflict.
  await queue.dead.edit(theirs!, 'theirs');
});

test('a replay that is run twice counts every letter once', async () => {
  const queue = newQueue({ partitions: 2 });
  await bury(queue, many(450));
  const seen: number[] = [];
  const onProgress = ({ total }: { total: number }) => void seen.push(total);
  assert.deepEqual(await queue.dead.replay('all', { operation: 'monday', onProgress }), {
    moved: 450,
    total: 450,
    finished: true,
  });
  assert.equal(seen.at(-1), 450);
  assert.deepEqual(await queue.dead.replay('all', { operation: 'monday' }), {
    moved: 0,
    total: 450,
    finished: true,
  });
  assert.equal(await queue.dead.count(), 0);
  assert.equal((await queue.counts()).waiting, 450);
});

test('an operation leaves letters alone that died after it began', async () => {
  const queue = newQueue();
  await bury(queue, numbered(5, 'x'));
  await queue.dead.replay('all', { operation: 'fix' });
  await runJobs(queue, 5, die);
  assert.deepEqual(await queue.dead.replay('all', { operation: 'fix' }), {
    moved: 0,
    total: 5,
    finished: true,
  });
  assert.equal(await queue.dead.count(), 5);
  const [letter] = (await queue.dead.list()).letters;
  assert.equal(letter!.attempts.length, 1);
  assert.deepEqual(await queue.dead.replay('all', { operation: 'fix 2' }), {
    moved: 5,
    total: 5,
    finished: true,
  });
});

test('a replay goes on after the process that ran it was killed', async () => {
  const queue = newQueue();
  const ids = await bury(queue, numbered(300, 'k'));
  const file = new URL('../src/queue.js', import.meta.url).href;
  const script = `
    const { Queue } = await import(${JSON.stringify(file)});
    const queue = new Queue(${JSON.stringify(queue.name)}, { redis: ${JSON.stringify(redis.url)} });
    await queue.dead.replay('all', { operation: 'crash', perSecond: 20 });`;
  const child = spawnOwned(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
  // So slow that it is in the middle however late it is killed.
  await waitUntil('the replay is under way', async () => (await queue.dead.count()) < 300, { everyMs: 5 });
  child.kill('SIGKILL');
  await once(child, 'exit');
  const left = await queue.dead.count();
  assert.ok(left > 0 && left < 300, `${left} letters are left`);

  const report = await queue.dead.replay('all', { operation: 'crash' });
  assert.deepEqual(report, { moved: left, total: 300, finished: true });
  const runs = await runJobs(queue, 300);
  assert.equal(runs.length, 300);
  assert.deepEqual(runs.map(({ id }) => id).sort(), [...ids].sort());
});

test('a lost reply costs no letter and counts none twice', async () => {
  const proxy = await startProxy(redis.port);
  try {
    const queue = newQueue({ redis: proxy.url });
    await bury(queue, many(900));
    const lost = proxy.loseReplies({ when: (request) => request.includes('replay:lossy') });
    const report = await queue.dead.replay('all', { operation: 'lossy' });
    await lost;
    assert.deepEqual(report, { moved: 900, total: 900, finished: true });
    const again = proxy.loseReplies({ when: (request) => request.includes('discard:') });
    await bury(queue, many(300));
    assert.deepEqual(await queue.dead.discard('all'), { moved: 300, total: 300, finished: true });
    await again;
    await queue.close();
  } finally {
    await proxy.stop();
  }
});

test('a replay keeps to its rate, and a signal stops it where it can go on', async () => {
  const queue = newQueue();
  await bury(queue, many(60));
  const started = performance.now();
  const first = await queue.dead.replay('all', {
    perSecond: 100,
    operation: 'slow',
    signal: AbortSignal.timeout(250),
  });
  assert.equal(first.finished, false);
  assert.ok(first.moved < 60, `moved ${first.moved}`);
  const second = await queue.dead.replay('all', { perSecond: 100, operation: 'slow' });
  assert.deepEqual(second, { moved: 60 - first.moved, total: 60, finished: true });
  assert.ok(performance.now() - started >= 400, `took ${performance.now() - started} ms`);
});

test('a dry run moves nothing and says how many would be', async () => {
  const queue = newQueue({ partitions: 2 });
  const ids = await bury(queue, many(20, { error: new RangeError('a') }));
  await bury(queue, many(5, { error: new TypeError('b') }));
  const dryRun = true;
  assert.equal((await queue.dead.replay('all', { dryRun })).total, 25);
  assert.equal((await queue.dead.replay({ text: 'Range' }, { dryRun })).total, 20);
  assert.equal((await queue.dead.replay({ ids: [...ids, 'nobody', ids[0]!] }, { dryRun })).total, 20);
  assert.equal(await queue.dead.count(), 25);
  assert.deepEqual((await keysOf(queue)).includes('replays'), false);
});

test('letters are moved by id, by cause and by any condition', async () => {
  const queue = newQueue({ partitions: 2 });
  await bury(queue, many(6, { data: 'a', error: new RangeError('a') }));
  await bury(queue, [...many(4, { data: 'b' }), ...many(3, { data: 'c' })]);
  const groups = await queue.dead.groups();
  const { fingerprint } = groups.find(({ title }) => title.startsWith('Range'))!;
  assert.equal((await queue.dead.replay({ fingerprint })).moved, 6);
  assert.equal((await queue.dead.discard({ where: ({ data }) => data === 'b' })).moved, 4);
  assert.equal(await queue.dead.count(), 3);
  await assert.rejects(queue.dead.discard({}), { code: 'OPTION_INVALID' });
  await assert.rejects(queue.dead.replay({ fingerprint: undefined! }), { code: 'OPTION_INVALID' });
  assert.equal(await queue.dead.count(), 3);
});

test('replayed letters wait behind the others, oldest first', async () => {
  const queue = newQueue();
  const letters: string[] = [];
  for (let i = 0; i < 3; i++) {
    letters.push(...(await bury(queue, [{}])));
    await wait(2);
  }
  const { id } = await queue.add('fresh');
  await queue.dead.replay('all');
  assert.deepEqual(
    (await runJobs(queue, 4)).map((job) => job.id),
    [id, ...letters],
  );
});

test('a letter whose unique key another job holds stays dead until that one ends', async () => {
  const queue = newQueue();
  const [id] = await bury(queue, [{ unique: 'u' }]);
  const { id: other } = await queue.add(1, { unique: 'u' });
  assert.equal((await queue.dead.replay('all')).moved, 0);
  await queue.cancel(other);
  assert.equal((await queue.dead.replay('all')).moved, 1);
  assert.equal((await queue.add(1, { unique: 'u' })).id, id);
});

test('discarded letters leave nothing behind, and free their unique key', async () => {
  const queue = newQueue();
  const { id } = await queue.add({ a: 1 }, { unique: 'u', group: 'g' });
  await runJobs(queue, 1, die);
  assert.equal((await queue.dead.discard({ ids: [id] })).moved, 1);
  assert.equal((await queue.add(1, { unique: 'u' })).duplicate, false);
  assert.deepEqual(deadKeys(await keysOf(queue)), []);
});

test('malformed bytes are kept as they came, and exported without loss', async () => {
  const queue = newQueue();
  await queue.ready();
  const bytes = Buffer.from([0xff, 0x00, 0x7b, 0xfe, 0x80]);
  const text = Buffer.from('{"data": 12345678901234567890, "x');
  const [partition] = queue.partitions;
  const template = await queue.prepare(null);
  const dead = buryDetail(describeError(new Error('malformed')), 'inbox', Date.now(), 0);
  const batch = queue.producerFor(partition!).gather();
  batch.add({ ...template, id: 'bytes', payload: bytes, flags: flag.foreign, dead }, 0);
  batch.add({ ...template, id: 'text', payload: text, flags: flag.foreign, dead }, 0);
  await batch.send();
  await bury(queue, [
    { id: 'binary', data: Buffer.from([1, 2, 255]) },
    { id: 'json', data: { ok: [] } },
  ]);
  const letter = await queue.dead.get('bytes');
  assert.ok(letter!.payload.equals(bytes));
  assert.equal(letter!.data, undefined);
  assert.equal(letter!.attemptCount, 0);

  const exported = new Map<string, { data: unknown; payload: unknown; error: { message: string } }>();
  for await (const one of queue.dead.export()) exported.set(one.id, JSON.parse(JSON.stringify(one)));
  assert.equal(exported.size, 4);
  assert.deepEqual(exported.get('bytes')!.payload, { base64: bytes.toString('base64') });
  assert.equal(exported.get('text')!.payload, text.toString());
  assert.deepEqual(exported.get('binary')!.data, { base64: 'AQL/' });
  assert.deepEqual(exported.get('json')!.data, { ok: [] });
  assert.equal(exported.get('text')!.error.message, 'malformed');

  await queue.dead.edit('bytes', { repaired: true });
  await queue.dead.replay({ ids: ['bytes'] });
  const [job] = await runJobs(queue, 1);
  assert.deepEqual(job!.data, { repaired: true });
});

test('an export walks through thousands of letters, also by condition', async () => {
  const queue = newQueue({ partitions: 2 });
  await bury(queue, many(1_200, { data: 1 }));
  await bury(queue, many(3, { data: 2 }));
  const ids = new Set<string>();
  for await (const letter of queue.dead.export()) ids.add(letter.id);
  assert.equal(ids.size, 1_203);
  let twos = 0;
  for await (const { data } of queue.dead.export({ where: (letter) => letter.data === 2 }))
    twos += data as number;
  assert.equal(twos, 6);
});

test('a page of large letters is cut, and goes on', async () => {
  const queue = newQueue();
  const large = 'x'.repeat(1_000_000);
  await bury(queue, many(40, { data: large }));
  const first = await queue.dead.list({ limit: 40 });
  assert.ok(first.bounded && first.letters.length >= 30, `${first.letters.length} letters`);
  const second = await queue.dead.list({ limit: 40, cursor: first.cursor! });
  assert.equal(first.letters.length + second.letters.length, 40);
});

test('nothing is dropped unless retention is set; then the oldest go', async () => {
  const queue = newQueue({ partitions: 2 });
  const old = await bury(queue, many(2_500, { error: new Error('old') }));
  await wait(20);
  await bury(queue, many(1_000, { error: new Error('new') }));
  assert.equal(await queue.dead.sweep(), 0);

  await queue.dead.retain({ maxCount: 1_200 });
  while ((await queue.dead.sweep()) > 0);
  const left = await queue.dead.count();
  assert.ok(left > 1_000 && left <= 1_200, `${left} letters are left`);
  assert.ok((await queue.dead.replay({ text: 'new' }, { dryRun: true })).total > 900);
  assert.equal(await queue.dead.get(old[0]!), null);

  await queue.dead.retain(null);
  assert.equal(await queue.dead.sweep(), 0);
  await wait(50);
  await queue.dead.retain({ maxAgeMs: 40 });
  while ((await queue.dead.sweep()) > 0);
  assert.equal(await queue.dead.count(), 0);
  assert.deepEqual(deadKeys(await keysOf(queue)), []);
  await assert.rejects(queue.dead.retain({ maxCount: 0 }), { code: 'OPTION_INVALID' });
});

test('a sweep is bounded, however much there is to drop', async () => {
  const queue = newQueue();
  await bury(queue, many(3_000));
  await queue.dead.retain({ maxCount: 1 });
  assert.equal(await queue.dead.sweep(), 2_000);
  assert.equal(await queue.dead.sweep(), 999);
});

test('the memory of operations is bounded', async () => {
  const queue = newQueue();
  await queue.ready();
  for (let i = 0; i < 1_010; i++) {
    await queue.partitions[0]!.run('replay', { operation: `replay:${i}`, ids: pack([]) });
  }
  const key = `sluice:{${queue.name}:0}:replays`;
  assert.equal(await redis.command('HLEN', key), 1_000);
});

test('two runs of one operation at the same time move every letter once', async () => {
  const queue = newQueue();
  const other = newQueue({}, queue.name);
  await bury(queue, many(1_000));
  const runs = [queue, other].map(({ dead }) => dead.replay('all', { operation: 'both' }));
  await Promise.all(runs);
  assert.deepEqual(await queue.dead.replay('all', { operation: 'both' }), {
    moved: 0,
    total: 1_000,
    finished: true,
  });
  assert.equal((await queue.counts()).waiting, 1_000);
});

test('letters can be read, replayed and discarded while the memory of Redis is full', async () => {
  const queue = newQueue();
  const ids = await bury(queue, many(20));
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  try {
    assert.equal((await queue.dead.list()).letters.length, 20);
    assert.equal((await queue.dead.groups())[0]!.count, 20);
    assert.equal((await queue.dead.replay({ ids: ids.slice(0, 5) })).moved, 5);
    assert.equal((await queue.dead.discard('all')).moved, 15);
    await assert.rejects(queue.dead.edit(ids[0]!, 1), { code: 'UNKNOWN_JOB' });
  } finally {
    await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  }
});
