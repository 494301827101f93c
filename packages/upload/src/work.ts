// The jobs of uploads on the queue: what a request leaves to others. Each names its upload; what there is to do is read from the
// state when the job runs, so that a job may come twice or too late.
//
//   part      writes a part whose bytes are all buffered
//   complete  ends an upload whose bytes are all stored
//   tend      looks after an upload that has been quiet: spills, expires, cleans up, or does one of the above again
//   orphan    ends an upload whose state Redis has lost, and removes what it left
//   announce  runs the owner's hook after an upload was completed
import { isSluiceError } from '@sluice/base';
import { Snooze, type Job, type Worker } from '@sluice/queue';
import { complete } from './complete.js';
import type { Engine } from './engine.js';
import { fail } from './end.js';
import { endOrphan, tend } from './tend.js';
import { writePart } from './writePart.js';

export type UploadJob =
  | { do: 'part'; upload: string; part: number }
  | { do: 'complete'; upload: string }
  | { do: 'tend'; upload: string }
  | { do: 'orphan'; upload: string; tenant: string }
  | { do: 'announce'; upload: string; nodeId: string; tenant: string; path: string; size: number };

/** Said of the file, by us or by the records; everything else is said of the weather, and passes. */
const hopeless = new Set([
  ...[
    'SIZE_MISMATCH',
    'CRC_MISMATCH',
    'SHA256_MISMATCH',
    'DIGEST_MISMATCH',
    'FILE_TOO_LARGE',
    'QUOTA_EXCEEDED',
    'PARTS_UNFIT',
  ],
  ...['NODE_EXISTS', 'PRECONDITION_FAILED', 'NOT_A_FOLDER', 'DRIVE_NOT_FOUND', 'UPLOAD_ENDED'],
  // What a store will never take.
  ...['INPUT_INVALID', 'KEY_INVALID'],
]);

/** For the owner's hook, and for surprises: about a day in all. */
export const attempts = 200;
export const backoff = { type: 'exponential', delayMs: 500, factor: 2, maxMs: 300_000, jitter: 0.5 } as const;

/** A trouble that passes at once costs little time. */
const quickTries = 4;
/** How often an outage is looked at. Whoever waited for its end goes on this soon after it. */
const longestLookMs = 10_000;

/**
 * A store or a database that is away is waited for as long as that takes: it is tried again every few seconds, which is never an
 * attempt too many. A pause that grew with the outage would go on long after it; the others cannot ask in the meantime, because the
 * job that sleeps has their key.
 */
export function waitFor(error: unknown, attempt: number): Snooze | undefined {
  if (!isSluiceError(error) || !error.retryable || attempt <= quickTries) return undefined;
  return new Snooze(Math.round(longestLookMs * (0.5 + Math.random() / 2)));
}

/** Whose upload it is. Left out by those who only know an id and look after many: their jobs are seen by operators only. */
export interface Whose {
  tenant: string;
  owner?: string | undefined;
}

export async function ask(engine: Engine, job: UploadJob, whose?: Whose): Promise<void> {
  const key = job.do === 'part' ? `part ${job.upload} ${job.part}` : `${job.do} ${job.upload}`;
  await engine.queue.add(job, { unique: key, ...(whose && { labels: labelsOf(whose) }) });
}

/** With these an API can show a tenant its own jobs. */
export function labelsOf({ tenant, owner }: Whose): Record<string, string> {
  return { tenant, ...(owner !== undefined && { owner }) };
}

/** What a step of an upload leaves to do: its ready parts, and its completion. */
export async function askFor(
  engine: Engine,
  upload: string,
  ready: string[],
  allStored: boolean,
  whose: Whose | undefined,
): Promise<void> {
  const jobs: UploadJob[] = ready.map((part) => ({ do: 'part', upload, part: Number(part) }));
  if (allStored) jobs.push({ do: 'complete', upload });
  await Promise.all(jobs.map((job) => ask(engine, job, whose)));
}

export function startWork(engine: Engine, concurrency: number): Worker<UploadJob> {
  const worker = engine.queue.work((job) => run(engine, job), {
    concurrency,
    leaseMs: engine.settings.leaseMs,
    name: 'uploads',
  });
  worker.on('failed', (job, error) => {
    engine.logger.warn({ err: error, job: (job as Job).data }, 'a step of an upload failed and is repeated');
  });
  return worker;
}

async function run(engine: Engine, job: Job<UploadJob>): Promise<void> {
  const { data } = job;
  try {
    if (data.do === 'part') await writePart(engine, data.upload, data.part, job.signal);
    else if (data.do === 'complete') await complete(engine, data.upload, job.signal);
    else if (data.do === 'tend') await tend(engine, data.upload, job.signal);
    else if (data.do === 'orphan') await endOrphan(engine, data.upload, data.tenant);
    else await announce(engine, data);
  } catch (error) {
    if (isSluiceError(error, 'LEASE_HELD')) throw new Snooze(1_000);
    // What no repetition can mend ends the upload, with the reason for whoever asks.
    const isStep = data.do !== 'announce' && data.do !== 'orphan';
    if (isStep && isSluiceError(error) && hopeless.has(error.code)) return fail(engine, data.upload, error);
    const waiting = data.do === 'announce' ? undefined : waitFor(error, job.attempt);
    if (!waiting) throw error;
    engine.logger.warn({ err: error, job: data }, 'a step of an upload waits for what is away');
    throw waiting;
  }
}

async function announce(
  { hooks }: Engine,
  { upload: id, nodeId, tenant, path, size }: Extract<UploadJob, { do: 'announce' }>,
): Promise<void> {
  await hooks.afterComplete?.({ id, nodeId, tenant, path, size });
}
