// One file of the disk store: the bytes, then what is known about them, then how long that is.
//
//     bytes of the object │ JSON: key, size, crc64, … │ length of the JSON (4 bytes) │ "SLUICE1\n"
//
// Bytes and description are one file, so that one rename publishes both. The description stands at the end, because the checksum
// is known only then, and a range of the object is the same range of the file. A file without a right ending is not an object.
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { SourceBody } from './body.js';
import type { Body } from './contract.js';
import { crc64FromHex, crc64ToHex, RunningCrc64 } from './crc64.js';
import { storeErrors } from './errors.js';

export interface Description {
  key: string;
  size: number;
  crc64: bigint;
  /** Of a part. */
  number?: number;
  contentType?: string;
  metadata?: Record<string, string>;
}

const MAGIC = Buffer.from('SLUICE1\n');
const ENDING_BYTES = 4 + MAGIC.length;
/** Enough for the description of nearly every object, so that looking at one is one read. */
const TAIL_BYTES = 4_096;
const MAX_DESCRIPTION_BYTES = 64 * 1024;
/** Bytes in memory, and those of parts, are written in pieces of this size. */
const WRITE_BYTES = 1024 * 1024;
const READ_BYTES = 256 * 1024;

/** Writes a body to an open file; returns its checksum once its length and declared checksum proved right. */
export async function writeBody(
  file: FileHandle,
  key: string,
  body: Body,
  { crc64: declared, signal }: { crc64?: bigint | undefined; signal?: AbortSignal | undefined },
): Promise<bigint> {
  const crc = new RunningCrc64();
  const write = async (chunks: Uint8Array[]): Promise<void> => {
    signal?.throwIfAborted();
    for (const chunk of chunks) crc.update(chunk);
    await writeAll(file, chunks);
  };
  if (body instanceof Uint8Array) {
    for (let at = 0; at < body.byteLength; at += WRITE_BYTES)
      await write([body.subarray(at, at + WRITE_BYTES)]);
  } else {
    await eachChunk(body.stream, { key, length: body.length }, write, signal);
  }
  if (declared !== undefined && crc.value !== declared) {
    throw storeErrors.BODY_CHECKSUM({ key, reason: `they have ${crc64ToHex(crc.value)}` });
  }
  return crc.value;
}

/** Closes the bytes of a file with their description. */
export async function seal(file: FileHandle, description: Description): Promise<void> {
  const json = Buffer.from(JSON.stringify({ ...description, crc64: crc64ToHex(description.crc64) }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  await writeAll(file, [json, length, MAGIC]);
}

/** The description at the end of an open file. */
export async function describe(
  file: FileHandle,
  name: string,
): Promise<{ description: Description; modified: Date }> {
  const { size, mtime } = await file.stat();
  let tail = await readAt(file, Math.max(0, size - TAIL_BYTES), Math.min(size, TAIL_BYTES));
  const damaged = (): Error =>
    storeErrors.STORE_CORRUPT({
      operation: 'reading',
      key: name,
      reason: 'the file does not end as a stored object',
    });
  if (tail.length < ENDING_BYTES || !tail.subarray(-MAGIC.length).equals(MAGIC)) throw damaged();
  const jsonBytes = tail.readUInt32BE(tail.length - ENDING_BYTES);
  const needed = jsonBytes + ENDING_BYTES;
  if (jsonBytes > MAX_DESCRIPTION_BYTES || needed > size) throw damaged();
  if (needed > tail.length) tail = await readAt(file, size - needed, needed);
  const description = parse(tail.subarray(tail.length - needed, tail.length - ENDING_BYTES));
  if (description === undefined || description.size !== size - needed) throw damaged();
  return { description, modified: mtime };
}

/** A range of an open file's bytes as a stream, which closes the file. */
export class FileBody extends Readable {
  #at: number;

  constructor(
    private readonly file: FileHandle,
    private readonly key: string,
    private readonly first: number,
    private readonly length: number,
  ) {
    super({ highWaterMark: READ_BYTES });
    this.#at = first;
  }

  override _read(): void {
    const left = this.first + this.length - this.#at;
    if (left === 0) return void this.push(null);
    readAt(this.file, this.#at, Math.min(READ_BYTES, left)).then(
      (bytes) => this.#onBytes(bytes, left),
      (error: Error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    void closeThen(this.file, () => done(error));
  }

  #onBytes(bytes: Buffer, left: number): void {
    if (this.destroyed) return;
    const { key, length } = this;
    if (bytes.length === 0) {
      const reason = 'the file has become shorter';
      return void this.destroy(storeErrors.STORE_TRUNCATED({ key, length, came: length - left, reason }));
    }
    this.#at += bytes.length;
    this.push(bytes);
  }
}

/** Copies the bytes of a stored file to the end of another one, and compares them with their checksum. */
export async function append(to: FileHandle, name: string, total: RunningCrc64): Promise<void> {
  const from = await open(name);
  try {
    const { description } = await describe(from, name);
    const crc = new RunningCrc64();
    for (let at = 0; at < description.size;) {
      const bytes = await readAt(from, at, Math.min(WRITE_BYTES, description.size - at));
      if (bytes.length === 0) break;
      at += bytes.length;
      crc.update(bytes);
      total.update(bytes);
      await writeAll(to, [bytes]);
    }
    if (crc.value !== description.crc64) {
      const reason = `part ${description.number} has changed on disk`;
      throw storeErrors.STORE_CORRUPT({ operation: 'completing', key: description.key, reason });
    }
  } finally {
    await from.close();
  }
}

/** The chunks of a stream, gathered while the last ones are written. */
async function eachChunk(
  stream: Readable,
  checks: { key: string; length: number },
  write: (chunks: Uint8Array[]) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted();
  const body = new SourceBody(stream, checks);
  const stop = (): void => void body.destroy(signal!.reason as Error);
  signal?.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of body) await write([chunk as Buffer]);
  } finally {
    signal?.removeEventListener('abort', stop);
    body.destroy();
  }
}

async function closeThen(file: FileHandle, then: () => void): Promise<void> {
  // It was only read: there is nothing to lose by a close that fails.
  await file.close().catch(() => {});
  then();
}

async function writeAll(file: FileHandle, chunks: Uint8Array[]): Promise<void> {
  const total = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  if (total === 0) return;
  const { bytesWritten } = await file.writev(chunks);
  if (bytesWritten === total) return;
  // A disk that fills up takes some of it, and says why at the next try.
  let left = Buffer.concat(chunks).subarray(bytesWritten);
  while (left.length > 0) left = left.subarray((await file.write(left)).bytesWritten);
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

function parse(json: Buffer): Description | undefined {
  try {
    const parsed = JSON.parse(json.toString()) as Omit<Description, 'crc64'> & { crc64: string };
    const crc64 = crc64FromHex(parsed.crc64);
    if (crc64 === undefined || typeof parsed.key !== 'string') return undefined;
    return { ...parsed, crc64 };
  } catch {
    return undefined;
  }
}
