// Reading requests: numbers, ranges, digests and metadata come as text that somebody else wrote.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { parseDigest, type Digest } from '@sluice/upload';
import { uploadErrors } from '@sluice/upload';
import { restErrors } from './errors.js';

/** A chunk number as it stands in an address: digits, nothing else, and exact as a number. */
export function chunkNumber(text: string): number {
  const number = /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw uploadErrors.CHUNK_NUMBER({ number: text.slice(0, 40), wanted: 'a whole number in digits' });
}

export function contentLength({ headers }: FastifyRequest): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  const text = headers['content-length'];
  return text === undefined ? 0 : Number(text);
}

export function needLength(request: FastifyRequest): number {
  const length = contentLength(request);
  if (length === undefined) throw restErrors.LENGTH_REQUIRED();
  return length;
}

/** `bytes 0-1023/4096`, the size being `*` when it is unknown. */
export function contentRange(header: string | undefined, length: number): { offset: number; total?: number } {
  const [, first, last, total] = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/.exec(header ?? '') ?? [];
  const refuse = () => restErrors.RANGE_INVALID({ header: (header ?? '').slice(0, 80) });
  if (first === undefined) throw refuse();
  const [offset, end] = [Number(first), Number(last)];
  if (![offset, end].every(Number.isSafeInteger) || end - offset + 1 !== length) throw refuse();
  if (total === '*') return { offset };
  if (!Number.isSafeInteger(Number(total))) throw refuse();
  return { offset, total: Number(total) };
}

export function contentDigest(headers: IncomingHttpHeaders): Digest | undefined {
  return parseDigest(text(headers['content-digest']));
}

/** The SHA-256 of the whole file in hex, from Repr-Digest, or from Content-Digest when the body is the whole file. */
export function wholeSha256(headers: IncomingHttpHeaders): string | undefined {
  for (const name of ['repr-digest', 'content-digest']) {
    const digest = parseDigest(text(headers[name]));
    if (digest?.algorithm === 'sha-256') return digest.value.toString('hex');
  }
  return undefined;
}

const metaPrefix = 'x-sluice-meta-';

export function metadataOf(headers: IncomingHttpHeaders): Record<string, string> | undefined {
  const metadata: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith(metaPrefix) && value !== undefined)
      metadata[name.slice(metaPrefix.length)] = decoded(text(value)!);
  return Object.keys(metadata).length > 0 ? metadata : undefined;
}

/** Headers are bytes of Latin-1; people write UTF-8 or percent signs into them. */
function decoded(value: string): string {
  const utf8 = Buffer.from(value, 'latin1').toString('utf8');
  return utf8.includes('\ufffd') ? value : utf8;
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}

/** The rest of the address as the path of a file; percent signs are decoded once. */
export function filePath(raw: string): string {
  try {
    return decodeURIComponent(raw);
  } catch {
    throw restErrors.REQUEST_INVALID({ reason: 'the path is not properly percent-encoded' });
  }
}
