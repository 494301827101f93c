// What the caches of all processes do, family by family: each process publishes what it has counted every few seconds, and here it is
// added up. Rates compare two looks process by process, so that a process which ends or begins anew does not turn a sum around.
import { addCounts, countsBetween, FamilyCounts, readPublished, summarise, sumCounts } from '@sluice/cache';
import type { CountedFamily, FamilyStatistics, PublishedCache, Source } from '@sluice/cache';
import type { RedisLink } from '@sluice/redis';
import type { Problem } from './snapshot.js';

/** The row of all families together; no family can be called so. */
export const allFamilies = '*';
/** As long as the shortest step of the history, so that no outage falls between two of them. */
const recentlyMs = 60_000;
/** One that has missed so many publications is not there any more. */
const missedToEnd = 4;

/** Per second, between this look and the one before. */
export interface CacheRates {
  reads: number;
  hits: number;
  loads: number;
}

export interface CacheFamilyRow extends FamilyStatistics {
  /** So large a share of reads should be hits, as its definition says; null where it says nothing. */
  hitGoal: number | null;
  /** What its loads are calls of, where it is not the database. */
  from: Source | null;
  processes: number;
  /**
   * Those of the processes that could not reach Redis at some moment of the last minute: their readers went to the loader. A process
   * tells so when it can reach it again; one that still cannot is silent, and soon not among the processes any more.
   */
  openBreakers: number;
  rates: CacheRates | null;
}

export interface CacheProcessRow extends Omit<PublishedCache, 'families'> {
  /** Since it published. */
  ageMs: number;
  /** False for one that ended a short while ago: what it counted is still in the sums. */
  isAlive: boolean;
}

export interface CacheSnapshot {
  /** By name. */
  families: CacheFamilyRow[];
  /** All of them. */
  total: CacheFamilyRow;
  processes: CacheProcessRow[];
  problem?: Problem;
}

/** What the processes had published at one moment. */
export interface CacheLook {
  atMs: number;
  caches: readonly PublishedCache[];
}

export class CacheReader {
  readonly #link: RedisLink;
  readonly #prefix: string | undefined;

  constructor(link: RedisLink, prefix?: string) {
    this.#link = link;
    this.#prefix = prefix;
  }

  async look(deadlineMs: number): Promise<CacheLook> {
    const prefix = this.#prefix === undefined ? {} : { prefix: this.#prefix };
    const [time, caches] = await Promise.all([
      this.#link.call('TIME', [], { deadlineMs }) as Promise<[Buffer, Buffer]>,
      readPublished(this.#link, { ...prefix, deadlineMs }),
    ]);
    return { atMs: Number(time[0]) * 1_000 + Number(time[1]) / 1_000, caches };
  }

  close(): void {
    this.#link.close();
  }
}

export function summariseCaches(look: CacheLook, before: CacheLook | undefined): CacheSnapshot {
  const processes = look.caches.map(({ families: _, ...rest }): CacheProcessRow => {
    const ageMs = Math.max(0, look.atMs - rest.atMs);
    return { ...rest, ageMs, isAlive: ageMs < missedToEnd * rest.everyMs };
  });
  const alive = new Set(processes.filter(({ isAlive }) => isAlive).map(({ id }) => id));
  const present = look.caches.filter(({ id }) => alive.has(id));
  const grown = before && countsBetween(before.caches, before.atMs, look.caches);
  const seconds = before ? (look.atMs - before.atMs) / 1_000 : 0;
  const rowOf = (
    name: string,
    counts: FamilyCounts,
    having: readonly PublishedCache[],
    growth: FamilyCounts | undefined,
    { hitGoal, from }: Partial<CountedFamily> = {},
  ): CacheFamilyRow => ({
    ...summarise(name, counts),
    hitGoal: hitGoal ?? null,
    from: from ?? null,
    processes: having.length,
    openBreakers: having.filter(({ awayUntilMs = 0 }) => look.atMs - awayUntilMs < recentlyMs).length,
    rates: grown && seconds > 0 ? ratesOf(growth, seconds) : null,
  });
  const counts = sumCounts(look.caches);
  const said = new Map(look.caches.flatMap((cache) => cache.families.map((of) => [of.family, of])));
  const families = [...counts].map(([name, sum]) => {
    const having = present.filter((cache) => cache.families.some(({ family }) => family === name));
    return rowOf(name, sum, having, grown?.get(name), said.get(name));
  });
  families.sort((a, b) => (a.family < b.family ? -1 : 1));
  const total = rowOf(allFamilies, addUp(counts), present, grown && addUp(grown));
  return { families, total, processes };
}

/** One sum of all families. */
export function addUp(counts: ReadonlyMap<string, FamilyCounts>): FamilyCounts {
  const sum = new FamilyCounts();
  for (const one of counts.values()) addCounts(sum, one);
  return sum;
}

export function hitsOf({ nearHits, redisHits, staleServed }: FamilyCounts): number {
  return nearHits + redisHits + staleServed;
}

function ratesOf(growth: FamilyCounts | undefined, seconds: number): CacheRates {
  if (!growth) return { reads: 0, hits: 0, loads: 0 };
  const hits = hitsOf(growth);
  return {
    reads: (hits + growth.misses) / seconds,
    hits: hits / seconds,
    loads: growth.loads / seconds,
  };
}
