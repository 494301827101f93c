// Bodies on their way into a store. A stream is trusted with nothing: its length is counted, it may break off, and its last
// bytes are held back until it has really ended, so that a stream of the wrong length or checksum is never stored.
//
// The store never destroys a stream that it was given. That stream is often a client's request, and destroying it would cut the
// connection on which the client waits to hear what went wrong.
import { Readable } from 'node:stream';
import type { Body } from './contract.js';
import { crc64ToBase64, RunningCrc64 } from './crc64.js';
import { storeErrors } from './errors.js';
import type { IdleWatch } from './idleWatch.js';

/** What is read from a buffer and given to a socket at once; also the unit of progress. */
const SLICE_BYTES = 512 * 1024;

export function lengthOf(body: Body): number {
  return body instanceof Uint8Array ? body.byteLength : body.length;
}

export interface SourceChecks {
  key: string;
  length: number;
  /** Compared at the end, if given. */
  crc64?: bigint | undefined;
  /** Whether the checksum is computed on the way; it is if there is one to compare with. */
  sum?: boolean | undefined;
}

/**
 * Reads a stream to its end, and hands on its chunks: `take` returns whether it wants more now; `resume` asks for more later.
 * `end` comes once the length (and checksum) proved right, `fail` instead if they did not or the stream broke.
 */
export class CheckedSource {
  #came = 0;
  #held: Uint8Array | undefined;
  #over = false;
  readonly #crc: RunningCrc64 | undefined;

