// A process that begins to load a value and never ends: it tells its parent once it loads, and waits to be killed.
import { Cache, defineCache } from '../src/index.js';

const [redis, prefix, leaseMs] = process.argv.slice(2) as [string, string, string];
const cache = new Cache({ redis, prefix, leaseMs: Number(leaseMs), patienceMs: 10_000, publishMs: 0 });
const load = (): Promise<never> => {
  process.send!('loading');
  return new Promise(() => {});
};
const rows = cache.open(defineCache({ name: 'row', key: (key: string) => key, ttlMs: 60_000, load }));
await rows.get('a');
