/**
 * What is remembered of an unfinished upload, and by which key it is found again.
 *
 * The key is a digest of where the file goes and of what it looks like: name, size, date, its first and last bytes. Files that
 * look alike can still differ in between. So the digest of each chunk is written down before the chunk is sent, and a resumed
 * upload holds what the server has against them; a chunk without a digest is sent again, for the server to compare.
 *
 * Writing is a courtesy to the next start. A store that fails (a full quota, a folder without rights) must not fail the
 * upload, and cannot harm it: what is not written down is sent again.
 */
import { KEY_PREFIX } from './webStore.js';
import { base64, hex, sha256 } from './platform.js';
import type { ResumeStore } from './platform.js';
import type { FileSource } from './source.js';

/** So much of the beginning and of the end goes into the key. */
const EDGE_BYTES = 64 * 1024;
/** Of each chunk's digest so many characters are kept: 48 bits, which ten thousand chunks can afford. */
const PRINT_CHARACTERS = 8;

export interface RecordContent {
  /** Made before the first request, so that a lost reply and a crash lead to the same upload. */
  idempotencyKey: string;
  /** How often the upload was started anew. */
  generation: number;
  uploadId: string | null;
  chunkSize: number | null;
}

export class UploadRecord {
  content: RecordContent = { idempotencyKey: '', generation: 0, uploadId: null, chunkSize: null };
  /** How long ago it was written; 0 unless it was found. */
  ageMs = 0;
  #prints: string[] = [];
  readonly #store: ResumeStore | undefined;
  readonly #key: string;
  #last: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(store: ResumeStore | undefined, key: string) {
    this.#store = store;
    this.#key = key;
  }

  /** Whether something was remembered. */
  async load(): Promise<boolean> {
    try {
      const text = await this.#store?.get(this.#key);
      if (typeof text !== 'string') return false;
      const { prints, generation, ...found } = JSON.parse(text) as Record<string, unknown>;
      if (typeof found['idempotencyKey'] !== 'string' || found['idempotencyKey'] === '') return false;
      this.content = {
        idempotencyKey: found['idempotencyKey'],
        generation: Number(generation) || 0,
        uploadId: typeof found['uploadId'] === 'string' ? found['uploadId'] : null,
        chunkSize: Number(found['chunkSize']) || null,
      };
      this.#prints = typeof prints === 'string' ? prints.split(',') : [];
      this.ageMs = Date.now() - Number(found['savedAt'] ?? 0);
      return true;
    } catch {
      return false;
    }
  }

  /** Resolves when what was true at the call is written. Calls that meet a running write share the next one. */
  save(): Promise<void> {
    this.#next ??= this.#last.then(() => {
      this.#next = undefined;
      return this.#write();
    });
    this.#last = this.#next;
    return this.#last;
  }

  async forget(): Promise<void> {
    await this.#last;
    this.#prints = [];
    try {
      await this.#store?.remove(this.#key);
    } catch {
      // A record of something finished is found, asked for and thrown away by the next start.
    }
  }

  /** Writes a chunk's digest down, before the chunk is sent. */
  async note(index: number, digest: string): Promise<void> {
    const print = printOf(digest);
    if (this.#prints[index] === print) return;
    this.#prints[index] = print;
    if (this.#store) await this.save();
  }

  /** Whether a digest of this chunk is written down. */
  knows(index: number): boolean {
    return Boolean(this.#prints[index]);
  }

  matches(index: number, digest: string): boolean {
    return this.#prints[index] === printOf(digest);
  }

  /** The chunks have another size now, so the digests are of no use. */
  forgetPrints(): void {
    this.#prints = [];
  }

  async #write(): Promise<void> {
    const text = JSON.stringify({ ...this.content, savedAt: Date.now(), prints: this.#prints.join(',') });
    try {
      await this.#store?.set(this.#key, text);
    } catch {
      // See above.
    }
  }
}

function printOf(digest: string): string {
  // The algorithm is a part of it: `sha-256=:abc…:` and `crc32=:abc…:` are never the same.
  const [algorithm = '', value = ''] = digest.split('=:');
  return algorithm.charAt(0) + value.slice(0, PRINT_CHARACTERS);
}

/** By what a file and its destination are found again. */
export async function recordKey(source: FileSource, destination: readonly unknown[]): Promise<string> {
  const { name, size, lastModified } = source;
  const edges = [
    await source.read(0, Math.min(size, EDGE_BYTES)),
    await source.read(Math.max(0, size - EDGE_BYTES), size),
  ];
  const digests = await Promise.all(edges.map(sha256));
  const text = JSON.stringify([...destination, name, size, lastModified, ...digests.map(base64)]);
  return KEY_PREFIX + hex(await sha256(new TextEncoder().encode(text)));
}

export function newKey(): string {
  return hex(crypto.getRandomValues(new Uint8Array(16)));
}
