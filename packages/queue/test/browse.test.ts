// Looking through jobs by state and payload, and at who works on a queue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { createChain, GiveUp } from '../src/index.js';
import type { AnyQueue, BrowseOptions, JobGlance, JobState } from '../src/index.js';
import { eventually, useRedis } from './setup.js';

const bed = useRedis();

interface Walk {
  items: JobGlance[];
  scanned: number;
  pages: number;
  complete: boolean;
}

async function walk(queue: AnyQueue, options: BrowseOptions): Promise<Walk> {
  const all: Walk = { items: [], scanned: 0, pages: 0, complete: false };
  for (let cursor: string | undefined; ;) {
    const page = await queue.browse({ ...options, ...(cursor !== undefined && { cursor }) });
    all.items.push(...page.items);
    all.scanned += page.scanned;
    all.pages++;
    if (page.cursor === null) return { ...all, complete: page.complete };
    cursor = page.cursor;
  }
}

const idsOf = (found: Walk) => found.items.map(({ id }) => id).sort();

test('jobs are found in the state in which they are, whichever way they lie in Redis', async (t) => {
  const queue = bed.queue(t, { partitions: 2 });
  const release = withResolvers();
  const worker = queue.work(
    async (job) => {
      if (job.data === 'dies') throw new GiveUp('bad');
      if (job.data === 'runs') await release.promise;
    },
    { concurrency: 4 },
  );
  await queue.add('dies', { id: 'dead' });
  await queue.add('ends', { id: 'done' });
  await queue.add('runs', { id: 'active' });
  const stateOf = async (id: string) => (await queue.job(id))?.state;
  await eventually(
    async () =>
      (await stateOf('dead')) === 'dead' && (await stateOf('done')) === 'done' && worker.running === 1,
  );
  await queue.pause();
  await queue.add('later', { id: 'delayed', delayMs: 3_600_000 });
  await queue.add('waits', { id: 'waiting', priority: 0 });
  await queue.add('waits', { id: 'grouped', group: 'g' });
  await queue.add('waits', { id: 'blocked', after: [{ queue: queue.name, id: 'delayed' }] });
  await queue.add('waits', { id: 'cancelled' });
  await queue.cancel('cancelled');
  const baled = await queue.addMany(Array.from({ length: 40 }, (_, n) => ({ data: { n } })));

  const expected: Record<JobState, string[]> = {
    active: ['active'],
    waiting: [...baled.map(({ id }) => id), 'grouped', 'waiting'].sort(),
    delayed: ['delayed'],
    blocked: ['blocked'],
    dead: ['dead'],
    done: ['done'],
    cancelled: ['cancelled'],
  };
  for (const [state, ids] of Object.entries(expected)) {
    const found = await walk(queue, { states: [state as JobState], limit: 7 });
    assert.deepEqual(idsOf(found), ids, state);
    assert.ok(found.items.every((job) => job.state === state));
    assert.equal(found.complete, true);
  }
  const all = await walk(queue, {});
  assert.deepEqual(idsOf(all), Object.values(expected).flat().sort());
  release.resolve();
});

test('a search through payloads looks at so many jobs per call, and says how many and where it goes on', async (t) => {
  const queue = bed.queue(t);
  await queue.addMany(Array.from({ length: 12_000 }, (_, n) => ({ data: { n } })));
  const where = ({ data }: JobGlance) => (data as { n: number }).n === 3;
  const first = await queue.browse({ where });
  assert.deepEqual(first.items, []);
  assert.ok(first.scanned >= 5_000 && first.scanned <= 5_100, String(first.scanned));
  assert.equal(first.complete, false);
  assert.notEqual(first.cursor, null);
  const found = await walk(queue, { where });
  assert.equal(found.items.length, 1);
  assert.deepEqual([found.scanned, found.pages, found.complete], [12_000, 3, true]);
});

test('jobs that are claimed between two pages hide no other', async (t) => {
  const queue = bed.queue<number>(t);
  for (let n = 0; n < 60; n++) await queue.add(n, { id: `job-${n}` });
  const first = await queue.browse({ states: ['waiting'], limit: 20 });
  let ended = 0;
  const worker = queue.work(() => void ended++, { concurrency: 1 });
  await eventually(() => ended >= 5);
  await queue.pause();
  await worker.stop();
  const left = new Set<string>(first.items.map(({ id }) => id));
  for (let cursor = first.cursor; cursor !== null;) {
    const page = await queue.browse({ states: ['waiting'], limit: 20, cursor });
    for (const { id } of page.items) left.add(id);
    cursor = page.cursor;
  }
  const still = await walk(queue, { states: ['waiting'] });
  for (const { id } of still.items) assert.ok(left.has(id), id);
});

test('a large group is cut short, and the page says that it is not complete', async (t) => {
  const queue = bed.queue(t);
  await queue.addMany(Array.from({ length: 150 }, (_, n) => ({ data: n, group: 'large' })));
  const found = await walk(queue, { states: ['waiting'] });
  assert.deepEqual([found.items.length, found.complete], [100, false]);
});

test('a cursor that is none is refused before Redis sees it', async (t) => {
  const queue = bed.queue(t);
  const forged = ['x', '0 0 0 -1', '0 99 0 ', '9 0 0 ', '0 0 0 a b', '0 1 0 99999999999999999999'];
  for (const text of forged) {
    const cursor = Buffer.from(text).toString('base64url');
    await assert.rejects(queue.browse({ cursor }), (error) => isSluiceError(error, 'OPTION_INVALID'), text);
  }
});

test('the crew of a queue are the sessions that hold a lease, with what they hold', async (t) => {
  const queue = bed.queue(t, { partitions: 2 });
  assert.deepEqual(await queue.crew(), { members: [], total: 0 });
  const release = withResolvers();
  const worker = queue.work(() => release.promise, { name: 'smith', concurrency: 3 });
  await worker.start();
  await queue.addMany([
    { data: 1, id: 'a' },
    { data: 2, id: 'b' },
    { data: 3, id: 'c' },
  ]);
  await eventually(() => worker.running === 3);
  const { members, total } = await queue.crew();
  assert.deepEqual([members.length, total], [2, 2]);
  assert.equal(
    members.reduce((sum, { active }) => sum + active, 0),
    3,
  );
  for (const member of members) {
    assert.deepEqual([member.name, member.pid, member.concurrency], ['smith', process.pid, 3]);
    assert.ok(member.leaseLeftMs > 0);
  }
  assert.equal((await queue.crew({ limit: 1 })).total, 2);
  release.resolve();
});

test('a job of a chain tells who waits for it', async (t) => {
  const queue = bed.queue(t);
  const { jobs } = await createChain([
    { key: 'first', queue, data: 1 },
    { key: 'second', queue, data: 2, after: ['first'] },
  ]);
  assert.deepEqual(await queue.dependents(jobs['first']!.id), [
    { queue: queue.name, id: jobs['second']!.id },
  ]);
  assert.deepEqual(await queue.dependents(jobs['second']!.id), []);
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
