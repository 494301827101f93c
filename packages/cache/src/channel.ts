// The way to Redis, with the cache's impatience: a reader waits only a moment (50 ms) before it goes to its loader. The call itself
// goes on for a while; its late answer is of no use to the reader, but the link behind it learns whether the connection lives, and
// who took something with the call can give it back.
//
// A loop that was busy for longer than that moment finds its timer due and the answer unread. So a timer that fires first lets
// what has arrived be read, and then judges.
//
// Others have more patience than a reader (`call`, `unlink`), and never less: whoever gives readers ten seconds knows how slow its Redis is.
import { isSluiceError, type Clock } from '@sluice/base';
import type { RedisLink, Script, ScriptArgument } from '@sluice/redis';
import type { Breaker } from './breaker.js';
import { cacheErrors } from './errors.js';

/** The part of a link that the cache uses. */
export type Wire = Pick<RedisLink, 'call' | 'run'>;

/** How long the link behind an abandoned call may go on, at least. */
const shortestWireMs = 1_000;

export class Channel {
  readonly #wire: Wire;
  readonly #breaker: Breaker;
  readonly #clock: Clock;
  readonly #patienceMs: number;
  readonly #wireMs: number;
  readonly isCluster: boolean;

  constructor(wire: Wire, isCluster: boolean, breaker: Breaker, clock: Clock, patienceMs: number) {
    this.#wire = wire;
    this.isCluster = isCluster;
    this.#breaker = breaker;
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#wireMs = Math.max(shortestWireMs, patienceMs);
  }

  /** One MGET. On a cluster keys are in many places: one GET each, all at once, of which each may fail by itself. */
  read(keys: string[]): Promise<(Buffer | null | Error)[]> {
    if (this.isCluster) return Promise.all(keys.map((key) => this.#readOne(key)));
    const read = () => this.#wire.call('MGET', keys, { deadlineMs: this.#wireMs });
    return this.#ask('MGET', this.#patienceMs, read) as Promise<(Buffer | null)[]>;
  }

  run<K extends string, A extends string>(
    script: Script<K, A>,
    keys: { readonly [name in K]: string },
    args: { readonly [name in A]: ScriptArgument },
    /** Hears the answer that came after the caller was told that there is none. */
    onLate?: (reply: unknown) => void,
  ): Promise<unknown> {
    const run = () => this.#wire.run(script, keys, args, { deadlineMs: this.#wireMs });
    return this.#ask(script.name, this.#patienceMs, run, onLate);
  }

  /** Also when the breaker is open, and nobody waits for it: for what is to be undone after a late answer, which shows that Redis is there. */
  runBehind<K extends string, A extends string>(
    script: Script<K, A>,
    keys: { readonly [name in K]: string },
    args: { readonly [name in A]: ScriptArgument },
  ): void {
    this.#wire.run(script, keys, args, { deadlineMs: this.#wireMs }).catch(() => {});
  }

  call(command: string, args: ScriptArgument[], patienceMs = this.#patienceMs): Promise<unknown> {
    return this.#ask(command, patienceMs, () =>
      this.#wire.call(command, args, { deadlineMs: Math.max(this.#wireMs, patienceMs) }),
    );
  }

  /** Removes keys; each list holds keys of one slot. Also when the breaker is open: it is for the mender too. */
  async unlink(lists: readonly (readonly string[])[], patienceMs: number): Promise<void> {
    const calls = this.isCluster ? lists : [lists.flat()];
    const send = () =>
      Promise.all(
        calls.map((keys) =>
          this.#wire.call('UNLINK', [...keys], { deadlineMs: Math.max(this.#wireMs, patienceMs) }),
        ),
      );
    await this.#within('UNLINK', patienceMs, send);
  }

  async #readOne(key: string): Promise<Buffer | null | Error> {
    try {
      const read = () => this.#wire.call('GET', [key], { deadlineMs: this.#wireMs });
      return (await this.#ask('GET', this.#patienceMs, read)) as Buffer | null;
    } catch (error) {
      return error as Error;
    }
  }

  #ask<T>(what: string, patienceMs: number, send: () => Promise<T>, onLate?: (reply: T) => void): Promise<T> {
    if (this.#breaker.isOpen) {
      return Promise.reject(cacheErrors.REDIS_AWAY({ what, reason: 'Redis is away' }));
    }
    return this.#within(what, patienceMs, send, onLate);
  }

  #within<T>(
    what: string,
    patienceMs: number,
    send: () => Promise<T>,
    onLate?: (reply: T) => void,
  ): Promise<T> {
    const waitMs = Math.max(patienceMs, this.#patienceMs);
    return new Promise((resolve, reject) => {
      let isLate = false;
      const timer = this.#clock.setTimer(() => {
        setImmediate(() => {
          if (isLate) return;
          isLate = true;
          this.#breaker.failed();
          reject(cacheErrors.REDIS_AWAY({ what, reason: `Redis did not answer within ${waitMs} ms` }));
        });
      }, waitMs);
      const settle = (hasAnswered: boolean): boolean => {
        timer.cancel();
        if (isLate) return false;
        isLate = true;
        if (hasAnswered) this.#breaker.succeeded();
        else this.#breaker.failed();
        return true;
      };
      send().then(
        (reply) => {
          if (settle(true)) resolve(reply);
          else onLate?.(reply);
        },
        (error: unknown) => {
          // A refusal (no memory, no rights) is an answer: Redis is there.
          if (settle(!isSluiceError(error, 'REDIS_UNAVAILABLE'))) reject(error);
        },
      );
    });
  }
}
