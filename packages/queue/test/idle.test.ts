// What a worker costs while there is nothing to do, and how surely it wakes when there is.
//
// Commands are counted with MONITOR: every line is a command that Redis carried out; those that a script made (marked "lua")
// are left out, because they are part of the one command that the worker sent. A pop that blocks counts once, when it begins.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'node:net';
import { startProxy } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { napMs } from '../src/waiter.js';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();

/** The commands that clients sent during `spanMs`, by name. */
async function countCommands(spanMs: number): Promise<Map<string, number>> {
  const socket = connect(bed.redis.port, bed.redis.host);
  const counts = new Map<string, number>();
  let rest = '';
  socket.write('MONITOR\r\n');
  // +1700000000.123456 [0 127.0.0.1:50000] "evalsha" …, or [0 lua] for what a script does.
  socket.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('latin1')).split('\r\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const name = /^\+[\d.]+ \[\d+ (?!lua\])[^\]]*\] "([^"]+)"/.exec(line)?.[1]?.toLowerCase();
      if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  });
  await sleep(spanMs);
  socket.destroy();
  return counts;
}

test('an idle worker costs Redis at most one command per second', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.work(() => {}).start();
  // One more, so that there is both the one that keeps watch and one that does not.
  await bed
    .twin(t, queue)
    .work(() => {})
    .start();
  await sleep(2_000);
  const spanMs = 20_000;
  const counts = await countCommands(spanMs);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const perSecond = total / 2 / (spanMs / 1_000);
  t.diagnostic(`${perSecond} commands per worker and second: ${JSON.stringify([...counts])}`);
  assert.ok(perSecond <= 1, `${perSecond} per second`);
});

test('many idle workers do not change what one achieves', async (t) => {
  const queue = bed.queue<number>(t);
  const jobs = 6_000;
  const measure = async (): Promise<number> => {
    const busy = bed.queue<number>(t);
    await busy.addMany(Array.from({ length: jobs }, (_, data) => ({ data })));
    const seen = new Gathering<number>();
    const began = performance.now();
    const worker = busy.work((job) => seen.push(job.data), { concurrency: 100 });
    await seen.reach(jobs);
    const perSecond = (jobs / (performance.now() - began)) * 1_000;
    await worker.stop();
    return perSecond;
  };
  const median = async () => {
    const rates = [await measure(), await measure(), await measure(), await measure(), await measure()];
    return rates.sort((a, b) => a - b)[2]!;
  };
  await measure();
  const alone = await median();
  const idle = Array.from({ length: 200 }, () => queue.work(() => {}, { concurrency: 1 }));
  await Promise.all(idle.map((worker) => worker.start()));
  await sleep(500);
  const among = await median();
  t.diagnostic(`${Math.round(alone)} jobs/s alone, ${Math.round(among)} among 200 idle workers`);
  // The workers live in this very process, whose loop they share; the bench measures a thousand in processes of their own.
  assert.ok(among > alone * 0.5, `${among} instead of ${alone}`);
  await Promise.all(idle.map((worker) => worker.stop(0)));
});

test('a wake-up token that gets lost delays a job by one nap at most', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.ready();
  // Redis serves those who wait in the order in which they came: this one comes before the worker and takes its token.
  const { link, keys } = queue.partitions[0]!;
  const thief = link.another();
  t.after(() => thief.close());
  const stolen = thief.once('BLPOP', [keys.wake, 60], 60_000);
  await sleep(200);
  const seen = new Gathering<number>();
  await queue.work(() => seen.push(performance.now())).start();
  await sleep(300);
  const began = performance.now();
  await queue.add(1);
  assert.notEqual(await stolen, null);
  const [at] = await seen.reach(1);
  t.diagnostic(`started after ${Math.round(at! - began)} ms; a nap is ${napMs} ms`);
  assert.ok(at! - began < napMs + 1_500, `${at! - began} ms`);
});

test('a sleeper whose connection hangs is woken by its watchdog', async (t) => {
  const proxy = await startProxy(bed.redis.port);
  t.after(() => proxy.stop());
  const queue = bed.queue<number>(t);
  const behind = new Queue<number>(queue.name, { redis: proxy.url });
  t.after(() => behind.close(500));
  const seen = new Gathering<number>();
  await behind.work((job) => seen.push(job.data)).start();
  await sleep(300);
  proxy.blackHole(true);
  // The sleeper's reply falls into the hole, and the token with it.
  await queue.add(1);
  await sleep(200);
  proxy.heal();
  const began = performance.now();
  assert.deepEqual(await seen.reach(1), [1]);
  t.diagnostic(`woken after ${Math.round(performance.now() - began)} ms`);
});
