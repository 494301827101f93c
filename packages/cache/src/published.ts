// What all processes have counted, as each of them publishes it now and then: read in one call, and added up. A process that begins
// anew counts from zero, so what happened between two looks is found process by process, never as a difference of sums.
import type { RedisLink } from '@sluice/redis';
import type { Family } from './define.js';
import { defaultPrefix, KeySpace } from './keys.js';
import { keepMs } from './publisher.js';
import { addCounts, FamilyCounts, type CacheStatistics } from './statistics.js';

/** What a family has counted, with what its definition says of it. */
export type CountedFamily = FamilyCounts & { family: string } & Pick<
    Family<never, unknown>,
    'hitGoal' | 'from'
  >;

/** One process with one cache. */
export interface PublishedCache extends Omit<CacheStatistics, 'families'> {
  id: string;
  host: string;
  pid: number;
  /** When it began to count, and when it published, by the clock of Redis. */
  sinceMs: number;
  atMs: number;
  /** Until when it could not reach Redis, by the clock of Redis: who cannot reach it cannot tell so there before it can again. */
  awayUntilMs?: number;
  /** How often it publishes. */
  everyMs: number;
  families: CountedFamily[];
}

export interface ReadPublishedOptions {
  prefix?: string;
  deadlineMs?: number;
}

/** Those of the last two minutes, by their id. */
export async function readPublished(
  link: Pick<RedisLink, 'call'>,
  { prefix = defaultPrefix, deadlineMs }: ReadPublishedOptions = {},
): Promise<PublishedCache[]> {
  const limit = deadlineMs === undefined ? {} : { deadlineMs };
  const [reply, [seconds]] = (await Promise.all([
    link.call('HGETALL', [new KeySpace(prefix).statistics], limit),
    link.call('TIME', [], limit),
  ])) as [Buffer[], [Buffer, Buffer]];
  // A Redis that evicts may have lost who published when, and then nobody has removed those that are gone.
  const fromMs = Number(seconds) * 1_000 - keepMs;
  const found: PublishedCache[] = [];
  for (let i = 1; i < reply.length; i += 2) {
    const one = parse(String(reply[i]));
    if (one && one.atMs > fromMs) found.push(one);
  }
  return found.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Everything that was counted, family by family. */
export function sumCounts(caches: readonly PublishedCache[]): Map<string, FamilyCounts> {
  const sums = new Map<string, FamilyCounts>();
  for (const { families } of caches) for (const counted of families) add(sums, counted);
  return sums;
}

/** What was counted between two looks. Of a process that was not seen before only what it did since, if it began since. */
export function countsBetween(
  earlier: readonly PublishedCache[],
  earlierMs: number,
  now: readonly PublishedCache[],
): Map<string, FamilyCounts> {
  const known = new Map(earlier.map((cache) => [cache.id, cache]));
  const sums = new Map<string, FamilyCounts>();
  for (const { id, sinceMs, families } of now) {
    const last = known.get(id);
    if (!last && sinceMs < earlierMs) continue;
    for (const counted of families) {
      const before = last?.families.find(({ family }) => family === counted.family);
      add(sums, counted, before);
    }
  }
  return sums;
}

function add(sums: Map<string, FamilyCounts>, counted: CountedFamily, before?: CountedFamily): void {
  const sum = sums.get(counted.family) ?? new FamilyCounts();
  sums.set(counted.family, sum);
  addCounts(sum, counted, before);
}

function parse(text: string): PublishedCache | undefined {
  try {
    const value = JSON.parse(text) as PublishedCache | null;
    const isOurs = Array.isArray(value?.families) && typeof value.id === 'string';
    return isOurs ? value : undefined;
  } catch {
    return undefined;
  }
}
