// The line before a full chunks Redis. An upload that finds no room for its first part waits here for a while, its bytes unread and so
// still with the client. Sending it away would have it bring the same bytes again and again, and a server with much to do would spend
// its time on dropping them.
//
// Only the first in line asks Redis again; whoever leaves, in or away, lets the next one ask.

/** Of a request that nobody reads yet Node holds some 64 KiB. */
const longestLine = 1_024;
const askAgainMs = 25;

interface Waiter {
  wake: () => void;
}

export class RoomLine {
  readonly #patienceMs: number;
  readonly #waiting: Waiter[] = [];
  #isClosed = false;

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Asks until there is room, patience ends or the client is gone. Returns the last answer. */
  async wait(ask: () => Promise<boolean>, isGone: () => boolean): Promise<boolean> {
    if (this.#waiting.length >= longestLine) return false;
    const me: Waiter = { wake: () => {} };
    this.#waiting.push(me);
    const endMs = performance.now() + this.#patienceMs;
    try {
      for (;;) {
        const leftMs = endMs - performance.now();
        if (leftMs <= 0 || this.#isClosed || isGone()) return false;
        await this.#pause(me, this.#waiting[0] === me ? Math.min(askAgainMs, leftMs) : leftMs);
        if (this.#waiting[0] === me && !this.#isClosed && !isGone() && (await ask())) return true;
      }
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(me), 1);
      this.#waiting[0]?.wake();
    }
  }

  /** Sends everybody away, now and from now on. */
  close(): void {
    this.#isClosed = true;
    for (const { wake } of this.#waiting) wake();
  }

  #pause(me: Waiter, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      me.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
