/*
 * An installation with a bad day: a queue with a long backlog, one with many dead letters, and workers everywhere that wait.
 */
import { Queue } from '@sluice/queue';
import { addMany, buryMany } from '../fill.js';
import type { Sizes } from './sizes.js';

const QUEUES_WITH_WORKERS = 10;
const CLOSE_MS = 5_000;

export interface Scene {
  close(): Promise<void>;
}

export async function setScene(redisUrl: string, sizes: Sizes): Promise<Scene> {
  const backlog = new Queue('backlog', { redis: redisUrl });
  const dying = new Queue<{ n: number }>('dying', { redis: redisUrl, attempts: 1 });
  const idle = Array.from(
    { length: QUEUES_WITH_WORKERS },
    (_, i) => new Queue(`idle-${i}`, { redis: redisUrl }),
  );
  // Paused, so that nobody works it off while it is looked at.
  await backlog.pause();
  await addMany(backlog, sizes.waiting, (n) => ({ user: { id: n }, kind: 'thumbnail' }));
  await buryMany(dying, sizes.dead);
  for (let i = 0; i < sizes.workers; i++) await idle[i % idle.length]!.work(() => {}).start();
  const queues = [backlog, dying, ...idle];
  return {
    close: async () => void (await Promise.all(queues.map((queue) => queue.close(CLOSE_MS)))),
  };
}
