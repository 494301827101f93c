// Looks at all queues and at Redis, once for all viewers of a process.
//
// While somebody watches, a look is taken every two seconds, and everybody gets the same snapshot: ten viewers cost what one costs.
// While nobody does, there is one look per minute, for the history, or none. Looks never overlap.
//
// The cost has a bound. A look makes three calls for each partition of each queue, and one INFO; each takes Redis some tens of
// microseconds, whatever the number of jobs. With many partitions looks become rarer, so that all of them together stay below one
// percent of the time of Redis.
//
// What cannot be read does not end anything: the figures of before stay, with the problem beside them.
import { isSluiceError, silentLogger, startStop, systemClock, withDeadline } from '@sluice/base';
import type { Clock, Logger, Service, Timer } from '@sluice/base';
import { readRules } from '@sluice/queue';
import type { AnyQueue } from '@sluice/queue';
import type { RedisLink } from '@sluice/redis';
import { summariseCaches } from './caches.js';
import type { CacheLook, CacheReader, CacheSnapshot } from './caches.js';
import { inspectErrors } from './errors.js';
import { readHealth } from './redisHealth.js';
import { Roller } from './roller.js';
import { isPaused, liveJobs, outcomesOf, ratesBetween } from './snapshot.js';
import type { Problem, QueueSnapshot, Seen, Snapshot } from './snapshot.js';

export const defaultEveryMs = 2_000;
/** What one call may cost Redis, generously: `npm run bench -- inspect` prints what it does. */
const callMs = 0.1;
const maxShare = 0.01;
/** How long a look waits for one queue. */
const lookDeadlineMs = 3_000;
/** A cache is harmless when its Redis is away, and so are its statistics: nobody waits for them for long. */
const cacheDeadlineMs = 1_000;
const minuteMs = 60_000;
/** So that many processes do not look in the same millisecond. */
const idleJitterMs = 1_000;
const callsPerPartition = 3;
const callsPerCache = 2;
/** Processes publish every few seconds: rates from one look to the next would jump. */
const cacheRatesOverMs = 10_000;

export interface SamplerOptions {
  link: RedisLink;
  queues: () => readonly AnyQueue[] | Promise<readonly AnyQueue[]>;
  /** Where processes publish what their caches do. */
  caches?: CacheReader;
  everyMs?: number;
  /** Without it nothing is written, and nothing is read while nobody watches. */
  roller?: Roller;
  logger?: Logger;
  clock?: Clock;
}

export type Watcher = (snapshot: Snapshot) => void;

export class Sampler {
  readonly #options: SamplerOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #service: Service;
  readonly #watchers = new Set<Watcher>();
  /** What was seen last of each queue, by name. */
  readonly #seen = new Map<string, Seen>();
  /** Looks at the caches over which rates are averaged, oldest first. */
  readonly #cacheLooks: CacheLook[] = [];
  readonly #known = new Map<string, QueueSnapshot>();
  #last: Snapshot | undefined;
  #lastAtMonotonicMs = 0;
  #looking: Promise<Snapshot> | undefined;
  #timer: Timer | undefined;
  #running = false;
  #looks = 0;
  #totalCalls = 0;

