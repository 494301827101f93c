/*
 * No cache at all: GET and JSON.parse with the client that Sluice uses. It can do nothing else.
 */
import { Redis } from 'ioredis';
import { TTL_MS, type Contender, type ContenderOptions } from './contender.js';

export async function openRaw({ url, load }: ContenderOptions): Promise<Contender> {
  const redis = new Redis(url);
  const get = async (key: string): Promise<unknown> => {
    const text = await redis.get(`raw:${key}`);
    if (text !== null) return JSON.parse(text) as unknown;
    const value = await load(key);
    await redis.set(`raw:${key}`, JSON.stringify(value), 'PX', TTL_MS);
    return value;
  };
  return {
    get,
    getMany: async (keys) => {
      const texts = await redis.mget(keys.map((key) => `raw:${key}`));
      return texts.map((text) => JSON.parse(text!) as unknown);
    },
    invalidate: (key) => redis.unlink(`raw:${key}`),
    close: async () => redis.disconnect(),
  };
}
