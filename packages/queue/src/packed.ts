// A job as it lies in Redis: eight bytes of header, options if it has any, the payload. Small on purpose (memory per
// waiting job is a promise), and readable from Lua without decoding the payload, which is never touched there.
//
//   0      flags
//   1      failed attempts
//   2      crashes (high half), priority (low half)
//   3–7    creation time, ms since 2025, by the clock of Redis
//   8–9    length of the options     } only with the
//   10–    the options, JSON         } options flag
//   then   the payload
import type { Backoff } from './backoff.js';
import type { Packer } from './wire.js';

export const flag = {
  options: 1,
  binary: 2,
  /** The payload is a whole foreign message; the data is its "data". */
  foreign: 4,
  /** Ends through settle.lua, because something remembers it. */
  settles: 8,
  /** Has attempts, progress or logs to clean up. */
  traces: 16,
  grouped: 32,
  /** Not a job but several plain ones (bale.lua). */
  bale: 64,
} as const;

export const headerBytes = 8;
const epochMs = Date.UTC(2025, 0, 1);
export const maxOptionsBytes = 65_535;

/** Options that travel with a job, under short names, because every job that has them stores them. */
export interface StoredOptions {
  /** attempts */
  a?: number;
  /** backoff */
  b?: Exclude<Backoff, (...args: never[]) => number>;
  /** timeout in ms */
  t?: number;
  /** group */
  g?: string;
  /** unique key */
  u?: string;
  /** the unique key has a window of its own, in ms */
  uw?: number;
  /** how long the id is remembered after the end, in ms */
  w?: number;
  /** how long the result is kept, in ms */
  k?: number;
  /** trace context */
  tr?: Record<string, string>;
  /** tenant, owner and other labels */
  m?: Record<string, string>;
}

/** A job inside the buffer of a reply: nothing is copied, the payload is where it is. */
export interface UnpackedJob {
  flags: number;
  attempts: number;
  crashes: number;
  priority: number;
  /** More than one in a bale. */
  size: number;
  createdMs: number;
  options: StoredOptions | undefined;
  buffer: Buffer;
  payloadStart: number;
  payloadEnd: number;
}

/** The first eight bytes of a job. Jobs that are added together mostly share them. */
export function makeHeader(flags: number, priority: number, createdMs: number): Buffer {
  const since = Math.max(0, Math.floor(createdMs) - epochMs);
  const header = Buffer.alloc(headerBytes);
  header[0] = flags;
  header[2] = priority;
  header[3] = Math.floor(since / 2 ** 32);
  header.writeUInt32BE(since >>> 0, 4);
  return header;
}

export function writeHeader(
  to: Packer,
  flags: number,
  priority: number,
  createdMs: number,
  options: string,
): void {
  to.rawBytes(makeHeader(options ? flags | flag.options : flags, priority, createdMs));
  if (options) writeOptions(to, options);
}

/** The options as they follow the header of a job that has the options flag. */
export function writeOptions(to: Packer, options: string): void {
  const length = Buffer.byteLength(options);
  to.byte(length >>> 8);
  to.byte(length & 0xff);
  to.raw(options);
}

export function unpackJob(buffer: Buffer, start = 0, end = buffer.length): UnpackedJob {
  const flags = buffer[start]!;
  const isBale = (flags & flag.bale) !== 0;
  const marks = buffer[start + 2]!;
  let payloadStart = start + headerBytes;
  let options: StoredOptions | undefined;
  if (flags & flag.options) {
    payloadStart += 2 + buffer.readUInt16BE(start + headerBytes);
    options = JSON.parse(buffer.toString('utf8', start + headerBytes + 2, payloadStart)) as StoredOptions;
  }
  return {
    flags,
    attempts: isBale ? 0 : buffer[start + 1]!,
    size: isBale ? buffer[start + 1]! : 1,
    crashes: marks >>> 4,
    priority: marks & 0x0f,
    createdMs: readCreatedMs(buffer, start),
    options,
    buffer,
    payloadStart,
    payloadEnd: end,
  };
}

export function readCreatedMs(buffer: Buffer, start = 0): number {
  return epochMs + buffer[start + 3]! * 2 ** 32 + buffer.readUInt32BE(start + 4);
}

export function payloadOf(job: UnpackedJob): Buffer {
  return job.buffer.subarray(job.payloadStart, job.payloadEnd);
}

/** The data of a job; throws when its payload is not what its flags say. */
export function decodePayload(job: UnpackedJob): unknown {
  if (job.flags & flag.binary) return payloadOf(job);
  if (job.payloadStart === job.payloadEnd) return undefined;
  const value: unknown = JSON.parse(job.buffer.toString('utf8', job.payloadStart, job.payloadEnd));
  return job.flags & flag.foreign ? (value as { data: unknown }).data : value;
}
