/*
 * Watches what a server keeps in memory while it is busy: the resident memory of its process and the memory of the Redis
 * that holds chunks on their way, every 100 ms.
 *
 * A server that keeps what it should pass on grows as long as bytes arrive. So the samples are cut in two halves: memory
 * that is flat has its highest point in the first one, or not much higher in the second.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { UploadServer } from './side.js';
import { residentBytes } from '../processCost.js';

const SAMPLE_MS = 100;

export interface MemoryFindings {
  /** The highest of each second, from before the first upload. */
  rssBySecond: number[];
  rssMaxBytes: number;
  /** Highest of the second half less highest of the first. */
  rssGrowthBytes: number;
  /** Highest since its start, as Redis itself remembers it; NaN if the server has no such Redis. */
  redisPeakBytes: number;
  redisBudgetBytes: number;
}

export async function watchMemory(
  server: UploadServer,
  work: () => Promise<unknown>,
): Promise<MemoryFindings> {
  const samples: number[] = [];
  const worked = new AbortController();
  const sampling = (async () => {
    while (!worked.signal.aborted) {
      samples.push(await residentBytes(server.pid));
      await sleep(SAMPLE_MS);
    }
  })();
  try {
    await work();
  } finally {
    worked.abort();
    await sampling;
  }
  const redisPeakBytes = server.chunks ? await peakBytes(server.chunks.redisUrl) : Number.NaN;
  return {
    ...summarise(samples),
    rssBySecond: highestOfEach(samples, 1_000 / SAMPLE_MS),
    redisPeakBytes,
    redisBudgetBytes: server.chunks?.budgetBytes ?? Number.NaN,
  };
}

export function summarise(samples: readonly number[]): { rssMaxBytes: number; rssGrowthBytes: number } {
  const middle = Math.ceil(samples.length / 2);
  const [first, second] = [samples.slice(0, middle), samples.slice(middle)];
  const rssMaxBytes = Math.max(...samples);
  if (second.length === 0) return { rssMaxBytes, rssGrowthBytes: 0 };
  return { rssMaxBytes, rssGrowthBytes: Math.max(...second) - Math.max(...first) };
}

function highestOfEach(samples: readonly number[], many: number): number[] {
  const count = Math.ceil(samples.length / many);
  return Array.from({ length: count }, (_, n) => Math.max(...samples.slice(n * many, (n + 1) * many)));
}

async function peakBytes(redisUrl: string): Promise<number> {
  const redis = new Redis(redisUrl);
  try {
    return Number(/^used_memory_peak:(\d+)/m.exec(await redis.info('memory'))?.[1]);
  } finally {
    redis.disconnect();
  }
}
