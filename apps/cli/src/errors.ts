// What the command line itself refuses. Errors of the server keep the server's code; they become an ApiError.
import { defineErrors, SluiceError } from '@sluice/base';

export const cliErrors = defineErrors({
  USAGE: { message: (d: { reason: string }) => d.reason, retryable: false },
  NOT_CONFIRMED: {
    message: (d: { what: string }) => `nothing was changed: ${d.what}`,
    retryable: false,
  },
  /** A search that found nothing, in a sentence. */
  NONE: { message: (d: { what: string }) => d.what, retryable: false },
  NOT_FOUND: {
    message: (d: { what: string; make?: string }) =>
      `${d.what} was not found${d.make === undefined ? '' : `; make it with: ${d.make}`}`,
    retryable: false,
  },
  SERVER_AWAY: {
    message: (d: { url: string; reason: string }) =>
      `no answer from ${d.url} (${d.reason}); is the server running? Try: sluice doctor`,
    retryable: true,
  },
  NO_SLUICE: {
    message: (d: { url: string }) => `what answers at ${d.url} is not a Sluice server; check --url`,
    retryable: false,
  },
  FILE_PROBLEM: {
    message: (d: { path: string; reason: string }) => `${d.path}: ${d.reason}`,
    retryable: false,
  },
  SOME_FAILED: {
    message: (d: { failed: number; total: number }) => `${d.failed} of ${d.total} failed`,
    retryable: false,
  },
  UNHEALTHY: { message: (d: { what: string }) => d.what, retryable: false },
});

/** An answer of the server that is a refusal. */
export class ApiError extends SluiceError {
  static {
    this.prototype.name = 'ApiError';
  }

  readonly status: number;
  readonly requestId: string | undefined;

  constructor(
    code: string,
    message: string,
    facts: {
      status: number;
      retryable: boolean;
      details?: Record<string, unknown>;
      requestId?: string | undefined;
    },
  ) {
    super(code, message, { retryable: facts.retryable, ...(facts.details && { details: facts.details }) });
    this.status = facts.status;
    this.requestId = facts.requestId;
  }
}
