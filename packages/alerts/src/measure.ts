// The figures behind the thresholds, from what inspect knows anyway: one snapshot, the minutes of the last hour, and the causes of death.
// A share of next to nothing says nothing: below twenty jobs or a hundred reads a figure is not known.
import type { Inspect, Snapshot } from '@sluice/inspect';
import type { ThresholdName } from './threshold.js';

const hourMs = 3_600_000;
const fewestJobs = 20;
const fewestReads = 100;
const causes = 500;
/** The row of all caches together. */
const allCaches = '*';

export type Figures = Partial<Record<ThresholdName, number>>;
export type Questions = Pick<Inspect, 'snapshot' | 'series' | 'deadGroups'>;

export interface Measured {
  /** By the clock of Redis. */
  atMs: number;
  figures: Figures;
}

/** Throws while Redis is away: nothing is judged then. */
export async function measure(inspect: Questions): Promise<Measured> {
  const snapshot = await inspect.snapshot();
  if (snapshot.problem) throw new Error(snapshot.problem.message);
  const [hour, cache, oldest] = await Promise.all([
    jobsOf(inspect, snapshot),
    cacheOf(inspect, snapshot),
    oldestDeath(inspect, snapshot),
  ]);
  const { atMs, queues, redis } = snapshot;
  const share = (part: number, whole: number, fewest: number) => (whole >= fewest ? part / whole : undefined);
  const all: Record<ThresholdName, number | undefined> = {
    deadLetters: queues.reduce((sum, { counts }) => sum + counts.dead, 0),
    oldestDeadLetter: oldest === undefined ? 0 : Math.max(0, atMs - oldest) / 1_000,
    retrySuccess: share(hour.failed, hour.failed + hour.died, fewestJobs),
    averageRetries: share(hour.failed, hour.done, fewestJobs),
    permanentFailures: share(hour.died, hour.done + hour.died, fewestJobs),
    hitRate: cache && share(cache.hits, cache.reads, fewestReads),
    redisMemory: redis && redis.maxBytes > 0 ? redis.usedBytes / redis.maxBytes : undefined,
  };
  return { atMs, figures: all };
}

async function jobsOf(inspect: Questions, { queues, atMs }: Snapshot) {
  const fromMs = atMs - hourMs;
  const series = await Promise.all(
    queues.map(({ name }) => inspect.series({ queue: name, step: 'minute', fromMs })),
  );
  // The present minute is not history yet.
  const minutes = [
    ...series.flatMap(({ points }) => points.map(({ figures }) => figures ?? {})),
    ...queues.map(({ minute }) => ({ done: minute.done, failed: minute.failed, died: minute.dead })),
  ];
  return { done: sum(minutes, 'done'), failed: sum(minutes, 'failed'), died: sum(minutes, 'died') };
}

async function cacheOf(inspect: Questions, { cache, atMs }: Snapshot) {
  if (!cache) return undefined;
  const { points } = await inspect.series({ cache: allCaches, step: 'minute', fromMs: atMs - hourMs });
  const minutes = points.map(({ figures }) => figures ?? {});
  return { hits: sum(minutes, 'hits'), reads: sum(minutes, 'reads') };
}

async function oldestDeath(inspect: Questions, { queues }: Snapshot): Promise<number | undefined> {
  if (queues.every(({ counts }) => counts.dead === 0)) return undefined;
  const { items } = await inspect.deadGroups({ limit: causes });
  return items.length === 0 ? undefined : Math.min(...items.map(({ firstMs }) => firstMs));
}

function sum(minutes: readonly Record<string, number | undefined>[], name: string): number {
  return minutes.reduce((total, figures) => total + (figures[name] ?? 0), 0);
}
