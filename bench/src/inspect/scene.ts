/*
 * What is looked at: queues full of waiting jobs and with some dead letters, with workers that sleep, and one that works on demand.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from '@sluice/queue';
import { addMany, buryMany } from '../fill.js';
import type { Sizes } from './sizes.js';

const TICK_MS = 20;

/** Paused, so that the jobs wait, and workers that come sleep. */
export async function fillQueues(url: string, sizes: Sizes): Promise<Queue[]> {
  const queues = Array.from({ length: sizes.queues }, (_, i) => new Queue(`q${i}`, { redis: url }));
  for (const queue of queues) {
    await buryMany(queue as Queue<{ n: number }>, sizes.lettersEach);
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
