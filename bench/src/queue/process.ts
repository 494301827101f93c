/*
 * Processing: a backlog is filled, a connected worker begins to claim, and the clock stops when every handler has
 * ended and Redis has nothing waiting or active in its books, which is to say that all is acknowledged.
 *
 * The same run tells what a job costs Redis: CPU time of its command thread over add, claim and acknowledge.
 */
import type { Contender } from './contender.js';
import { fill } from './enqueue.js';
import { CONCURRENCY } from './sizes.js';
import type { FreshRedis } from '../freshRedis.js';
import { until, withDeadline } from '../waiting.js';

export const PROCESS_DEADLINE_MS = 180_000;

export interface Processed {
  jobsPerSecond: number;
  redisCpuMicrosPerJob: number;
}

export async function processBacklog(
  redis: FreshRedis,
  contender: Contender,
  jobs: number,
): Promise<Processed> {
  const cpuBefore = await redis.cpuMicros();
  await fill(contender, jobs);

  const tally = countTo(jobs);
  const worker = await contender.prepareWorker({ concurrency: CONCURRENCY, handler: tally.handler });
  const startedAt = performance.now();
  worker.start();
  await withDeadline(tally.reached, PROCESS_DEADLINE_MS, `processing ${jobs} jobs`);
  await until(
    async () => (await contender.unfinished()) === 0,
    PROCESS_DEADLINE_MS,
    'the last acknowledgement',
  );
  const elapsedMs = performance.now() - startedAt;

  const cpuAfter = await redis.cpuMicros();
  await worker.stop();
  return { jobsPerSecond: (jobs / elapsedMs) * 1_000, redisCpuMicrosPerJob: (cpuAfter - cpuBefore) / jobs };
}

/** An async handler that does nothing but count, and a promise of the moment the count is reached. */
export function countTo(jobs: number): { handler: () => Promise<void>; reached: Promise<void> } {
  let count = 0;
  let announce = (): void => {};
  const reached = new Promise<void>((resolve) => (announce = resolve));
  const handler = async (): Promise<void> => {
    count += 1;
    if (count === jobs) announce();
  };
  return { handler, reached };
}
