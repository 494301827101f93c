// What a crowd of idle workers costs a busy one. It compares speeds, so it runs alone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();

test('many idle workers do not change what one achieves', async (t) => {
  const jobs = 10_000;
  const measure = async (): Promise<number> => {
    const busy = bed.queue<number>(t);
    await busy.addMany(Array.from({ length: jobs }, (_, data) => ({ data })));
    const seen = new Gathering<number>();
    const worker = busy.work(() => seen.push(performance.now()), { concurrency: 100 });
    await seen.reach(jobs);
    // From the first job on: a worker that is the first of its process has to start a thread before.
    const perSecond = (jobs / (seen.items.at(-1)! - seen.items[0]!)) * 1_000;
    await worker.stop();
    return perSecond;
  };
  const best = async (rounds: number) => {
    let most = 0;
    for (let i = 0; i < rounds; i++) most = Math.max(most, await measure());
    return most;
  };
  await best(2); // the compiler needs a while
  const alone = await best(4);
  const queue = bed.queue<number>(t);
  const idle = Array.from({ length: 200 }, () => queue.work(() => {}, { concurrency: 1 }));
  await Promise.all(idle.map((worker) => worker.start()));
  await sleep(500);
  const among = await best(4);
  t.diagnostic(`${Math.round(alone)} jobs/s alone, ${Math.round(among)} among 200 idle workers`);
  // The workers live in this very process, whose loop they share; the bench measures a thousand in processes of their own.
  assert.ok(among > alone * 0.6, `${among} instead of ${alone}`);
  await Promise.all(idle.map((worker) => worker.stop(0)));
});
