// How many loads run at once while Redis is away. A cache in front of a database hides most of its readers from it; when the cache
// goes, all of them would arrive at the same moment. They are let through a few at a time, the rest wait in line, and when the
// line is full or does not move they are told.
import type { Clock } from '@sluice/base';
import { cacheErrors } from './errors.js';

const longestWaitMs = 10_000;

export class LoadGate {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #line = new Set<() => void>();
  #running = 0;

  constructor(atOnce: number, maxWaiting: number, clock: Clock) {
    this.#atOnce = atOnce;
    this.#maxWaiting = maxWaiting;
    this.#clock = clock;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#line.size;
  }

  async pass<T>(load: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#atOnce) await this.#turn();
    else this.#running += 1;
    try {
      return await load();
    } finally {
      const [next] = this.#line;
      // The place is handed on, so that nobody who comes now overtakes the line.
      if (next) next();
      else this.#running -= 1;
    }
  }

  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const refusal = () => cacheErrors.LOAD_OVERLOAD({ atOnce: this.#atOnce, waiting: this.#line.size });
      if (this.#line.size >= this.#maxWaiting) return reject(refusal());
      const enter = () => {
        timer.cancel();
        this.#line.delete(enter);
        resolve();
      };
      const timer = this.#clock.setTimer(() => {
        this.#line.delete(enter);
        reject(refusal());
      }, longestWaitMs);
      this.#line.add(enter);
    });
  }
}
