// Who may see how the server itself is: figures, and why a part does not work. Everybody on this machine while there are no keys; then
// whoever has a key of the installation. A loopback address is no proof: a proxy on this machine has one, too.
import type { FastifyRequest } from 'fastify';
import { demand, type Access } from '@sluice/access';
import { isSluiceError } from '@sluice/base';
import { checkHost } from './origin.js';

const needed = { needs: 'viewer', of: 'installation' } as const;

/** Throws if the request is none for this server, or its key is not enough. */
export async function checkInsider(access: Access, request: FastifyRequest): Promise<void> {
  checkHost({ access, origins: [] }, request);
  demand(needed, await access.identify(request.headers));
}

export async function isInsider(access: Access, request: FastifyRequest): Promise<boolean> {
  try {
    await checkInsider(access, request);
    return true;
  } catch (error) {
    if (isSluiceError(error)) return false;
    throw error;
  }
}
