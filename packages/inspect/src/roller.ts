// Takes minutes that are over to the history, if this process is the one that writes.
//
// What happened in a minute (outcomes, latency) is in the queue's own books for a day, so minutes in which nobody sampled are filled in
// later, the latest hour of them. How many jobs were in which state is known only to whoever looked at the end of the minute.
import { readMinutesOf } from './minutes.js';
import { countsBetween, FamilyCounts } from '@sluice/cache';
import type { AnyQueue, MinuteStats } from '@sluice/queue';
import { addUp, allFamilies, hitsOf } from './caches.js';
import type { CacheFamilyRow, CacheLook } from './caches.js';
import { cacheFigures, queueFigures, redisFigures, toFigures } from './figures.js';
import type { CacheFigure, Named, QueueFigure, RedisFigure } from './figures.js';
import type { History } from './history.js';
import type { RedisHealth } from './redisHealth.js';
import type { QueueSnapshot, Snapshot } from './snapshot.js';

const minuteMs = 60_000;
/** Workers add their latencies to the books once a second: a minute is complete a little after its end. */
const settleMs = 2_000;
/** Minutes that are filled in at once. */
const maxFilled = 60;
/** Families whose history is kept, beside that of all of them together. */
const maxFamilies = 100;

export const redisSeries = 'redis';
export const cacheSeriesOf = (family: string): string => `cache:${family}`;
export const seriesOf = (queue: string): string => `queue:${queue}`;

export class Roller {
  readonly #history: History;
  /** The last minute that was dealt with, by this process or by the writer. */
  #until = 0;
  #leads = false;
  #rolled = new Map<string, number>();
  /** At the end of the minute before; its counters grow. */
  #redisBefore: RedisHealth | null = null;
  #cachesBefore: CacheLook | undefined;

  constructor(history: History) {
    this.#history = history;
  }

  get leads(): boolean {
    return this.#leads;
  }

  /** Called after every look; does nothing until another minute is complete. */
  async roll(snapshot: Snapshot, queues: readonly AnyQueue[], caches?: CacheLook): Promise<void> {
    const last = Math.floor((snapshot.atMs - settleMs) / minuteMs) - 1;
    if (last <= this.#until) return;
    const led = this.#leads;
    this.#leads = await this.#history.lead();
    if (this.#leads && !led) this.#rolled = await this.#history.rolledUntil();
    if (this.#leads) {
      for (const queue of queues) {
        const seen = snapshot.queues.find(({ name }) => name === queue.name);
        if (seen && !seen.problem) await this.#rollQueue(queue, seen, last);
      }
      if (snapshot.redis && !snapshot.problem) await this.#rollRedis(snapshot.redis, last);
      if (caches && snapshot.cache && !snapshot.cache.problem) {
        await this.#rollCaches([snapshot.cache.total, ...snapshot.cache.families], caches, last);
      }
    }
    this.#redisBefore = snapshot.redis;
    if (caches) this.#cachesBefore = caches;
    this.#until = last;
  }

  /** When the next minute will be complete, from a time by the clock of Redis. */
  static nextMs(atMs: number): number {
    return (Math.floor((atMs - settleMs) / minuteMs) + 1) * minuteMs + settleMs;
  }

  async #rollQueue(queue: AnyQueue, seen: QueueSnapshot, last: number): Promise<void> {
    const series = seriesOf(queue.name);
    const first = Math.max((this.#rolled.get(series) ?? 0) + 1, last - maxFilled + 1);
    if (first > last) return;
    for (const stats of await readMinutesOf(queue, first, last)) {
      const minute = stats.minuteMs / minuteMs;
      const gauges = minute === last ? gaugesOf(seen) : {};
      const figures = toFigures(queueFigures, { ...gauges, ...flowsOf(stats) });
      if (!(await this.#write(series, queueFigures, minute, figures))) return;
    }
  }

  async #rollRedis(health: RedisHealth, last: number): Promise<void> {
    const { usedBytes, rssBytes, maxBytes, opsPerSecond, clients, blockedClients, keys, aof } = health;
    const grown = (counter: 'evicted' | 'expired' | 'hits' | 'misses') => {
      // A server that began anew counts from zero.
      const before = this.#redisBefore?.[counter];
      return before === undefined ? {} : { [counter]: Math.max(0, health[counter] - before) };
    };
    const named: Named<RedisFigure> = {
      ...{ usedBytes, rssBytes, maxBytes, opsPerSecond, clients, blockedClients, keys },
      fragmentationPercent: health.fragmentation * 100,
      aofBytes: aof.bytes,
      ...grown('evicted'),
      ...grown('expired'),
      ...grown('hits'),
      ...grown('misses'),
    };
    await this.#write(redisSeries, redisFigures, last, toFigures(redisFigures, named));
  }

  async #rollCaches(rows: readonly CacheFamilyRow[], look: CacheLook, last: number): Promise<void> {
    const before = this.#cachesBefore;
    const grown = before && countsBetween(before.caches, before.atMs, look.caches);
    for (const { family, processes, openBreakers } of rows.slice(0, maxFamilies + 1)) {
      const flows = grown && flowsOfFamily(family, grown);
      const figures = toFigures(cacheFigures, { ...flows, processes, openBreakers });
      if (!(await this.#write(cacheSeriesOf(family), cacheFigures, last, figures))) return;
    }
  }

  async #write(...record: Parameters<History['write']>): Promise<boolean> {
    const [series, , minute] = record;
    this.#leads &&= await this.#history.write(...record);
    if (this.#leads) this.#rolled.set(series, minute);
    return this.#leads;
  }
}

function gaugesOf({ counts }: QueueSnapshot): Named<QueueFigure> {
  const { waiting, delayed, blocked, active, dead, workers, oldestWaitingMs } = counts;
  return { waiting, delayed, blocked, active, dead, workers, oldestWaitingMs };
}

function flowsOfFamily(family: string, grown: ReadonlyMap<string, FamilyCounts>): Named<CacheFigure> {
  const counts = family === allFamilies ? addUp(grown) : (grown.get(family) ?? new FamilyCounts());
  const { misses, staleServed, loads, loadErrors, loadMs, waitedMs } = counts;
  const { coalesced, bypassed, invalidations } = counts;
  const hits = hitsOf(counts);
  return {
    ...{ reads: hits + misses, hits, misses, staleServed, loads, loadErrors, loadMs },
    ...{ waitedMs, coalesced, bypassed, invalidations },
  };
}

function flowsOf({ done, failed, dead, cancelled, waitMs, runMs }: MinuteStats): Named<QueueFigure> {
  return {
    ...{ done, failed, died: dead, cancelled },
    ...(waitMs && { waitP50Ms: waitMs.p50, waitP95Ms: waitMs.p95, waitP99Ms: waitMs.p99 }),
    ...(runMs && { runP50Ms: runMs.p50, runP95Ms: runMs.p95, runP99Ms: runMs.p99 }),
  };
}
