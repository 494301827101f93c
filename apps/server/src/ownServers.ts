/**
 * The Redis servers and the PostgreSQL that nobody brought: started here, all at once, because none of them needs another.
 *
 *     Redis for queues and state     SLUICE_REDIS_URL
 *     Redis for chunks, for the cache     SLUICE_CHUNKS_REDIS_URL, SLUICE_CACHE_REDIS_URL, or where SLUICE_REDIS_URL says
 *     PostgreSQL for records     SLUICE_DATABASE_URL
 */
import { sleep, type Logger } from '@sluice/base';
import type { Config } from './config.js';
import type { Stop } from './parts.js';
import { startPostgresProcess } from './postgresProcess.js';
import { startRedisProcess } from './redisProcess.js';

export interface ServerUrls {
  redisUrl: string;
  chunksRedisUrl: string | undefined;
  cacheRedisUrl: string | undefined;
  databaseUrl: string | undefined;
}

interface Started {
  readonly url: string;
  stop(deadlineMs: number): Promise<void>;
}

export async function startOwnServers(
  config: Config,
  { servesFiles, logger }: { servesFiles: boolean; logger: Logger },
  stops: Stop[],
): Promise<ServerUrls> {
  const { dataDir, searchPath } = config;
  const ours = { dataDir, searchPath, logger };
  const isRedisOurs = config.redisUrl === undefined;
  const unlessThere = async (
    url: string | undefined,
    isNeeded: boolean,
    start: () => Promise<Started>,
  ): Promise<string | undefined> => {
    if (url !== undefined || !isNeeded) return url;
    const starting = start();
    // Known from its first moment: a stop that comes while it starts waits for it, and leaves nothing running.
    stops.push(async (deadlineMs) => {
      const started = await Promise.race([starting.catch(() => undefined), sleep(deadlineMs)]);
      await started?.stop(deadlineMs);
    });
    return (await starting).url;
  };
  const [redisUrl, chunksRedisUrl, cacheRedisUrl, databaseUrl] = await Promise.all([
    unlessThere(config.redisUrl, true, () => startRedisProcess(ours)),
    unlessThere(config.chunksRedisUrl, servesFiles && isRedisOurs, () =>
      startRedisProcess({ ...ours, use: 'chunks', maxMemoryBytes: config.uploadBudgetBytes }),
    ),
    unlessThere(config.cacheRedisUrl, servesFiles && isRedisOurs, () =>
      startRedisProcess({ ...ours, use: 'cache', maxMemoryBytes: config.cacheBytes }),
    ),
    unlessThere(config.databaseUrl, servesFiles, () => startPostgresProcess({ dataDir, logger })),
  ]);
  return { redisUrl: redisUrl!, chunksRedisUrl, cacheRedisUrl, databaseUrl };
}
