// Everything for which somebody is refused before anything is done.
import { defineErrors } from '@sluice/base';

export const accessErrors = defineErrors({
  UNAUTHENTICATED: {
    message: () =>
      'no valid key: send "Authorization: Bearer <key>" or "X-Sluice-Key: <key>" with a key, an upload token, or use a signed link',
    retryable: false,
  },
  SESSION_ENDED: {
    message: () => 'the session has ended; sign in again',
    retryable: false,
  },
  CSRF_REFUSED: {
    message: (d: { reason: string }) =>
      `a page with a session must show that it is ours: ${d.reason}; see GET /v1/session`,
    retryable: false,
  },
  KEYS_UNAVAILABLE: {
    message: () => 'keys cannot be checked now; try again later',
    retryable: true,
  },
  TOO_MANY_REQUESTS: {
    message: (d: { what: string; retryAfterS: number }) => `${d.what}; try again in ${d.retryAfterS} s`,
    retryable: true,
  },
  FORBIDDEN: {
    message: (d: { reason: string }) => `this is not allowed: ${d.reason}`,
    retryable: false,
  },
  TOKEN_INVALID: {
    message: (d: { reason: string }) => `the token or link is not valid: ${d.reason}; ask for a new one`,
    retryable: false,
  },
  /** Not a wrong one: nobody guesses what was right once. */
  TOKEN_EXPIRED: {
    message: () => 'the token or link has expired; ask for a new one',
    retryable: false,
  },
  TYPE_REFUSED: {
    message: (d: { type: string; allowed: string }) =>
      `files of the type "${d.type}" are not taken; allowed are ${d.allowed}`,
    retryable: false,
  },
  TENANT_INVALID: {
    message: (d: { tenant: string }) =>
      `"${d.tenant}" is no name of a tenant: letters, digits, ".", "_" and "-", at most 100`,
    retryable: false,
  },
  SCOPE_INVALID: {
    message: (d: { reason: string }) => `a token cannot be made so: ${d.reason}`,
    retryable: false,
  },
});
