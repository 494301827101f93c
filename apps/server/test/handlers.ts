/** Handlers for the tests: each writes what it does, line by line, to the file that its job names. */
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '@sluice/queue';

interface Errand {
  file: string;
  text: string;
  takesMs?: number;
}

async function write(job: Job): Promise<void> {
  const { file, text, takesMs = 0 } = job.data as Errand;
  appendFileSync(file, `${job.queue} begins ${text}\n`);
  await sleep(takesMs, undefined, { signal: job.signal });
  appendFileSync(file, `${job.queue} ends ${text}\n`);
}

export const handlers = { letters: write, parcels: write };
