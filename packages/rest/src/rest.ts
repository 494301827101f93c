// The HTTP interface as one plugin for Fastify: routes from the tables, identification before anything is read, refusals with
// stable codes. Bodies of files are never parsed, never buffered and never limited here; the engine reads them as they come.
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import { cookieOf, RateLimits, type RateOptions } from '@sluice/access';
import { isSluiceError, type Logger } from '@sluice/base';
import { admit, refusalOf, type Admission } from './admit.js';
import { audited } from './audited.js';
import { auditRoutes } from './auditRoutes.js';
import { answerEarly, answerExpectations, goOn, isUnread, refuseIfSlow } from './body.js';
import { docsHeaders, docsPage } from './docsPage.js';
import { clockRoutes } from './clockRoutes.js';
import { driveRoutes } from './driveRoutes.js';
import { answerFor, identified, restErrors } from './errors.js';
import { markAnswer } from './everyAnswer.js';
import { fileRoutes } from './fileRoutes.js';
import { keyRoutes } from './keyRoutes.js';
import { nodeRoutes } from './nodeRoutes.js';
import { openApi } from './openapi.js';
import { checkHost, checkOrigin, type OriginOptions } from './origin.js';
import { offeredValues, pathOf } from './request.js';
import { logRequests, type Admitted } from './requestLog.js';
import type { Call, RestParts, Route } from './route.js';
import { isSecure, sessionRoutes } from './sessionRoutes.js';
import { uploadRoutes } from './uploadRoutes.js';
import { verificationRoutes } from './verificationRoutes.js';

export interface RestOptions extends RestParts {
  /** Origins of pages that may use this server. */
  origins?: string[];
  /** How often keys may ask, and strangers may fail. */
  rates?: RateOptions;
  /** Without a byte for so long while we wait for it, JSON is too slow (30 s). */
  slowMs?: number;
  /** Routes of other parts, beside those for files. */
  more?: readonly Route[];
  logger: Logger;
  version: string;
}

export const routes: readonly Route[] = [
  ...uploadRoutes,
  ...fileRoutes,
  ...nodeRoutes,
  ...driveRoutes,
  ...clockRoutes,
  ...sessionRoutes,
  ...keyRoutes,
  ...auditRoutes,
  ...verificationRoutes,
];
const defaultSlowMs = 30_000;
const otherMethods: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export async function rest(server: FastifyInstance, options: RestOptions): Promise<void> {
  await serve(server, options, [...routes, ...(options.more ?? [])]);
}

/** Any table of routes, with everything that all of them have in common. */
export async function serve(
  server: FastifyInstance,
  options: RestOptions,
  all: readonly Route[],
): Promise<void> {
  const { logger } = options;
  const origin: OriginOptions = { access: options.access, origins: options.origins ?? [] };
  const parts: RestOptions & Admission = { ...options, limits: new RateLimits(options.rates) };
  answerExpectations(server.server);
  logRequests(server, logger, options.trustProxy);
  server.setErrorHandler((error, request, reply) => {
    if (isSluiceError(error, 'SESSION_ENDED'))
      reply.header('Set-Cookie', cookieOf('', 0, isSecure(request, options)));
    refuse(logger, refusalOf(parts, error, request), request, reply);
  });
  server.addHook('onRequest', async (request, reply) => {
    markAnswer(request, reply);
    checkHost(origin, request);
    checkOrigin(origin, request, reply);
  });
  server.options('/*', async (_request, reply) => reply.code(204).send());
  const document = openApi(all, options.version);
  server.get('/openapi.json', async () => document);
  const page = docsPage(document);
  server.get('/docs', async (_request, reply) => reply.headers(docsHeaders).send(page));

  takeEmptyJson(server);
  for (const route of all.filter(({ raw }) => !raw)) declare(server, parts, route);
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    for (const route of all.filter(({ raw }) => raw)) declare(scope, parts, route);
    // Also where there is nothing, pages get to read what the answer says.
    scope.route({
      method: otherMethods,
      url: '/v1/*',
      exposeHeadRoute: false,
      handler: async (request, reply) => refuseAddress(all, request, reply),
    });
  });
}

function declare(server: FastifyInstance, parts: RestOptions & Admission, route: Route): void {
  server.route({
    method: route.method,
    url: route.url,
    exposeHeadRoute: false,
    ...(route.body && { schema: { body: route.body } }),
    // Who asks is known before the body is looked at.
    onRequest: async (request: Admitted) => {
      request.declared = route;
      request.principal = await admit(parts, route, request);
    },
    ...(!route.raw && {
      preParsing: async (request) => {
        goOn(request.raw);
        refuseIfSlow(request, parts.slowMs ?? defaultSlowMs);
      },
    }),
    handler: (request: Admitted, reply) => {
      const call: Call = {
        request,
        reply,
        parts,
        principal: request.principal!,
        params: request.params as Record<string, string>,
        query: offeredValues(request.query, route.query),
        note: noteNothing,
      };
      return route.audit ? audited(parts, route, route.audit, call) : route.handle(call);
    },
  });
}

function noteNothing(): void {}

/** Many clients say "JSON" and then send nothing; where a body is needed its schema asks for it. */
function takeEmptyJson(server: FastifyInstance): void {
  const parse = server.getDefaultJsonParser('error', 'error');
  server.removeContentTypeParser('application/json');
  server.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) =>
    text === '' ? done(null, undefined) : void parse(request, text as string, done),
  );
}

export function refuse(logger: Logger, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, retryAfterS, body } = identified(answerFor(error), request.id);
  const isGone = reply.raw.destroyed || request.raw.socket.destroyed;
  // Without the query, which may hold the signature of a link.
  const fields = { err: error, requestId: request.id, method: request.method, path: pathOf(request) };
  if (isGone && wasCut(error)) logger.debug(fields, 'a client went away');
  else if (status >= 500) logger.error(fields, 'a request failed');
  if (retryAfterS !== undefined) reply.header('Retry-After', retryAfterS);
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer');
  if (!isGone && isUnread(request)) return answerEarly(request, reply, status, body);
  void reply.code(status).type('application/json').removeHeader('Content-Length').send(body);
}

/** How Node, the engine and the store report that a connection ended while they used it. */
const cuts = ['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED', 'BODY_TRUNCATED'];

/** The error of a body whose client is gone. The store may see only that it was closed, and know no cause. */
function wasCut(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: string; cause?: unknown };
  return cuts.includes(code ?? '') || (code === 'BODY_FAILED' && (cause === undefined || wasCut(cause)));
}

function refuseAddress(all: readonly Route[], request: FastifyRequest, reply: FastifyReply): never {
  const { method } = request;
  const path = pathOf(request);
  const allowed = all.filter((route) => shapeOf(route).test(path)).map((route) => route.method);
  if (allowed.length === 0) throw restErrors.ROUTE_NOT_FOUND({ method, path });
  const allow = [...new Set(allowed)].sort().join(', ');
  reply.header('Allow', allow);
  throw restErrors.METHOD_NOT_ALLOWED({ method, allow });
}

function shapeOf({ url }: Route): RegExp {
  return new RegExp(`^${url.replace(/:\w+/g, '[^/]+').replace(/\*$/, '.+')}$`);
}

export function notFound(request: FastifyRequest, reply: FastifyReply): void {
  const missing = restErrors.ROUTE_NOT_FOUND({ method: request.method, path: pathOf(request) });
  const { status, body } = identified(answerFor(missing), request.id);
  void markAnswer(request, reply).code(status).send(body);
}
