// Pages with a session. A browser sends the cookie with every request to us, also with one that a page of somebody else made. Two things
// show that it was ours: the page could read its token (GET /v1/session), and the browser says where the request comes from
// (Sec-Fetch-Site; browsers leave it away on plain HTTP, and then Origin must be this server).
import type { FastifyRequest } from 'fastify';
import { accessErrors, csrfHeader, type Access, type Principal } from '@sluice/access';
import type { LocationOptions } from './location.js';

const safe = new Set(['GET', 'HEAD', 'OPTIONS']);

export function checkCsrf(
  access: Access,
  principal: Principal,
  request: FastifyRequest,
  location: LocationOptions,
): void {
  if (!principal.session || safe.has(request.method)) return;
  checkSameOrigin(request, location);
  const token = request.headers[csrfHeader];
  if (typeof token !== 'string' || !access.isCsrf(principal.session, token))
    throw accessErrors.CSRF_REFUSED({ reason: 'send the token as X-Sluice-CSRF' });
}

export function checkSameOrigin(request: FastifyRequest, location: LocationOptions): void {
  const site = request.headers['sec-fetch-site'];
  const isOurs = site === undefined ? isOwnOrigin(request, location) : site === 'same-origin';
  if (!isOurs) throw accessErrors.CSRF_REFUSED({ reason: 'the request comes from elsewhere' });
}

function isOwnOrigin({ headers }: FastifyRequest, { publicUrl, trustProxy }: LocationOptions): boolean {
  const { origin } = headers;
  if (origin === undefined || !URL.canParse(origin)) return false;
  if (publicUrl !== undefined && new URL(publicUrl).origin === origin) return true;
  const forwarded = trustProxy ? headers['x-forwarded-host'] : undefined;
  const host = typeof forwarded === 'string' ? forwarded.split(',')[0]!.trim() : headers.host;
  return host !== undefined && new URL(origin).host === host.toLowerCase();
}
