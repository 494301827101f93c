// Refusals of the HTTP interface itself, and the status with which every error of every part is answered. The code is the contract;
// the status is for programs that know nothing but HTTP.
import { defineErrors, isSluiceError, type SluiceError } from '@sluice/base';

export const restErrors = defineErrors({
  SERVICE_KEY_INVALID: {
    message: () =>
      'this address is for services: send "X-Service-Key: <key>" with one of the keys in SLUICE_SERVICE_KEYS',
    retryable: false,
  },
  HOST_REFUSED: {
    message: (d: { host: string }) =>
      `requests for "${d.host}" are not answered: without keys only loopback names are; configure SLUICE_KEYS to serve others`,
    retryable: false,
  },
  PROXY_REFUSED: {
    message: () =>
      'behind a proxy anybody may be asking, and without keys everybody would be an admin; make a key first (POST /v1/keys from this machine), or set SLUICE_KEYS',
    retryable: false,
  },
  ORIGIN_REFUSED: {
    message: (d: { origin: string }) =>
      `pages of "${d.origin}" may not use this server; add the origin to SLUICE_ORIGINS if they should`,
    retryable: false,
  },
  REQUEST_INVALID: {
    message: (d: { reason: string }) => `the request makes no sense: ${d.reason}`,
    retryable: false,
  },
  REQUEST_TOO_LARGE: {
    message: (d: { what: string }) =>
      `${d.what}; bytes of files belong to PUT, where they are not limited so`,
    retryable: false,
  },
  BODY_NOT_JSON: {
    message: () => 'this takes JSON; send "Content-Type: application/json"',
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
  RANGE_NOT_SATISFIABLE: {
    message: (d: { size: number }) => `the range lies outside of the file, which has ${d.size} bytes`,
    retryable: false,
  },
  ROUTE_NOT_FOUND: {
    message: (d: { method: string; path: string }) => `there is no ${d.method} ${d.path}; see /openapi.json`,
    retryable: false,
  },
  METHOD_NOT_ALLOWED: {
    message: (d: { method: string; allow: string }) =>
      `${d.method} means nothing here; allowed are ${d.allow}; see /openapi.json`,
    retryable: false,
  },
  TOO_MANY_STREAMS: {
    message: (d: { limit: number; of: string }) =>
      `${d.limit} live streams of this ${d.of} are open already; close some`,
    retryable: true,
  },
  PRECONDITION_FAILED: {
    message: () => 'the file is not as the condition of the request demands; read it again and decide',
    retryable: false,
  },
});

/** Codes of all parts. Those that are not here come from hooks: 400, or 503 when trying again helps. */
const statuses = new Map<string, number>(
  Object.entries({
    REQUEST_INVALID: 400,
    SCOPE_INVALID: 400,
    TENANT_INVALID: 400,
    RANGE_INVALID: 400,
    BODY_TRUNCATED: 400,
    DIGEST_MISMATCH: 400,
    FIRST_KEY: 400,
    UNAUTHENTICATED: 401,
    SESSION_ENDED: 401,
    SERVICE_KEY_INVALID: 401,
    TOKEN_INVALID: 401,
    TOKEN_EXPIRED: 401,
    FORBIDDEN: 403,
    CSRF_REFUSED: 403,
    HOST_REFUSED: 403,
    PROXY_REFUSED: 403,
    ORIGIN_REFUSED: 403,
    QUOTA_EXCEEDED: 403,
    QUEUE_RESERVED: 403,
    UPLOAD_NOT_FOUND: 404,
    NODE_NOT_FOUND: 404,
    DRIVE_NOT_FOUND: 404,
    OBJECT_NOT_FOUND: 404,
    ROUTE_NOT_FOUND: 404,
    KEY_NOT_FOUND: 404,
    UNKNOWN_QUEUE: 404,
    OPERATION_QUEUE_UNKNOWN: 404,
    JOB_NOT_FOUND: 404,
    UNKNOWN_JOB: 404,
    LETTER_NOT_FOUND: 404,
    WORKER_NOT_FOUND: 404,
    SCHEDULE_NOT_FOUND: 404,
    OPERATION_NOT_FOUND: 404,
    FAMILY_NOT_FOUND: 404,
    VALUE_NOT_FOUND: 404,
    TRACE_NOT_FOUND: 404,
    WEBHOOK_NOT_FOUND: 404,
    METHOD_NOT_ALLOWED: 405,
    BODY_SLOW: 408,
    UPLOAD_ENDED: 409,
    UPLOAD_FENCED: 409,
    CHUNK_CONFLICT: 409,
    RANGE_OVERLAPS: 409,
    LAST_CONFLICT: 409,
    SIZE_CONFLICT: 409,
    DIGEST_CONFLICT: 409,
    DECLARED_TOO_LATE: 409,
    WINDOW_EXCEEDED: 409,
    NODE_EXISTS: 409,
    NOT_A_FOLDER: 409,
    MOVE_INTO_ITSELF: 409,
    DRIVE_CONFLICT: 409,
    DRIVE_NOT_EMPTY: 409,
    FOLDER_NOT_EMPTY: 409,
    FOLDER_TOO_LARGE: 409,
    RESULT_CONFLICT: 409,
    TOO_MANY_WEBHOOKS: 409,
    IDEMPOTENCY_IN_PROGRESS: 409,
    KEY_ENDED: 409,
    LAST_ADMIN: 409,
    TOO_MANY_KEYS: 409,
    JOB_STATE: 409,
    OPERATION_STATE: 409,
    UNIQUE_KEY_TAKEN: 409,
    EDIT_CONFLICT: 409,
    LENGTH_REQUIRED: 411,
    PRECONDITION_FAILED: 412,
    FILE_TOO_LARGE: 413,
    CHUNK_TOO_LARGE: 413,
    REQUEST_TOO_LARGE: 413,
    PAYLOAD_TOO_LARGE: 413,
    TYPE_REFUSED: 415,
    BODY_NOT_JSON: 415,
    RANGE_NOT_SATISFIABLE: 416,
    IDEMPOTENCY_CONFLICT: 422,
    SHA256_MISMATCH: 422,
    UPLOAD_FAILED: 422,
    BUDGET_EXHAUSTED: 429,
    TOO_MANY_UPLOADS: 429,
    TOO_MANY_REQUESTS: 429,
    TOO_MANY_STREAMS: 429,
    STORE_FULL: 507,
    QUEUE_FULL: 507,
    // Ours to repair: the client can do nothing about them.
    RECORDS_REFUSED: 500,
    SCHEMA_TOO_NEW: 500,
    REDIS_REFUSED: 500,
    REDIS_TARGET: 500,
    STORE_REFUSED: 500,
    STORE_CORRUPT: 500,
    KEY_INVALID: 500,
    INPUT_INVALID: 500,
    PARTS_REFUSED: 500,
    RECORDS_CLOSED: 503,
    REDIS_CLOSED: 503,
    STORE_CLOSED: 503,
  }),
);

/** What clients may rely on: every code that has a status of its own, by status. Those of 500 are nobody's to handle. */
export function statusesOfCodes(): [code: string, status: number][] {
  const known = [...statuses].filter(([, status]) => status !== 500);
  return known.sort(
    ([one, status], [other, otherStatus]) => status - otherStatus || one.localeCompare(other),
  );
}

/** Errors of the parts behind us name machines, statements and keys: for the log, not for the client. */
const inside = /^(RECORDS|REDIS|STORE|SCHEMA|OBJECT|MULTIPART|PARTS|KEY|INPUT|LEASE)_/;
const usualWaitS = 5;
const shortWaitS = 2;

export interface Answer {
  status: number;
  /** Seconds; set where coming back later helps. */
  retryAfterS?: number;
  body: {
    error: {
      code: string;
      message: string;
      retryable: boolean;
      details?: Record<string, unknown>;
      requestId?: string;
    };
  };
}

/** The answer with the id under which the log knows the request. */
export function identified(answer: Answer, requestId: string): Answer {
  return { ...answer, body: { error: { ...answer.body.error, requestId } } };
}

/** What the client gets to see: never a stack, never a secret, always what to do. */
export function answerFor(error: unknown): Answer {
  if (!isSluiceError(error)) return answerForeign(error);
  // The store reports that the body failed; why it did is what the client should hear.
  if (error.code === 'BODY_FAILED' && isSluiceError(error.cause)) return answerFor(error.cause);
  const { code, retryable, details } = error;
  const status = statuses.get(code) ?? (retryable ? 503 : 400);
  const answer = refusal(status, code, messageOf(error, status), retryable, details);
  const isBusy = status === 429 || code === 'IDEMPOTENCY_IN_PROGRESS';
  if (isBusy || status === 503 || status === 507)
    answer.retryAfterS = secondsOf(details?.['retryAfterS']) ?? (isBusy ? shortWaitS : usualWaitS);
  return answer;
}

function messageOf({ code, message, retryable }: SluiceError, status: number): string {
  if (status < 500 || !inside.test(code)) return message;
  return retryable || status === 503
    ? 'a part of this service is not available now; try again later'
    : 'something went wrong here; the log of the server says what';
}

/** Refusals of Fastify (malformed JSON, a schema that does not hold), of a hook with a `statusCode`, and surprises. */
function answerForeign(error: unknown): Answer {
  const { statusCode, message = '', code, validation } = (error ?? {}) as Partial<Record<string, unknown>>;
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return answerFor(restErrors.REQUEST_TOO_LARGE({ what: 'the body has too many bytes of JSON' }));
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return answerFor(restErrors.BODY_NOT_JSON());
  const isRefusal = Number.isInteger(statusCode) && Number(statusCode) >= 400 && Number(statusCode) < 500;
  if (isRefusal)
    return refusal(Number(statusCode), 'REQUEST_INVALID', String(message), false, wrongField(validation));
  return refusal(500, 'INTERNAL', 'something went wrong here; the log of the server says what', true);
}

/** The field that a schema objects to, as `place.name`. */
function wrongField(validation: unknown): { field: string } | undefined {
  if (!Array.isArray(validation) || validation.length === 0) return undefined;
  const { instancePath = '', params = {} } = validation[0] as {
    instancePath?: string;
    params?: { missingProperty?: string; additionalProperty?: string };
  };
  const names = instancePath.split('/').slice(1);
  const field = [...names, params.missingProperty ?? params.additionalProperty].filter(Boolean).join('.');
  return field === '' ? undefined : { field: field.slice(0, 80) };
}

function secondsOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.ceil(value) : undefined;
}

/** Details that help a program; the rest is in the message. */
const shown = new Set([
  'field',
  'sendFirst',
  'retryAfterS',
  'limit',
  'size',
  'state',
  'wanted',
  'declared',
  'computed',
  'code',
]);

function refusal(
  status: number,
  code: string,
  message: string,
  retryable: boolean,
  details: Record<string, unknown> = {},
): Answer {
  const open = Object.fromEntries(Object.entries(details).filter(([name]) => shown.has(name)));
  const extra = Object.keys(open).length > 0 && { details: open };
  return { status, body: { error: { code, message, retryable, ...extra } } };
}
