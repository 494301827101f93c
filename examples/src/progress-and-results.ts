// What a job says while it runs, what it returns, and how it is stopped.
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from '@sluice/queue';

const books = new Queue<{ pages: number }, string>('books', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
  keepResultMs: 60_000, // results, logs and states stay readable for a minute
  timeoutMs: 30_000, // then the signal fires, and the attempt has failed
});

books.work(async (job) => {
  for (let page = 1; page <= job.data.pages; page++) {
    await sleep(50, undefined, { signal: job.signal }); // reading; ends early when nobody wants it any more
    await job.progress({ page });
  }
  await job.log('closed the book');
  return `read ${job.data.pages} pages`;
});

const novel = await books.add({ pages: 3 });
console.log(await books.result(novel.id));
console.log((await books.job(novel.id))!.logs);

const saga = await books.add({ pages: 10_000 });
while ((await books.job(saga.id))!.progress === undefined) await sleep(10);
console.log('it was', await books.cancel(saga.id));
console.log('it is', (await books.job(saga.id))!.state);
await books.close();

// Prints:
// read 3 pages
// [ 'closed the book' ]
// it was active
// it is cancelled
