// The handler that work.test.ts runs in child processes: squares numbers, dies for -1, hangs for -2, gives up for -3.
import { GiveUp } from '../src/index.js';

interface ChildJob {
  data: { n: number };
  log(line: string): void;
}

export default function square(job: ChildJob): number {
  if (job.data.n === -1) process.abort();
  if (job.data.n === -2) for (;;);
  if (job.data.n === -3) throw new GiveUp('not a number for squares');
  job.log(`squaring ${job.data.n}`);
  return job.data.n ** 2;
}
