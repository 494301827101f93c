// Digests that clients declare, in the form of RFC 9530 (`sha-256=:<base64>:`), and the running computation that they are compared
// with.
import { createHash, type Hash } from 'node:crypto';
import * as zlib from 'node:zlib';
import { checksums } from 'aws-crt';
import { uploadErrors } from './errors.js';

export type Algorithm = 'sha-256' | 'crc64nvme' | 'crc32c' | 'crc32';

export interface Digest {
  algorithm: Algorithm;
  value: Buffer;
}

const lengths: Record<Algorithm, number> = { 'sha-256': 32, crc64nvme: 8, crc32c: 4, crc32: 4 };

/** The first digest of the field that we know; others are left alone, as the RFC asks. */
export function parseDigest(field: string | undefined): Digest | undefined {
  if (field === undefined || field.trim() === '') return undefined;
  for (const item of field.split(',')) {
    const [, name, base64] = /^\s*([a-z0-9-]+)\s*=\s*:([A-Za-z0-9+/]*={0,2}):\s*$/.exec(item) ?? [];
    if (name === undefined) throw uploadErrors.DIGEST_INVALID({ digest: field });
    const length = Object.hasOwn(lengths, name) ? lengths[name as Algorithm] : undefined;
    if (length === undefined) continue;
    const value = Buffer.from(base64!, 'base64');
    if (value.length !== length) throw uploadErrors.DIGEST_INVALID({ digest: field });
    return { algorithm: name as Algorithm, value };
  }
  throw uploadErrors.DIGEST_INVALID({ digest: field });
}

/** The running computation of a declared digest. CRC-64/NVME is computed for every piece anyway and only compared here. */
export class Declared {
  readonly #digest: Digest;
  readonly #sha256: Hash | undefined;
  #crc = 0;

  constructor(digest: Digest) {
    this.#digest = digest;
    if (digest.algorithm === 'sha-256') this.#sha256 = createHash('sha256');
  }

  update(bytes: Buffer): void {
    if (this.#sha256) this.#sha256.update(bytes);
    else if (this.#digest.algorithm === 'crc32c') this.#crc = checksums.crc32c(bytes, this.#crc);
    else if (this.#digest.algorithm === 'crc32') this.#crc = crc32(bytes, this.#crc);
  }

  /** Throws DIGEST_MISMATCH when the bytes, whose CRC-64/NVME is given, are not the declared ones. */
  verify(crc64: bigint): void {
    const { algorithm, value } = this.#digest;
    const computed = this.#computed(algorithm, crc64);
    if (computed.equals(value)) return;
    throw uploadErrors.DIGEST_MISMATCH({
      algorithm,
      declared: value.toString('base64'),
      computed: computed.toString('base64'),
    });
  }

  #computed(algorithm: Algorithm, crc64: bigint): Buffer {
    if (this.#sha256) return this.#sha256.digest();
    const bytes = Buffer.alloc(lengths[algorithm]);
    if (algorithm === 'crc64nvme') bytes.writeBigUInt64BE(crc64);
    else bytes.writeUInt32BE(this.#crc >>> 0);
    return bytes;
  }
}

/** zlib has it since Node 20.15, and is the fastest. */
const nativeCrc32 = (zlib as { crc32?: (data: Uint8Array, value?: number) => number }).crc32;

function crc32(bytes: Buffer, previous: number): number {
  return nativeCrc32 ? nativeCrc32(bytes, previous) : checksums.crc32(bytes, previous);
}
