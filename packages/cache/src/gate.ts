// How many loads run at once while Redis is away. A cache in front of a database hides most of its readers from it; when the cache
// goes, all of them would arrive at the same moment. They are let through a few at a time, the rest wait in line, and when the
// line is full or does not move they are told.
//
// A loader may read other values through the cache. Its load has a place already, and those that it waits for need none: with one
// each, as many outer loads as there are places would wait for inner ones that wait for their places. Who is called by a load is
// told by the asynchronous context. Each that is kept slows down every promise of a process (in Node 20), so all gates share one, and
// it is kept only while somebody is inside.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Clock } from '@sluice/base';
import { cacheErrors } from './errors.js';

const longestWaitMs = 10_000;

/** The gates that the load which runs here has passed, each one inside of the next. */
interface Passed {
  gate: LoadGate;
  before: Passed | undefined;
}
const context = new AsyncLocalStorage<Passed>();
let insideOfAll = 0;

/** Somebody who wants to load. */
export class Entry {
  isInside: boolean;
  onBroughtIn: (() => void) | undefined;

  constructor(isInside = false) {
    this.isInside = isInside;
  }

  /** Somebody inside waits for this load. */
  bringIn(): void {
    this.isInside = true;
    this.onBroughtIn?.();
  }
}

export class LoadGate {
  readonly #atOnce: number;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #line = new Set<() => void>();
  #running = 0;
  #inside = 0;

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

  /** Whether a load that has passed waits for the caller. */
  get isInside(): boolean {
    if (this.#inside === 0) return false;
    for (let passed = context.getStore(); passed; passed = passed.before) {
      if (passed.gate === this) return true;
    }
    return false;
  }

  async pass<T>(load: () => Promise<T>, entry = new Entry()): Promise<T> {
    const hasPlace = entry.isInside ? false : await this.#takePlace(entry);
    this.#inside += 1;
    insideOfAll += 1;
    try {
      return await context.run(this.#passed(), load);
    } finally {
      this.#inside -= 1;
      insideOfAll -= 1;
      if (insideOfAll === 0) context.disable();
      if (hasPlace) this.#leavePlace();
    }
  }

  /** Noted once: a loader may leave something behind that goes on to load, in its context, for ever. */
  #passed(): Passed {
    const before = context.getStore();
    return before && this.isInside ? before : { gate: this, before };
  }

  #leavePlace(): void {
    const [next] = this.#line;
    // The place is handed on, so that nobody who comes now overtakes the line.
    if (next) next();
    else this.#running -= 1;
  }

  /** False for one that is brought in while it waits. */
  async #takePlace(entry: Entry): Promise<boolean> {
    if (this.#running >= this.#atOnce) return this.#turn(entry);
    this.#running += 1;
    return true;
  }

  #turn(entry: Entry): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const refusal = () => cacheErrors.LOAD_OVERLOAD({ atOnce: this.#atOnce, waiting: this.#line.size });
      if (this.#line.size >= this.#maxWaiting) return reject(refusal());
      const leaveLine = () => {
        timer.cancel();
        this.#line.delete(enter);
        entry.onBroughtIn = undefined;
      };
      const enter = () => {
        leaveLine();
        resolve(true);
      };
      entry.onBroughtIn = () => {
        leaveLine();
        resolve(false);
      };
      const timer = this.#clock.setTimer(() => {
        leaveLine();
        reject(refusal());
      }, longestWaitMs);
      this.#line.add(enter);
    });
  }
}
