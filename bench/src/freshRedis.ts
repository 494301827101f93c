/*
 * A Redis of the benchmark's own: append-only file with `everysec`, no eviction. It is never the Redis of anybody's
 * data, because it is flushed before every measurement.
 *
 * `reset` makes the conditions equal: no keys, an append-only file that starts at nothing, no fsync pending. The
 * automatic rewrite of the file is off, because its fork would hit whichever system happens to be running when the
 * file reaches 64 MB.
 *
 * The server also tells what it spent: memory, commands.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis } from '@sluice/testbed';
import { Redis } from 'ioredis';
import { until } from './waiting.js';

export interface FreshRedis {
  readonly url: string;
  readonly version: string;
  reset(): Promise<void>;
  usedBytes(): Promise<number>;
  /** Counts the commands that clients send within the window; calls made inside scripts do not count. */
  countCommands(windowMs: number): Promise<number>;
  stop(): Promise<void>;
}

const REWRITE_DEADLINE_MS = 60_000;

export async function startFreshRedis(): Promise<FreshRedis> {
  const server = await startRedis({ config: { 'auto-aof-rewrite-percentage': 0 } });
  return {
    url: server.url,
    version: (await server.info('server'))['redis_version'] ?? 'unknown',

    async reset() {
      await server.command('FLUSHALL', 'SYNC');
      await server.command('BGREWRITEAOF');
      const quiet = async (): Promise<boolean> => persistenceIsQuiet(await server.info('persistence'));
      await until(quiet, REWRITE_DEADLINE_MS, 'the rewrite of an empty append-only file');
    },

    async usedBytes() {
      return Number((await server.info('memory'))['used_memory']);
    },

    async countCommands(windowMs) {
      const client = new Redis(server.url);
      const monitor = await client.monitor();
      client.disconnect();
      let count = 0;
      monitor.on('monitor', (_time: string, _args: string[], source: string) => {
        if (source !== 'lua') count += 1;
      });
      await sleep(windowMs);
      monitor.disconnect();
      return count;
    },

    stop: () => server.stop(),
  };
}

function persistenceIsQuiet(fields: Record<string, string>): boolean {
  const busy = ['aof_rewrite_in_progress', 'aof_rewrite_scheduled', 'aof_pending_bio_fsync'];
  return busy.every((name) => fields[name] === '0');
}
