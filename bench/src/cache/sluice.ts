/*
 * Sluice as its README has it, with its defaults.
 */
import { Cache, defineCache } from '@sluice/cache';
import { TTL_MS, type Contender, type ContenderOptions } from './contender.js';
import { until } from '../waiting.js';

const START_DEADLINE_MS = 10_000;

export async function openSluice({ url, near, load, patienceMs }: ContenderOptions): Promise<Contender> {
  const cache = new Cache({ redis: url, prefix: 'bench', ...(patienceMs && { patienceMs }) });
  await cache.start();
  await until(async () => cache.statistics().isWatching, START_DEADLINE_MS, 'the tracking of Sluice');
  const values = cache.open(
    defineCache<string, unknown>({
      name: 'value',
      key: (key) => key,
      load: (key) => load(key),
      ttlMs: TTL_MS,
      ...(!near && { nearMs: 0 }),
    }),
  );
  return {
    get: (key) => values.get(key),
    getMany: (keys) => values.getMany(keys),
    invalidate: (key) => values.invalidate(key),
    close: async () => cache.close(),
  };
}
