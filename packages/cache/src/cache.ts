// A cache: one connection to Redis, copies in this process, and the families that use both.
//
//   get ──▶ copy here? ──▶ MGET ──▶ fresh? ──▶ served
//                            └─ no ──▶ lease ──▶ load ──▶ fill ──▶ served          flights.ts
//   invalidate ──▶ copies and flights here ──▶ UNLINK value and lease, or generation of a group
//
// An invalidation removes a value together with its lease, so that whoever loads it at that moment cannot bring the old one back.
// A group has a generation that its values carry; removing it makes all of them worthless at once, and a sweep frees their memory.
import { isSluiceError, silentLogger, systemClock, type Clock, type Logger } from '@sluice/base';
import { KeyWatch, RedisLink, type RedisTarget } from '@sluice/redis';
import { Breaker } from './breaker.js';
import { Channel, type Wire } from './channel.js';
import { groupName } from './define.js';
import type { Family, GroupRef, Loaders } from './define.js';
import type { Engine, Invalidated } from './engine.js';
import { cacheErrors } from './errors.js';
import { checkRedis, type RedisAdvice } from './eviction.js';
import { CacheFamily } from './family.js';
import { ForeignFamily } from './foreign.js';
import { LoadGate } from './gate.js';
import { KeptInvalidations, type Killed } from './kept.js';
import { defaultPrefix, KeySpace } from './keys.js';
import { Members } from './members.js';
import { Mender } from './mender.js';
import { NearCache } from './near.js';
import { defaultPublishMs, Publisher } from './publisher.js';
import { Order, Reader } from './reader.js';
import { ServerClock } from './serverClock.js';
import type { CacheStatistics } from './statistics.js';
import { Sweeper } from './sweeper.js';
import { Wakes } from './wakes.js';

export interface CacheOptions {
  redis: string | RedisTarget;
  /** Keys begin with `<prefix>:cache:`; `sluice` by default. */
  prefix?: string;
  /** How long a reader waits for Redis before it goes to the loader: 50 ms. An invalidation waits so long too, and 500 ms at least. */
  patienceMs?: number;
  /** How long a load may go without a sign of life before another reader takes over: 2 s. It is renewed meanwhile. */
  leaseMs?: number;
  /** Copies in this process: 10,000 and 64 MB (as they are in Redis). */
  near?: { maxEntries?: number; maxBytes?: number };
  /** While Redis is away: loads at once, and readers that wait for their turn. 32 and 10,000. */
  bypass?: { loadsAtOnce?: number; maxWaiting?: number };
  /** A value that takes more in Redis is not stored: 8 MB. */
  maxValueBytes?: number;
  /** Where the queue is, so that `start` can refuse to share a Redis with it that throws keys away. */
  queueRedis?: string | RedisTarget;
  /** How often this process writes what it has counted to Redis, for whoever adds up all processes: 5 s. 0 is never. */
  publishMs?: number;
  logger?: Logger;
  /** @internal For tests. */
  parts?: CacheParts;
}

/** @internal What tests put in place of the outer world. */
export interface CacheParts {
  wire?: Wire;
  clock?: Clock;
  random?: () => number;
  watch?: (handlers: WatchHandlers) => { close(): void };
}

/** @internal */
export interface WatchHandlers {
  onChange: (keys: readonly string[] | undefined) => void;
  onState: (state: 'watching' | 'blind') => void;
}

const defaultPatienceMs = 50;
const defaultLeaseMs = 2_000;
const defaultNear = { maxEntries: 10_000, maxBytes: 64 * 1_024 * 1_024 };
const defaultBypass = { loadsAtOnce: 32, maxWaiting: 10_000 };
const defaultMaxValueBytes = 8 * 1_024 * 1_024;
/** An invalidation is worth more patience than a read. */
const invalidatePatienceMs = 500;
/** So many keys are removed by one command. */
const unlinkAtOnce = 500;
const synchroniseEveryMs = 60_000;
const startLimitMs = 2_000;

export class Cache {
  readonly #engine: Engine;
  readonly #link: RedisLink | undefined;
  readonly #wire: Wire;
  readonly #watch: { close(): void };
  readonly #mender: Mender;
  readonly #sweeper: Sweeper;
  readonly #publisher: Publisher | undefined;
  readonly #families = new Map<string, CacheFamily<never, unknown>>();
  readonly #options: CacheOptions;
  #clockTimer: { cancel(): void } | undefined;
  /** `start` was called, and Redis has not been looked at yet. */
  #isUnchecked = false;
  #isClosed = false;

