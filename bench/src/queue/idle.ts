/*
 * What happens when nothing happens: how soon an idle worker starts a job that arrives, what an idle worker costs
 * Redis, and whether a crowd of idle workers slows a busy one.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Contender, SystemName } from './contender.js';
import { payload } from './payload.js';
import { CONCURRENCY } from './sizes.js';
import type { FreshRedis } from '../freshRedis.js';
import { withDeadline } from '../waiting.js';

const PICK_UP_DEADLINE_MS = 10_000;

/** Milliseconds from the call of add to the start of the handler, one sample after the other. */
export async function pickUpLatency(
  contender: Contender,
  samples: number,
  pauseMs: number,
): Promise<number[]> {
  let started = (_at: number): void => {};
  const handler = async (): Promise<void> => started(performance.now());
  const worker = await contender.prepareWorker({ concurrency: CONCURRENCY, handler });
  worker.start();

  const latenciesMs: number[] = [];
  for (let index = 0; index < samples; index++) {
    // Uneven pauses, so that samples do not fall in step with a timer of the system.
    await sleep(pauseMs * (0.5 + Math.random()));
    const startedAt = new Promise<number>((resolve) => (started = resolve));
    const addedAt = performance.now();
    const added = contender.addOne(payload(index));
    latenciesMs.push((await withDeadline(startedAt, PICK_UP_DEADLINE_MS, 'picking up a job')) - addedAt);
    await added;
  }
  await worker.stop();
  return latenciesMs;
}

const SETTLE_MS = 1_000;

/** Commands per second that Redis gets from one worker without work. */
export async function idleCommands(
  redis: FreshRedis,
  contender: Contender,
  watchMs: number,
): Promise<number> {
  const worker = await contender.prepareWorker({ concurrency: CONCURRENCY, handler: async () => {} });
  worker.start();
  await sleep(SETTLE_MS);
  const commands = await redis.countCommands(watchMs);
  await worker.stop();
  return commands / (watchMs / 1_000);
}

export interface Crowd {
  alone: number[];
  crowded: number[];
}

/** Throughput of one worker, without and with a crowd of idle workers of another queue on the same Redis. */
export async function besideIdleWorkers(
  redis: FreshRedis,
  system: SystemName,
  workers: number,
  measure: () => Promise<number[]>,
): Promise<Crowd> {
  await redis.reset();
  const alone = await measure();
  // No reset from here on: it would wipe the sessions of the crowd.
  const dismiss = await gatherCrowd(redis.url, system, workers);
  try {
    return { alone, crowded: await measure() };
  } finally {
    await dismiss();
  }
}

const GATHER_DEADLINE_MS = 120_000;
const DISMISS_DEADLINE_MS = 30_000;

/** The crowd lives in a process of its own, as idle workers elsewhere would. */
async function gatherCrowd(url: string, system: SystemName, workers: number): Promise<() => Promise<void>> {
  const program = fileURLToPath(new URL('./crowd.js', import.meta.url));
  const crowd = fork(program, [system, url, String(workers)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const dismiss = async (): Promise<void> => {
    crowd.disconnect();
    const ended = crowd.exitCode === null ? once(crowd, 'exit') : Promise.resolve([]);
    await withDeadline(ended, DISMISS_DEADLINE_MS, 'the end of the idle workers').finally(() =>
      crowd.kill('SIGKILL'),
    );
  };
  await withDeadline(once(crowd, 'message'), GATHER_DEADLINE_MS, `starting ${workers} idle workers`);
  return dismiss;
}
