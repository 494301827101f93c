// The first worker: a queue, a handler, a job.
import { Queue } from '@sluice/queue';

const mail = new Queue<{ to: string }>('mail', { redis: process.argv[2] ?? 'redis://127.0.0.1:6379' });

mail.work(async (job) => {
  console.log(`sending to ${job.data.to}`);
});

await mail.add({ to: 'ada@example.com' });

// Prints, until Ctrl-C:
// sending to ada@example.com
