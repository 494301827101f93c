/*
 * Queues that are full: of jobs that wait, or of jobs that died.
 */
import { GiveUp, type Queue } from '@sluice/queue';
import { until } from './waiting.js';

const ADDED_AT_ONCE = 10_000;
const FILL_DEADLINE_MS = 300_000;
const CAUSES = 'abcdefghijklmnopqrst';

export async function addMany<Data>(
  queue: Queue<Data>,
  count: number,
  make: (n: number) => Data,
): Promise<void> {
  for (let from = 0; from < count; from += ADDED_AT_ONCE) {
    const length = Math.min(ADDED_AT_ONCE, count - from);
    await queue.addMany(Array.from({ length }, (_, i) => ({ data: make(from + i) })));
  }
}

/** Every job dies; causes repeat, with numbers in their messages that vary. */
export async function buryMany(queue: Queue<{ n: number }>, count: number): Promise<void> {
  const worker = queue.work(
    ({ data: { n } }) => {
      throw new GiveUp(`step ${CAUSES[n % CAUSES.length]} failed for document ${n}`);
    },
    { concurrency: 500 },
  );
  await addMany(queue, count, (n) => ({ n }));
  await until(async () => (await queue.dead.count()) === count, FILL_DEADLINE_MS, 'the burial of all jobs');
  await worker.stop();
}
