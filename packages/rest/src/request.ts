// Reading requests: numbers, ranges, digests and metadata come as text that somebody else wrote.
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { checkName, checkPath } from '@sluice/records';
import { parseDigest, uploadErrors, type Digest } from '@sluice/upload';
import { restErrors } from './errors.js';
import type { JsonSchema } from './route.js';

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
  const fields = ['repr-digest', 'content-digest'].flatMap((name) => text(headers[name]) ?? []);
  const item = fields.flatMap((field) => field.split(',')).find((each) => /^\s*sha-256\s*=/.test(each));
  // What is declared is checked; a promise that nobody looks at would be worse than none.
  if (item === undefined && fields.length > 0)
    throw restErrors.REQUEST_INVALID({
      reason: 'a whole file is declared with "Repr-Digest: sha-256=:<base64>:"',
    });
  return parseDigest(item)?.value.toString('hex');
}

const metaPrefix = 'x-sluice-meta-';

export function metadataOf(headers: IncomingHttpHeaders): Record<string, string> | undefined {
  const metadata: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith(metaPrefix) && value !== undefined)
      metadata[name.slice(metaPrefix.length)] = decoded(text(value)!);
  return Object.keys(metadata).length > 0 ? metadata : undefined;
}

/** Headers are bytes that Node shows as Latin-1; people write UTF-8 into them. */
function decoded(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(value, 'latin1'));
  } catch {
    return value;
  }
}

function text(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value;
}

/** The address without its query. */
export function pathOf({ raw }: FastifyRequest): string {
  return raw.url!.split(/[?#]/, 1)[0]!;
}

/**
 * Drive and path of `/v1/files/{drive}/{path}`, from the address as it was sent. Each name is decoded once, by itself: a slash that
 * was written as %2F is part of a name, and no name has one.
 */
export function filePlace(request: FastifyRequest): { drive: string; path: string } {
  const [drive, ...names] = pathOf(request).split('/').slice(3).map(decodedName);
  return { drive: checkName(drive!), path: checkPath(names.join('/')) };
}

function decodedName(text: string): string {
  let name: string;
  try {
    name = decodeURIComponent(text);
  } catch {
    throw restErrors.REQUEST_INVALID({ reason: 'the path is not properly percent-encoded' });
  }
  if (name.includes('/'))
    throw restErrors.REQUEST_INVALID({ reason: 'a name cannot contain "/", also not as %2F' });
  return name;
}

/** The query with one value for each name; twice the same name could mean anything. */
export function singleValues(query: unknown): Record<string, string | undefined> {
  const twice = Object.entries(query as object).find(([, value]) => typeof value !== 'string');
  if (twice)
    throw restErrors.REQUEST_INVALID({ reason: `"${twice[0].slice(0, 40)}" is in the query more than once` });
  return query as Record<string, string>;
}

/** Where a route names the values of something, another one would mean nothing, silently. */
export function offeredValues(
  query: unknown,
  offered: Record<string, JsonSchema> = {},
): Record<string, string | undefined> {
  const values = singleValues(query);
  for (const [name, schema] of Object.entries(offered)) {
    const value = values[name];
    const choices = schema['enum'] as string[] | undefined;
    if (value !== undefined && choices && !choices.includes(value)) {
      const reason = `"${name}" in the query is one of ${choices.join(', ')}, not "${value.slice(0, 40)}"`;
      throw restErrors.REQUEST_INVALID({ reason });
    }
  }
  return values;
}
