// Refusals of the HTTP interface itself, and the status with which every error of every part is answered. The code is the contract;
// the status is for programs that know nothing but HTTP.
import { defineErrors, isSluiceError } from '@sluice/base';

export const restErrors = defineErrors({
  UNAUTHENTICATED: {
    message: () =>
      'no valid key: send "Authorization: Bearer <key>" or "X-Sluice-Key: <key>" with a key, an upload token, or use a signed link',
    retryable: false,
  },
  FORBIDDEN: {
    message: (d: { reason: string }) => `this is not allowed: ${d.reason}`,
    retryable: false,
  },
  HOST_REFUSED: {
    message: (d: { host: string }) =>
      `requests for "${d.host}" are not answered: without keys only loopback names are; configure SLUICE_KEYS to serve others`,
    retryable: false,
  },
  ORIGIN_REFUSED: {
    message: (d: { origin: string }) =>
      `pages of "${d.origin}" may not use this server; add the origin to SLUICE_ORIGINS if they should`,
    retryable: false,
  },
  TYPE_REFUSED: {
    message: (d: { type: string; allowed: string }) =>
      `files of the type "${d.type}" are not taken; allowed are ${d.allowed}`,
    retryable: false,
  },
  REQUEST_INVALID: {
    message: (d: { reason: string }) => `the request makes no sense: ${d.reason}`,
    retryable: false,
  },
  LENGTH_REQUIRED: {
    message: () => 'a chunk needs a Content-Length; only whole files may come without one',
    retryable: false,
  },
  RANGE_INVALID: {
    message: (d: { header: string }) =>
      `"${d.header}" is no range of bytes; write "Content-Range: bytes <first>-<last>/<size or *>" with the length of the body`,
    retryable: false,
  },
  ROUTE_NOT_FOUND: {
    message: (d: { method: string; path: string }) => `there is no ${d.method} ${d.path}; see /openapi.json`,
    retryable: false,
  },
  TOKEN_INVALID: {
    message: (d: { reason: string }) => `the token or link is not valid: ${d.reason}; ask for a new one`,
    retryable: false,
  },
  PRECONDITION_FAILED: {
    message: () => 'the file is not the one that the condition names',
    retryable: false,
  },
});

const statuses: Record<string, number> = {
  UNAUTHENTICATED: 401,
  TOKEN_INVALID: 401,
  FORBIDDEN: 403,
  HOST_REFUSED: 403,
  ORIGIN_REFUSED: 403,
  QUOTA_EXCEEDED: 403,
  UPLOAD_NOT_FOUND: 404,
  NODE_NOT_FOUND: 404,
  DRIVE_NOT_FOUND: 404,
  OBJECT_NOT_FOUND: 404,
  ROUTE_NOT_FOUND: 404,
  BODY_SLOW: 408,
  UPLOAD_ENDED: 409,
  CHUNK_CONFLICT: 409,
  RANGE_OVERLAPS: 409,
  LAST_CONFLICT: 409,
  SIZE_CONFLICT: 409,
  DIGEST_CONFLICT: 409,
  WINDOW_EXCEEDED: 409,
  NODE_EXISTS: 409,
  DRIVE_EXISTS: 409,
  DRIVE_CONFLICT: 409,
  DRIVE_NOT_EMPTY: 409,
  FOLDER_NOT_EMPTY: 409,
  NODE_CONFLICT: 409,
  LENGTH_REQUIRED: 411,
  PRECONDITION_FAILED: 412,
  FILE_TOO_LARGE: 413,
  CHUNK_TOO_LARGE: 413,
  TYPE_REFUSED: 415,
  RANGE_NOT_SATISFIABLE: 416,
  IDEMPOTENCY_CONFLICT: 422,
  SHA256_MISMATCH: 422,
  UPLOAD_FAILED: 422,
  DIGEST_MISMATCH: 422,
  BUDGET_EXHAUSTED: 429,
  TOO_MANY_UPLOADS: 429,
  STORE_FULL: 507,
};

export interface Answer {
  status: number;
  /** Seconds; set where coming back later helps. */
  retryAfterS?: number;
  body: { error: { code: string; message: string; retryable: boolean; details?: Record<string, unknown> } };
}

/** What the client gets to see: never a stack, never a secret, always what to do. */
export function answerFor(error: unknown): Answer {
  if (!isSluiceError(error)) {
    const { statusCode, message } = error as { statusCode?: number; message?: string };
    // Fastify's own refusals: malformed JSON, a body that is too large, a schema that does not hold.
    if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
      return refusal(statusCode, 'REQUEST_INVALID', String(message), false);
    return refusal(500, 'INTERNAL', 'something went wrong here; the log of the server says what', true);
  }
  const { code, message, retryable, details } = error;
  const known = statuses[code];
  const status = known ?? (retryable ? 503 : 400);
  const answer = refusal(status, code, message, retryable, details);
  if (status === 429 || status === 503 || status === 507)
    answer.retryAfterS = Number(details?.['retryAfterS'] ?? (status === 429 ? 2 : 5));
  return answer;
}

/** Details that help a program; the rest is in the message. */
const shown = [
  'sendFirst',
  'retryAfterS',
  'limit',
  'size',
  'state',
  'wanted',
  'declared',
  'computed',
  'code',
];

function refusal(
  status: number,
  code: string,
  message: string,
  retryable: boolean,
  details: Record<string, unknown> = {},
): Answer {
  const open = Object.fromEntries(Object.entries(details).filter(([name]) => shown.includes(name)));
  const extra = Object.keys(open).length > 0 && { details: open };
  return { status, body: { error: { code, message, retryable, ...extra } } };
}
