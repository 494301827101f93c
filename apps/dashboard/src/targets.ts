// The goals that the operation is measured by, and whether they are met. Pure: figures in, judgement out.
import type { CacheFamily, DeadGroup } from './data/shapes.js';
import { decimal, number, percent, span } from './format.js';

export interface Judgement {
  title: string;
  goal: string;
  /** What is measured, in one sentence. */
  about: string;
  now: string;
  /** Null while nothing is known yet. */
  met: boolean | null;
}

/** Sums of the last hour. */
export interface LastHour {
  done: number;
  /** Attempts that failed and were repeated. */
  failed: number;
  died: number;
}

export interface Measured {
  letters: number;
  hour: LastHour | null;
  groups: readonly DeadGroup[];
  cache: CacheFamily | null;
  nowMs: number;
}

const mostLetters = 50;
const retrySuccess = 0.9;
const mostRetries = 2;
const resolveMs = 24 * 3_600_000;
const permanentFailures = 0.05;
const hitRate = 0.8;
const faster = 0.7;
const saved = 0.8;
/** A hit answers in about so long; the processes do not time hits, because that would cost more than the hit. */
const hitMs = 1;

export function judge({ letters, hour, groups, cache, nowMs }: Measured): Judgement[] {
  const ended = hour ? hour.done + hour.died : 0;
  const troubled = hour ? hour.failed + hour.died : 0;
  const oldestMs = groups.length === 0 ? 0 : nowMs - Math.min(...groups.map(({ firstMs }) => firstMs));
  const reads = cache ? hitsOf(cache) + cache.misses : 0;
  const fewer = cache && reads > 0 ? 1 - cache.loads / reads : undefined;
  return [
    {
      title: 'Dead letters',
      goal: `fewer than ${mostLetters}`,
      about: 'Jobs that were given up and wait for somebody.',
      now: number(letters),
      met: letters < mostLetters,
    },
    {
      title: 'Retries that help',
      goal: 'more than 90 %',
      about: 'Of the attempts that failed in the last hour, those that did not end in a dead letter.',
      ...judged(troubled > 0 ? hour!.failed / troubled : undefined, (share) => share > retrySuccess),
    },
    {
      title: 'Retries per job',
      goal: `fewer than ${mostRetries}`,
      about: 'Failed attempts for each job that was done in the last hour.',
      ...(hour && hour.done > 0
        ? { now: decimal(hour.failed / hour.done), met: hour.failed / hour.done < mostRetries }
        : { now: '–', met: null }),
    },
    {
      title: 'Oldest dead letter',
      goal: 'under 24 h',
      about: 'How long the oldest unresolved cause has been there.',
      now: groups.length === 0 ? 'none' : span(oldestMs),
      met: oldestMs < resolveMs,
    },
    {
      title: 'Permanent failures',
      goal: 'under 5 %',
      about: 'Of the jobs that ended in the last hour, those that died.',
      ...judged(ended > 0 ? hour!.died / ended : undefined, (share) => share < permanentFailures, 1),
    },
    {
      title: 'Cache hits',
      goal: 'more than 80 %',
      about: 'Reads that were answered without asking the database.',
      ...judged(cache?.hitRate, (share) => share > hitRate),
    },
    {
      title: 'Faster answers',
      goal: 'more than 70 %',
      about: 'How much faster a read is than its load, on average; a hit is taken as 1 ms.',
      ...judged(gainOf(cache), (share) => share > faster),
    },
    {
      title: 'Loads saved',
      goal: 'more than 80 %',
      about: 'Queries and calls that the cache made unnecessary.',
      ...judged(fewer, (share) => share > saved),
    },
  ];
}

function judged(
  share: number | undefined,
  isMet: (share: number) => boolean,
  digits = 0,
): { now: string; met: boolean | null } {
  return share === undefined ? { now: '–', met: null } : { now: percent(share, digits), met: isMet(share) };
}

function gainOf(cache: CacheFamily | null): number | undefined {
  if (!cache || cache.hitRate === undefined || !cache.averageLoadMs) return undefined;
  const mean =
    cache.hitRate * Math.min(hitMs, cache.averageLoadMs) + (1 - cache.hitRate) * cache.averageLoadMs;
  return 1 - mean / cache.averageLoadMs;
}

export function hitsOf({ nearHits, redisHits, staleServed }: CacheFamily): number {
  return nearHits + redisHits + staleServed;
}
