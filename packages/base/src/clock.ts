/**
 * Time as a thing that is handed in, so that tests decide what time it is.
 *
 * `now()` is the wall clock (epoch milliseconds): good for showing, bad for measuring, because it jumps.
 * `monotonicMs()` only grows: differences and deadlines inside one process come from it. Deadlines that
 * several machines share come from neither, but from Redis `TIME`.
 *
 * `systemClock` is the real one. `ManualClock` stands still until a test advances it.
 */

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall-clock time in epoch milliseconds. May jump in both directions. */
  now(): number;
  /** Milliseconds since an arbitrary moment. Never goes back. */
  monotonicMs(): number;
  /** Calls `fn` once after `delayMs`, unless cancelled. Any delay is allowed, also longer than 24.8 days. */
  setTimer(fn: () => void, delayMs: number): Timer;
}

/** Node fires a longer timeout at once, so longer delays are walked in steps of this length. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer(fn, delayMs) {
    const dueMs = performance.now() + delayMs;
    let handle: NodeJS.Timeout;
    const wait = (leftMs: number) => {
      handle =
        leftMs > MAX_TIMEOUT_MS
          ? setTimeout(() => wait(dueMs - performance.now()), MAX_TIMEOUT_MS)
          : setTimeout(fn, Math.max(0, leftMs));
    };
    wait(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** A timer that sets itself again with no delay would keep `advance` busy for ever; this ends it loudly. */
const MAX_TIMERS_PER_ADVANCE = 100_000;

export class ManualClock implements Clock {
  #nowMs: number;
  #monotonicMs = 0;
  #order = 0;
  readonly #timers = new Map<number, { dueMs: number; fn: () => void }>();

  constructor(startMs = Date.UTC(2025, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  setTimer(fn: () => void, delayMs: number): Timer {
    const id = this.#order++;
    this.#timers.set(id, { dueMs: this.#monotonicMs + Math.max(0, delayMs), fn });
    return { cancel: () => void this.#timers.delete(id) };
  }

  /**
   * Lets time pass. Timers fire in order of their time, each at its own moment; between them, promises get
   * the chance to run and to set further timers, which fire too if they are due within the same advance.
   */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#monotonicMs + ms;
    await settlePromises();
    for (let fired = 0; ; fired++) {
      const next = this.#takeDue(untilMs);
      if (!next) break;
      if (fired === MAX_TIMERS_PER_ADVANCE) {
        throw new Error(`more than ${MAX_TIMERS_PER_ADVANCE} timers fired in one advance`);
      }
      this.#moveTo(next.dueMs);
      next.fn();
      await settlePromises();
    }
    this.#moveTo(untilMs);
  }

  /** Moves the wall clock only, as an administrator or a time server does. No timer fires. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  get pendingTimers(): number {
    return this.#timers.size;
  }

  #takeDue(untilMs: number): { dueMs: number; fn: () => void } | undefined {
    let first: [number, { dueMs: number; fn: () => void }] | undefined;
    // Ids grow, so the first of several equally early timers is the one set first.
    for (const entry of this.#timers) {
      if (entry[1].dueMs <= untilMs && (!first || entry[1].dueMs < first[1].dueMs)) first = entry;
    }
    if (first) this.#timers.delete(first[0]);
    return first?.[1];
  }

  #moveTo(monotonicMs: number): void {
    this.#nowMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }
}

function settlePromises(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
