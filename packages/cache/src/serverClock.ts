// What time Redis has. When a value expires is a moment that many machines share, so it is one of Redis' clock: asked for now and
// then, and carried on by the monotonic clock of this process in between. A machine whose own clock is wrong changes nothing.
import type { Clock } from '@sluice/base';

export class ServerClock {
  readonly #clock: Clock;
  #aheadMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    // Until Redis has been asked: our own.
    this.#aheadMs = clock.now() - clock.monotonicMs();
  }

  now(): number {
    return this.#clock.monotonicMs() + this.#aheadMs;
  }

  /** `ask` sends TIME. */
  async synchronise(ask: () => Promise<unknown>): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    const [seconds, micros] = (await ask()) as [Buffer, Buffer];
    const serverMs = Number(seconds) * 1_000 + Number(micros) / 1_000;
    this.#aheadMs = serverMs - (sentMs + this.#clock.monotonicMs()) / 2;
  }
}
