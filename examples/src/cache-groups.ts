// Values that belong together are invalidated together; many are read at once; what does not exist is remembered too.
// Run it: node examples/dist/src/cache-groups.js redis://127.0.0.1:6379
import { Cache, defineCache } from '@sluice/cache';

const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const cache = new Cache({ redis, prefix: 'example-groups', patienceMs: 1_000 });
await cache.start();

interface Search {
  job: string;
  words: string;
}
const searches = cache.open(
  defineCache({
    name: 'search',
    key: ({ job, words }: Search) => [job, words],
    ttlMs: 1_800_000,
    groups: ({ job }) => [['search', job]], // known from the key alone
    loadMany: async (all: readonly Search[]) => {
      console.log(`searching for ${all.map(({ words }) => words).join(', ')}`);
      return all.map(({ words }) => [`something about ${words}`]);
    },
    staleIfErrorMs: 600_000, // rather an old answer than none, unless it was invalidated
  }),
);

const wanted = ['trees', 'rivers', 'clouds'].map((words) => ({ job: 'j1', words }));
await searches.getMany(wanted); // one MGET, one call of the loader for all that is missing
await searches.getMany(wanted);

await cache.invalidateGroup(['search', 'j1']); // new documents: every search of this job is outdated
await searches.get(wanted[0]!);
console.log((await searches.explain(wanted[1]!)).because);

await cache.invalidateGroup(['search', 'j1']);
cache.close();

// Prints:
// searching for trees, rivers, clouds
// searching for trees
// Its group search:j1 was invalidated after it was loaded.
