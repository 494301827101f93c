// Many tenants, one queue: groups take turns, and limits hold for all workers together.
import { Queue } from '@sluice/queue';

const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const images = new Queue<string>('images', { redis, keepResultMs: 60_000 });

await images.limit({
  maxActive: 50, // of the whole queue at once
  rate: { max: 1_000, perMs: 1_000 }, // started within any second
  perGroup: { maxActive: 2, rate: { max: 100, perMs: 1_000 } }, // the same for each tenant
});

// A big tenant was first, and a small one comes last.
const added = await images.addMany([
  ...['a', 'b', 'c', 'd'].map((name) => ({ data: `big tenant: ${name}`, group: 'big' })),
  { data: 'small tenant: x', group: 'small' },
]);

images.work((job) => console.log(job.data), { concurrency: 1 });

await Promise.all(added.map(({ id }) => images.result(id)));
await images.close();

// Prints:
// big tenant: a
// small tenant: x
// big tenant: b
// big tenant: c
// big tenant: d
