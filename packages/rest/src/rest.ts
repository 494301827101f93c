// The HTTP interface as one plugin for Fastify: routes from the tables, identification before anything is read, refusals with
// stable codes. Bodies of files are never parsed, never buffered and never limited here; the engine reads them as they come.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '@sluice/base';
import { driveRoutes } from './driveRoutes.js';
import { answerFor, restErrors } from './errors.js';
import { fileRoutes } from './fileRoutes.js';
import { nodeRoutes } from './nodeRoutes.js';
import { openApi } from './openapi.js';
import { checkHost, checkOrigin, type OriginOptions } from './origin.js';
import type { Call, RestParts, Route } from './route.js';
import { uploadRoutes } from './uploadRoutes.js';

export interface RestOptions extends RestParts {
  /** Origins of pages that may use this server. */
  origins?: string[];
  logger: Logger;
  version: string;
}

export const routes: readonly Route[] = [...uploadRoutes, ...fileRoutes, ...nodeRoutes, ...driveRoutes];

export async function rest(server: FastifyInstance, options: RestOptions): Promise<void> {
  const { logger } = options;
  const origin: OriginOptions = { isOpen: options.access.isOpen, origins: options.origins ?? [] };
  server.setErrorHandler((error, request, reply) => refuse(logger, error, request, reply));
  server.addHook('onRequest', async (request, reply) => {
    checkHost(origin, request);
    checkOrigin(origin, request, reply);
  });
  server.options('/*', async (_request, reply) => reply.code(204).send());
  const document = openApi(routes, options.version);
  server.get('/openapi.json', async () => document);

  const plain = routes.filter(({ raw }) => !raw);
  const bytes = routes.filter(({ raw }) => raw);
  for (const route of plain) declare(server, options, route);
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    for (const route of bytes) declare(scope, options, route);
  });
}

function declare(server: FastifyInstance, parts: RestOptions, route: Route): void {
  server.route({
    method: route.method,
    url: route.url,
    exposeHeadRoute: false,
    ...(route.body && { schema: { body: route.body } }),
    // Who asks is known before the body is looked at.
    onRequest: async (request) => {
      (request as Identified).principal = route.anonymous
        ? { tenant: '', rules: {} }
        : parts.access.identify(request.headers);
    },
    handler: (request, reply) =>
      route.handle({
        request,
        reply,
        parts,
        principal: (request as Identified).principal,
        params: request.params as Record<string, string>,
        query: request.query as Record<string, string | undefined>,
      }),
  });
}

type Identified = FastifyRequest & { principal: Call['principal'] };

export function refuse(logger: Logger, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, retryAfterS, body } = answerFor(error);
  if (status >= 500)
    logger.error({ err: error, method: request.method, url: request.url }, 'a request failed');
  if (retryAfterS !== undefined) reply.header('Retry-After', retryAfterS);
  // Nobody reads a body that was refused; the connection cannot be used again.
  if (!request.raw.readableEnded && request.method !== 'GET' && request.method !== 'HEAD')
    reply.header('Connection', 'close');
  void reply.code(status).type('application/json').removeHeader('Content-Length').send(body);
}

export function notFound(request: FastifyRequest, reply: FastifyReply): void {
  const { status, body } = answerFor(
    restErrors.ROUTE_NOT_FOUND({ method: request.method, path: request.url.split('?')[0]! }),
  );
  void reply.code(status).send(body);
}
