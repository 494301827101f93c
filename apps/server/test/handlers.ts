/** Handlers for the tests: each writes what it does, line by line, to the file that its job names. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from '@sluice/queue';

const LOOK_MS = 20;

export interface Errand {
  file: string;
  text: string;
  takesMs?: number;
  /** How long it takes when it has begun before; as long by default. */
  againMs?: number;
  /** It ends when this file is there. */
  until?: string;
}

async function write(job: Job): Promise<void> {
  const { file, text, takesMs = 0, againMs = takesMs, until } = job.data as Errand;
  const line = `${job.queue} begins ${text}\n`;
  const hasBegun = existsSync(file) && readFileSync(file, 'utf8').includes(line);
  appendFileSync(file, line);
  await sleep(hasBegun ? againMs : takesMs, undefined, { signal: job.signal });
  while (until !== undefined && !existsSync(until)) await sleep(LOOK_MS, undefined, { signal: job.signal });
  appendFileSync(file, `${job.queue} ends ${text}\n`);
}

export const handlers = { letters: write, parcels: write };
