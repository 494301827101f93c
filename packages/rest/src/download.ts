// Serving a file: conditions first (RFC 9110), then a range or all of it, straight from the store.
//
// What people uploaded must never act in our name: no sniffing, no scripts, and whatever a browser could run is a download.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { ObjectStore } from '@sluice/store';
import { restErrors } from './errors.js';
import type { Call } from './route.js';

export interface ServedFile {
  name: string;
  size: number;
  etag: string;
  sha256: string | null;
  contentType: string | null;
  objectKey: string;
  updatedAt: Date;
}

/** Types that browsers show without running anything. */
const harmless =
  /^(image\/(?!svg)[^;]+|video\/[^;]+|audio\/[^;]+|text\/plain|application\/(pdf|json))\s*(;|$)/i;

const longestUnreadMs = 120_000;

/** What a download understands, for whoever reads the interface. */
export const downloadHeaders = {
  Range: 'bytes=<first>-<last>, one range.',
  'If-Range': 'An ETag or a date; of another file all of it is sent.',
  'If-None-Match': 'An ETag; 304 if it is still this file.',
  'If-Match': 'An ETag; 412 if it is another file.',
  'If-Modified-Since': 'A date; 304 if it is not newer.',
  'If-Unmodified-Since': 'A date; 412 if it is newer.',
};

export const dispositions = {
  disposition: {
    enum: ['inline', 'attachment'],
    description: 'Whether a browser shows or keeps it; what it could run is always kept.',
  },
};

export async function serveFile(
  store: ObjectStore,
  file: ServedFile,
  { request, reply, query, parts }: Call,
): Promise<FastifyReply> {
  const etag = quoted(file.etag);
  const isUnchanged = evaluate(request, etag, file.updatedAt);
  const range = isUnchanged ? undefined : rangeOf(request, etag, file);
  if (range === 'unsatisfiable') {
    reply.header('Content-Range', `bytes */${file.size}`);
    throw restErrors.RANGE_NOT_SATISFIABLE({ size: file.size });
  }
  const isWanted = !isUnchanged && request.method !== 'HEAD' && file.size > 0;
  // Before any header: if the object is gone, the answer is an error and not this file.
  const body = isWanted ? await store.get(file.objectKey, range ? { range } : {}) : undefined;
  describe(reply, file, etag, query['disposition']);
  if (isUnchanged) return reply.code(304).send();
  if (range) reply.code(206).header('Content-Range', `bytes ${range.first}-${range.last}/${file.size}`);
  reply.header('Content-Length', range ? range.last - range.first + 1 : file.size);
  if (!body) return reply.send(request.method === 'HEAD' ? undefined : '');
  const { stream } = body;
  // The client may have gone while the store was asked.
  if (reply.raw.destroyed) stream.destroy();
  reply.raw.once('close', () => stream.destroy());
  // Whoever reads nothing for so long keeps a connection to the store from others.
  reply.raw.setTimeout(parts.unreadMs ?? longestUnreadMs, () => reply.raw.destroy());
  return reply.send(stream);
}

function describe(
  reply: FastifyReply,
  file: ServedFile,
  etag: string,
  disposition: string | undefined,
): void {
  const type = file.contentType ?? 'application/octet-stream';
  const isAttachment = disposition === 'attachment' || !harmless.test(type);
  reply
    .header('ETag', etag)
    .header('Last-Modified', file.updatedAt.toUTCString())
    .header('Accept-Ranges', 'bytes')
    .header('Content-Type', type)
    .header('Content-Disposition', `${isAttachment ? 'attachment' : 'inline'}; ${filename(file.name)}`)
    .header('X-Content-Type-Options', 'nosniff')
    .header('Content-Security-Policy', "default-src 'none'; sandbox")
    .header('Cache-Control', 'private, no-cache');
  if (file.sha256 !== null)
    reply.header('Repr-Digest', `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`);
}

/** As headers spell it; some stores leave the quotation marks away. */
export function quoted(etag: string): string {
  return etag.startsWith('"') ? etag : `"${etag}"`;
}

/** True when the client has this file already; throws when it wants another one. */
function evaluate({ headers }: FastifyRequest, etag: string, modified: Date): boolean {
  const seconds = Math.floor(modified.getTime() / 1_000) * 1_000;
  if (headers['if-match'] !== undefined) {
    if (!names(headers['if-match'], etag, false)) throw restErrors.PRECONDITION_FAILED();
  } else if (headers['if-unmodified-since'] !== undefined) {
    if (seconds > Date.parse(headers['if-unmodified-since'])) throw restErrors.PRECONDITION_FAILED();
  }
  if (headers['if-none-match'] !== undefined) return names(headers['if-none-match'], etag, true);
  return headers['if-modified-since'] !== undefined && seconds <= Date.parse(headers['if-modified-since']);
}

/** Whether a list of ETags, or `*`, names this one. */
export function names(list: string, etag: string, weakly: boolean): boolean {
  if (list.trim() === '*') return true;
  return list.split(',').some((item) => {
    const tag = item.trim();
    return tag === etag || (weakly && tag === `W/${etag}`);
  });
}

/** The ETags of an If-Match without their quotation marks. A weak one matches nothing, and is left out. */
export function etagsOf(list: string): string[] {
  if (list.trim() === '*') return ['*'];
  return list.split(',').flatMap((item) => /^"([^"*]*)"$/.exec(item.trim())?.[1] ?? []);
}

type Range = { first: number; last: number };

/** One range, of GET only; several at once are answered with the whole file, as the RFC allows. */
function rangeOf(
  { headers, method }: FastifyRequest,
  etag: string,
  file: ServedFile,
): Range | 'unsatisfiable' | undefined {
  const { range } = headers;
  if (range === undefined || method !== 'GET') return undefined;
  const condition = headers['if-range'];
  if (condition !== undefined) {
    const date = Date.parse(String(condition));
    const holds = String(condition).startsWith('"')
      ? condition === etag
      : Math.floor(file.updatedAt.getTime() / 1_000) * 1_000 === date;
    if (!holds) return undefined;
  }
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(range) ?? [];
  if (from === undefined || (from === '' && to === '')) return undefined;
  if (from === '') {
    const length = Math.min(Number(to), file.size);
    return length === 0 ? 'unsatisfiable' : { first: file.size - length, last: file.size - 1 };
  }
  const first = Number(from);
  const last = to === '' ? file.size - 1 : Math.min(Number(to), file.size - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= file.size ? 'unsatisfiable' : { first, last };
}

/** For old clients in ASCII, for all others in full (RFC 6266). */
function filename(name: string): string {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%]/g, '_');
  const full = encodeURIComponent(name).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `filename="${ascii}"; filename*=UTF-8''${full}`;
}
