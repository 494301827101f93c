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

export interface UnpackedJob {
  flags: number;
  attempts: number;
  crashes: number;
  priority: number;
  createdMs: number;
  options: StoredOptions | undefined;
  payload: Buffer;
}

export function writeHeader(to: Packer, flags: number, priority: number, createdMs: number, options: string): void {
  const since = Math.max(0, Math.floor(createdMs) - epochMs);
  to.byte(options ? flags | flag.options : flags);
  to.byte(0);
  to.byte(priority);
  to.byte(Math.floor(since / 2 ** 32) & 0xff);
  to.byte((since >>> 24) & 0xff);
  to.byte((since >>> 16) & 0xff);
  to.byte((since >>> 8) & 0xff);
  to.byte(since & 0xff);
  if (options) {
    const length = Buffer.byteLength(options);
    to.byte(length >>> 8);
    to.byte(length & 0xff);
    to.raw(options);
  }
}

export function unpackJob(bytes: Buffer): UnpackedJob {
  const flags = bytes[0]!;
  const marks = bytes[2]!;
  let start = headerBytes;
  let options: StoredOptions | undefined;
  if (flags & flag.options) {
    const length = bytes.readUInt16BE(headerBytes);
    start = headerBytes + 2 + length;
    options = JSON.parse(bytes.toString('utf8', headerBytes + 2, start)) as StoredOptions;
  }
  return {
    flags,
    attempts: bytes[1]!,
    crashes: marks >>> 4,
    priority: marks & 0x0f,
    createdMs: readCreatedMs(bytes),
    options,
    payload: bytes.subarray(start),
  };
}

export function readCreatedMs(bytes: Buffer): number {
  return epochMs + bytes[3]! * 2 ** 32 + bytes.readUInt32BE(4);
}

/** The data of a payload; throws when it is not what its flags say. */
export function decodePayload(flags: number, payload: Buffer): unknown {
  if (flags & flag.binary) return payload;
  if (payload.length === 0) return undefined;
  const value: unknown = JSON.parse(payload.toString('utf8', 0, payload.length));
  return flags & flag.foreign ? (value as { data: unknown }).data : value;
}
