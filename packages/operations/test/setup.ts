// What the tests of operations share: one real Redis per test file, and queues full of dead letters.
import { after, before } from 'node:test';
import type { TestContext } from 'node:test';
import { GiveUp, Queue } from '@sluice/queue';
import { startRedis, waitUntil } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Operations } from '../src/index.js';

let prefixes = 0;

export interface Scene {
  prefix: string;
  queue: Queue<number>;
  operations: Operations;
}

export interface Bed {
  readonly redis: RedisServer;
  /** A queue with so many letters, of which the even ones belong to tenant `a`, and operations on it. */
  scene(t: TestContext, letters: number): Promise<Scene>;
}

export function useRedis(): Bed {
  let redis: RedisServer | undefined;
  before(async () => {
    redis = await startRedis();
  });
  after(async () => {
    await redis?.stop();
  });
  return {
    get redis() {
      return redis!;
    },
    async scene(t, letters) {
      const prefix = `ops${process.pid}-${prefixes++}`;
      const queue = new Queue<number>('mail', { redis: redis!.url, prefix, partitions: 2, attempts: 1 });
      t.after(() => queue.close(500));
      const worker = queue.work(
        (job) => {
          throw new GiveUp(job.data < letters / 2 ? 'disk is full' : 'no such bucket');
        },
        { concurrency: 100 },
      );
      const labels = (n: number) => ({ tenant: n % 2 === 0 ? 'a' : 'b' });
      const jobs = Array.from({ length: letters }, (_, n) => ({ data: n, id: `job${n}`, labels: labels(n) }));
      await queue.addMany(jobs);
      await eventually(async () => (await queue.dead.count()) === letters);
      await worker.stop();
      const queueNamed = (name: string) => (name === 'mail' ? queue : undefined);
      const operations = new Operations({ redis: redis!.url, prefix, queueNamed });
      t.after(() => operations.close(500));
      return { prefix, queue, operations };
    },
  };
}

export async function eventually(condition: () => Promise<boolean> | boolean): Promise<void> {
  await waitUntil('what the test waits for', condition, { timeoutMs: 60_000, everyMs: 20 });
}
