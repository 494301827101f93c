// How an idle worker sleeps: in a blocking pop of the partition's wake-up token, on a connection of its own. Nobody pops the
// jobs themselves, so a connection that dies here loses nothing but a token, and the regular look that follows every
// time-out makes up for that. A connection that hangs is replaced (the link's own watchdog does it).
import { setTimeout as pause } from 'node:timers/promises';
import type { RedisLink } from '@sluice/redis';

/** How long one blocking pop lasts: the pace of an idle worker's regular look. */
export const napMs = 8_000;
const hangsAfterMs = napMs + 3_000;

/** There was something; or only the time had passed; or the connection was lost. */
type Why = 'woken' | 'passed' | 'lost';

export class Waiter {
  /** Connects when it first sleeps: of a crowd of idle workers only one ever waits for the inbox. */
  readonly #connect: () => RedisLink;
  #link: RedisLink | undefined;
  readonly #command: string;
  readonly #args: (string | number)[];
  readonly #onWake: (why: Why) => void;
  #listening = false;
  #closed = false;

  private constructor(
    connect: () => RedisLink,
    command: string,
    args: (string | number)[],
    onWake: (why: Why) => void,
  ) {
    this.#connect = connect;
    this.#command = command;
    this.#args = args;
    this.#onWake = onWake;
  }

  /** Sleeps until somebody leaves a token. */
  static forToken(connect: () => RedisLink, wake: string, onWake: (why: Why) => void): Waiter {
    return new Waiter(connect, 'blpop', [wake, napMs / 1000], onWake);
  }

  /** Sleeps until a foreign message arrives. Moving the head of a list to its own head blocks like a pop and takes nothing. */
  static forInbox(connect: () => RedisLink, inbox: string, onWake: (why: Why) => void): Waiter {
    return new Waiter(connect, 'blmove', [inbox, inbox, 'LEFT', 'LEFT', napMs / 1000], onWake);
  }

  get listening(): boolean {
    return this.#listening;
  }

  /** Sleeps once; `onWake` says why it woke. */
  listen(): void {
    if (this.#listening || this.#closed) return;
    this.#listening = true;
    void this.#sleep();
  }

  close(): void {
    this.#closed = true;
    this.#link?.close();
  }

  async #sleep(): Promise<void> {
    let why: Why = 'lost';
    this.#link ??= this.#connect();
    try {
      why = (await this.#link.once(this.#command, this.#args, hangsAfterMs)) === null ? 'passed' : 'woken';
    } catch {
      // Redis is away, or the connection was replaced: look again soon, without a rush.
      await pause(100 + Math.random() * 400);
    }
    this.#listening = false;
    if (!this.#closed) this.#onWake(why);
  }
}
