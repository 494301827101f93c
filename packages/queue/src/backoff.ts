/**
 * How long a failed job waits before it runs again.
 *
 * A backoff is `fixed`, `exponential` (delay × factor^(failures − 1), capped, with jitter) or a function of
 * one's own. `checkBackoff` refuses nonsense where it is configured; `retryDelayMs` is asked after every
 * failure and always has an answer, because a job whose delay cannot be computed must still be retried:
 * a function that throws or returns no usable number is replaced by the default, and `warn` is told.
 *
 * By default a job runs three times, with 3 s and 9 s between the runs.
 */

import { queueErrors } from './errors.js';

export interface FixedBackoff {
  type: 'fixed';
  delayMs: number;
}

export interface ExponentialBackoff {
  type: 'exponential';
  /** The wait after the first failure. */
  delayMs: number;
  /** What each further failure multiplies the wait by. 2 unless stated. */
  factor?: number;
  /** The longest wait. */
  maxMs?: number;
  /** The share of the wait, 0 to 1, that is drawn at random: 0 is exact, 1 is anything from 0 to the wait. */
  jitter?: number;
}

/** Gets the number of failed attempts so far (1 after the first) and what was thrown; returns milliseconds. */
export type CustomBackoff = (attempt: number, error: unknown) => number;

export type Backoff = FixedBackoff | ExponentialBackoff | CustomBackoff;

export const defaultBackoff = { type: 'exponential', delayMs: 3_000, factor: 3 } as const;
export const defaultAttempts = 3;

/** No job waits longer than 365 days for its next attempt: a longer wait is a mistake in units. */
export const MAX_RETRY_DELAY_MS = 365 * 24 * 60 * 60 * 1_000;

const DEFAULT_FACTOR = 2;

export type BackoffWarning = (warning: string, cause?: unknown) => void;

export function retryDelayMs(
  backoff: Backoff,
  failedAttempts: number,
  error: unknown,
  random: () => number = Math.random,
  warn: BackoffWarning = () => {},
): number {
  const wantedMs =
    typeof backoff === 'function'
      ? askCustom(backoff, failedAttempts, error, warn)
      : computeMs(backoff, failedAttempts, random);
  if (wantedMs === undefined) return computeMs(defaultBackoff, failedAttempts, random);
  if (wantedMs > MAX_RETRY_DELAY_MS) {
    warn(`the retry delay of ${wantedMs} ms was cut to ${MAX_RETRY_DELAY_MS} ms (365 days)`);
    return MAX_RETRY_DELAY_MS;
  }
  return Math.round(wantedMs);
}

/** Throws `BACKOFF_INVALID` with the field and what it must be. */
export function checkBackoff(backoff: Backoff): void {
  if (typeof backoff === 'function') return;
  // Options may come from plain JavaScript or from JSON, where the types hold nobody.
  const type: string | undefined = (backoff as FixedBackoff | ExponentialBackoff | undefined)?.type;
  if (type !== 'fixed' && type !== 'exponential') {
    throw queueErrors.BACKOFF_INVALID({
      field: 'type',
      given: type,
      expected: `'fixed', 'exponential' or a function`,
    });
  }
  checkRange('delayMs', backoff.delayMs, 0, MAX_RETRY_DELAY_MS);
  if (backoff.type === 'fixed') return;
  checkRange('factor', backoff.factor ?? DEFAULT_FACTOR, 1, Number.MAX_VALUE);
  checkRange('maxMs', backoff.maxMs ?? 0, 0, MAX_RETRY_DELAY_MS);
  checkRange('jitter', backoff.jitter ?? 0, 0, 1);
}

function checkRange(field: string, given: unknown, least: number, most: number): void {
  // Stated positively, so that NaN and everything that is no number fails.
  if (typeof given === 'number' && given >= least && given <= most) return;
  const upTo = most === Number.MAX_VALUE ? 'or more' : `to ${most}`;
  throw queueErrors.BACKOFF_INVALID({ field, given, expected: `a number from ${least} ${upTo}` });
}

function computeMs(
  backoff: FixedBackoff | ExponentialBackoff,
  failedAttempts: number,
  random: () => number,
): number {
  if (backoff.type === 'fixed' || backoff.delayMs === 0) return backoff.delayMs;
  const { delayMs, factor = DEFAULT_FACTOR, maxMs = MAX_RETRY_DELAY_MS, jitter = 0 } = backoff;
  const wholeMs = Math.min(delayMs * factor ** Math.max(0, failedAttempts - 1), maxMs);
  return Math.round(wholeMs * (1 - jitter * random()));
}

function askCustom(
  backoff: CustomBackoff,
  failedAttempts: number,
  error: unknown,
  warn: BackoffWarning,
): number | undefined {
  let answer: unknown;
  try {
    answer = backoff(failedAttempts, error);
  } catch (thrown) {
    warn('the backoff function threw; the default backoff is used', thrown);
    return undefined;
  }
  if (typeof answer === 'number' && answer >= 0 && answer < Infinity) return answer;
  // An async function is a likely mistake; its rejection must not end the process.
  if (answer instanceof Promise) answer.catch(() => {});
  const given = typeof answer === 'number' ? String(answer) : typeof answer;
  warn(`the backoff function returned ${given}, not a delay in milliseconds; the default backoff is used`);
  return undefined;
}
