// Frames: the bytes of chunks that wait for their part, at most 1 MiB each, in the chunks Redis. A frame is written under the name of
// the attempt that brought it, so that a repetition never touches bytes that count already. Until its chunk is committed it
// expires soon unless the attempt is extended; then it outlives its upload, even if nobody looks after that for so long.
//
// While Redis answers with a frame it has it twice: as the value, and as the reply on the connection. Only a few are read at once,
// so that the memory of Redis can be promised. Most need not be read at all (`recentFrames.ts`).
import { isSluiceError } from '@sluice/base';
import type { RedisLink } from '@sluice/redis';
import { uploadErrors } from './errors.js';
import { frameKey } from './keys.js';
import { RecentFrames, type Slot } from './recentFrames.js';

export const frameBytes = 1_048_576;
const unlinkAtOnce = 256;
/** Enough for gigabytes per second: a frame is on its way for a millisecond. */
const readsAtOnce = 4;
const retryAfterS = 1;

export class Frames {
  readonly #link: RedisLink;
  readonly #prefix: string;
  /** How long frames that nobody has committed stay. */
  readonly #attemptMs: number;
  readonly #keepMs: number;
  #reading = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #recent: RecentFrames;

  constructor(link: RedisLink, prefix: string, attemptMs: number, keepMs: number, recentFrames: number) {
    this.#recent = new RecentFrames(recentFrames, frameBytes);
    this.#link = link;
    this.#prefix = prefix;
    this.#attemptMs = attemptMs;
    this.#keepMs = keepMs;
  }

  /** The bytes must not change from now on. */
  async put(id: string, attempt: string, number: number, bytes: Buffer): Promise<void> {
    const key = frameKey(this.#prefix, id, attempt, number);
    try {
      await this.#link.call('SET', [key, bytes, 'PX', this.#attemptMs], { uncopied: true });
      this.#recent.remember(key, bytes);
    } catch (error) {
      // It was paid for, but frames that were given back may not be gone yet: their process died in between.
      if (isSluiceError(error, 'REDIS_FULL'))
        throw uploadErrors.BUDGET_EXHAUSTED({ retryAfterS }, { cause: error });
      throw error;
    }
  }

  /** A part of a frame, or undefined if the frame is gone. */
  async get(
    id: string,
    attempt: string,
    number: number,
    from: number,
    length: number,
  ): Promise<Buffer | undefined> {
    const key = frameKey(this.#prefix, id, attempt, number);
    const isWhole = from === 0 && length === frameBytes;
    await this.#turn();
    try {
      const reply = isWhole
        ? await this.#link.call('GET', [key])
        : await this.#link.call('GETRANGE', [key, from, from + length - 1]);
      const bytes = reply as Buffer | null;
      return bytes?.length === length ? bytes : undefined;
    } finally {
      const next = this.#waiting.shift();
      // The turn is handed on, so that nobody who comes now overtakes.
      if (next) next();
      else this.#reading--;
    }
  }

  /** The frame, if it is still in the memory of this process. It is the caller's then, until it is released. */
  takeRecent(id: string, attempt: string, number: number): Slot | undefined {
    return this.#recent.take(frameKey(this.#prefix, id, attempt, number));
  }

  releaseRecent(slot: Slot, unread: boolean): void {
    this.#recent.release(slot, unread);
  }

  #turn(): Promise<void> | void {
    if (this.#reading === readsAtOnce) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#reading++;
  }

  /** Of attempts that are not committed yet: as long as a new one. Of the others: as long as their upload. Returns whether all were there. */
  async keep(id: string, attempt: string, count: number, committed: boolean): Promise<boolean> {
    const ms = committed ? this.#keepMs : this.#attemptMs;
    const replies = await Promise.all(
      Array.from({ length: count }, (_, number) =>
        this.#link.call('PEXPIRE', [frameKey(this.#prefix, id, attempt, number), ms]),
      ),
    );
    return replies.every((reply) => Number(reply) === 1);
  }

  async drop(id: string, attempt: string, count: number): Promise<void> {
    for (let from = 0; from < count; from += unlinkAtOnce) {
      const keys = Array.from({ length: Math.min(unlinkAtOnce, count - from) }, (_, i) =>
        frameKey(this.#prefix, id, attempt, from + i),
      );
      for (const key of keys) this.#recent.forget(key);
      await this.#link.call('UNLINK', keys);
    }
  }

  async check(): Promise<void> {
    await this.#link.call('PING', []);
  }
}
