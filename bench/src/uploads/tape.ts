/*
 * What is uploaded: files cut from one long tape of bytes in memory, made once, so that sending costs a side's client
 * nothing but sending. The tape repeats a random block whose length is odd, so that no two parts of a file are the same
 * and a part in the wrong place changes the digest.
 *
 * A file is a name and a window on the tape. The windows of neighbours begin at different places; in a turn of very many
 * files they repeat, so that digests known before the clock starts do not take longer than the turn.
 */
import { createHash, randomFillSync } from 'node:crypto';

const BLOCK_BYTES = 8 * 2 ** 20 - 4_099;
const STRIDE_BYTES = 65_537;
const DIFFERENT_FILES = 32;

export interface UploadFile {
  name: string;
  bytes: Buffer;
}

export class Tape {
  readonly #bytes: Buffer;
  readonly #digests = new Map<string, Buffer>();

  constructor(longestFileBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(longestFileBytes + STRIDE_BYTES * DIFFERENT_FILES);
    const block = randomFillSync(Buffer.allocUnsafe(BLOCK_BYTES));
    for (let at = 0; at < this.#bytes.length; at += BLOCK_BYTES) block.copy(this.#bytes, at);
  }

  file(index: number, sizeBytes: number, name: string): UploadFile {
    const begin = (index % DIFFERENT_FILES) * STRIDE_BYTES;
    return { name, bytes: this.#bytes.subarray(begin, begin + sizeBytes) };
  }

  /** SHA-256 of a window of the tape, computed when it is asked for the first time. */
  digest(bytes: Buffer): Buffer {
    const key = `${bytes.byteOffset}+${bytes.length}`;
    let digest = this.#digests.get(key);
    if (digest === undefined) {
      digest = createHash('sha256').update(bytes).digest();
      this.#digests.set(key, digest);
    }
    return digest;
  }
}

/** The consecutive chunks of a file; the last one may be shorter. */
export function chunksOf(bytes: Buffer, chunkBytes: number): Buffer[] {
  const count = Math.ceil(bytes.length / chunkBytes);
  return Array.from({ length: count }, (_, n) => bytes.subarray(n * chunkBytes, (n + 1) * chunkBytes));
}
