// A worker for jobs that programs in other languages add: foreign-producer.sh beside this file is such a program.
import { Queue } from '@sluice/queue';

const thumbnails = new Queue<{ file: string }>('thumbnails', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
});

thumbnails.work(
  async (job) => {
    console.log(`priority ${job.priority}: ${job.data.file}`);
  },
  { concurrency: 1 },
);

// Prints, until Ctrl-C:
// priority 0: urgent.jpg
// priority 3: cat.jpg
