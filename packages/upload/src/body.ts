// Reads the bytes of a request, piece by piece, in order, as they come. Slow is a body that brings nothing for `idleMs` while we are
// waiting for it; how long it takes in all does not matter, and time in which we do not read does not count.
//
// Somebody asks for bytes, and they are handed over as they arrive, in the same tick, until there are enough: a part of 32 MiB
// comes in five hundred pieces, and a promise for each of them costs more than to copy them.
import { Readable } from 'node:stream';
import { uploadErrors } from './errors.js';
import { bytesPassed } from './youngHeap.js';

/** What a stream to the store holds at most; there may be a thousand of them. */
const streamBufferBytes = 65_536;

export type Source = AsyncIterable<Uint8Array>;

/** Who is waiting for bytes. */
interface Taker {
  /** How many it still wants; never 0. */
  most: number;
  /** Whether every piece is shown to the observer. */
  observed: boolean;
  /** Takes some; returns how many more it wants. */
  take(bytes: Buffer): number;
  /** There are no more. */
  end(): void;
  fail(error: Error): void;
}

export class BodyReader {
  readonly #source: Readable;
  readonly #idleMs: number;
  readonly #watch: NodeJS.Timeout;
  readonly #observer: ((bytes: Buffer) => void) | undefined;
  /** What has come and nobody has taken yet. */
  #rest: Buffer | undefined;
  #taker: Taker | undefined;
  /** When somebody began to wait, or the last bytes came since. */
  #waitingSince = 0;
  #over: 'ended' | Error | undefined;
  /** Bytes handed out so far. */
  read = 0;

  /** `observer` is called with every piece of bytes before it is handed out. */
  constructor(source: Source, idleMs: number, observer?: (bytes: Buffer) => void) {
    this.#observer = observer;
    this.#idleMs = idleMs;
    this.#source = source instanceof Readable ? source : Readable.from(source);
    if (this.#source.readableEnded) this.#over = 'ended';
    else if (this.#source.destroyed) this.#over = this.#source.errored ?? brokenOff();
    // Paused before anybody listens: the first read makes it flow, and lets a client know that its bytes are wanted.
    this.#source
      .pause()
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose)
      .on('data', this.#onData);
    this.#watch = setInterval(() => this.#checkIdle(), Math.max(10, idleMs / 10));
    this.#watch.unref();
  }

  /** Nobody will send the rest. */
  get isBroken(): boolean {
    return this.#over instanceof Error;
  }

  /** The next bytes, at most `most`, or undefined at the end. */
  next(most: number): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      this.#ask({
        most,
        observed: true,
        take: (bytes) => {
          resolve(bytes);
          return 0;
        },
        end: () => resolve(undefined),
        fail: reject,
      });
    });
  }

  /**
   * Exactly so many bytes as one buffer, which nobody else writes to. It is observed as a whole: whoever keeps what it observes
   * keeps this buffer and not each of the pieces that came.
   */
  async take(length: number): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(length);
    bytesPassed(length);
    const got = await this.#fill(buffer, false);
    if (got > 0) this.#observer?.(buffer.subarray(0, got));
    if (got < length) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got });
    return buffer;
  }

  /** Fills the buffer as far as the body goes; returns how far that was. Who looks at each piece finds it in the processor's cache. */
  fill(buffer: Buffer, onBytes?: (bytes: Buffer) => void): Promise<number> {
    return this.#fill(buffer, true, onBytes);
  }

  #fill(buffer: Buffer, observed: boolean, onBytes?: (bytes: Buffer) => void): Promise<number> {
    let at = 0;
    if (buffer.length === 0) return Promise.resolve(at);
    return new Promise((resolve, reject) => {
      this.#ask({
        most: buffer.length,
        observed,
        take: (bytes) => {
          bytes.copy(buffer, at);
          onBytes?.(bytes);
          at += bytes.length;
          if (at === buffer.length) resolve(at);
          return buffer.length - at;
        },
        end: () => resolve(at),
        fail: reject,
      });
    });
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
    this.#source
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose)
      .off('data', this.#onData)
      // It may still break, and nobody may be listening any more.
      .on('error', () => {})
      .pause();
    // Nobody asks a closed reader, but somebody may still be waiting.
    if (this.#taker !== undefined) this.#onError(brokenOff());
  }

  #ask(taker: Taker): void {
    this.#taker = taker;
    this.#waitingSince = performance.now();
    this.#serve();
    if (this.#taker !== undefined) this.#source.resume();
  }

  #serve(): void {
    while (this.#taker !== undefined && this.#rest !== undefined) {
      const taker = this.#taker;
      const { most } = taker;
      const bytes = this.#rest.length <= most ? this.#rest : this.#rest.subarray(0, most);
      this.#rest = bytes === this.#rest ? undefined : this.#rest.subarray(most);
      this.read += bytes.length;
      bytesPassed(bytes.length);
      if (taker.observed) this.#observer?.(bytes);
      taker.most = taker.take(bytes);
      if (taker.most === 0) this.#taker = undefined;
    }
    if (this.#taker === undefined || this.#over === undefined) return;
    const taker = this.#taker;
    this.#taker = undefined;
    if (this.#over === 'ended') taker.end();
    else taker.fail(this.#over);
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#waitingSince = performance.now();
    if (chunk.length > 0) {
      const bytes = Buffer.isBuffer(chunk)
        ? chunk
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      this.#rest = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes]);
      this.#serve();
    }
    if (this.#taker === undefined) this.#source.pause();
  };

  readonly #onEnd = (): void => {
    this.#over ??= 'ended';
    this.#serve();
  };

  readonly #onError = (error: Error): void => {
    this.#over ??= error;
    this.#serve();
  };

  readonly #onClose = (): void => {
    if (this.#over === undefined) this.#onError(brokenOff());
  };

  #checkIdle(): void {
    if (this.#taker === undefined || performance.now() - this.#waitingSince < this.#idleMs) return;
    const taker = this.#taker;
    this.#taker = undefined;
    taker.fail(uploadErrors.BODY_SLOW({ idleMs: this.#idleMs }));
  }
}

function brokenOff(): Error {
  return new Error('the body broke off before its end');
}
