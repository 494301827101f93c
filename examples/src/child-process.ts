// Work that keeps a processor busy, or may crash, runs in child processes. The death of one is a failed attempt, no more.
import { Queue } from '@sluice/queue';

const primes = new Queue<{ upTo: number }, number>('primes', {
  redis: process.argv[2] ?? 'redis://127.0.0.1:6379',
  backoff: { type: 'fixed', delayMs: 100 },
  keepResultMs: 60_000,
});

const worker = primes.workInChildren(new URL('./count-primes.js', import.meta.url), {
  concurrency: 2,
  execArgv: ['--max-old-space-size=64'],
});
worker.on('failed', (_job, error) => console.log((error as Error).message));

const { id } = await primes.add({ upTo: 100_000 });
console.log(await primes.result(id));
await primes.close();

// Prints:
// The child process that ran the job died: exit code 1.
// 9592
