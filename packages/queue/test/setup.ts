// What most tests of the queue share: one real Redis per test file, and queues that are closed when their test ends.
import { after, before } from 'node:test';
import type { TestContext } from 'node:test';
import { startRedis, waitUntil } from '@sluice/testbed';
import type { RedisServer, RedisServerOptions } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import type { QueueOptions } from '../src/index.js';

let names = 0;

export interface Bed {
  readonly redis: RedisServer;
  queue<Data = unknown, Result = unknown>(
    t: TestContext,
    options?: Partial<QueueOptions<Data>>,
  ): Queue<Data, Result>;
  /** Another handle on a queue, as another process would have it. */
  twin<Data, Result>(
    t: TestContext,
    queue: Queue<Data, Result>,
    options?: Partial<QueueOptions<Data>>,
  ): Queue<Data, Result>;
}

export function useRedis(options?: RedisServerOptions): Bed {
  let redis: RedisServer | undefined;
  before(async () => {
    redis = await startRedis(options);
  });
  after(async () => {
    await redis?.stop();
  });
  const open = <Data, Result>(t: TestContext, name: string, more: Partial<QueueOptions<Data>>) => {
    const queue = new Queue<Data, Result>(name, { redis: redis!.url, ...more });
    t.after(() => queue.close(500));
    return queue;
  };
  return {
    get redis() {
      return redis!;
    },
    queue: <Data, Result>(t: TestContext, more: Partial<QueueOptions<Data>> = {}) =>
      open<Data, Result>(t, `q${process.pid}-${names++}`, more),
    twin: <Data, Result>(
      t: TestContext,
      queue: Queue<Data, Result>,
      more: Partial<QueueOptions<Data>> = {},
    ) => open<Data, Result>(t, queue.name, { ...queue.options, ...more }),
  };
}

/** Resolves when `count` things have been pushed. */
export class Gathering<T> {
  readonly items: T[] = [];
  #waiting: { count: number; resolve: () => void }[] = [];

  push(item: T): void {
    this.items.push(item);
    this.#waiting = this.#waiting.filter(({ count, resolve }) => {
      if (this.items.length < count) return true;
      resolve();
      return false;
    });
  }

  async reach(count: number, timeoutMs = 20_000): Promise<T[]> {
    if (this.items.length < count) {
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(
          () => reject(new Error(`${this.items.length} of ${count} arrived within ${timeoutMs} ms`)),
          timeoutMs,
        );
        this.#waiting.push({
          count,
          resolve: () => {
            clearTimeout(timer);
            resolve();
          },
        });
      });
    }
    return this.items;
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function eventually(
  condition: () => Promise<boolean> | boolean,
  timeoutMs = 15_000,
): Promise<void> {
  await waitUntil('what the test waits for', condition, { timeoutMs, everyMs: 20 });
}
