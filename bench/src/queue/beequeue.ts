/*
 * bee-queue set up for speed, by reading its source (its settings were not tried against each other): saveAll (a
 * pipeline) for many jobs, no events sent or received, no jobs kept in memory or in Redis once they end. Its worker
 * activates delayed jobs, without which a backoff would never end, and checks for stalled jobs, without which a lost
 * job would never come back.
 */
import BeeQueue from 'bee-queue';
import { ATTEMPTS, BACKOFF_MS, remark, type Contender } from './contender.js';
import type { Payload } from './payload.js';

const STALLED_CHECK_MS = 5_000;

export async function openBeequeue(url: string, queueName: string): Promise<Contender> {
  const settings: BeeQueue.QueueSettings = {
    redis: { url },
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
    removeOnFailure: true,
    ensureScripts: true,
  };
  const producer = new BeeQueue<Payload>(queueName, { ...settings, isWorker: false });
  producer.on('error', (error) => remark('beequeue', error));
  await producer.ready();

  const job = (payload: Payload): BeeQueue.Job<Payload> =>
    producer
      .createJob(payload)
      .retries(ATTEMPTS - 1)
      .backoff('exponential', BACKOFF_MS);
  const saveAll = async (jobs: BeeQueue.Job<Payload>[]): Promise<void> => {
    for (const error of (await producer.saveAll(jobs)).values()) throw error;
  };

  return {
    addOne: (payload) => job(payload).save(),
    addMany: (payloads) => saveAll(payloads.map(job)),
    addDelayed: (payloads, delayMs) =>
      saveAll(payloads.map((payload) => job(payload).delayUntil(Date.now() + delayMs))),

    async prepareWorker({ concurrency, handler }) {
      const worker = new BeeQueue<Payload>(queueName, {
        ...settings,
        isWorker: true,
        activateDelayedJobs: true,
      });
      worker.on('error', (error) => remark('beequeue', error));
      await worker.ready();
      return {
        start() {
          worker.process(concurrency, handler);
          void worker.checkStalledJobs(STALLED_CHECK_MS);
        },
        stop: () => worker.close(),
      };
    },

    async unfinished() {
      const { waiting, active } = await producer.checkHealth();
      return waiting + active;
    },

    close: () => producer.close(),
  };
}
