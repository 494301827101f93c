/** Why PostgreSQL cannot run on this machine, each with what to do about it. */
import { defineErrors } from '@sluice/base';

export const postgresErrors = defineErrors({
  NO_POSTGRES: {
    message: (d: { name: string }) =>
      `the PostgreSQL for this system (${d.name}) is not installed; run npm install with optional dependencies, ` +
      'or name the URL of a server',
    retryable: false,
  },
  NO_POSTGRES_USER: {
    message: (d: { names: string }) =>
      `PostgreSQL cannot run as root, and there is neither a user ${d.names}; make one, start as somebody else, ` +
      'or name the URL of a server',
    retryable: false,
  },
});
