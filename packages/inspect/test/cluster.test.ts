// On a cluster the partitions of a queue are on several masters, and the history on one of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Queue } from '@sluice/queue';
import { startCluster } from '@sluice/testbed';
import { Inspect } from '../src/index.js';
import { eventually } from './setup.js';

test('on a cluster all masters are looked at, jobs are found in all partitions, and history is kept', async (t) => {
  const cluster = await startCluster({ masters: 3, replicasPer: 0 });
  t.after(() => cluster.stop());
  const queue = new Queue<number>('mail', { redis: cluster.url, partitions: 4 });
  t.after(() => queue.close(500));
  await queue.pause();
  await queue.addMany(Array.from({ length: 200 }, (_, n) => ({ data: n })));
  const inspect = new Inspect({ redis: cluster.url, queues: [queue], everyMs: 100 });
  t.after(() => inspect.close());
  await inspect.start();
  inspect.watch(() => {});
  const snapshot = await inspect.snapshot();
  assert.equal(snapshot.redis?.masters, 3);
  assert.ok(snapshot.redis.keys > 0);
  assert.equal(snapshot.queues[0]?.counts.waiting, 200);
  const ids = new Set<string>();
  for (let cursor: string | undefined; ;) {
    const page = await inspect.jobs('mail', {
      states: ['waiting'],
      ...(cursor !== undefined && { cursor }),
    });
    for (const { id } of page.items) ids.add(id);
    if (page.cursor === null) break;
    cursor = page.cursor;
  }
  assert.equal(ids.size, 200);
  await eventually(async () => {
    const { points } = await inspect.series({ queue: 'mail', step: 'minute' });
    return points.some(({ figures }) => figures !== null);
  });
});
