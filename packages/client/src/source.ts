/**
 * Where the bytes come from. A file can be read anywhere and as often as needed: a Blob, an array, or a file on disk
 * (`fileSource.ts`). A stream is read once, in order; its chunks are kept until others need their room, so that what is lost
 * on the way can be sent again.
 */
import { reasonOf, uploadError } from './errors.js';
import type { Bytes } from './platform.js';

export type UploadInput = Blob | Uint8Array | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

export interface FileSource {
  readonly kind: 'file';
  readonly size: number;
  readonly name: string;
  /** Milliseconds since 1970; 0 when nobody knows. */
  readonly lastModified: number;
  readonly type: string;
  /** From `first` up to `end`, which is not included. */
  read(first: number, end: number): Promise<Bytes>;
  close(): Promise<void>;
}

export type Source = FileSource | StreamSource;

export function sourceOf(input: UploadInput): Source {
  if (input instanceof Blob) return blobSource(input);
  if (input instanceof Uint8Array) return arraySource(input);
  const given = input as Partial<ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>> | null | undefined;
  if (typeof given?.getReader === 'function') return new StreamSource(readerOf(given.getReader()));
  const iterate = given?.[Symbol.asyncIterator];
  if (typeof iterate === 'function') return new StreamSource(iterate.call(given));
  throw uploadError(
    'OPTION_INVALID',
    'give it a File, a Blob, a Uint8Array, a ReadableStream or an async iterable of Uint8Array.',
  );
}

function blobSource(blob: Blob): FileSource {
  const { name = '', lastModified = 0 } = blob as Partial<File>;
  return {
    kind: 'file',
    size: blob.size,
    name,
    lastModified,
    type: blob.type,
    read: async (first, end) => {
      try {
        return new Uint8Array(await blob.slice(first, end).arrayBuffer());
      } catch (cause) {
        throw uploadError('SOURCE_UNREADABLE', reasonOf(cause), { cause });
      }
    },
    close: async () => {},
  };
}

function arraySource(array: Uint8Array): FileSource {
  return {
    kind: 'file',
    size: array.length,
    name: '',
    lastModified: 0,
    type: '',
    // A copy: digest and body must be the same bytes, whatever the caller does to the array meanwhile.
    read: async (first, end) => new Uint8Array(array.subarray(first, end)),
    close: async () => {},
  };
}

type Pieces = AsyncIterator<Uint8Array, unknown>;

/** Not every browser lets a ReadableStream be iterated. */
function readerOf(reader: ReadableStreamDefaultReader<Uint8Array>): Pieces {
  return {
    next: async () => {
      const { done, value } = await reader.read();
      return done ? { done: true, value: undefined } : { done: false, value };
    },
    return: async () => {
      await reader.cancel();
      return { done: true, value: undefined };
    },
  };
}

/** A chunk of a stream. A short one is the last; one of full length does not know whether it is. */
export interface StreamChunk {
  readonly index: number;
  readonly bytes: Bytes;
}

export class StreamSource {
  readonly kind = 'stream';
  readonly size = null;
  readonly type = '';
  /** Sees every byte once, in order. */
  onBytes: ((bytes: Uint8Array) => void) | undefined;
  readonly #pieces: Pieces;
  /** What is left of a piece that did not fit into the last chunk. */
  #rest: Uint8Array = new Uint8Array(0);
  #totalBytes = 0;
  #ended = false;
  #nextIndex = 0;
  #pulling: Promise<unknown> = Promise.resolve();
  /** Why it broke. A stream that broke is often told to have ended when it is asked again; it has not. */
  #failure: Error | undefined;
  /** Chunks in memory. Those that the server has acknowledged may go when room is needed. */
  readonly #held = new Map<number, { chunk: StreamChunk; acked: boolean }>();

  constructor(pieces: Pieces) {
    this.#pieces = pieces;
  }

  /** The chunks read so far. */
  get count(): number {
    return this.#nextIndex;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  get ended(): boolean {
    return this.#ended;
  }

  held(index: number): StreamChunk | undefined {
    return this.#held.get(index)?.chunk;
  }

  acked(index: number): void {
    const entry = this.#held.get(index);
    if (entry) entry.acked = true;
  }

  /** Chunks that were read but not acknowledged; after a pause there may be some. */
  unacked(): number[] {
    return [...this.#held].filter(([, { acked }]) => !acked).map(([index]) => index);
  }

  /** Reads the next chunk; nothing at the end. Calls queue up, so that the order of the bytes is the order of the calls. */
  pull(chunkSize: number, room: number): Promise<StreamChunk | undefined> {
    const pulled = this.#pulling.then(() => this.#pull(chunkSize, room));
    this.#pulling = pulled.catch(() => {});
    return pulled;
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    // Not awaited: a generator that hangs in its own `await` would never answer.
    void Promise.resolve(this.#pieces.return?.()).catch(() => {});
  }

  async #pull(chunkSize: number, room: number): Promise<StreamChunk | undefined> {
    if (this.#failure) throw this.#failure;
    if (this.#ended) return undefined;
    this.#makeRoom(room);
    const bytes = await this.#read(chunkSize).catch((failure: Error) => {
      this.#failure = failure;
      throw failure;
    });
    if (bytes.length === 0) return undefined;
    const chunk = { index: this.#nextIndex++, bytes };
    this.#held.set(chunk.index, { chunk, acked: false });
    return chunk;
  }

  /** Lanes hold one unacknowledged chunk each and this one holds none, so dropping acknowledged ones is always enough. */
  #makeRoom(room: number): void {
    for (const [index, { acked }] of this.#held) {
      if (this.#held.size < room) return;
      if (acked) this.#held.delete(index);
    }
  }

  async #read(chunkSize: number): Promise<Bytes> {
    const bytes = new Uint8Array(chunkSize);
    let filled = 0;
    while (filled < chunkSize) {
      if (this.#rest.length === 0) {
        const piece = await this.#nextPiece();
        if (piece === undefined) break;
        this.#rest = piece;
      }
      const taken = this.#rest.subarray(0, chunkSize - filled);
      bytes.set(taken, filled);
      filled += taken.length;
      this.#rest = this.#rest.subarray(taken.length);
    }
    const read = bytes.subarray(0, filled);
    this.#totalBytes += filled;
    this.onBytes?.(read);
    return read;
  }

  async #nextPiece(): Promise<Uint8Array | undefined> {
    let next: IteratorResult<Uint8Array, unknown>;
    try {
      next = await this.#pieces.next();
    } catch (cause) {
      throw uploadError('SOURCE_UNREADABLE', reasonOf(cause), { cause });
    }
    if (next.done) {
      this.#ended = true;
      return undefined;
    }
    if (next.value instanceof Uint8Array) return next.value;
    throw uploadError('SOURCE_UNREADABLE', 'a stream must consist of Uint8Array');
  }
}
