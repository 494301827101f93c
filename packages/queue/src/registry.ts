// Which queues are there? Each enters its name and its number of partitions into one hash when a process opens it: producers, workers
// and those who only look alike, never on the way of a job. So an API or a dashboard finds every queue that anybody uses, and needs
// no list of its own.
//
// The hash is an index and nothing depends on it. Somebody whose rights end at one queue cannot write it: the queue then works as
// ever, and is not found unless somebody else opens it.
import { isSluiceError } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import type { CallOptions, RedisTarget } from '@sluice/redis';
import { defaultPrefix, sharedKeys } from './keys.js';
import type { AnyQueue } from './queue.js';
import { sharedScripts } from './scripts.js';

export interface ListedQueue {
  name: string;
  partitions: number;
}

/** All queues that were ever opened with this prefix and were not forgotten since, by name. */
export async function listQueues(
  redis: string | RedisTarget | RedisLink,
  { prefix = defaultPrefix, deadlineMs }: { prefix?: string; deadlineMs?: number } = {},
): Promise<ListedQueue[]> {
  const link = redis instanceof RedisLink ? redis : new RedisLink(redis, { name: 'sluice-list' });
  try {
    const options = deadlineMs === undefined ? {} : { deadlineMs };
    const reply = (await link.call('HGETALL', [sharedKeys(prefix).queues], options)) as Buffer[];
    const listed: ListedQueue[] = [];
    for (let i = 0; i < reply.length; i += 2)
      listed.push({ name: String(reply[i]), partitions: Number(reply[i + 1]) });
    return listed.sort((a, b) => (a.name < b.name ? -1 : 1));
  } finally {
    if (link !== redis) link.close();
  }
}

/** Part of opening a queue. */
export async function enlist(queue: AnyQueue, options: CallOptions): Promise<void> {
  const { link } = queue.partitions[0]!;
  const keys = sharedKeys(queue.options.prefix ?? defaultPrefix);
  try {
    await link.run(
      sharedScripts.enlist,
      keys,
      { name: queue.name, partitions: queue.partitions.length },
      options,
    );
  } catch (error) {
    if (!isSluiceError(error, 'REDIS_REFUSED')) throw error;
    queue.logger.warn(
      { error, queue: queue.name },
      'the queue works, but may not enter itself into the list',
    );
  }
}

/**
 * Takes a queue that nobody needs out of the list; false when it still has jobs, workers or schedules. Whoever opens it again
 * enters it again.
 */
export async function forget(queue: AnyQueue): Promise<boolean> {
  const { waiting, delayed, blocked, active, dead, workers } = await queue.counts();
  if (waiting + delayed + blocked + active + dead + workers > 0) return false;
  const schedules = await Promise.all(
    queue.partitions.map(({ link, keys }) => link.call('HLEN', [keys.schedules])),
  );
  if (schedules.some((count) => Number(count) > 0)) return false;
  const { queues } = sharedKeys(queue.options.prefix ?? defaultPrefix);
  await queue.partitions[0]!.link.call('HDEL', [queues, queue.name]);
  return true;
}
