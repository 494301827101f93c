// Producers and workers that go on while something happens to Redis, and a ledger of what they did: every id whose add was
// confirmed, and how often each id ran. Whether anything was lost or doubled is read from the ledger, not from the queue.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSluiceError } from '@sluice/base';
import { waitUntil } from '@sluice/testbed';
import type { AddOptions, Job, Queue } from '../src/index.js';

const pauseMs = 2;

export class Load {
  /** Ids whose add was confirmed. */
  readonly accepted = new Set<string>();
  /** Runs that came to their end, by id. */
  readonly runs = new Map<string, number>();
  /** Codes of the errors that adds got and that were answered by repeating them. */
  readonly troubles = new Map<string, number>();
  readonly #queue: Queue<number>;
  readonly #options: AddOptions;
  #producing: Promise<void>[] = [];
  #stopped = false;

  constructor(queue: Queue<number>, options: AddOptions = {}) {
    this.#queue = queue;
    this.#options = options;
  }

  /** Starts producers that add one job after the other until they are stopped. */
  produce(producers: number): this {
    for (let i = 0; i < producers; i++) this.#producing.push(this.#produceUntilStopped());
    return this;
  }

  readonly handler = async (job: Job<number>): Promise<void> => {
    await sleep(Math.random() * 3);
    this.runs.set(job.id, (this.runs.get(job.id) ?? 0) + 1);
  };

  async stopProducing(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#producing);
  }

  /** Waits until every accepted job has run and the books are empty. */
  async finish(timeoutMs = 30_000): Promise<void> {
    await this.stopProducing();
    const missing = () => [...this.accepted].filter((id) => !this.runs.has(id));
    await waitUntil('every accepted job has run', () => missing().length === 0, { timeoutMs }).catch(
      (error) => {
        throw new Error(
          `${missing().length} of ${this.accepted.size} jobs were lost: ${missing().slice(0, 5)}`,
          { cause: error },
        );
      },
    );
    await waitUntil(
      'nothing is left in the books',
      async () => {
        const { waiting, delayed, active, dead, blocked } = await this.#queue.counts();
        return waiting + delayed + active + dead + blocked === 0;
      },
      { timeoutMs },
    ).catch(async (error) => {
      throw new Error(`the books say ${JSON.stringify(await this.#queue.counts())}`, { cause: error });
    });
  }

  /** Ids that ran more than once. */
  get doubled(): string[] {
    return [...this.runs].filter(([, count]) => count > 1).map(([id]) => id);
  }

  assertOnce(): void {
    assert.deepEqual(this.doubled, [], `${this.doubled.length} of ${this.accepted.size} jobs ran twice`);
    assert.ok(this.accepted.size > 0);
  }

  async #produceUntilStopped(): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      this.accepted.add(await this.#addOnce(n));
      await sleep(pauseMs);
    }
  }

  /** Adds one job, repeating under the same id whenever the outcome is unknown. */
  async #addOnce(n: number): Promise<string> {
    let again: { id?: string; requestId?: string } = {};
    for (;;) {
      try {
        return (await this.#queue.add(n, { ...this.#options, ...again })).id;
      } catch (error) {
        if (!isSluiceError(error) || !error.retryable) throw error;
        this.troubles.set(error.code, (this.troubles.get(error.code) ?? 0) + 1);
        const { id, requestId } = (error.details ?? {}) as { id?: string; requestId?: string };
        if (error.code === 'ADD_UNKNOWN') again = { id: id!, requestId: requestId! };
        if (error.code === 'DURABILITY_UNKNOWN') again = { id: id! };
        await sleep(50);
      }
    }
  }
}
