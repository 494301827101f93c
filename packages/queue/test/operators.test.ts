// What operators do with single jobs: let them run now, see which wait for their next attempt, replay one with other data, and all of it
// for the jobs of one tenant only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startProxy } from '@sluice/testbed';
import { GiveUp } from '../src/index.js';
import type { TimePlace } from '../src/index.js';
import { Gathering, eventually, useRedis } from './setup.js';

const bed = useRedis();
const hourMs = 3_600_000;
const slowly = { attempts: 5, backoff: { type: 'fixed', delayMs: hourMs } } as const;

test('a delayed job runs now when told to, and the state that it was in is told', async (t) => {
  const queue = bed.queue<string>(t, { ...slowly, partitions: 2 });
  const ran = new Gathering<number>();
  await queue.add('later', { id: 'later', delayMs: hourMs });
  assert.equal(await queue.retryNow('later'), 'delayed');
  assert.equal(await queue.retryNow('later'), 'waiting', 'asking again changes nothing');
  assert.equal(await queue.retryNow('nobody'), null);
  queue.work((job) => {
    ran.push(job.attempt);
    if (job.data === 'fails' && job.attempt === 1) throw new Error('once');
    if (job.data === 'dies') throw new GiveUp('at once');
  });
  await ran.reach(1);
  await eventually(async () => (await queue.job('later'))?.state === 'done');
  assert.equal(await queue.retryNow('later'), 'done');
  await queue.add('fails', { id: 'fails' });
  await eventually(async () => (await queue.job('fails'))?.state === 'delayed');
  assert.equal(await queue.retryNow('fails'), 'delayed');
  assert.deepEqual(await ran.reach(3), [1, 1, 2]);
  await queue.add('dies', { id: 'dies' });
  await eventually(async () => (await queue.dead.count()) === 1);
  assert.equal(await queue.retryNow('dies'), 'dead');
  assert.equal(await queue.dead.count(), 1);
});

test('jobs that wait for their next attempt are listed by the time at which it is due, with their last error', async (t) => {
  const queue = bed.queue<{ n: number }>(t, { attempts: 5, partitions: 3 });
  queue.work((job) => {
    throw new Error(`no luck with ${job.data.n}`);
  });
  const backoff = (n: number) => ({ type: 'fixed', delayMs: hourMs + (n % 10) * 1_000 }) as const;
  for (let n = 0; n < 30; n++) {
    const labels = { tenant: n % 3 === 0 ? 'a' : 'b' };
    await queue.add({ n }, { id: `job${n}`, backoff: backoff(n), labels });
  }
  // Those that were never tried do not wait for another attempt.
  await queue.addMany(Array.from({ length: 40 }, (_, n) => ({ data: { n }, delayMs: hourMs })));
  await eventually(async () => (await queue.retries({ limit: 100 })).items.length === 30);
  const walk = async (limit: number, labels?: Record<string, string>) => {
    const found = [];
    for (let after: TimePlace | undefined; ;) {
      const page = await queue.retries({ limit, ...(after && { after }), ...(labels && { labels }) });
      found.push(...page.items);
      if (!page.end) return found;
      after = page.end;
    }
  };
  const all = await walk(7);
  assert.equal(new Set(all.map(({ id }) => id)).size, 30);
  assert.deepEqual(
    all.map(({ dueMs }) => dueMs),
    all.map(({ dueMs }) => dueMs).toSorted((a, b) => a - b),
  );
  const [first] = all;
  assert.equal(first!.attempt, 2);
  assert.match(`${first!.last?.name}: ${first!.last?.message}`, /Error: no luck with \d+/);
  assert.match(first!.preview!, /^\{"n":\d+\}$/);
  assert.equal((await walk(4, { tenant: 'a' })).length, 10);
  assert.equal((await walk(4, { tenant: 'nobody' })).length, 0);
});

