// Frames: the bytes of chunks that wait for their part, at most 1 MiB each, in the chunks Redis. A frame is written under the name of
// the attempt that brought it, so that a repetition never touches bytes that count already. Until its chunk is committed it
// expires soon unless the attempt is extended; then it stays as long as somebody looks after the upload.
import type { RedisLink } from '@sluice/redis';
import { frameKey } from './keys.js';

export const frameBytes = 1_048_576;
const unlinkAtOnce = 256;

export class Frames {
  readonly #link: RedisLink;
  readonly #prefix: string;
  /** How long frames that nobody has committed stay. */
  readonly #attemptMs: number;
  readonly #keepMs: number;

  constructor(link: RedisLink, prefix: string, attemptMs: number, keepMs: number) {
    this.#link = link;
    this.#prefix = prefix;
    this.#attemptMs = attemptMs;
    this.#keepMs = keepMs;
  }

  async put(id: string, attempt: string, number: number, bytes: Buffer): Promise<void> {
    await this.#link.call('SET', [frameKey(this.#prefix, id, attempt, number), bytes, 'PX', this.#attemptMs]);
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
    const reply =
      from === 0 && length === frameBytes
        ? await this.#link.call('GET', [key])
        : await this.#link.call('GETRANGE', [key, from, from + length - 1]);
    const bytes = reply as Buffer | null;
    return bytes?.length === length ? bytes : undefined;
  }

  /** Of attempts that are not committed yet: as long as a new one. Of the others: another hour. Returns whether all were there. */
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
      const numbers = Array.from({ length: Math.min(unlinkAtOnce, count - from) }, (_, i) => from + i);
      await this.#link.call(
        'UNLINK',
        numbers.map((number) => frameKey(this.#prefix, id, attempt, number)),
      );
    }
  }

  async check(): Promise<void> {
    await this.#link.call('PING', []);
  }
}
