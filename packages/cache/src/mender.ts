// Looks after what is broken: while the breaker is open it asks Redis every now and then whether it is back, and it applies the
// invalidations that were kept. Only then are values read from Redis again.
import type { Clock, Logger, Timer } from '@sluice/base';
import type { Breaker } from './breaker.js';
import type { Channel, Wire } from './channel.js';
import type { KeptInvalidations, Killed } from './kept.js';

const probeEveryMs = 200;
const probeLimitMs = 500;
const applyAtOnce = 500;

export interface MenderParts {
  wire: Wire;
  channel: Channel;
  breaker: Breaker;
  kept: KeptInvalidations;
  clock: Clock;
  logger: Logger;
  /** Removes from Redis what an invalidation kills. */
  kill: (killed: Killed, patienceMs: number) => Promise<void>;
  /** What else to do when Redis is back. */
  onBack: () => Promise<void>;
}

export class Mender {
  readonly #parts: MenderParts;
  #timer: Timer | undefined;
  #isMending = false;
  #isClosed = false;

  constructor(parts: MenderParts) {
    this.#parts = parts;
  }

  /** Something is broken: begins to look after it, if it does not already. */
  call(): void {
    if (this.#timer !== undefined || this.#isMending || this.#isClosed) return;
    this.#timer = this.#parts.clock.setTimer(() => void this.mend(), probeEveryMs);
  }

  /** Now, because there is reason to hope. */
  async mend(): Promise<void> {
    if (this.#isMending || this.#isClosed) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#isMending = true;
    const { breaker, kept, logger } = this.#parts;
    const wasOpen = breaker.isOpen;
    try {
      if (wasOpen) await this.#probe();
      await this.#applyKept();
      if (wasOpen) {
        breaker.close();
        logger.info({}, 'the cache reads from Redis again');
      }
    } catch {
      // Still away, or some of the invalidations could not be applied; the next round tries again.
    }
    this.#isMending = false;
    if (breaker.isOpen || kept.size > 0) this.call();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  async #probe(): Promise<void> {
    await this.#parts.wire.call('PING', [], { deadlineMs: probeLimitMs });
    await this.#parts.onBack();
  }

  async #applyKept(): Promise<void> {
    const { kept, kill } = this.#parts;
    while (kept.size > 0) {
      const some = kept.some(applyAtOnce);
      await kill(some, probeLimitMs);
      some.applied();
    }
  }
}
