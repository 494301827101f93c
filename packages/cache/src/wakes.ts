// Readers that wait for what another process loads. They learn of it from the same notices that keep copies honest; a timer stands
// behind, for notices that get lost and for loaders that die.
import type { Clock } from '@sluice/base';

export class Wakes {
  readonly #clock: Clock;
  readonly #sleepers = new Map<string, Set<() => void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when the value changes in Redis, and after `limitMs` anyway. */
  wait(name: string, limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const sleepers = this.#sleepers.get(name) ?? new Set();
      this.#sleepers.set(name, sleepers);
      const wake = () => {
        timer.cancel();
        sleepers.delete(wake);
        if (sleepers.size === 0 && this.#sleepers.get(name) === sleepers) this.#sleepers.delete(name);
        resolve();
      };
      const timer = this.#clock.setTimer(wake, limitMs);
      sleepers.add(wake);
    });
  }

  wake(name: string): void {
    const sleepers = this.#sleepers.get(name);
    if (sleepers !== undefined) for (const wake of [...sleepers]) wake();
  }
}
