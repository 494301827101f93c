/*
 * Processing: a backlog is filled, a connected worker begins to claim, and the clock stops when every handler has
 * ended and Redis has nothing waiting or active in its books, which is to say that all is acknowledged.
 */
import type { Contender } from './contender.js';
import { fill } from './enqueue.js';
import { CONCURRENCY } from './sizes.js';
import { until, withDeadline } from '../waiting.js';

export const PROCESS_DEADLINE_MS = 180_000;

/** Jobs per second. */
export async function processBacklog(contender: Contender, jobs: number): Promise<number> {
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

  await worker.stop();
  return (jobs / elapsedMs) * 1_000;
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
