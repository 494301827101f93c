// Knows whether Redis is worth asking. After a few failures in a row, or when the connection is lost, it opens: readers then go
// straight to their loaders instead of waiting for a timeout each. While it is open nobody but the mender asks Redis.
import type { Clock } from '@sluice/base';

export const failuresToOpen = 3;

export class Breaker {
  readonly #clock: Clock;
  readonly #onOpen: () => void;
  #failures = 0;
  #isOpen = false;
  #openings = 0;
  #closedMs: number | undefined;

  constructor(clock: Clock, onOpen: () => void) {
    this.#clock = clock;
    this.#onOpen = onOpen;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** How often it has opened. */
  get openings(): number {
    return this.#openings;
  }

  /** When it last closed, if it was ever open; monotonic. */
  get closedMs(): number | undefined {
    return this.#closedMs;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  failed(): void {
    this.#failures += 1;
    if (this.#failures >= failuresToOpen) this.open();
  }

  open(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#openings += 1;
    this.#onOpen();
  }

  close(): void {
    if (this.#isOpen) this.#closedMs = this.#clock.monotonicMs();
    this.#isOpen = false;
    this.#failures = 0;
  }
}
