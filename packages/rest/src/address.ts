// Where a request comes from: the other end of the connection or, behind a proxy that is trusted, the address that the proxy saw.
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

export function addressOf(request: FastifyRequest, trustProxy: boolean | undefined): string {
  const forwarded = trustProxy ? request.headers['x-forwarded-for'] : undefined;
  // The last one was written by the proxy next to us; those before it by anybody.
  const last = (Array.isArray(forwarded) ? forwarded.at(-1) : forwarded)?.split(',').at(-1)?.trim() ?? '';
  const address = isIP(last) ? last : (request.raw.socket.remoteAddress ?? '');
  return address.replace(/^::ffff:/, '');
}