test('a page of retries looks at a bounded number of delayed jobs, and goes on where it stopped', async (t) => {
  const queue = bed.queue<number>(t, slowly);
  await queue.addMany(Array.from({ length: 6_000 }, (_, data) => ({ data, delayMs: hourMs - 1_000 })));
  queue.work(() => {
    throw new Error('no luck');
  });
  await queue.add(1, { id: 'last' });
  await eventually(async () => (await queue.job('last'))?.state === 'delayed');
  const page = await queue.retries();
  assert.deepEqual([page.items.length, page.scanned], [0, 5_000]);
  const rest = await queue.retries({ after: page.end! });
  assert.deepEqual([rest.items.map(({ id }) => id), rest.scanned, rest.end], [['last'], 1_001, null]);
});

test('a letter is replayed with other data in one step, or not at all', async (t) => {
  const queue = bed.queue<string>(t, { attempts: 1 });
  const ran = new Gathering<string>();
  queue.work((job) => {
    ran.push(`${job.data} ${job.attempt}`);
    if (job.data === 'bad') throw new Error('bad');
  });
  await queue.add('bad', { id: 'one', labels: { tenant: 'a' } });
  await eventually(async () => (await queue.dead.count()) === 1);
  const seen = (await queue.dead.get('one'))!;
  await queue.dead.edit('one', 'worse');
  const conflict = (error: unknown) => isSluiceError(error, 'EDIT_CONFLICT');
  await assert.rejects(queue.dead.replayWith(seen, 'good'), conflict);
  assert.equal((await queue.dead.get('one'))!.data, 'worse', 'what is refused changes nothing');
  await queue.dead.replayWith('one', 'good');
  assert.deepEqual(await ran.reach(2), ['bad 1', 'good 1']);
  await eventually(async () => (await queue.job('one'))?.state === 'done');
  const unknown = (error: unknown) => isSluiceError(error, 'UNKNOWN_JOB');
  await assert.rejects(queue.dead.replayWith('one', 'good'), unknown);
  const { link, keys } = queue.partitions[0]!;
  assert.equal(await link.call('HLEN', [keys.replays]), 0, 'it leaves no record');
});

test('a letter whose unique key another job holds is not replayed with other data either', async (t) => {
  const queue = bed.queue<string>(t, { attempts: 1 });
  const worker = queue.work(() => {
    throw new Error('bad');
  });
  await queue.add('bad', { id: 'one', unique: 'key' });
  await eventually(async () => (await queue.dead.count()) === 1);
  await worker.stop();
  const { id } = await queue.add('other', { unique: 'key' });
  const taken = (error: unknown) => isSluiceError(error, 'UNIQUE_KEY_TAKEN');
  await assert.rejects(queue.dead.replayWith('one', 'good'), taken);
  assert.equal((await queue.dead.get('one'))!.data, 'bad');
  await queue.cancel(id);
  await queue.dead.replayWith('one', 'good');
  assert.equal((await queue.job('one'))?.data, 'good');
});

test('a replay with other data whose reply is lost happens once, and is not mistaken for a failure', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const queue = bed.queue<string>(t, { attempts: 1 });
  const ran = new Gathering<string>();
  queue.work((job) => {
    ran.push(job.data);
    if (job.data === 'bad') throw new Error('bad');
  });
  await queue.add('bad', { id: 'one' });
  await eventually(async () => (await queue.dead.count()) === 1);
  const operator = bed.twin(t, queue, { redis: `redis://${proxy.host}:${proxy.port}` });
  const seen = (await operator.dead.get('one'))!;
  const lost = proxy.loseReplies({ when: (request) => request.includes('amend:~') });
  await operator.dead.replayWith(seen, 'good');
  await lost;
  await eventually(async () => (await queue.job('one'))?.state === 'done');
  assert.deepEqual(ran.items, ['bad', 'good']);
});

