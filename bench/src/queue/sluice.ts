/*
 * Sluice as it comes: the defaults already mean three runs with backoff, leases, tokens and metrics.
 */
import { Queue } from '@sluice/queue';
import type { Contender } from './contender.js';
import type { Payload } from './payload.js';

export async function openSluice(url: string, queueName: string): Promise<Contender> {
  const queue = new Queue<Payload>(queueName, { redis: url });
  await queue.counts(); // The first call connects.

  return {
    addOne: (payload) => queue.add(payload),
    addMany: (payloads) => queue.addMany(payloads.map((data) => ({ data }))),
    addDelayed: (payloads, delayMs) => queue.addMany(payloads.map((data) => ({ data, delayMs }))),

    // The peers connect their workers before the clock runs; ours connects to a paused queue, which starting resumes.
    async prepareWorker({ concurrency, handler }) {
      await queue.pause();
      const worker = queue.work(handler, { concurrency });
      await worker.start();
      return {
        start: () => void queue.resume(),
        stop: () => worker.stop(),
      };
    },

    async unfinished() {
      const { waiting, active } = await queue.counts();
      return waiting + active;
    },

    close: () => queue.close(),
  };
}
