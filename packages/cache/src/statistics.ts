// What each family did in this process, counted in plain fields: a hit costs one addition.

export class FamilyCounts {
  nearHits = 0;
  redisHits = 0;
  /** Reads that a load answered, with a value or an error. */
  misses = 0;
  negativeHits = 0;
  /** Reads that were answered with a value which had expired: while it is refreshed, or because loading failed or was slow. */
  staleServed = 0;
  /** Loads that were begun, and of those that have ended how: well or with an error. */
  loads = 0;
  loaded = 0;
  loadErrors = 0;
  loadMs = 0;
  /** Readers that were served by a load which another reader, here or in another process, had begun. */
  coalesced = 0;
  /** Loads that went past Redis, because it was away. */
  bypassed = 0;
  earlyRefreshes = 0;
  /** Fills that were refused, because the value was invalidated during the load. */
  fillsRefused = 0;
  invalidations = 0;
  /** Values in Redis that were no envelope or did not fit the schema. */
  unreadable = 0;
  /** Of the values that were read from Redis. */
  remainingMs = 0;
  /** How long callers waited: for Redis, and for loads. A copy in this process costs no time that could be measured. */
  waitedMs = 0;
}

/** Adds what was counted, or what was counted since `before`. Another version of this program may not know all of the counts. */
export function addCounts(
  sum: FamilyCounts,
  counts: Partial<FamilyCounts>,
  before: Partial<FamilyCounts> = {},
): void {
  for (const name of Object.keys(sum) as (keyof FamilyCounts)[]) {
    sum[name] += Math.max(0, (counts[name] ?? 0) - (before[name] ?? 0));
  }
}

export interface FamilyStatistics extends Omit<FamilyCounts, 'remainingMs'> {
  family: string;
  /** Reads that were answered without a load, of all; undefined before the first one. */
  hitRate: number | undefined;
  averageLoadMs: number | undefined;
  /** How long the values that were read from Redis would still have been fresh, on average. */
  averageRemainingTtlMs: number | undefined;
}

export interface CacheStatistics {
  families: FamilyStatistics[];
  breaker: 'closed' | 'open';
  breakerOpenings: number;
  /** Whether Redis tells this process what changes; copies are kept only then. */
  isWatching: boolean;
  nearEntries: number;
  nearBytes: number;
  keptInvalidations: number;
  bypassLoadsRunning: number;
  bypassLoadsWaiting: number;
  /** Values of invalidated groups that this process has removed from Redis. */
  freedValues: number;
}

export function summarise(family: string, counts: FamilyCounts): FamilyStatistics {
  const { remainingMs, ...rest } = counts;
  const hits = counts.nearHits + counts.redisHits + counts.staleServed;
  return {
    family,
    ...rest,
    hitRate: share(hits, hits + counts.misses),
    averageLoadMs: share(counts.loadMs, counts.loads),
    averageRemainingTtlMs: share(remainingMs, counts.redisHits),
  };
}

function share(part: number, whole: number): number | undefined {
  return whole === 0 ? undefined : part / whole;
}
