// When delayed jobs start. These tests measure milliseconds, so they run alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gathering, useRedis } from './setup.js';

const bed = useRedis();

test('a delayed job starts at its time and not before', async (t) => {
  const queue = bed.queue<string>(t);
  const started = performance.now();
  const seen = new Gathering<number>();
  queue.work(() => seen.push(performance.now() - started));
  await queue.add('later', { delayMs: 300 });
  const [afterMs] = await seen.reach(1);
  assert.ok(afterMs! >= 295 && afterMs! < 600, `started after ${afterMs} ms`);
});

test('delayed jobs start within 50 ms of their time at p99, also on an idle queue', async (t) => {
  const queue = bed.queue<number>(t);
  const late = new Gathering<number>();
  const worker = queue.work((job) => late.push(Date.now() - job.data), { concurrency: 50 });
  await worker.start();
  const base = Date.now();
  for (let i = 0; i < 200; i++) {
    const at = base + 300 + i * 10;
    await queue.add(at, { runAt: at });
  }
  const sorted = (await late.reach(200)).toSorted((a, b) => a - b);
  assert.ok(sorted[197]! <= 50, `p99 is ${sorted[197]} ms late`);
  assert.ok(sorted[0]! >= -2, `one started ${-sorted[0]!} ms early`);
});
