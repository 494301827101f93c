// How soon the jobs of a worker that died run again. This test measures milliseconds, so it runs alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually, Gathering, sleep, useRedis } from './setup.js';
import { leaseMs, startWorker } from './startWorker.js';

const bed = useRedis();

test('the jobs of a killed worker run again within lease + 1 s, and count no failed attempt', async (t) => {
  const queue = bed.queue<number>(t);
  const { child, heard } = await startWorker(t, bed, queue.name, 'hang');
  const { id } = await queue.add(1);
  await heard.reach(1);
  const again = new Gathering<{ attempt: number; crashes: number; at: number }>();
  await queue
    .work((job) => again.push({ attempt: job.attempt, crashes: job.crashes, at: performance.now() }), {
      leaseMs,
    })
    .start();
  await sleep(300);
  const killed = performance.now();
  child.kill('SIGKILL');
  const [run] = await again.reach(1);
  assert.ok(run!.at - killed < leaseMs + 1_000, `${run!.at - killed} ms`);
  assert.deepEqual([run!.attempt, run!.crashes], [1, 1]);
  await eventually(async () => (await queue.job(id)) === null);
});
