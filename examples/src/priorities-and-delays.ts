// Urgent jobs first, some of them later.
import { Queue } from '@sluice/queue';

const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const letters = new Queue<string>('letters', { redis, keepResultMs: 60_000 });

const added = await letters.addMany([
  { data: 'newsletter', priority: 5 }, // 0 is the most urgent, 5 the least
  { data: 'invoice' }, // 3 unless stated
  { data: 'new password', priority: 0 },
  { data: 'reminder', priority: 5, delayMs: 200 },
  { data: 'birthday card', priority: 5, runAt: new Date(Date.now() + 2_000) },
]);

letters.work((job) => console.log(job.data), { concurrency: 1 });

await Promise.all(added.map(({ id }) => letters.result(id)));
await letters.close();

// Prints:
// new password
// invoice
// newsletter
// reminder
// birthday card
