// Where a retry is decided. A handler that threw gets another attempt after the backoff, until its attempts are used up; an
// outcome that it chose (outcome.ts) decides by itself. What dies goes to the dead letters with everything known about it.
import { SluiceError } from '@sluice/base';
import { retryDelayMs } from './backoff.js';
import { buryDetail } from './dead.js';
import { describeError } from './fingerprint.js';
import { encodeAttempt } from './history.js';
import type { AttemptKind } from './history.js';
import type { Job } from './job.js';
import { GiveUp, RetryAt, Snooze } from './outcome.js';
import type { AnyQueue } from './queue.js';
import type { WireValue } from './wire.js';

export type FailureDecision =
  /** An item of retry.lua. */
  | { kind: 'retried' | 'snoozed'; item: WireValue }
  /** An item of settle.lua. */
  | { kind: 'dead'; item: WireValue };

export function decideFailure(job: Job, thrown: unknown, queue: AnyQueue, worker: string): FailureDecision {
  if (thrown instanceof Snooze) {
    return { kind: 'snoozed', item: [job.id, job.token, 'snoozed', String(wholeMs(thrown.delayMs)), '', ''] };
  }
  // A GiveUp that wraps an error is only the messenger.
  const error = thrown instanceof GiveUp && thrown.cause !== undefined ? thrown.cause : thrown;
  const described = describeError(error);
  const atMs = Math.round(queue.partitions[0]!.clock.nowMs());
  const attempt = encodeAttempt({
    attempt: job.attempt,
    atMs,
    worker,
    kind: kindOf(thrown, error),
    ...described,
  });
  const attempts = job.options?.a ?? queue.defaults.attempts;
  if (thrown instanceof GiveUp || job.attempt >= attempts) {
    const { detail, print, title } = buryDetail(described, worker, atMs, job.attempt);
    return { kind: 'dead', item: [job.id, job.token, 'dead', 0, '', attempt, detail, print, title] };
  }
  if (thrown instanceof RetryAt) {
    return {
      kind: 'retried',
      item: [job.id, job.token, 'failed', '', String(wholeMs(thrown.atMs)), attempt],
    };
  }
  const backoff = job.options?.b ?? queue.defaults.backoff;
  const delayMs = retryDelayMs(backoff, job.attempt, error, Math.random, (warning, cause) => {
    queue.logger.warn({ queue: queue.name, job: job.id, cause }, warning);
  });
  return { kind: 'retried', item: [job.id, job.token, 'failed', String(wholeMs(delayMs)), '', attempt] };
}

function kindOf(thrown: unknown, error: unknown): AttemptKind {
  if (error instanceof SluiceError) {
    if (error.code === 'JOB_TIMEOUT') return 'timeout';
    if (error.code === 'WORKER_CRASHED' || error.code === 'CHILD_DIED') return 'crash';
    if (error.code === 'PAYLOAD_INVALID' || error.code === 'MALFORMED') return 'invalid';
  }
  return thrown instanceof GiveUp ? 'gave-up' : 'error';
}

function wholeMs(ms: number): number {
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms)) : 0;
}
