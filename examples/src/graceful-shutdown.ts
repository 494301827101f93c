// A process that is told to stop: it takes nothing more, finishes what runs, gives the rest back, and ends.
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from '@sluice/queue';

const films = new Queue<string>('films', { redis: process.argv[2] ?? 'redis://127.0.0.1:6379' });

films.work(
  async (job) => {
    console.log(`cutting ${job.data}`);
    await sleep(10_000);
    console.log(`${job.data} is cut`);
  },
  { concurrency: 1 },
);

// What still runs after 20 seconds is aborted and runs elsewhere, at once, without having used an attempt.
process.once('SIGTERM', () => void films.close(20_000));

await films.addMany([{ data: 'Metropolis' }, { data: 'Nosferatu' }]);

// Prints, with a SIGTERM after its first line:
// cutting Metropolis
// Metropolis is cut
