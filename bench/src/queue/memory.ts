/*
 * Memory per waiting job: by how much Redis grows when that many jobs wait, everything included that the
 * system keeps beside the payload (ids, lists, request ids, counters). Ids are the ones the system makes.
 */
import type { Contender } from './contender.js';
import { fill } from './enqueue.js';
import type { FreshRedis } from '../freshRedis.js';

export async function bytesPerWaitingJob(
  redis: FreshRedis,
  contender: Contender,
  jobs: number,
): Promise<number> {
  const before = await redis.usedBytes();
  await fill(contender, jobs);
  return ((await redis.usedBytes()) - before) / jobs;
}
