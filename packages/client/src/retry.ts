/**
 * When to try again, and when to give up. The wait after a failure is drawn at random between nothing and a bound that doubles
 * each time ("full jitter"), so that many clients whose server came back do not return in step; what the server asks for in
 * Retry-After is waited in any case. There is no limit on the time an upload may take: whoever still makes progress, however
 * slowly, goes on. Only failures in a row with no progress anywhere in the upload use up the attempts.
 */
import { SluiceUploadError } from './errors.js';
import type { RetryOptions } from './options.js';

const DEFAULT_ATTEMPTS = 20;
const DEFAULT_BASE_MS = 500;
const DEFAULT_CAP_MS = 30_000;

/** Some refusals are worth repeating all the same; only the place that knows their code can say so. */
export type FailureCounter = (
  failure: unknown,
  signal: AbortSignal,
  evenIfRefused?: boolean,
) => Promise<void>;

/** One per upload. Bytes that arrive renew it. */
export class Patience {
  readonly attempts: number;
  readonly #baseMs: number;
  readonly #capMs: number;
  #advances = 0;
  #receivedBytes = 0;

  constructor({
    attempts = DEFAULT_ATTEMPTS,
    baseMs = DEFAULT_BASE_MS,
    capMs = DEFAULT_CAP_MS,
  }: RetryOptions) {
    this.attempts = attempts;
    this.#baseMs = baseMs;
    this.#capMs = capMs;
  }

  /** Told of each acknowledgement; only one that brought bytes counts. */
  renew(receivedBytes: number): void {
    if (receivedBytes > this.#receivedBytes) this.#advances += 1;
    this.#receivedBytes = receivedBytes;
  }

  /** Starts counting the failures of one thing that is tried: call the result after each; it waits, or throws the failure. */
  counter(): FailureCounter {
    let failures = 0;
    let seen = this.#advances;
    return async (failure, signal, evenIfRefused = false) => {
      signal.throwIfAborted();
      if (seen !== this.#advances) failures = 0;
      seen = this.#advances;
      failures += 1;
      const known = failure instanceof SluiceUploadError;
      if (!known || !(failure.retryable || evenIfRefused) || failures >= this.attempts) throw failure;
      await sleep(this.delayMs(failures, failure.retryAfterMs), signal);
    };
  }

  /** Repeats a call that is safe to repeat. */
  async persist<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const failed = this.counter();
    for (;;) {
      try {
        return await call();
      } catch (failure) {
        await failed(failure, signal);
      }
    }
  }

  delayMs(failures: number, askedMs = 0): number {
    const bound = Math.min(this.#capMs, this.#baseMs * 2 ** (failures - 1));
    return Math.max(askedMs, Math.random() * bound);
  }
}

/** Ends early with the signal's reason, and in a browser when the network comes back. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const page = globalThis as unknown as Partial<EventTarget>;
  await new Promise<void>((wake) => {
    const timer = setTimeout(end, ms);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      page.removeEventListener?.('online', end);
      wake();
    }
    signal.addEventListener('abort', end);
    page.addEventListener?.('online', end);
  });
  signal.throwIfAborted();
}

/** What others take an hour for, a stream or a token, must not keep an upload from being paused or cancelled. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason instanceof Error ? signal.reason : new Error('stopped'));
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
