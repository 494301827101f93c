// Browsers: which pages may use this server, and what they may see.
//
// Without keys the server answers only requests for loopback names: a page somewhere that makes its own name point to this machine
// (DNS rebinding) still sends its own name as Host. A page's Origin must be loopback, too, or be allowed by configuration. What a proxy
// on this machine passes on looks as if it came from here, and may come from anywhere: it is not answered either.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Access } from '@sluice/access';
import { restErrors } from './errors.js';

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/i;
/** What proxies say of whom they speak for. */
const forwarding = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
];
const exposed = [
  'Location',
  'ETag',
  'Content-Length',
  'Content-Range',
  'Accept-Ranges',
  'Retry-After',
  'Content-Digest',
  'Repr-Digest',
  'Last-Modified',
  'X-Request-Id',
].join(', ');
const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const preflightSeconds = '7200';

export interface OriginOptions {
  /** Whether there are keys; the first one may be made while we run. */
  access: Pick<Access, 'isOpen'>;
  /** Origins that may use this server; `*` for all. */
  origins: string[];
}

export function checkHost({ access }: OriginOptions, request: FastifyRequest): void {
  if (!access.isOpen) return;
  const host = request.headers.host ?? '';
  const name = host.replace(/:\d+$/, '');
  if (!loopback.test(name)) throw restErrors.HOST_REFUSED({ host });
  if (forwarding.some((header) => request.headers[header] !== undefined)) throw restErrors.PROXY_REFUSED();
}

/** Sets the CORS headers, and refuses pages that may not be here. */
export function checkOrigin(
  { access, origins }: OriginOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { origin } = request.headers;
  const { isOpen } = access;
  reply.header('Vary', 'Origin');
  if (origin === undefined) return;
  const isAllowed = origins.includes('*') || origins.includes(origin) || (isOpen && isLoopback(origin));
  if (!isAllowed) {
    // With keys, a page without permission is merely not told anything; without keys it must not act either.
    if (isOpen || request.method === 'OPTIONS') throw restErrors.ORIGIN_REFUSED({ origin });
    return;
  }
  reply.header('Access-Control-Allow-Origin', origin).header('Access-Control-Expose-Headers', exposed);
  if (request.method !== 'OPTIONS') return;
  const asked = request.headers['access-control-request-headers'];
  reply.header('Access-Control-Allow-Methods', methods).header('Access-Control-Max-Age', preflightSeconds);
  if (asked !== undefined && /^[\w-]+(\s*,\s*[\w-]+)*$/.test(asked))
    reply.header('Access-Control-Allow-Headers', asked);
}

function isLoopback(origin: string): boolean {
  try {
    return loopback.test(new URL(origin).hostname);
  } catch {
    return false;
  }
}
