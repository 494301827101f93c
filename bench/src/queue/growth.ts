/*
 * Does a queue slow down as it fills? The same jobs are processed while something large is held in Redis: a small
 * backlog (the yardstick), a million waiting jobs, jobs that another session holds active, or jobs delayed far into
 * the future. The clock runs from the first claim until that many handlers have ended; the small backlog is held in
 * all four cases, so that they differ in one thing only.
 */
import { openContender, type Contender, type SystemName } from './contender.js';
import { fill } from './enqueue.js';
import { payloads } from './payload.js';
import { countTo, PROCESS_DEADLINE_MS } from './process.js';
import { BATCH_JOBS, BATCHES_IN_FLIGHT, CONCURRENCY, type Sizes } from './sizes.js';
import { inLanes, withDeadline } from '../waiting.js';

export const BACKLOGS = ['waiting10k', 'waiting1m', 'active50k', 'delayed100k'] as const;
export type Backlog = (typeof BACKLOGS)[number];

const FAR_FUTURE_MS = 24 * 3_600_000;

/** Jobs per second with the backlog held. */
export async function processBeside(
  backlog: Backlog,
  url: string,
  system: SystemName,
  sizes: Sizes['growth'],
): Promise<number> {
  const contender = await openContender(system, url);
  const release = await hold(backlog, url, system, contender, sizes);
  await fill(contender, sizes.few + sizes.jobs);

  const tally = countTo(sizes.jobs);
  const worker = await contender.prepareWorker({ concurrency: CONCURRENCY, handler: tally.handler });
  const startedAt = performance.now();
  worker.start();
  await withDeadline(tally.reached, PROCESS_DEADLINE_MS, `processing beside ${backlog}`);
  const elapsedMs = performance.now() - startedAt;

  await worker.stop();
  await release();
  await contender.close();
  return (sizes.jobs / elapsedMs) * 1_000;
}

async function hold(
  backlog: Backlog,
  url: string,
  system: SystemName,
  contender: Contender,
  sizes: Sizes['growth'],
): Promise<() => Promise<void>> {
  const nothingToRelease = async (): Promise<void> => {};
  switch (backlog) {
    case 'waiting10k':
      return nothingToRelease;
    case 'waiting1m':
      await fill(contender, sizes.waiting - sizes.few);
      return nothingToRelease;
    case 'delayed100k':
      await inLanes(BATCHES_IN_FLIGHT, Math.ceil(sizes.delayed / BATCH_JOBS), (index) => {
        const from = index * BATCH_JOBS;
        return contender.addDelayed(
          payloads(Math.min(BATCH_JOBS, sizes.delayed - from), from),
          FAR_FUTURE_MS,
        );
      });
      return nothingToRelease;
    case 'active50k':
      return holdActive(url, system, sizes.active);
  }
}

/** A second session claims jobs and does not let go until told to. */
async function holdActive(url: string, system: SystemName, jobs: number): Promise<() => Promise<void>> {
  const holder = await openContender(system, url);
  await fill(holder, jobs);
  let letGo = (): void => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const tally = countTo(jobs);
  const handler = async (): Promise<void> => {
    await tally.handler();
    await held;
  };
  const worker = await holder.prepareWorker({ concurrency: jobs, handler });
  worker.start();
  await withDeadline(tally.reached, PROCESS_DEADLINE_MS, `claiming ${jobs} jobs`);
  return async () => {
    letGo();
    await worker.stop();
    await holder.close();
  };
}
