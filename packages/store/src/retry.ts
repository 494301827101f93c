// When to try again, and when to stop trying. Waits grow and are spread over their whole length (full jitter), so that those
// who failed together do not come back together. A budget shared by all calls of a store bounds what repetitions add: while
// everything fails it runs dry, and each call then tries once, so that an outage is not answered with more load.
import { isSluiceError, sleep, type SluiceError } from '@sluice/base';

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
const BUDGET_TOKENS = 500;
const RETRY_COST_TOKENS = 5;
/** What a call that succeeds at once pays back. */
const SUCCESS_TOKENS = 1;

/** Repeated in here. A store that is full may have room tomorrow, which is the caller's to wait for. */
const PASSING = new Set(['STORE_BUSY', 'STORE_UNAVAILABLE', 'STORE_CORRUPT']);

export class RetryBudget {
  #tokens: number;

  constructor(
    private readonly capacity = BUDGET_TOKENS,
    private readonly random: () => number = Math.random,
  ) {
    this.#tokens = capacity;
  }

  /** Calls until it succeeds, the tries or the budget are used up, or trying again does not help. */
  async run<T>(
    attempt: (earlier: readonly SluiceError[]) => Promise<T>,
    { attempts, signal }: { attempts: number; signal?: AbortSignal | undefined },
  ): Promise<T> {
    const failures: SluiceError[] = [];
    for (;;) {
      try {
        const result = await attempt(failures);
        // What a repetition took comes back with its success.
        this.#pay(failures.length > 0 ? RETRY_COST_TOKENS : SUCCESS_TOKENS);
        return result;
      } catch (error) {
        if (!isSluiceError(error) || !PASSING.has(error.code)) throw error;
        failures.push(error);
        if (failures.length >= attempts || !this.#take()) throw error;
        await sleep(this.#waitMs(failures.length), signal);
      }
    }
  }

  #take(): boolean {
    if (this.#tokens < RETRY_COST_TOKENS) return false;
    this.#tokens -= RETRY_COST_TOKENS;
    return true;
  }

  #pay(tokens: number): void {
    this.#tokens = Math.min(this.capacity, this.#tokens + tokens);
  }

  #waitMs(failures: number): number {
    return this.random() * Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  }
}
