/*
 * The groups suite: what the index of a group costs, and what it gives back.
 *
 * A group is filled, through the cache as readers fill it, once with an index and once without. Memory is read before, when it is full,
 * and some seconds after the group was invalidated. The cost of a fill is the processor time of Redis and the time of one of many loads.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cache, defineCache } from '@sluice/cache';
import { RedisLink } from '@sluice/redis';
import { startFreshRedis, type FreshRedis } from '../freshRedis.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { renderTable } from '../table.js';

const FULL_MEMBERS = 100_000;
const QUICK_MEMBERS = 5_000;
const AT_ONCE = 200;
/** A sweep begins after a second and then takes some ten thousand values per second. */
const SWEEP_LIMIT_MS = 60_000;
const ASK_EVERY_MS = 250;
/** What is left to its TTL does not change while one waits. */
const WAIT_WITHOUT_INDEX_MS = 5_000;
const MEGABYTE = 1_000_000;
/** As a search has: its family, a digest and the id of a job. */
const TEXT = 'x'.repeat(100);

interface GroupFigures {
  filledBytes: number;
  afterBytes: number;
  freedAfterMs: number;
  fillUs: number;
  redisUs: number;
}

export async function benchGroups(options: BenchOptions): Promise<void> {
  const members = options.quick ? QUICK_MEMBERS : FULL_MEMBERS;
  const redis = await startFreshRedis();
  try {
    const machine = await describeMachine({ redis: redis.version });
    const figures = {
      indexed: await measure(redis, members, true),
      unindexed: await measure(redis, members, false),
    };
    const heading = `${machine.cpu}, ${machine.cores} cores; Node ${machine.node}; Redis ${redis.version}`;
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ members, ...figures }, null, 2)}\n`
        : `${heading}; ${members} members\n\n${toTable(figures, members)}\n`,
    );
  } finally {
    await redis.stop();
  }
}

async function measure(redis: FreshRedis, members: number, indexed: boolean): Promise<GroupFigures> {
  await redis.reset();
  const cache = new Cache({ redis: redis.url, patienceMs: 10_000, leaseMs: 60_000, publishMs: 0 });
  const link = new RedisLink(redis.url);
  try {
    await cache.start();
    const searches = cache.open(
      defineCache({
        name: 'vector:search',
        key: (id: number) => [id.toString(16).padStart(32, '0'), 'job-1'],
        loadMany: (ids) => ids.map((id) => [{ chunk_text: TEXT, score: id }]),
        ttlMs: 1_800_000,
        groups: () => ['vector:search'],
        nearMs: 0,
        indexed,
      }),
    );
    const emptyBytes = await redis.usedBytes();
    const [beganMs, beganCpu] = [performance.now(), await cpuSeconds(link)];
    for (let at = 0; at < members; at += AT_ONCE) {
      await searches.getMany(Array.from({ length: AT_ONCE }, (_, i) => at + i));
    }
    const fillUs = ((performance.now() - beganMs) * 1_000) / members;
    await sleep(ASK_EVERY_MS);
    const redisUs = (((await cpuSeconds(link)) - beganCpu) * 1_000_000) / members;
    const filledBytes = (await redis.usedBytes()) - emptyBytes;
    await cache.invalidateGroup('vector:search');
    const invalidatedMs = performance.now();
    const limitMs = indexed ? SWEEP_LIMIT_MS : WAIT_WITHOUT_INDEX_MS;
    while (cache.statistics().freedValues < members && performance.now() - invalidatedMs < limitMs) {
      await sleep(ASK_EVERY_MS);
    }
    const freedAfterMs = performance.now() - invalidatedMs;
    await sleep(ASK_EVERY_MS);
    return { filledBytes, afterBytes: (await redis.usedBytes()) - emptyBytes, freedAfterMs, fillUs, redisUs };
  } finally {
    cache.close();
    link.close();
  }
}

async function cpuSeconds(link: RedisLink): Promise<number> {
  const info = String(await link.call('INFO', ['cpu']));
  const seconds = (name: string) => Number(new RegExp(`${name}:(\\S+)`).exec(info)?.[1]);
  return seconds('used_cpu_user_main_thread') + seconds('used_cpu_sys_main_thread');
}

function toTable(figures: Record<'indexed' | 'unindexed', GroupFigures>, members: number): string {
  const row = (name: string, read: (one: GroupFigures) => string) => [
    name,
    read(figures.indexed),
    read(figures.unindexed),
  ];
  return renderTable(
    ['', 'indexed', 'not indexed'],
    [
      row('filled, MB', ({ filledBytes }) => (filledBytes / MEGABYTE).toFixed(1)),
      row('bytes per member', ({ filledBytes }) => (filledBytes / members).toFixed(0)),
      row('after the invalidation, MB', ({ afterBytes }) => (afterBytes / MEGABYTE).toFixed(1)),
      row('seconds until then', ({ freedAfterMs }) => (freedAfterMs / 1_000).toFixed(1)),
      row('time of a fill, µs', ({ fillUs }) => fillUs.toFixed(0)),
      row('of it in Redis, µs', ({ redisUs }) => redisUs.toFixed(1)),
    ],
  );
}
