/** How long it takes to look at a great many dead letters. Measures time, so it runs with nothing beside it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRedis } from '@sluice/testbed';
import { buryDetail } from '../src/dead.js';
import { describeError } from '../src/fingerprint.js';
import { Queue } from '../src/queue.js';

test('groups of 100,000 dead letters are read in less than 50 ms, and so is a page of them', async () => {
  const redis = await startRedis({ appendonly: false });
  const queue = new Queue('graves', { redis: redis.url });
  try {
    await queue.ready();
    const bury = async (count: number, error: Error) => {
      const dead = buryDetail(describeError(error), 'test', Date.now(), 1);
      const jobs = await Promise.all(Array.from({ length: count }, async () => queue.prepare(1)));
      const batch = queue.producerFor(queue.partitions[0]!).gather();
      for (const job of jobs) batch.add({ ...job, dead }, 0);
      await batch.send();
    };
    const same = new Error('the same');
    for (let i = 0; i < 20; i++) {
      await bury(4_900, same);
      await bury(100, new TypeError(`other ${'x'.repeat(i + 1)}`));
    }
    const timed = async <T>(what: string, ask: () => Promise<T>) => {
      const startedMs = performance.now();
      const answer = await ask();
      const tookMs = performance.now() - startedMs;
      assert.ok(tookMs < 50, `${what} took ${tookMs} ms`);
      return answer;
    };
    const groups = await timed('groups', () => queue.dead.groups());
    const counts = groups.map(({ count }) => count);
    assert.deepEqual(counts, [98_000, ...Array.from({ length: 20 }, () => 100)]);
    const [largest] = groups;
    assert.match(largest!.title, /^Error: the same/);
    assert.ok(largest!.firstMs < largest!.lastMs);
    assert.equal((await queue.dead.groups({ limit: 3 })).length, 3);

    const { fingerprint } = largest!;
    const page = await timed('the first page', () => queue.dead.list({ fingerprint, limit: 50 }));
    const cursor = page.cursor!;
    const next = await timed('the next page', () => queue.dead.list({ fingerprint, limit: 50, cursor }));
    assert.deepEqual([page.letters.length, next.letters.length], [50, 50]);
    assert.equal(await timed('count', () => queue.dead.count()), 100_000);
  } finally {
    await queue.close();
    await redis.stop();
  }
});
