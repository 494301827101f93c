// What a worker costs while there is nothing to do, and how surely it wakes when there is.
//
// Commands are counted with MONITOR: every line is a command that Redis carried out; those that a script made (marked "lua")
// are left out, because they are part of the one command that the worker sent. A pop that blocks counts once, when it begins.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { startProxy, waitUntil } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { Gathering, sleep, useRedis } from './setup.js';

const bed = useRedis();
/** How long a worker sleeps at a time (waiter.ts). */
const napMs = 5_000;

/** The commands that clients sent during `spanMs`, by name. */
async function countCommands(spanMs: number): Promise<Map<string, number>> {
  const client = new Redis(bed.redis.port);
  const monitor = await client.monitor();
  const counts = new Map<string, number>();
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (source === 'lua') return;
    const name = args[0]!.toLowerCase();
    counts.set(name, (counts.get(name) ?? 0) + 1);
  });
  await sleep(spanMs);
  monitor.disconnect();
  client.disconnect();
  return counts;
}

test('an idle worker costs Redis at most one command per second', async (t) => {
  const queue = bed.queue<number>(t);
  await queue.work(() => {}).start();
  // One more, so that there is both the one that keeps watch and one that does not.
  await bed.twin(t, queue).work(() => {}).start();
  await sleep(2_000);
  const spanMs = 20_000;
  const counts = await countCommands(spanMs);
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const perSecond = total / 2 / (spanMs / 1_000);
  t.diagnostic(`${perSecond} commands per worker and second: ${JSON.stringify([...counts])}`);
  assert.ok(perSecond <= 1, `${perSecond} per second`);
});
