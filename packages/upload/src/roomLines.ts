// The line before a full chunks Redis. An upload that finds no room for its first part waits here for a while, its bytes unread and so
// still with the client. Sending it away would have it bring the same bytes again and again, and a server with much to do would spend
// its time on dropping them.
//
// Each partition has a budget and so a line of its own. Only the first in line asks Redis again; whoever leaves, in or away, lets the next
// one ask.

/** Of a request that nobody reads yet Node holds some 64 KiB. */
const mostWaiting = 1_024;
const askAgainMs = 25;

interface Waiter {
  wake: () => void;
}

export class RoomLines {
  readonly #patienceMs: number;
  readonly #lines = new Map<number, Waiter[]>();
  #isClosed = false;

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  get waiting(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.length, 0);
  }

  /** Asks until there is room, patience ends or the client is gone. Returns the last answer. */
  async wait(partition: number, ask: () => Promise<boolean>, isGone: () => boolean): Promise<boolean> {
    if (this.waiting >= mostWaiting) return false;
    const me: Waiter = { wake: () => {} };
    const line = this.#lines.get(partition) ?? [];
    this.#lines.set(partition, line);
    line.push(me);
    const endMs = performance.now() + this.#patienceMs;
    try {
      for (;;) {
        const leftMs = endMs - performance.now();
        if (leftMs <= 0 || this.#isClosed || isGone()) return false;
        await this.#pause(me, line[0] === me ? Math.min(askAgainMs, leftMs) : leftMs);
        if (line[0] === me && !this.#isClosed && !isGone() && (await ask())) return true;
      }
    } finally {
      line.splice(line.indexOf(me), 1);
      line[0]?.wake();
    }
  }

  /** Sends everybody away, now and from now on. */
  close(): void {
    this.#isClosed = true;
    for (const line of this.#lines.values()) for (const { wake } of line) wake();
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
