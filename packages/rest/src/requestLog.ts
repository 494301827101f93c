// One line for each request that somebody may ask about later: changes, and refusals for who asked. All others only when debugging, and
// at little cost. Never the query, which may hold the signature of a link, and never a header.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Principal } from '@sluice/access';
import { writes, type Logger } from '@sluice/base';
import { addressOf } from './address.js';
import { pathOf } from './request.js';
import type { Route } from './route.js';

export type Admitted = FastifyRequest & { principal?: Principal; declared?: Route };

const refusals = new Set([401, 403, 429]);

export function logRequests(server: FastifyInstance, logger: Logger, trustProxy: boolean | undefined): void {
  const isDebugging = writes(logger, 'debug');
  server.addHook('onResponse', (request: Admitted, reply, done) => {
    done();
    const { principal, declared } = request;
    const status = reply.statusCode;
    const isRemarkable = refusals.has(status) || Boolean(declared?.audit);
    if (!isRemarkable && !isDebugging) return;
    const fields = {
      requestId: request.id,
      method: request.method,
      path: pathOf(request),
      status,
      ms: Math.round(reply.elapsedTime),
      address: addressOf(request, trustProxy),
      ...(principal && { tenant: principal.tenant, via: principal.via, key: principal.key?.id }),
      ...(declared?.audit && { action: declared.audit }),
    };
    if (isRemarkable) logger.info(fields, 'request');
    else logger.debug(fields, 'request');
  });
}
