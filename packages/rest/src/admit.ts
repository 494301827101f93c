// Before a body is read: who asks, whether the route is for them, whether a page really means it, and whether they ask too often.
import type { FastifyRequest } from 'fastify';
import { demand, nobody, sessionCookie, type Principal, type RateLimits } from '@sluice/access';
import { isSluiceError } from '@sluice/base';
import { addressOf } from './address.js';
import { checkCsrf } from './csrf.js';
import { singleValues } from './request.js';
import type { RestParts, Route } from './route.js';
import { ServiceKeys } from './serviceKeys.js';

export interface Admission extends RestParts {
  limits: RateLimits;
}

const noServiceKeys = new ServiceKeys([]);

export async function admit(parts: Admission, route: Route, request: FastifyRequest): Promise<Principal> {
  if (route.serviceKey) (parts.serviceKeys ?? noServiceKeys).check(request.headers['x-service-key']);
  if (route.needs === 'nobody') return nobody;
  const found = identified(parts, route, request);
  // Almost always it is known at once; a chunk need not wait for a turn of the event loop.
  const principal = found instanceof Promise ? await found : found;
  demand(route, principal);
  checkCsrf(parts.access, principal, request, parts);
  // Bytes of uploads are many requests by nature, and have a budget of their own. Whatever else an upload needs is counted.
  if (!route.raw) parts.limits.request(principal);
  return principal;
}

function identified({ access }: Admission, route: Route, request: FastifyRequest) {
  const link = route.links ? singleValues(request.query) : undefined;
  if (link?.['signature'] === undefined) return access.identify(request.headers);
  return access.openLink((request.params as { id: string }).id, link);
}

/** The refusal of whoever was not who they said: their own or, if that happens too often, that it does. */
export function refusalOf(parts: Admission, error: unknown, request: FastifyRequest): unknown {
  if (!isFailure(error) || !hasProof(request)) return error;
  try {
    parts.limits.failure(addressOf(request, parts.trustProxy));
    return error;
  } catch (tooMany) {
    return tooMany;
  }
}

const failures = ['UNAUTHENTICATED', 'SESSION_ENDED', 'TOKEN_INVALID', 'SERVICE_KEY_INVALID'];

function isFailure(error: unknown): boolean {
  return failures.some((code) => isSluiceError(error, code));
}

/** Whoever shows nothing guesses nothing: a page that finds out whether it is signed in is no attack. */
function hasProof({ headers, query, body }: FastifyRequest): boolean {
  return (
    headers['authorization'] !== undefined ||
    headers['x-sluice-key'] !== undefined ||
    headers['x-service-key'] !== undefined ||
    headers.cookie?.includes(sessionCookie) === true ||
    (query as Record<string, unknown>)['signature'] !== undefined ||
    body !== undefined
  );
}
