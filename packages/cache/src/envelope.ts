// How a value lies in Redis: as JSON that an operator can read,
//
//   {"v":{"id":7},"expires":1763280000000,"loadMs":12,"gens":{"graph:job1":"Zk3…"}}
//
// or, above 8 KB, the same compressed with gzip, which is told apart by its first byte. `expires` is a moment of Redis' clock.
// A value that the loader did not find has no `v` (undefined) or null: a negative entry.
import { gunzip, gunzipSync, gzip } from 'node:zlib';
import { promisify } from 'node:util';
import { cacheErrors } from './errors.js';

export interface Envelope {
  v?: unknown;
  /** Until when the value is fresh (ms since 1970, by the clock of Redis). */
  expires: number;
  /** How long the load took: the longer, the earlier it is refreshed. */
  loadMs: number;
  /** Group → generation with which it was loaded. */
  gens?: Record<string, string>;
}

export const compressAboveBytes = 8 * 1_024;
/** What is larger is decompressed by another thread. */
const decompressHereBytes = 64 * 1_024;
const maxTextBytes = 64 * 1_024 * 1_024;
const openingBrace = 0x7b;
const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Throws VALUE_NOT_JSON. */
export function writeEnvelope(name: string, envelope: Envelope): string {
  try {
    return JSON.stringify(envelope);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw cacheErrors.VALUE_NOT_JSON({ name, reason }, { cause });
  }
}

/** What is stored. */
export async function packEnvelope(text: string): Promise<string | Buffer> {
  // A character has at most three bytes per UTF-16 unit; most texts are short enough to be sure without counting.
  if (text.length * 3 <= compressAboveBytes || Buffer.byteLength(text) <= compressAboveBytes) return text;
  return compress(text, { level: 1 });
}

/** What was stored; undefined for what is no envelope, whoever wrote it. Large ones come as a promise. */
export function readEnvelope(stored: Buffer): Envelope | undefined | Promise<Envelope | undefined> {
  if (stored[0] === openingBrace) return parse(stored.toString());
  if (stored.length > decompressHereBytes) {
    return decompress(stored, { maxOutputLength: maxTextBytes }).then(
      (text) => parse(text.toString()),
      () => undefined,
    );
  }
  try {
    return parse(gunzipSync(stored, { maxOutputLength: maxTextBytes }).toString());
  } catch {
    return undefined;
  }
}

export function isCompressed(stored: Buffer): boolean {
  return stored[0] !== openingBrace;
}

export function isNegative(envelope: Envelope): boolean {
  return envelope.v === undefined || envelope.v === null;
}

function parse(text: string): Envelope | undefined {
  try {
    const envelope = JSON.parse(text) as Envelope;
    return typeof envelope.expires === 'number' && typeof envelope.loadMs === 'number' ? envelope : undefined;
  } catch {
    return undefined;
  }
}
