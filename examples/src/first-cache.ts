// The first cache: loaded once, read from Redis by every process, right again after a change.
import { Cache, defineCache } from '@sluice/cache';

const database = new Map([[7, 'Ada']]);
const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const cache = new Cache({ redis, patienceMs: 1_000 }); // a reader waits so long for Redis, then it loads itself
await cache.start();

const load = async (id: number) => {
  console.log(`loading ${id}`);
  return database.get(id);
};
const names = cache.open(defineCache({ name: 'name', key: (id: number) => id, load, ttlMs: 60_000 }));

await Promise.all([names.get(7), names.get(7), names.get(7)]); // one load, also of several processes
console.log(await names.get(7)); // from Redis

database.set(7, 'Ada Lovelace'); // change the data first,
await names.invalidate(7); // then say so: from here on nobody reads the old value
console.log(await names.get(7));
cache.close();

// Prints:
// loading 7
// Ada
// loading 7
// Ada Lovelace
