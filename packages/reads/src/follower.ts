// Follows the published events and invalidates what they change, in case that their writer died before it could. How far it has come is
// kept in Redis, and moves on only when Redis has confirmed the invalidation: after a crash or an outage it begins where it stopped.
// Several processes may follow; what one has done, the other does in vain. An event that makes no sense is passed over, because it would
// not make more sense the next time, and everything behind it would wait.
import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger, type Logger } from '@sluice/base';
import { applyEvent, killedBy, type Cache, type DomainEvent } from '@sluice/cache';
import { followerKey, readEvents, type StreamEvent } from '@sluice/events';
import type { RedisLink } from '@sluice/redis';
import { eventsOfMessage } from './changes.js';

/** A safety net need not be quick: the writers have mostly told already, and many events at once cost as little as one. */
const everyMs = 1_000;
const atOnce = 1_000;
const firstPauseMs = 100;
const longestPauseMs = 5_000;

export interface ChangeFollowerOptions {
  cache: Cache;
  /** Where the events are; closed by `stop`. */
  redis: RedisLink;
  prefix?: string;
  logger?: Logger;
}

export class ChangeFollower {
  readonly #options: ChangeFollowerOptions;
  readonly #logger: Logger;
  readonly #key: string;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ChangeFollowerOptions) {
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#key = followerKey('cache', options.prefix);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#options.redis.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      try {
        const applied = await this.#step();
        pauseMs = firstPauseMs;
        if (applied < atOnce) await pause(everyMs, undefined, { signal }).catch(() => {});
      } catch (error) {
        if (signal.aborted) return;
        this.#logger.warn({ err: error }, 'the cache cannot follow the events now; it tries again');
        await pause(pauseMs * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => {});
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    }
  }

  /** Returns how many events there were. */
  async #step(): Promise<number> {
    const { redis, prefix } = this.#options;
    const kept = (await redis.call('GET', [this.#key])) as Buffer | null;
    const after = kept === null ? '0' : String(kept);
    const events = await readEvents({
      redis,
      after,
      limit: atOnce,
      ...(prefix !== undefined && { prefix }),
    });
    if (events.length === 0) return 0;
    await this.#apply(events);
    await redis.call('SET', [this.#key, events.at(-1)!.cursor]);
    return events.length;
  }

  async #apply(events: readonly StreamEvent[]): Promise<void> {
    const changes = events.flatMap((event) => this.#read(event));
    if (changes.length === 0) return;
    const outcome = await applyEvent(this.#options.cache, ...changes);
    if (outcome !== 'applied') throw new Error('the Redis of the cache cannot be reached');
  }
  #read({ cursor, topic, value }: StreamEvent): DomainEvent[] {
    try {
      const changes = eventsOfMessage(topic, value);
      // Names are made of it here, so that one without a tenant, or with a path that is no text, is found by itself.
      killedBy(...changes);
      return changes;
    } catch (error) {
      this.#logger.warn(
        { err: error, topic, cursor },
        'an event makes no sense to the cache and is passed over',
      );
      return [];
    }
  }
}
