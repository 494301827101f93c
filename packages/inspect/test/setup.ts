// What the tests of inspect share: one real Redis per test file, queues and inspectors that end with their test.
import { after, before } from 'node:test';
import type { TestContext } from 'node:test';
import { Queue } from '@sluice/queue';
import type { AnyQueue, QueueOptions } from '@sluice/queue';
import { startRedis, waitUntil } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Inspect } from '../src/index.js';
import type { InspectOptions } from '../src/index.js';

let names = 0;

export interface Bed {
  readonly redis: RedisServer;
  queue<Data = unknown>(t: TestContext, options?: Partial<QueueOptions<Data>>): Queue<Data>;
  inspect(t: TestContext, queues: AnyQueue[], options?: Partial<InspectOptions>): Inspect;
  /** A prefix that no other test has. */
  prefix(): string;
}

export function useRedis(): Bed {
  let redis: RedisServer | undefined;
  before(async () => {
    redis = await startRedis();
  });
  after(async () => {
    await redis?.stop();
  });
  const prefix = () => `p${process.pid}-${names++}`;
  return {
    get redis() {
      return redis!;
    },
    prefix,
    queue: <Data>(t: TestContext, options: Partial<QueueOptions<Data>> = {}) => {
      const queue = new Queue<Data>(`q${process.pid}-${names++}`, { redis: redis!.url, ...options });
      t.after(() => queue.close(500));
      return queue;
    },
    inspect: (t, queues, options = {}) => {
      const inspect = new Inspect({ redis: redis!.url, prefix: prefix(), queues, ...options });
      t.after(() => inspect.close());
      return inspect;
    },
  };
}

export async function eventually(condition: () => Promise<boolean> | boolean): Promise<void> {
  await waitUntil('what the test waits for', condition, { timeoutMs: 20_000, everyMs: 20 });
}

/** Commands that clients and scripts have called so far, INFO left out: it is how this is asked. */
export async function commandsOf(redis: RedisServer): Promise<number> {
  let calls = 0;
  for (const [name, value] of Object.entries(await redis.info('commandstats'))) {
    if (!/^cmdstat_(info|client|auth|hello|select)/.test(name)) {
      calls += Number(/calls=(\d+)/.exec(value)?.[1] ?? 0);
    }
  }
  return calls;
}
