/**
 * Starting, stopping and waiting.
 *
 * Every background duty is a `Service`. `startStop` makes one out of two plain functions and gives it the
 * manners all of them need:
 *
 *     stopped ──start──▶ starting ──▶ running ──stop──▶ stopping ──▶ stopped
 *
 * - start and stop may be called any number of times, by anybody, in any order; each step runs once;
 * - a stop during the start waits for it, a start during the stop waits for it;
 * - a start that failed leaves the service stopped, and it may be started again;
 * - stop ends by its deadline: what has not finished by then is reported as `STOP_TIMEOUT`, not awaited.
 */

import { type Clock, systemClock } from './clock.js';
import { defineErrors } from './errors.js';

export interface Service {
  start(): Promise<void>;
  /** Resolves when stopped; rejects with `STOP_TIMEOUT` when that takes longer than `deadlineMs`. */
  stop(deadlineMs?: number): Promise<void>;
}

export interface ServiceSteps {
  /** Says in errors which service it was. */
  name: string;
  start(): Promise<void> | void;
  /** Is told how long it has, so that it can give up gracefully before it is given up on. */
  stop(deadlineMs: number): Promise<void> | void;
  stopDeadlineMs?: number;
}

export const DEFAULT_STOP_DEADLINE_MS = 10_000;

const errors = defineErrors({
  STOP_TIMEOUT: {
    message: (d: { service: string; deadlineMs: number }) =>
      `${d.service} did not stop within ${d.deadlineMs} ms`,
    retryable: true,
  },
});

export function startStop(steps: ServiceSteps, clock: Clock = systemClock): Service {
  let started: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  function start(): Promise<void> {
    if (stopping) return stopping.then(start, start);
    started ??= run(() => steps.start()).catch((error: unknown) => {
      started = undefined;
      throw error;
    });
    return started;
  }

  function stop(deadlineMs = steps.stopDeadlineMs ?? DEFAULT_STOP_DEADLINE_MS): Promise<void> {
    if (!started) return Promise.resolve();
    stopping ??= started
      .then(
        () => steps.stop(deadlineMs),
        () => {}, // It never ran, so there is nothing to stop; the caller of start has the error.
      )
      .finally(() => {
        started = stopping = undefined;
      });
    return withDeadline(
      stopping,
      deadlineMs,
      () => errors.STOP_TIMEOUT({ service: steps.name, deadlineMs }),
      clock,
    );
  }

  return { start, stop };
}

/**
 * The promise's own outcome, or `onTimeout()` as the rejection once `ms` have passed. The promise itself
 * cannot be stopped from outside; a late rejection of it is swallowed. `Infinity` waits for ever.
 */
export function withDeadline<T>(
  promise: Promise<T>,
  ms: number,
  onTimeout: () => Error,
  clock: Clock = systemClock,
): Promise<T> {
  if (ms === Infinity) return promise;
  return new Promise<T>((resolve, reject) => {
    const timer = clock.setTimer(() => reject(onTimeout()), ms);
    promise.finally(() => timer.cancel()).then(resolve, reject);
  });
}

/** Resolves after `ms`. An abort rejects at once with the signal's reason and leaves nothing behind. */
export function sleep(ms: number, signal?: AbortSignal, clock: Clock = systemClock): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const timer = clock.setTimer(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    function onAbort(): void {
      timer.cancel();
      reject(signal?.reason as Error);
    }
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** Runs a step now; what it throws becomes a rejection. */
function run(step: () => Promise<void> | void): Promise<void> {
  return new Promise((resolve) => resolve(step()));
}
