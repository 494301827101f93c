// Many tenants, one queue: groups take turns, and limits hold for all workers together.
import { Queue } from '@sluice/queue';

const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const images = new Queue<string>('images', { redis, keepResultMs: 60_000 });

await images.limit({
  maxActive: 50, // of the whole queue at once
  rate: { max: 1_000, perMs: 1_000 }, // started within any second
  perGroup: { maxActive: 2, rate: { max: 500, perMs: 1_000 } }, // the same for each tenant
});

// A big tenant brings a hundred jobs, and behind it comes a small one with a single job.
const big = Array.from({ length: 100 }, () => ({ data: 'big', group: 'big' }));
const added = await images.addMany([...big, { data: 'small', group: 'small' }]);

const order: string[] = [];
images.work((job) => order.push(job.data), { concurrency: 1 });

await Promise.all(added.map(({ id }) => images.result(id)));
console.log('the small tenant was among the first three:', order.indexOf('small') < 3);
await images.close();

// Prints:
// the small tenant was among the first three: true
