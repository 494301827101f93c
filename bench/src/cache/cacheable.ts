/*
 * Cacheable as its documentation recommends it: memory first, Redis second (Keyv). To measure hits in Redis, Redis is put first.
 */
import KeyvRedis from '@keyv/redis';
import { Cacheable } from 'cacheable';
import { TTL_MS, type Contender, type ContenderOptions } from './contender.js';

export async function openCacheable({ url, near, load }: ContenderOptions): Promise<Contender> {
  const redis = new KeyvRedis(url, { namespace: 'cacheable' });
  redis.on('error', () => {});
  const options = near ? { secondary: redis } : { primary: redis };
  const cache = new Cacheable({ ...options, ttl: TTL_MS });
  cache.on('error', () => {});
  return {
    get: (key) => cache.getOrSet(key, () => load(key), { ttl: TTL_MS }),
    getMany: (keys) => cache.getMany(keys),
    invalidate: (key) => cache.delete(key),
    close: async () => {
      await redis.disconnect(true).catch(() => {});
    },
  };
}
