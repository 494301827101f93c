// Reads the bytes of a request, piece by piece, in order, as they come. Slow is a body that brings nothing for `idleMs` while we are
// waiting for it; how long it takes in all does not matter, and time in which we do not read does not count.
import { Readable } from 'node:stream';
import { uploadErrors } from './errors.js';

/** What a stream to the store holds at most; there may be a thousand of them. */
const streamBufferBytes = 65_536;

export type Source = AsyncIterable<Uint8Array>;

export class BodyReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #idleMs: number;
  readonly #watch: NodeJS.Timeout;
  #rest: Buffer | undefined;
  #waitingSince: number | undefined;
  #giveUp: ((error: Error) => void) | undefined;
  /** Bytes handed out so far. */
  read = 0;
  readonly #observer: ((bytes: Buffer) => void) | undefined;

  /** `observer` is called with every piece of bytes before it is handed out. */
  constructor(source: Source, idleMs: number, observer?: (bytes: Buffer) => void) {
    this.#observer = observer;
    this.#iterator = source[Symbol.asyncIterator]();
    this.#idleMs = idleMs;
    this.#watch = setInterval(() => this.#checkIdle(), Math.max(10, idleMs / 10));
    this.#watch.unref();
  }

  /** The next bytes, at most `most`, or undefined at the end. */
  async next(most: number): Promise<Buffer | undefined> {
    while (this.#rest === undefined || this.#rest.length === 0) {
      const { done, value } = await this.#pull();
      if (done) return undefined;
      this.#rest = Buffer.isBuffer(value)
        ? value
        : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const bytes = this.#rest.length <= most ? this.#rest : this.#rest.subarray(0, most);
    this.#rest = bytes === this.#rest ? undefined : this.#rest.subarray(most);
    this.read += bytes.length;
    this.#observer?.(bytes);
    return bytes;
  }

  /** Exactly so many bytes as one buffer. */
  async take(length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafe(length);
    const got = await this.fill(buffer);
    if (got < length) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got });
    return buffer;
  }

  /** Fills the buffer as far as the body goes; returns how far that was. */
  async fill(buffer: Buffer): Promise<number> {
    let at = 0;
    while (at < buffer.length) {
      const bytes = await this.next(buffer.length - at);
      if (bytes === undefined) return at;
      bytes.copy(buffer, at);
      at += bytes.length;
    }
    return at;
  }

  /** The next `length` bytes as a stream that fails if the body ends before. */
  stream(length: number, onBytes: (bytes: Buffer) => void): Readable {
    let left = length;
    const pull = async (readable: Readable): Promise<void> => {
      if (left === 0) return void readable.push(null);
      const bytes = await this.next(left);
      if (bytes === undefined) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got: length - left });
      left -= bytes.length;
      onBytes(bytes);
      readable.push(bytes);
      if (left === 0) readable.push(null);
    };
    return new Readable({
      highWaterMark: streamBufferBytes,
      read() {
        pull(this).catch((error: Error) => this.destroy(error));
      },
    });
  }

  /** Reads the rest and throws it away, as long as it is not more than `limit`. */
  async drain(limit: number): Promise<number> {
    let drained = 0;
    for (let bytes = await this.next(65_536); bytes !== undefined; bytes = await this.next(65_536)) {
      drained += bytes.length;
      if (drained > limit) throw uploadErrors.BODY_TOO_LONG({ wanted: limit });
    }
    return drained;
  }

  /** The body must be over. */
  async expectEnd(wanted: number): Promise<void> {
    if ((await this.next(1)) !== undefined) throw uploadErrors.BODY_TOO_LONG({ wanted });
  }

  close(): void {
    clearInterval(this.#watch);
  }

  #pull(): Promise<IteratorResult<Uint8Array>> {
    this.#waitingSince = performance.now();
    return new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      this.#giveUp = reject;
      this.#iterator.next().then(resolve, reject);
    }).finally(() => {
      this.#waitingSince = undefined;
    });
  }

  #checkIdle(): void {
    if (this.#waitingSince === undefined || performance.now() - this.#waitingSince < this.#idleMs) return;
    this.#giveUp?.(uploadErrors.BODY_SLOW({ idleMs: this.#idleMs }));
  }
}
