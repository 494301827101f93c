/*
 * Waiting with a bound. A system under test that hangs must end the run with a sentence, not with silence.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from './errors.js';

/** Rejects with TIMED_OUT unless the promise settles in time. */
export async function withDeadline<T>(promise: Promise<T>, deadlineMs: number, what: string): Promise<T> {
  const abandon = new AbortController();
  const late = sleep(deadlineMs, undefined, { signal: abandon.signal }).then(() => {
    throw errors.TIMED_OUT({ what, deadlineMs });
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    abandon.abort();
    late.catch(() => {});
  }
}

const POLL_MS = 1;

/** Asks again and again, a millisecond apart, until the answer is yes. */
export async function until(ask: () => Promise<boolean>, deadlineMs: number, what: string): Promise<void> {
  const endsAt = performance.now() + deadlineMs;
  while (!(await ask())) {
    if (performance.now() > endsAt) throw errors.TIMED_OUT({ what, deadlineMs });
    await sleep(POLL_MS);
  }
}

/**
 * Runs tasks 0 … total-1 in `lanes` lanes: each lane awaits its task before it takes the next, so that exactly
 * `lanes` calls are in flight until the end.
 */
export async function inLanes(
  lanes: number,
  total: number,
  task: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < total) await task(next++);
  };
  await Promise.all(Array.from({ length: Math.min(lanes, total) }, lane));
}
