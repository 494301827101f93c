/*
 * What a system can be asked to do in its turn, as plain data: a turn is taken in a process of the system's own
 * (`booth.ts`), and this is what travels there and back.
 *
 * Before a throughput is measured, the same is done with fewer jobs of another queue, which do not count. While the
 * others had their turns, the engine has thrown away compiled code and shrunk its heap, and getting them back would
 * take as long as a fast system needs for its jobs.
 */
import { Redis } from 'ioredis';
import { openContender, type Contender, type SystemName } from './contender.js';
import { enqueueBatches, enqueueBulk, enqueueSingle } from './enqueue.js';
import { processBeside, type Backlog } from './growth.js';
import { pickUpLatency } from './idle.js';
import { processBacklog } from './process.js';
import type { Sizes } from './sizes.js';

export type Turn =
  | { kind: Rate; jobs: number; warmUpJobs: number }
  | { kind: 'pickUp'; samples: number; pauseMs: number }
  | { kind: 'growth'; backlog: Backlog; sizes: Sizes['growth'] };

type Rate = 'enqueueBulk' | 'enqueueBatches' | 'enqueueSingle' | 'process';

export interface Taken {
  /** Jobs per second; for `pickUp` the latencies in milliseconds. */
  figures: number[];
  /** CPU time of the thread of Redis that runs commands. */
  redisCpuMicros: number;
}

const MEASURES: Record<Rate, (contender: Contender, jobs: number) => Promise<number>> = {
  enqueueBulk,
  enqueueBatches,
  enqueueSingle,
  process: processBacklog,
};

export async function takeTurn(turn: Turn, system: SystemName, url: string): Promise<Taken> {
  if ('warmUpJobs' in turn) {
    await inQueue(system, url, 'warm-up', (contender) => MEASURES[turn.kind](contender, turn.warmUpJobs));
  }
  const redis = new Redis(url);
  try {
    const before = await cpuMicros(redis);
    const figures = await measure(turn, system, url);
    return { figures, redisCpuMicros: (await cpuMicros(redis)) - before };
  } finally {
    redis.disconnect();
  }
}

async function measure(turn: Turn, system: SystemName, url: string): Promise<number[]> {
  switch (turn.kind) {
    case 'growth':
      return [await processBeside(turn.backlog, url, system, turn.sizes)];
    case 'pickUp':
      return inQueue(system, url, 'bench', (c) => pickUpLatency(c, turn.samples, turn.pauseMs));
    default:
      return [await inQueue(system, url, 'bench', (c) => MEASURES[turn.kind](c, turn.jobs))];
  }
}

async function inQueue<T>(
  system: SystemName,
  url: string,
  queueName: string,
  work: (contender: Contender) => Promise<T>,
): Promise<T> {
  const contender = await openContender(system, url, queueName);
  try {
    return await work(contender);
  } finally {
    await contender.close();
  }
}

async function cpuMicros(redis: Redis): Promise<number> {
  const text = await redis.info('cpu');
  const seconds = (mode: string): number =>
    Number(new RegExp(`^used_cpu_${mode}_main_thread:(.*)$`, 'm').exec(text)?.[1]);
  return (seconds('user') + seconds('sys')) * 1e6;
}
