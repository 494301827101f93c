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

    async prepareWorker({ concurrency, handler }) {
      let worker: ReturnType<typeof queue.work> | undefined;
      return {
        start: () => void (worker = queue.work(handler, { concurrency })),
        stop: async () => worker?.stop(),
      };
    },

    async unfinished() {
      const { waiting, active } = await queue.counts();
      return waiting + active;
    },

    close: () => queue.close(),
  };
}
