/*
 * What is looked at: queues full of waiting jobs, with workers that sleep, and queues that die or work on demand.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { GiveUp, Queue } from '@sluice/queue';
import { until } from '../waiting.js';
import type { Sizes } from './sizes.js';

const ADDED_AT_ONCE = 10_000;
const TICK_MS = 20;
const FILL_DEADLINE_MS = 300_000;
const CAUSES = 20;

/** Paused, so that the jobs wait, and workers that come sleep. */
export async function fillQueues(url: string, sizes: Sizes): Promise<Queue[]> {
  const queues = Array.from({ length: sizes.queues }, (_, i) => new Queue(`q${i}`, { redis: url }));
  for (const queue of queues) {
    await queue.pause();
    await addMany(queue, sizes.jobsEach, (n) => ({ user: { id: n }, kind: 'thumbnail' }));
  }
  return queues;
}

export async function startWorkers(queues: readonly Queue[], { workersEach }: Sizes): Promise<void> {
  for (const queue of queues) {
    for (let i = 0; i < workersEach; i++) await queue.work(() => {}).start();
  }
}

/** One queue that works off what is added at a steady rate. */
export async function steadyLoad(queue: Queue, { jobsPerSecond, loadMs }: Sizes): Promise<void> {
  const startMs = performance.now();
  let added = 0;
  for (let now = startMs; now < startMs + loadMs; now = performance.now()) {
    const due = Math.floor(((now - startMs) * jobsPerSecond) / 1_000) - added;
    added += due;
    await Promise.all(Array.from({ length: due }, (_, n) => queue.add({ n })));
    await sleep(TICK_MS);
  }
}

/** Every job dies; causes repeat, with numbers in their messages that vary. */
export async function buryMany(queue: Queue<{ n: number }>, count: number): Promise<void> {
  const worker = queue.work(
    ({ data: { n } }) => {
      throw new GiveUp(`step ${'abcdefghijklmnopqrst'[n % CAUSES]} failed for document ${n}`);
    },
    { concurrency: 500 },
  );
  await addMany(queue, count, (n) => ({ n }));
  await until(async () => (await queue.dead.count()) === count, FILL_DEADLINE_MS, 'the burial of all jobs');
  await worker.stop();
}

async function addMany<Data>(queue: Queue<Data>, count: number, make: (n: number) => Data): Promise<void> {
  for (let from = 0; from < count; from += ADDED_AT_ONCE) {
    const length = Math.min(ADDED_AT_ONCE, count - from);
    await queue.addMany(Array.from({ length }, (_, i) => ({ data: make(from + i) })));
  }
}