  constructor(
    private readonly source: Readable,
    private readonly checks: SourceChecks,
    private readonly sink: {
      take(chunk: Uint8Array): boolean;
      end(crc64: bigint | undefined): void;
      fail(error: Error): void;
    },
  ) {
    if (checks.crc64 !== undefined || checks.sum === true) this.#crc = new RunningCrc64();
    source
      .on('data', this.#onData)
      .on('end', this.#onEnd)
      .on('error', this.#onError)
      .on('close', this.#onClose);
    source.pause();
    // Its end or its death may have come before us, and such events come once.
    if (source.readableEnded) process.nextTick(this.#onEnd);
    else if (source.destroyed) process.nextTick(this.#onClose);
  }

  resume(): void {
    if (!this.#over) this.source.resume();
  }

  /** Lets go of the stream where it is. */
  release(): void {
    if (this.#over) return;
    this.#over = true;
    const { source } = this;
    source
      .off('data', this.#onData)
      .off('end', this.#onEnd)
      .off('error', this.#onError)
      .off('close', this.#onClose);
    // It may still break, and nobody may be listening any more.
    source.on('error', () => {});
    if (!source.readableEnded) source.pause();
  }

  readonly #onData = (chunk: unknown): void => {
    const { key, length } = this.checks;
    if (!(chunk instanceof Uint8Array)) {
      return this.#fail(
        storeErrors.BODY_FAILED({ key, reason: 'it brings text or objects instead of bytes' }),
      );
    }
    this.#came += chunk.byteLength;
    if (this.#came > length) {
      return this.#fail(storeErrors.BODY_LENGTH({ key, declared: length, came: 'more came' }));
    }
    this.#crc?.update(chunk);
    if (this.#came === length) this.#held = chunk;
    else if (!this.sink.take(chunk)) this.source.pause();
  };

  readonly #onEnd = (): void => {
    const { key, length, crc64 } = this.checks;
    if (this.#over) return;
    if (this.#came < length) {
      return this.#fail(storeErrors.BODY_LENGTH({ key, declared: length, came: `only ${this.#came} came` }));
    }
    if (crc64 !== undefined && this.#crc!.value !== crc64) {
      return this.#fail(storeErrors.BODY_CHECKSUM({ key, reason: 'found while reading them' }));
    }
    this.release();
    if (this.#held !== undefined && this.#held.byteLength > 0) this.sink.take(this.#held);
    this.sink.end(this.#crc?.value);
  };

  readonly #onError = (error: Error): void => {
    this.#fail(storeErrors.BODY_FAILED({ key: this.checks.key, reason: error.message }, { cause: error }));
  };

  readonly #onClose = (): void => {
    this.#fail(storeErrors.BODY_FAILED({ key: this.checks.key, reason: 'it was closed before its end' }));
  };

  #fail(error: Error): void {
    if (this.#over) return;
    this.release();
    this.sink.fail(error);
  }
}

/**
 * A caller's stream as the body of a request. The watch runs only while the store makes us wait: a source that is slow is no
 * fault of the store.
 *
 * Unless its checksum was declared, the stream is framed, which is the S3 way to say a checksum after the bytes: one chunk of
 * known length, then the trailer. It also tells the server where the end is. There are servers that store the half of a plain
 * body whose connection was cut as if it were the whole.
 */
export class SourceBody extends Readable {
  /** Of the bytes, once they have all been read. */
  crc64: bigint | undefined;
  /** What is sent: the bytes, and the frame around them. */
  readonly sentLength: number;
  readonly #source: CheckedSource;
  #opening: Buffer | undefined;

  constructor(
    source: Readable,
    private readonly checks: SourceChecks,
    private readonly watch?: IdleWatch,
    readonly framed = false,
  ) {
    super({ highWaterMark: SLICE_BYTES });
    const opening = Buffer.from(`${checks.length.toString(16)}\r\n`);
    this.#opening = framed ? opening : undefined;
    this.sentLength = checks.length + (framed ? opening.length + closing(0n).length : 0);
    const take = (chunk: Uint8Array): boolean => {
      const wantsMore = this.push(chunk);
      if (!wantsMore) watch?.run();
      return wantsMore;
    };
    const end = (crc64: bigint | undefined): void => {
      this.crc64 = crc64;
      watch?.run();
      if (framed) this.push(closing(crc64!));
      this.push(null);
    };
    this.#source = new CheckedSource(
      source,
      { ...checks, sum: framed },
      { take, end, fail: (error) => this.destroy(error) },
    );
  }

  /** How many bytes of the source this body brings. */
  get length(): number {
    return this.checks.length;
  }

  override _read(): void {
    if (this.#opening !== undefined) {
      const opening = this.#opening;
      this.#opening = undefined;
      return void this.push(opening);
    }
    this.watch?.hold();
    this.#source.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#source.release();
    done(error);
  }
}

export const CRC64_HEADER = 'x-amz-checksum-crc64nvme';

/** The end of the chunk, the empty chunk that is the last, and the trailer. */
function closing(crc64: bigint): Buffer {
  return Buffer.from(`\r\n0\r\n${CRC64_HEADER}:${crc64ToBase64(crc64)}\r\n\r\n`);
}

/** Bytes in memory as the body of a request, in slices, so that progress is seen. */
export class BufferBody extends Readable {
  #sent = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly watch: IdleWatch,
  ) {
    super({ highWaterMark: SLICE_BYTES });
  }

  override _read(): void {
    this.watch.run();
    const slice = this.bytes.subarray(this.#sent, this.#sent + SLICE_BYTES);
    this.#sent += slice.byteLength;
    this.push(slice.byteLength === 0 ? null : slice);
  }
}

/** Reads a short stream into memory, which makes it a body that can be sent again. */
export function collect(source: Readable, checks: SourceChecks, signal?: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    const onAbort = (): void => {
      checked.release();
      reject(signal!.reason as Error);
    };
    const settle = (then: () => void): void => {
      signal?.removeEventListener('abort', onAbort);
      then();
    };
    const checked = new CheckedSource(source, checks, {
      take: (chunk) => chunks.push(chunk) > 0,
      end: () => settle(() => resolve(Buffer.concat(chunks))),
      fail: (error) => settle(() => reject(error)),
    });
    signal?.addEventListener('abort', onAbort, { once: true });
    if (signal?.aborted) onAbort();
    else checked.resume();
  });
}
