// How long a reader waits when Redis goes away, and how long after its return everything is as before. Runs alone, because it measures
// time; of several attempts the middle one counts, because a busy machine delays everybody now and then.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRedis, type RedisServer } from '@sluice/testbed';
import { Cache, defineCache } from '../src/index.js';
import { eventually, sleep } from './setup.js';

const answerWithinMs = 100;
const backWithinMs = 2_000;
const attempts = 5;

const outages: Record<
  string,
  { begin: (redis: RedisServer) => Promise<void> | void; end: (redis: RedisServer) => Promise<void> | void }
> = {
  killed: { begin: (redis) => redis.kill9(), end: (redis) => redis.restart() },
  stopped: { begin: (redis) => redis.pause(), end: (redis) => redis.resume() },
};

for (const [name, { begin, end }] of Object.entries(outages)) {
  test(`with Redis ${name} a reader is answered within 100 ms, and all is as before within 2 s of its return`, async (t) => {
    const answers: number[] = [];
    const returns: number[] = [];
    for (let attempt = 0; attempt < attempts; attempt++) {
      const redis = await startRedis({ appendonly: false });
      const cache = new Cache({ redis: redis.url });
      t.after(async () => {
        cache.close();
        await redis.stop();
      });
      await cache.start();
      const rows = cache.open(
        defineCache({ name: 'row', key: (id: number) => id, load: (id) => id, ttlMs: 60_000 }),
      );
      await rows.get(0);
      await begin(redis);
      let slowestMs = 0;
      for (let id = 1; id <= 5; id++) slowestMs = Math.max(slowestMs, await measure(() => rows.get(id)));
      answers.push(slowestMs);
      await sleep(1_000);
      await end(redis);
      returns.push(
        await measure(() =>
          eventually('values are read from Redis again', async () => {
            const { redisHits } = rows.statistics();
            await rows.get(100);
            await rows.get(100);
            return rows.statistics().redisHits > redisHits;
          }),
        ),
      );
      cache.close();
      await redis.stop();
    }
    assert.ok(middle(answers) <= answerWithinMs, `answered after ${answers.map(Math.round)} ms`);
    assert.ok(middle(returns) <= backWithinMs, `back after ${returns.map(Math.round)} ms`);
  });
}

async function measure(act: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await act();
  return performance.now() - startMs;
}

function middle(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
