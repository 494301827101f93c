/**
 * Who may see the figures of this process and why a part of it does not work: one rule for all roles.
 *
 *     without keys   this machine only: the process listens on loopback or does not start, and answers loopback names only
 *     with keys      keys of the installation; probes learn which part fails, not why
 *
 * A process that only works on queues has no database, so it knows the keys of the configuration and says so: whoever has made keys with
 * POST /v1/keys would look for the mistake elsewhere. What recognises them is loaded when somebody asks: a worker starts twice as fast
 * without it.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isSluiceError, type Logger } from '@sluice/base';
import type { Config } from './config.js';
import { serverErrors } from './errors.js';

export interface Door {
  /** Throws for whoever may not see figures. */
  check(request: FastifyRequest): Promise<void>;
  isInsider(request: FastifyRequest): Promise<boolean>;
  /** The answer to whatever was thrown. */
  refuse(logger: Logger, error: unknown, request: FastifyRequest, reply: FastifyReply): void | Promise<void>;
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|::1)$/.test(host);
}

export function checkReach({ host }: Config, hasKeys: boolean): void {
  if (!hasKeys && !isLoopback(host)) throw serverErrors.OPEN_TO_ALL({ host });
}

/** Of a process without files. */
export function workerDoor(config: Config): Door {
  const { host, keys } = config;
  if (keys.length === 0 && !isLoopback(host)) throw serverErrors.WORKER_OPEN_TO_ALL({ host });
  const load = async () => {
    const [{ Access }, rest] = await Promise.all([import('@sluice/access'), import('@sluice/rest')]);
    // It recognises keys only: what it would have to sign or verify besides, nobody can use here.
    const secret = crypto.randomUUID();
    return { access: new Access({ keys, secret, mayBeOpen: isLoopback(host) }), ...rest };
  };
  let loading: ReturnType<typeof load> | undefined;
  const loaded = () => (loading ??= load());
  return {
    check: async (request) => {
      const { access, checkInsider } = await loaded();
      await checkInsider(access, request).catch((error: unknown) => {
        throw isSluiceError(error, 'UNAUTHENTICATED') ? serverErrors.UNAUTHENTICATED() : error;
      });
    },
    isInsider: async (request) => {
      const { access, isInsider } = await loaded();
      return isInsider(access, request);
    },
    refuse: async (logger, error, request, reply) => {
      const { refuse } = await loaded();
      refuse(logger, error, request, reply);
    },
  };
}
