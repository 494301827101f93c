// Tells all who look what this process has counted. Statistics are fields of a process and cost a hit one addition; every few seconds
// they are written to Redis once, whatever the number of reads. With Redis away nothing is told, and nobody waits for it; that it was
// away is told when it is back.
import { hostname } from 'node:os';
import type { Timer } from '@sluice/base';
import type { Engine } from './engine.js';
import type { PublishedCache } from './published.js';
import { scripts } from './scripts.js';
import { makeToken } from './token.js';

export const defaultPublishMs = 5_000;
/** A process that ended can be seen for so long: whoever looks once a minute must not miss what it did last. */
export const keepMs = 120_000;

/** What changes from one publication to the next. */
export type Report = Omit<
  PublishedCache,
  'id' | 'host' | 'pid' | 'sinceMs' | 'atMs' | 'awayUntilMs' | 'everyMs'
>;

export class Publisher {
  readonly #engine: Engine;
  readonly #everyMs: number;
  readonly #report: () => Report;
  readonly #id = makeToken();
  readonly #beganMs: number;
  #timer: Timer | undefined;
  #hasWarned = false;

  constructor(engine: Engine, everyMs: number, report: () => Report) {
    this.#engine = engine;
    this.#everyMs = everyMs;
    this.#report = report;
    this.#beganMs = engine.clock.monotonicMs();
  }

  start(): void {
    // Not all processes of a service that begins in the same moment.
    this.#plan(this.#everyMs * (0.5 + this.#engine.random() / 2));
  }

  close(): void {
    this.#timer?.cancel();
  }

  #plan(delayMs: number): void {
    this.#timer = this.#engine.clock.setTimer(() => {
      this.#plan(this.#everyMs);
      void this.#publish();
    }, delayMs);
  }

  async #publish(): Promise<void> {
    const { keys, channel, breaker, logger } = this.#engine;
    if (breaker.isOpen) return;
    try {
      const args = { process: this.#id, text: JSON.stringify(this.#describe()), keepMs };
      await channel.run(scripts.publish, { statistics: keys.statistics, published: keys.published }, args);
    } catch (error) {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      logger.warn({ error }, 'the statistics of the cache cannot be published; they are tried again');
    }
  }

  #describe(): PublishedCache {
    const { clock, serverClock, breaker } = this.#engine;
    const atMs = Math.round(serverClock.now());
    const { closedMs } = breaker;
    return {
      id: this.#id,
      host: hostname(),
      pid: process.pid,
      sinceMs: Math.round(atMs - (clock.monotonicMs() - this.#beganMs)),
      atMs,
      ...(closedMs !== undefined && { awayUntilMs: Math.round(atMs - (clock.monotonicMs() - closedMs)) }),
      everyMs: this.#everyMs,
      ...this.#report(),
    };
  }
}
