// Signing in: a browser shows a key once and has a cookie from then on, which no script can read.
import type { TLSSocket } from 'node:tls';
import type { FastifyRequest } from 'fastify';
import { cookieOf, type Access, type Principal } from '@sluice/access';
import { checkSameOrigin } from './csrf.js';
import type { LocationOptions } from './location.js';
import type { Route } from './route.js';

const longestKey = 1_024;

export const sessionRoutes: Route[] = [
  {
    method: 'POST',
    url: '/v1/session',
    needs: 'nobody',
    of: 'tenant',
    // Nothing is changed but what the browser has; the log of requests tells who signed in.
    audit: false,
    summary: 'Sign in: exchange a key for a cookie.',
    answers: '201 {tenant, installation, role, key, via, csrf, expiresAt}, and the cookie sluice_session',
    body: {
      type: 'object',
      required: ['key'],
      additionalProperties: false,
      properties: { key: { type: 'string', minLength: 1, maxLength: longestKey } },
    },
    handle: async ({ request, reply, parts }) => {
      // A page of somebody else must not sign a visitor in as somebody else.
      if (request.headers['sec-fetch-site'] !== undefined) checkSameOrigin(request, parts);
      const { key } = request.body as { key: string };
      const { principal, session, expiresAt } = await parts.access.signIn(key);
      const maxAgeS = Math.floor((expiresAt.getTime() - Date.now()) / 1_000);
      reply.code(201).header('Cache-Control', 'no-store');
      reply.header('Set-Cookie', cookieOf(session, maxAgeS, isSecure(request, parts)));
      return sessionView(parts.access, principal);
    },
  },
  {
    method: 'GET',
    url: '/v1/session',
    needs: 'viewer',
    of: 'tenant',
    summary: 'Who I am, and what a page must send along as X-Sluice-CSRF to change anything.',
    answers: '200 {tenant, installation, role, key, via, csrf, expiresAt}',
    handle: async ({ reply, principal, parts }) => {
      reply.header('Cache-Control', 'no-store');
      return sessionView(parts.access, principal);
    },
  },
  {
    method: 'DELETE',
    url: '/v1/session',
    needs: 'viewer',
    of: 'tenant',
    // As signing in: the log of requests tells it. Viewers cannot fill the audit log.
    audit: false,
    summary: 'Sign out: the session ends everywhere within five seconds, copies of the cookie with it.',
    answers: '200 {ended}',
    handle: async ({ request, reply, principal, parts }) => {
      const { session } = principal;
      if (session) {
        await parts.records.keys.endSession(session.id, session.expiresAt);
        await parts.ring?.changed();
      }
      reply.header('Set-Cookie', cookieOf('', 0, isSecure(request, parts)));
      return { ended: session !== undefined };
    },
  },
];

function sessionView(access: Access, principal: Principal): object {
  const { tenant, installation, role, key = null, via, session } = principal;
  return {
    ...{ tenant, installation, role, key, via },
    csrf: session ? access.csrfOf(session) : null,
    expiresAt: session?.expiresAt.toISOString() ?? null,
  };
}

/** Whether the browser talks to us over TLS: itself, or with a proxy that is ours. */
export function isSecure(request: FastifyRequest, { publicUrl, trustProxy }: LocationOptions): boolean {
  if (publicUrl?.startsWith('https:') || (request.raw.socket as TLSSocket).encrypted) return true;
  const proto = trustProxy ? request.headers['x-forwarded-proto'] : undefined;
  return typeof proto === 'string' && proto.split(',')[0]!.trim() === 'https';
}
