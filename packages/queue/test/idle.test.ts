// What a worker costs while there is nothing to do, and how surely it wakes when there is.
//
// Commands are counted with MONITOR: every line is a command that Redis carried out; those that a script made (marked "lua")
// are left out, because they are part of the one command that the worker sent. A pop that blocks counts once, when it begins.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { startProxy, startRedis, waitUntil } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { napMs } from '../src/waiter.js';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();

/** The commands that clients sent to a server during `spanMs`, by name. */
async function countCommands({ host, port }: RedisServer, spanMs: number): Promise<Map<string, number>> {
  const socket = connect(port, host);
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

describe('sleeping', { concurrency: true }, () => {
  test('an idle worker costs Redis at most one command per second', async (t) => {
    const redis = await startRedis();
    const queue = new Queue<number>('idle', { redis: redis.url });
    t.after(async () => {
      await queue.close(500);
      await redis.stop();
    });
    // Being alone it also keeps watch over inbox, timeline and memories; others would only sleep.
    await queue.work(() => {}).start();
    await sleep(1_000);
    const spanMs = 20_000;
    const counts = await countCommands(redis, spanMs);
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    const perSecond = total / (spanMs / 1_000);
    t.diagnostic(`${perSecond} commands per second: ${JSON.stringify([...counts])}`);
    assert.ok(perSecond <= 1, `${perSecond} per second`);
  });

  test('a wake-up token that gets lost delays a job by one nap at most', async (t) => {
    const queue = bed.queue<number>(t);
    await queue.ready();
    // Redis serves those who wait in the order in which they came: this one comes before the worker and takes its token.
    const { link, keys } = queue.partitions[0]!;
    const thief = link.another({ name: 'thief' });
    t.after(() => thief.close());
    const stolen = thief.once('BLPOP', [keys.wake, 60], 60_000);
    await waitUntil('it waits', async () => {
      const clients = String(await bed.redis.command('CLIENT', 'LIST')).split('\n');
      return clients.some((line) => line.includes(' name=thief') && line.includes(' cmd=blpop '));
    });
    const seen = new Gathering<number>();
    await queue.work(() => seen.push(performance.now())).start();
    await sleep(300);
    const began = performance.now();
    await queue.add(1);
    assert.notEqual(await stolen, null);
    const [at] = await seen.reach(1);
    t.diagnostic(`started after ${Math.round(at! - began)} ms; a nap is ${napMs} ms`);
    assert.ok(at! - began < napMs + 2_500, `${at! - began} ms`);
  });

  test('a sleeper whose connection hangs is woken by its watchdog', async (t) => {
    const proxy = await startProxy(bed.redis.port);
    const queue = bed.queue<number>(t);
    const behind = new Queue<number>(queue.name, { redis: proxy.url });
    t.after(async () => {
      await behind.close(500);
      await proxy.stop();
    });
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
});
