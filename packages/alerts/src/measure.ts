// The figures behind the thresholds, from what inspect knows anyway: one snapshot, the minutes of the last hour, and the causes of death.
// A share of next to nothing says nothing: below twenty jobs or a hundred reads a figure is not known.
//
// Whether retries help would be known best by following each job that failed; queues count outcomes by the minute, and nothing about which
// job it was. So retries are weighed instead: those that were spent on jobs which died in the end did not help. How many that were is
// told by the dead letters, which know how often they ran, on average over the newest of each queue.
import type { Inspect, Snapshot } from '@sluice/inspect';
import type { ThresholdName } from './threshold.js';

const hourMs = 3_600_000;
const fewestJobs = 20;
const fewestReads = 1_000;
const fewestLoads = 20;
const causes = 500;
/** The row of all caches together. */
const allCaches = '*';

export type Figures = Partial<Record<ThresholdName, number>>;
export type Questions = Pick<Inspect, 'snapshot' | 'series' | 'deadGroups' | 'deadSummaries'>;

export interface Measured {
  /** By the clock of Redis. */
  atMs: number;
  figures: Figures;
}

/** Throws while Redis is away: nothing is judged then. */
export async function measure(inspect: Questions): Promise<Measured> {
  const snapshot = await inspect.snapshot();
  if (snapshot.problem) throw new Error(snapshot.problem.message);
  const stored = (snapshot.cache?.families ?? []).filter(({ from }) => from === 'storage');
  const [jobs, cache, storage, oldest] = await Promise.all([
    jobsOf(inspect, snapshot),
    cacheOf(inspect, snapshot, [allCaches]),
    cacheOf(
      inspect,
      snapshot,
      stored.map(({ family }) => family),
    ),
    oldestDeath(inspect, snapshot),
  ]);
  const { atMs, queues, redis } = snapshot;
  const hour = { done: sum(jobs, 'done'), failed: sum(jobs, 'failed'), died: sum(jobs, 'died') };
  const wasted = await retriesInVain(inspect, jobs);
  const share = (part: number, whole: number, fewest: number) => (whole >= fewest ? part / whole : undefined);
  const all: Record<ThresholdName, number | undefined> = {
    deadLetters: queues.reduce((sum, { counts }) => sum + counts.dead, 0),
    oldestDeadLetter: oldest === undefined ? 0 : Math.max(0, atMs - oldest) / 1_000,
    retrySuccess: wasted === undefined ? undefined : share(hour.failed - wasted, hour.failed, fewestJobs),
    averageRetries: share(hour.failed, hour.done, fewestJobs),
    permanentFailures: share(hour.died, hour.done + hour.died, fewestJobs),
    hitRate: cache && share(cache.hits, cache.reads, fewestReads),
    queriesSaved: loadsSaved(cache),
    storageCallsSaved: loadsSaved(storage),
    timeSaved: timeSaved(cache),
    redisMemory: redis && redis.maxBytes > 0 ? redis.usedBytes / redis.maxBytes : undefined,
  };
  return { atMs, figures: all };
}

/** Attempts that failed and were followed by another one, and how jobs ended. */
interface JobsOfHour {
  queue: string;
  done: number;
  failed: number;
  died: number;
}

async function jobsOf(inspect: Questions, { queues, atMs }: Snapshot) {
  const fromMs = atMs - hourMs;
  return Promise.all(
    queues.map(async ({ name, minute }): Promise<JobsOfHour> => {
      const { points } = await inspect.series({ queue: name, step: 'minute', fromMs });
      // The present minute is not history yet.
      const now = { done: minute.done, failed: minute.failed, died: minute.dead };
      const minutes = [...points.map(({ figures }) => figures ?? {}), now];
      const [done, failed, died] = [sum(minutes, 'done'), sum(minutes, 'failed'), sum(minutes, 'died')];
      return { queue: name, done, failed, died };
    }),
  );
}

/** Retries of jobs that died in the end; undefined when their letters are gone, and nobody knows. */
async function retriesInVain(inspect: Questions, jobs: readonly JobsOfHour[]): Promise<number | undefined> {
  const deadly = jobs.filter(({ failed, died }) => failed > 0 && died > 0);
  if (deadly.length === 0) return 0;
  const letters = new Map((await inspect.deadSummaries()).map((summary) => [summary.queue, summary]));
  let wasted = 0;
  for (const { queue, failed, died } of deadly) {
    const runs = letters.get(queue)?.averageAttempts;
    if (typeof runs !== 'number') return undefined;
    // The first run is no retry. Some of those that died now were retried before this hour.
    wasted += Math.min(failed, died * (runs - 1));
  }
  return wasted;
}

/** Of these families together. */
async function cacheOf(inspect: Questions, { cache, atMs }: Snapshot, families: readonly string[]) {
  if (!cache) return undefined;
  const fromMs = atMs - hourMs;
  const all = await Promise.all(
    families.map((family) => inspect.series({ cache: family, step: 'minute', fromMs })),
  );
  const minutes = all.flatMap(({ points }) => points.map(({ figures }) => figures ?? {}));
  const of = (name: string) => sum(minutes, name);
  return {
    ...{ hits: of('hits'), reads: of('reads') },
    ...{ loads: of('loads'), loadMs: of('loadMs'), waitedMs: of('waitedMs') },
  };
}

type CacheOfHour = Awaited<ReturnType<typeof cacheOf>>;

/** Against an operation without a cache, in which every read would be a load. */
function loadsSaved(cache: CacheOfHour): number | undefined {
  if (!cache || cache.reads < fewestReads) return undefined;
  return Math.max(0, 1 - cache.loads / cache.reads);
}

/** And would take as long as the loads did. */
function timeSaved(cache: CacheOfHour): number | undefined {
  if (!cache || cache.reads < fewestReads || cache.loads < fewestLoads) return undefined;
  const withoutMs = (cache.reads * cache.loadMs) / cache.loads;
  return withoutMs > 0 ? Math.max(0, 1 - cache.waitedMs / withoutMs) : undefined;
}

async function oldestDeath(inspect: Questions, { queues }: Snapshot): Promise<number | undefined> {
  if (queues.every(({ counts }) => counts.dead === 0)) return undefined;
  const { items } = await inspect.deadGroups({ limit: causes });
  return items.length === 0 ? undefined : Math.min(...items.map(({ firstMs }) => firstMs));
}

function sum<Name extends string>(
  minutes: readonly Partial<Record<Name, number | undefined>>[],
  name: Name,
): number {
  return minutes.reduce((total, figures) => total + (figures[name] ?? 0), 0);
}
