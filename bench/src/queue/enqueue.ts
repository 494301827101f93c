/*
 * The three ways to add jobs, in jobs per second. The payloads exist before the clock starts; what a system makes of
 * them (its own objects, ids, JSON) is part of the measurement.
 */
import type { Contender } from './contender.js';
import { payload, payloads } from './payload.js';
import { BATCH_JOBS, BATCHES_IN_FLIGHT, SINGLES_IN_FLIGHT } from './sizes.js';
import { inLanes, withDeadline } from '../waiting.js';

const ENQUEUE_DEADLINE_MS = 120_000;

/** One call with all jobs. */
export async function enqueueBulk(contender: Contender, jobs: number): Promise<number> {
  const all = payloads(jobs);
  return jobsPerSecond(jobs, () => contender.addMany(all));
}

/** Calls of 1,000 jobs, four in flight. */
export async function enqueueBatches(contender: Contender, jobs: number): Promise<number> {
  const batches = Array.from({ length: jobs / BATCH_JOBS }, (_, i) => payloads(BATCH_JOBS, i * BATCH_JOBS));
  return jobsPerSecond(jobs, () =>
    inLanes(BATCHES_IN_FLIGHT, batches.length, (index) => contender.addMany(batches[index] ?? [])),
  );
}

/** One awaited promise per job, 1,000 in flight. */
export async function enqueueSingle(contender: Contender, jobs: number): Promise<number> {
  const all = payloads(jobs);
  return jobsPerSecond(jobs, () =>
    inLanes(SINGLES_IN_FLIGHT, jobs, (index) => contender.addOne(all[index] ?? payload(index))),
  );
}

/** Puts jobs in a queue as fast as the system can, with payloads made on the way; not a measurement. */
export async function fill(contender: Contender, jobs: number): Promise<void> {
  await inLanes(BATCHES_IN_FLIGHT, Math.ceil(jobs / BATCH_JOBS), (index) => {
    const from = index * BATCH_JOBS;
    return contender.addMany(payloads(Math.min(BATCH_JOBS, jobs - from), from));
  });
}

async function jobsPerSecond(jobs: number, add: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await withDeadline(add(), ENQUEUE_DEADLINE_MS, `adding ${jobs} jobs`);
  return (jobs / (performance.now() - startedAt)) * 1_000;
}
