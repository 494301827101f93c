// What one look at everything found, and what can be said by comparing it with the look before: rates.
import type { MinuteStats, QueueCounts, Rules } from '@sluice/queue';
import type { CacheSnapshot } from './caches.js';
import type { RedisHealth } from './redisHealth.js';

/** What could not be read, and since when. The figures beside it are the last that were known. */
export interface Problem {
  code: string;
  message: string;
  sinceMs: number;
}

/** Per second, between this look and the one before; null until there are two. */
export interface Rates {
  added: number;
  done: number;
  failed: number;
  died: number;
  cancelled: number;
}

export interface Outcomes {
  done: number;
  /** And will be tried again. */
  failed: number;
  died: number;
}

export interface QueueSnapshot {
  name: string;
  counts: QueueCounts;
  paused: boolean;
  rates: Rates | null;
  /** The present minute so far: outcomes and latency. */
  minute: MinuteStats;
  /** How attempts ended in the present minute and the one before: also in the first second of a minute it says something. */
  lately: Outcomes;
  problem?: Problem;
}

export interface SampleCost {
  /** Calls that this look made, and how long it took. */
  calls: number;
  tookMs: number;
  /** Since the sampler was made. */
  looks: number;
  totalCalls: number;
}

export interface Snapshot {
  /** By the clock of Redis. */
  atMs: number;
  /** When the next look is due while somebody watches. Grows with the number of queues, so that the cost stays within its bound. */
  everyMs: number;
  /** Those that could be read at least once. */
  queues: QueueSnapshot[];
  redis: RedisHealth | null;
  /** Of all processes; null without a cache, or before it could be read. */
  cache: CacheSnapshot | null;
  cost: SampleCost;
  problem?: Problem;
}

type Outcome = 'done' | 'failed' | 'dead' | 'cancelled';

/** What is compared from look to look. `minutes`: the present one, behind the one before. */
export interface Seen {
  atMs: number;
  live: number;
  minutes: readonly MinuteStats[];
}

export function liveJobs(counts: QueueCounts): number {
  return counts.waiting + counts.delayed + counts.blocked + counts.active + counts.dead;
}

/** Null when there is nothing to compare with, or when minutes in between were not read. */
export function ratesBetween(before: Seen | undefined, now: Seen): Rates | null {
  const seconds = before ? (now.atMs - before.atMs) / 1_000 : 0;
  if (!before || seconds <= 0) return null;
  const last = before.minutes.at(-1)!;
  if (now.minutes[0]!.minuteMs > last.minuteMs) return null;
  const grown = (outcome: Outcome) => {
    let count = 0;
    for (const minute of now.minutes) {
      if (minute.minuteMs < last.minuteMs) continue;
      count += minute[outcome] - (minute.minuteMs === last.minuteMs ? last[outcome] : 0);
    }
    return Math.max(0, count);
  };
  const [done, failed, died, cancelled] = [grown('done'), grown('failed'), grown('dead'), grown('cancelled')];
  const added = Math.max(0, now.live - before.live + done + cancelled);
  return {
    added: added / seconds,
    done: done / seconds,
    failed: failed / seconds,
    died: died / seconds,
    cancelled: cancelled / seconds,
  };
}

export function outcomesOf(minutes: readonly MinuteStats[]): Outcomes {
  const sum = (outcome: Outcome) => minutes.reduce((total, minute) => total + minute[outcome], 0);
  return { done: sum('done'), failed: sum('failed'), died: sum('dead') };
}

export function isPaused(rules: Rules): boolean {
  return rules.paused === true;
}
