// Jobs that wait for jobs, across queues: fetch two pages, then compare them.
import { createChain, Queue } from '@sluice/queue';

const redis = process.argv[2] ?? 'redis://127.0.0.1:6379';
const pages = new Queue<{ url: string }, string>('pages', { redis });
const reports = new Queue<{ title: string }, string>('reports', { redis });

pages.work(async (job) => `<h1>${job.data.url}</h1>`);
reports.work(async (job) => {
  const [chain] = job.id.split('/');
  const [before, after] = [await pages.result(`${chain}/before`), await pages.result(`${chain}/after`)];
  return `${job.data.title}: ${before === after ? 'the same' : `${before} became ${after}`}`;
});

const { jobs } = await createChain([
  { key: 'before', queue: pages, data: { url: 'v1.example.com' } },
  { key: 'after', queue: pages, data: { url: 'v2.example.com' }, options: { attempts: 5 } },
  { key: 'report', queue: reports, data: { title: 'changes' }, after: ['before', 'after'] },
]);

console.log(await reports.result(jobs['report']!.id));
await Promise.all([pages.close(), reports.close()]);

// Prints:
// changes: <h1>v1.example.com</h1> became <h1>v2.example.com</h1>
