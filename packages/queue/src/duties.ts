// What a worker does for everybody: rescue the jobs of dead sessions, take foreign messages from the inbox, deliver chain
// notices, fire schedules, forget what is old. Each duty is idempotent, so it does not matter who does it, or whether two do;
// each runs once at a time here, and a failure is logged and left to the next look.
import { setTimeout as pause } from 'node:timers/promises';
import { failPoint, isSluiceError } from '@sluice/base';
import type { Logger } from '@sluice/base';
import { deliverNotices, sweepChains } from './chain.js';
import { takeInbox } from './inbox.js';
import type { Partition } from './partition.js';
import type { AnyQueue } from './queue.js';

const rescueChunk = 100;
const sweepEveryMs = 10_000;
const sweepLimit = 500;
const afterFailureMs = 500;
const stopWithinMs = 2_000;

export class Duties {
  readonly #queue: AnyQueue;
  readonly #partition: Partition;
  readonly #leaseMs: number;
  readonly #logger: Logger;
  readonly #underWay = new Map<string, Promise<void>>();
  #lastSweepMs = performance.now();
  #rescueTimer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(queue: AnyQueue, partition: Partition, leaseMs: number, logger: Logger) {
    this.#queue = queue;
    this.#partition = partition;
    this.#leaseMs = leaseMs;
    this.#logger = logger;
  }

  rescue(): Promise<void> {
    return this.#once('rescue', async () => {
      for (;;) {
        failPoint('rescue.begun');
        const reply = (await this.#partition.run('rescue', {
          leaseMs: this.#leaseMs,
          chunk: rescueChunk,
        })) as unknown[];
        if (String(reply[0]) === 'GRACE') return this.#rescueLater(Number(reply[1]));
        if (String(reply[0]) !== 'RESCUED') return;
        failPoint('rescue.moved');
        this.#logger.warn(
          { queue: this.#queue.name, session: String(reply[1]), jobs: reply[2] },
          'rescued the jobs of a session that stopped renewing its lease',
        );
        if (this.#stopped) return;
      }
    });
  }

  /** After an outage nobody is rescued for one lease; whoever does not renew in that time is looked after right at its end. */
  #rescueLater(delayMs: number): void {
    clearTimeout(this.#rescueTimer);
    this.#rescueTimer = setTimeout(() => void this.rescue(), delayMs + 10);
    this.#rescueTimer.unref();
  }

  takeInbox(): Promise<void> {
    return this.#once('inbox', () => takeInbox(this.#queue, this.#partition));
  }

  deliverNotices(): Promise<void> {
    return this.#once('notices', () => deliverNotices(this.#queue, this.#partition));
  }

  runSchedules(): Promise<void> {
    return this.#once('schedules', () => this.#queue.schedules.runDue(this.#partition));
  }

  sweepSometimes(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastSweepMs < sweepEveryMs) return;
    this.#lastSweepMs = nowMs;
    void this.#once('sweep', async () => {
      while (
        Number(await this.#partition.run('sweep', { limit: sweepLimit })) === sweepLimit &&
        !this.#stopped
      );
      failPoint('sweep.forgotten');
      await sweepChains(this.#queue, this.#partition);
      failPoint('sweep.chained');
      await this.#queue.dead.sweep([this.#partition]);
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#rescueTimer);
    // Whatever is under way is safe to leave: somebody else does it again.
    await Promise.race([
      Promise.allSettled(this.#underWay.values()),
      pause(stopWithinMs, undefined, { ref: false }),
    ]);
  }

  #once(name: string, duty: () => Promise<void>): Promise<void> {
    const running = this.#underWay.get(name);
    if (running) return running;
    if (this.#stopped) return Promise.resolve();
    const promise = duty()
      .catch(async (error: unknown) => {
        if (this.#stopped || isSluiceError(error, 'REDIS_CLOSED')) return;
        this.#logger.warn(
          { error, duty: name, queue: this.#queue.name },
          'a duty failed and will be tried again',
        );
        // Whoever asks for it meanwhile waits with it: a duty that cannot succeed must not spin.
        await pause(afterFailureMs);
      })
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, promise);
    return promise;
  }
}