test('dead letters are listed, grouped, replayed and discarded for one tenant only', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1, partitions: 2 });
  let broken = true;
  queue.work((job) => {
    if (broken) throw new GiveUp(job.data % 2 === 0 ? 'disk is full' : 'no such bucket');
  });
  for (let n = 0; n < 20; n++) {
    await queue.add(n, { id: `job${n}`, labels: { tenant: n < 5 ? 'a' : 'b', owner: 'me' } });
  }
  await eventually(async () => (await queue.dead.count()) === 20);
  const mine = { labels: { tenant: 'a' } };
  assert.equal((await queue.dead.list(mine)).letters.length, 5);
  assert.equal((await queue.dead.list({ labels: { tenant: 'a', owner: 'you' } })).letters.length, 0);
  assert.equal((await queue.dead.list({ labels: { constructor: 'x' } })).letters.length, 0);
  const groups = await queue.dead.groupsWith({ tenant: 'a' });
  assert.deepEqual(
    groups.groups.map(({ title, count }) => [title.includes('disk'), count]),
    [
      [true, 3],
      [false, 2],
    ],
  );
  assert.deepEqual([groups.letters, groups.scanned, groups.complete], [5, 20, true]);
  assert.equal((await queue.dead.replay(mine, { dryRun: true })).total, 5);
  const foreign = { ids: ['job1', 'job7'], labels: { tenant: 'a' } };
  broken = false;
  assert.equal((await queue.dead.replay(foreign)).moved, 1);
  assert.equal((await queue.dead.discard(mine)).moved, 4);
  assert.equal(await queue.dead.count(), 15);
});

test('a group tells in which hours of the last day its letters died', async (t) => {
  const queue = bed.queue<number>(t, { attempts: 1 });
  queue.work(() => {
    throw new GiveUp('disk is full');
  });
  await queue.addMany(Array.from({ length: 6 }, (_, data) => ({ data, id: `job${data}` })));
  await eventually(async () => (await queue.dead.count()) === 6);
  const [before] = await queue.dead.groups();
  assert.equal(before!.perHour, undefined);
  const { link, keys } = queue.partitions[0]!;
  const key = keys.deadGroup + before!.fingerprint;
  const ago = async (id: string, ms: number) => {
    const diedMs = Number(await link.call('ZSCORE', [key, id]));
    await link.call('ZADD', [key, diedMs - ms, id]);
  };
  await ago('job0', 2 * hourMs);
  await ago('job1', 23 * hourMs);
  await ago('job2', 25 * hourMs);
  const [group] = await queue.dead.groups({ trend: true });
  assert.equal(group!.count, 6);
  assert.equal(group!.perHour!.length, 24);
  assert.deepEqual([group!.perHour![0], group!.perHour![21], group!.perHour![23]], [1, 1, 3]);
  assert.equal(
    group!.perHour!.reduce((sum, count) => sum + count),
    5,
  );
});

test('a job that ended is still known by its labels, as long as it is remembered', async (t) => {
  const queue = bed.queue<string, string>(t);
  queue.work((job) => `${job.data} is done`);
  const labels = { tenant: 'a', owner: 'äda "x"' };
  await queue.add('one', { id: 'one', labels });
  await queue.add('two', { id: 'two' });
  await queue.add('three', { id: 'three', labels, delayMs: hourMs });
  await queue.cancel('three');
  await eventually(async () => (await queue.job('two'))?.state === 'done');
  assert.equal(await queue.result('one'), 'one is done');
  assert.deepEqual((await queue.job('one'))!.labels, labels);
  assert.deepEqual((await queue.job('two'))!.labels, {});
  assert.deepEqual((await queue.job('three'))!.labels, labels);
  const mine = await queue.browse({ where: (job) => job.labels['tenant'] === 'a' });
  assert.deepEqual(mine.items.map(({ id }) => id).sort(), ['one', 'three']);
  const { link, keys } = queue.partitions[0]!;
  await link.call('ZADD', [keys.ended, 1, 'one', 1, 'two', 1, 'three']);
  await queue.partitions[0]!.run('sweep', { limit: 100 });
  assert.equal(await link.call('EXISTS', [keys.results]), 0, 'what is forgotten leaves nothing');
});
