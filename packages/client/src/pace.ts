/**
 * How many chunks may be in flight. A server that answers 429 has more to do than it can hold: each such answer halves the
 * number, each acknowledged chunk raises it again by a fraction, until it is back at what was configured. That is the rule by
 * which TCP shares a line (additive increase, multiplicative decrease); clients that follow it share a server fairly.
 */
export class Pace {
  readonly #most: number;
  #limit: number;
  #active = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#most = most;
    this.#limit = most;
  }

  get limit(): number {
    return Math.max(1, Math.floor(this.#limit));
  }

  /** Waits for a free place; whoever got one must `leave`. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.#active >= this.limit) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#waiting.push(wake);
        signal.addEventListener('abort', wake);
      });
      signal.throwIfAborted();
    }
    this.#active += 1;
  }

  leave(): void {
    this.#active -= 1;
    this.#wake();
  }

  faster(): void {
    this.#limit = Math.min(this.#most, this.#limit + 1 / this.#limit);
    this.#wake();
  }

  slower(): void {
    this.#limit = Math.max(1, this.#limit / 2);
  }

  /** Wakes everybody: there are few, each looks again for itself, and one who has gone cannot swallow the call. */
  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
