/*
 * Bentocache as its documentation recommends it for several processes: memory in front, Redis behind, a bus between the memories.
 * Its memory holds JSON, as is its default: with objects (`serialize: false`) concurrent readers of a cold value fail in 1.6.1. It
 * has no way to get several values; they are asked for all at once.
 */
import { BentoCache, bentostore } from 'bentocache';
import { memoryDriver } from 'bentocache/drivers/memory';
import { redisBusDriver, redisDriver } from 'bentocache/drivers/redis';
import { Redis } from 'ioredis';
import { TTL_MS, type Contender, type ContenderOptions } from './contender.js';

export async function openBentocache({ url, near, load }: ContenderOptions): Promise<Contender> {
  const clients = [new Redis(url), new Redis(url)] as const;
  // Without a listener the loss of the connection would end the process.
  for (const client of clients) client.on('error', () => {});
  const [connection, busConnection] = clients as unknown as [never, never];
  const store = near
    ? bentostore()
        .useL1Layer(memoryDriver({}))
        .useL2Layer(redisDriver({ connection }))
        .useBus(redisBusDriver({ connection: busConnection }))
    : bentostore().useL2Layer(redisDriver({ connection }));
  const cache = new BentoCache({ default: 'main', prefix: 'bento', ttl: TTL_MS, stores: { main: store } });
  await clients[0].ping();
  return {
    get: (key) => cache.getOrSet({ key, factory: () => load(key) }),
    getMany: (keys) => Promise.all(keys.map((key) => cache.get({ key }))),
    invalidate: (key) => cache.delete({ key }),
    close: async () => {
      for (const client of clients) client.disconnect();
    },
  };
}