  constructor(options: CacheOptions) {
    this.#options = options;
    const { parts = {}, logger = silentLogger, prefix = defaultPrefix } = options;
    const { clock = systemClock, random = Math.random } = parts;
    const breaker = new Breaker(clock, () => {
      logger.warn({}, 'Redis is away: the cache loads instead of reading');
      this.#mender.call();
    });
    this.#link = parts.wire ? undefined : this.#connect(breaker);
    this.#wire = parts.wire ?? this.#link!;
    const isCluster = this.#link?.target.mode === 'cluster';
    const channel = new Channel(
      this.#wire,
      isCluster,
      breaker,
      clock,
      options.patienceMs ?? defaultPatienceMs,
    );
    const watch = { isWatching: false, breaks: 0 };
    const order = new Order();
    const { loadsAtOnce, maxWaiting } = { ...defaultBypass, ...options.bypass };
    const keys = new KeySpace(prefix);
    this.#engine = {
      keys,
      clock,
      serverClock: new ServerClock(clock),
      order,
      random,
      logger,
      channel,
      reader: new Reader(channel, clock, order, watch),
      breaker,
      kept: new KeptInvalidations(),
      near: new NearCache({ ...defaultNear, ...options.near }, clock),
      members: new Members({ keys, channel }),
      wakes: new Wakes(clock),
      gate: new LoadGate(loadsAtOnce, maxWaiting, clock),
      leaseMs: options.leaseMs ?? defaultLeaseMs,
      maxValueBytes: options.maxValueBytes ?? defaultMaxValueBytes,
      watch,
      invalidate: (killed) => this.#invalidate(killed),
    };
    this.#sweeper = new Sweeper(this.#engine);
    this.#mender = new Mender({
      wire: this.#wire,
      channel,
      breaker,
      kept: this.#engine.kept,
      clock,
      logger,
      kill: (killed, patienceMs) => this.#kill(killed, patienceMs),
      onBack: () => this.#greet(),
    });
    this.#watch = this.#startWatch(parts);
    if (this.#link) this.#synchroniseLater();
    const { publishMs = defaultPublishMs } = options;
    if (this.#link && publishMs > 0) {
      this.#publisher = new Publisher(this.#engine, publishMs, () => ({
        ...this.#state(),
        families: [...this.#families.values()].map((family) => family.counted),
      }));
      this.#publisher.start();
    }
  }

  /** Brings a definition to life. The loaders may be given here instead of there. */
  open<K, V>(family: Family<K, V>, loaders: Loaders<K, V> = {}): CacheFamily<K, V> {
    if (this.#isClosed) throw cacheErrors.CLOSED();
    if (this.#families.has(family.name)) throw cacheErrors.NAME_TAKEN({ name: family.name });
    const opened = new CacheFamily<K, V>(this.#engine, { ...family, ...loaders });
    this.#families.set(family.name, opened as unknown as CacheFamily<never, unknown>);
    return opened;
  }

  /**
   * Waits until Redis is there, for a moment, and says what is wrong with it. If it is away, that is found out and logged as soon as it
   * is back. Reading without this works too.
   */
  async start(): Promise<RedisAdvice[]> {
    if (!this.#link) return [];
    try {
      await this.#link.call('PING', [], { deadlineMs: startLimitMs });
      await this.#synchronise();
    } catch (error) {
      this.#engine.logger.warn({ error }, 'the cache starts without Redis');
      this.#isUnchecked = true;
      return [];
    }
    return this.#check();
  }

  /** Makes all values of these groups worthless, whatever their keys. */
  invalidateGroup(...groups: readonly GroupRef[]): Promise<Invalidated> {
    return this.#invalidate({ names: [], groups: groups.map((group) => groupName(group)) });
  }

  /** Values by name and groups by name, of any family, opened here or not: what `applyEvent` does. */
  kill(killed: Killed): Promise<Invalidated> {
    return this.#invalidate(killed);
  }

  /** One that other processes have opened: its values can be looked at and invalidated here, not loaded. */
  foreign(name: string): ForeignFamily {
    return new ForeignFamily(this.#engine, name);
  }

  /** Those that were opened here. */
  families(): CacheFamily<unknown, unknown>[] {
    return [...this.#families.values()] as unknown as CacheFamily<unknown, unknown>[];
  }

  statistics(): CacheStatistics {
    return {
      families: [...this.#families.values()].map((family) => family.statistics()),
      ...this.#state(),
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#clockTimer?.cancel();
    this.#mender.close();
    this.#publisher?.close();
    this.#sweeper.close();
    this.#watch.close();
    this.#link?.close();
    this.#engine.near.clear();
  }

  #state(): Omit<CacheStatistics, 'families'> {
    const { breaker, near, kept, gate, watch } = this.#engine;
    return {
      breaker: breaker.isOpen ? 'open' : 'closed',
      breakerOpenings: breaker.openings,
      isWatching: watch.isWatching,
      nearEntries: near.size,
      nearBytes: near.bytes,
      keptInvalidations: kept.size,
      bypassLoadsRunning: gate.running,
      bypassLoadsWaiting: gate.waiting,
      freedValues: this.#sweeper.freed,
    };
  }

  async #invalidate(killed: Killed): Promise<Invalidated> {
    const { breaker, kept } = this.#engine;
    this.#forget(killed);
    if (!breaker.isOpen) {
      try {
        await this.#kill(killed, invalidatePatienceMs);
        // Whoever read the old value just before it was removed may have kept a copy since.
        this.#forget(killed);
        return 'applied';
      } catch (error) {
        this.#engine.logger.warn({ error }, 'an invalidation did not reach Redis, and is kept');
      }
    }
    kept.keep(killed);
    this.#forget(killed);
    this.#mender.call();
    return 'kept';
  }

  /** Removes from Redis. Safe to repeat. */
  async #kill({ names, groups }: Killed, patienceMs: number): Promise<void> {
    const { keys, channel } = this.#engine;
    const lists = [
      ...names.map((name) => [keys.value(name), keys.lease(name)]),
      ...groups.map((group) => [keys.generation(group)]),
    ];
    for (let at = 0; at < lists.length; at += unlinkAtOnce) {
      await channel.unlink(lists.slice(at, at + unlinkAtOnce), patienceMs);
    }
    this.#sweeper.note(groups);
  }

  /** Drops everything of it in this process. */
  #forget({ names, groups }: Killed): void {
    const { near, keys, reader } = this.#engine;
    for (const name of names) near.drop(name);
    for (const group of groups) near.dropGroup(group);
    reader.noteChanged([
      ...names.map((name) => keys.value(name)),
      ...groups.map((group) => keys.generation(group)),
    ]);
    for (const family of this.#families.values()) {
      for (const name of names) family.abandon(name);
      for (const group of groups) family.abandonGroup(group);
    }
  }

  async #check(): Promise<RedisAdvice[]> {
    const advice = await checkRedis(this.#link!, this.#options.queueRedis);
    for (const one of advice) this.#engine.logger.warn({ code: one.code }, one.message);
    return advice;
  }

  /** Nobody waits for it any more who could be refused: what is wrong is told as loudly as a log can. */
  async #checkLate(): Promise<void> {
    this.#isUnchecked = false;
    try {
      await this.#check();
    } catch (error) {
      if (isSluiceError(error, 'REDIS_UNAVAILABLE')) this.#isUnchecked = true;
      else this.#engine.logger.error({ error }, 'the Redis of the cache is not fit for it');
    }
  }

  /** Redis is there, for the first time or again. */
  async #greet(): Promise<void> {
    await this.#synchronise();
    if (this.#isUnchecked) void this.#checkLate();
  }

  #connect(breaker: Breaker): RedisLink {
    return new RedisLink(this.#options.redis, {
      name: 'sluice-cache',
      onState: (state) => {
        if (state === 'lost') breaker.open();
        else if (breaker.isOpen) void this.#mender.mend();
        // Before the first reader is answered: the request goes out first on the new connection.
        else this.#greet().catch(() => {});
      },
    });
  }

  #startWatch(parts: CacheParts): { close(): void } {
    const { near, watch } = this.#engine;
    const handlers: WatchHandlers = {
      onChange: (keys) => this.#hear(keys),
      onState: (state) => {
        watch.isWatching = state === 'watching';
        if (state === 'blind') {
          watch.breaks += 1;
          near.clear();
        }
      },
    };
    if (parts.watch) return parts.watch(handlers);
    if (!this.#link) return { close: () => {} };
    const prefixes = this.#engine.keys.watched;
    return new KeyWatch(this.#link, { prefixes, name: 'sluice-cache-watch', ...handlers });
  }

  #hear(changed: readonly string[] | undefined): void {
    const { near, reader, keys, wakes, watch } = this.#engine;
    if (changed === undefined) {
      watch.breaks += 1;
      return near.clear();
    }
    reader.noteChanged(changed);
    for (const key of changed) {
      const what = keys.parse(key);
      if (what?.kind === 'generation') near.dropGroup(what.name);
      if (what?.kind !== 'value') continue;
      near.drop(what.name);
      wakes.wake(what.name);
    }
  }

  #synchronise(): Promise<void> {
    const ask = () => this.#wire.call('TIME', [], { deadlineMs: startLimitMs });
    return this.#engine.serverClock.synchronise(ask);
  }

  #synchroniseLater(): void {
    this.#clockTimer = this.#engine.clock.setTimer(() => {
      if (!this.#engine.breaker.isOpen) this.#synchronise().catch(() => {});
      this.#synchroniseLater();
    }, synchroniseEveryMs);
  }
}