  constructor(options: SamplerOptions) {
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#clock = options.clock ?? systemClock;
    this.#service = startStop({
      name: 'sampler',
      start: () => {
        this.#running = true;
        this.#plan(0);
      },
      stop: async () => {
        this.#running = false;
        this.#timer?.cancel();
        await this.#looking?.catch(() => {});
      },
    });
  }

  start(): Promise<void> {
    return this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Gets every snapshot from now on, and the last one at once if it is fresh. Returns what ends it. */
  watch(watcher: Watcher): () => void {
    // Wrapped, so that one function may watch twice.
    const own: Watcher = (snapshot) => watcher(snapshot);
    this.#watchers.add(own);
    const fresh = this.#fresh();
    if (fresh) own(fresh);
    if (this.#watchers.size === 1 && this.#running) this.#plan(fresh ? fresh.everyMs : 0);
    return () => {
      this.#watchers.delete(own);
      if (this.#watchers.size === 0 && this.#running && !this.#looking) this.#plan(this.#pauseMs());
    };
  }

  /** The last snapshot while it is fresh, otherwise a new look, which all who ask meanwhile share. */
  async latest(): Promise<Snapshot> {
    return this.#fresh() ?? this.#look();
  }

  #fresh(): Snapshot | undefined {
    if (!this.#last) return undefined;
    const ageMs = this.#clock.monotonicMs() - this.#lastAtMonotonicMs;
    return ageMs < this.#last.everyMs ? this.#last : undefined;
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#watchers.size === 0 && !this.#options.roller) return;
    this.#timer = this.#clock.setTimer(() => {
      void this.#lookAgain();
    }, delayMs);
  }

  /** Only what gives the queues can fail here; it may succeed next time. */
  async #lookAgain(): Promise<void> {
    try {
      await this.#look();
    } catch (error) {
      this.#logger.error({ error }, 'no look could be taken');
    }
    if (this.#running) this.#plan(this.#pauseMs());
  }

  #pauseMs(): number {
    const everyMs = this.#last?.everyMs ?? defaultEveryMs;
    if (this.#watchers.size > 0) return everyMs;
    const atMs = this.#last?.atMs ?? this.#clock.now();
    return Math.min(Math.max(Roller.nextMs(atMs) - atMs, 0), minuteMs) + Math.random() * idleJitterMs;
  }

  #look(): Promise<Snapshot> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookNow(): Promise<Snapshot> {
    const { link, roller, caches } = this.#options;
    const queues = await this.#options.queues();
    const startMs = this.#clock.monotonicMs();
    const ofQueues = queues.reduce((sum, { partitions }) => sum + partitions.length * callsPerPartition, 0);
    const calls = 1 + ofQueues + (caches ? callsPerCache : 0);
    const [health, look] = await Promise.allSettled([
      readHealth(link, lookDeadlineMs),
      caches?.look(cacheDeadlineMs),
      ...queues.map((queue) => this.#lookAt(queue)),
    ]);
    this.#looks++;
    this.#totalCalls += calls;
    const tookMs = this.#clock.monotonicMs() - startMs;
    const redis = health.status === 'fulfilled' ? health.value : (this.#last?.redis ?? null);
    const snapshot: Snapshot = {
      atMs: health.status === 'fulfilled' ? health.value.nowMs : this.#clock.now(),
      everyMs: Math.max(this.#options.everyMs ?? defaultEveryMs, (calls * callMs) / maxShare),
      queues: queues.flatMap(({ name }) => this.#known.get(name) ?? []),
      redis,
      cache: this.#cacheSnapshot(look),
      cost: { calls, tookMs, looks: this.#looks, totalCalls: this.#totalCalls },
      ...(health.status === 'rejected' && { problem: this.#problem(health.reason, this.#last?.problem) }),
    };
    this.#forgetOthers(queues);
    this.#last = snapshot;
    this.#lastAtMonotonicMs = this.#clock.monotonicMs();
    this.#tell(snapshot);
    if (roller && this.#running)
      await this.#roll(roller, snapshot, queues, look.status === 'fulfilled' ? look.value : undefined);
    return snapshot;
  }

  #cacheSnapshot(look: PromiseSettledResult<CacheLook | undefined>): CacheSnapshot | null {
    const known = this.#last?.cache ?? null;
    if (look.status === 'rejected') {
      const problem = this.#problem(look.reason, known?.problem);
      return { ...(known ?? summariseCaches({ atMs: 0, caches: [] }, undefined)), problem };
    }
    if (!look.value) return null;
    const looks = this.#cacheLooks;
    const snapshot = summariseCaches(look.value, looks[0]);
    looks.push(look.value);
    while (looks.length > 1 && looks[1]!.atMs <= look.value.atMs - cacheRatesOverMs) looks.shift();
    return snapshot;
  }

  async #lookAt(queue: AnyQueue): Promise<void> {
    try {
      const what = `queue ${queue.name}`;
      const late = () => inspectErrors.SAMPLE_TIMEOUT({ what, waitedMs: lookDeadlineMs });
      this.#known.set(queue.name, await withDeadline(this.#read(queue), lookDeadlineMs, late, this.#clock));
    } catch (error) {
      const known = this.#known.get(queue.name);
      if (known) this.#known.set(queue.name, { ...known, problem: this.#problem(error, known.problem) });
      // A queue of which nothing is known yet has no figures to show beside its problem.
      else this.#logger.warn({ queue: queue.name, error }, 'a queue could not be read');
    }
  }

  async #read(queue: AnyQueue): Promise<QueueSnapshot> {
    const counts = await queue.counts();
    const before = this.#seen.get(queue.name);
    const atMs = this.#clock.monotonicMs();
    const [minutes, rules] = await Promise.all([this.#minutes(queue, before), readRules(queue)]);
    const seen: Seen = { atMs, live: liveJobs(counts), minutes };
    this.#seen.set(queue.name, seen);
    return {
      ...{ name: queue.name, counts, paused: isPaused(rules), rates: ratesBetween(before, seen) },
      ...{ minute: minutes.at(-1)!, lately: outcomesOf(minutes) },
    };
  }

  /** The present minute, and the one before. That one is read when the minute turns, and does not change any more. */
  async #minutes(queue: AnyQueue, before: Seen | undefined) {
    if (!before) return queue.minutes(2);
    const [present] = await queue.minutes(1);
    const isSame = before.minutes.at(-1)!.minuteMs === present!.minuteMs;
    return isSame ? [...before.minutes.slice(0, -1), present!] : queue.minutes(2);
  }

  /** A roll that fails is tried again after the next look. */
  async #roll(
    roller: Roller,
    snapshot: Snapshot,
    queues: readonly AnyQueue[],
    caches: CacheLook | undefined,
  ): Promise<void> {
    try {
      await roller.roll(snapshot, queues, caches);
    } catch (error) {
      this.#logger.warn({ error }, 'the history could not be written');
    }
  }

  #tell(snapshot: Snapshot): void {
    for (const watcher of this.#watchers) {
      try {
        watcher(snapshot);
      } catch (error) {
        this.#logger.warn({ error }, 'somebody who watches threw');
      }
    }
  }

  #forgetOthers(queues: readonly AnyQueue[]): void {
    const names = new Set(queues.map(({ name }) => name));
    for (const name of this.#known.keys()) {
      if (names.has(name)) continue;
      this.#known.delete(name);
      this.#seen.delete(name);
    }
  }

  #problem(error: unknown, before: Problem | undefined): Problem {
    const code = isSluiceError(error) ? error.code : 'INTERNAL';
    const message = error instanceof Error ? error.message : String(error);
    return { code, message, sinceMs: before?.sinceMs ?? this.#clock.now() };
  }
}
