// What S3 servers say, translated into the errors of this package. Servers agree on the names of the common errors; the rest
// goes by status.
//
// The SDK's own error is not kept as a cause: it holds the fields of the server's reply, which for a bad signature contain the
// access key and the text that was signed.
import { storeErrors, type StoreError } from './errors.js';

export interface CallContext {
  operation: string;
  key: string;
  /** Of a multipart upload. */
  id?: string | undefined;
  ifMatch?: string | undefined;
  range?: { first: number; last?: number | undefined } | undefined;
}

const MAX_REASON_CHARACTERS = 300;
const BUSY = new Set([
  'SlowDown',
  'ServiceUnavailable',
  'Throttling',
  'ThrottlingException',
  'TooManyRequests',
]);
const FULL = /NoSpace|QuotaExceeded|StorageFull|InsufficientStorage|EntityTooLargeForDisk/i;
const WRONG_PARTS = new Set(['InvalidPart', 'InvalidPartOrder', 'EntityTooSmall']);
const WRONG_BYTES = new Set(['BadDigest', 'InvalidDigest', 'XAmzContentChecksumMismatch']);
/** Refusals by status, but of a request that got hurt on its way. */
const PASSING = new Set(['RequestTimeout', 'IncompleteBody', 'InternalError', 'OperationAborted']);
/** The connection was never there, so nothing was done. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

interface SdkError {
  name: string;
  message: string;
  code?: unknown;
  $metadata?: { httpStatusCode?: number; requestId?: string; clockSkewCorrected?: boolean };
}

export function toStoreError(error: unknown, context: CallContext): StoreError {
  const known = error instanceof Error ? (error as SdkError) : { name: 'Error', message: String(error) };
  const { httpStatusCode: status, requestId } = known.$metadata ?? {};
  const reason = describe(known, status);
  const { operation, key } = context;
  const failure = { operation, key, reason, ...(status && { status }), ...(requestId && { requestId }) };
  if (status === undefined) return withoutReply(known, failure);
  if (isAboutTime(known, status)) return storeErrors.STORE_UNAVAILABLE({ ...failure, outcomeUnknown: false });
  return (
    byName(known.name, status, context, failure) ??
    (status >= 500 || status < 400
      ? storeErrors.STORE_UNAVAILABLE({ ...failure, outcomeUnknown: true })
      : storeErrors.STORE_REFUSED(failure))
  );
}

/**
 * Our clock jumped, and the signature is from another time. The SDK learns the time from the refusal: the next try is in time. A HEAD is
 * refused without a word, but the SDK says what it has learnt.
 */
function isAboutTime({ name, $metadata }: SdkError, status: number): boolean {
  return name === 'RequestTimeTooSkewed' || (status === 403 && $metadata?.clockSkewCorrected === true);
}

type Failure = Parameters<typeof storeErrors.STORE_REFUSED>[0];

function byName(
  name: string,
  status: number,
  context: CallContext,
  failure: Failure,
): StoreError | undefined {
  const { operation, key, id = '', ifMatch = '', range } = context;
  const completing = operation === 'CompleteMultipartUpload';
  if (name === 'NoSuchUpload') return storeErrors.MULTIPART_NOT_FOUND({ key, id });
  if (name === 'NoSuchKey' || name === 'NotFound') return storeErrors.OBJECT_NOT_FOUND({ key });
  if (status === 412) return storeErrors.OBJECT_CHANGED({ key, expected: ifMatch });
  if (status === 416)
    return storeErrors.RANGE_NOT_SATISFIABLE({ key, first: range?.first ?? 0, last: range?.last });
  if (PASSING.has(name) || status === 408 || status === 425)
    return storeErrors.STORE_UNAVAILABLE({ ...failure, outcomeUnknown: true });
  if (WRONG_PARTS.has(name)) return storeErrors.PARTS_REFUSED(failure);
  if (completing && (WRONG_BYTES.has(name) || name === 'InvalidRequest'))
    return storeErrors.PARTS_REFUSED(failure);
  if (WRONG_BYTES.has(name)) return storeErrors.BODY_CHECKSUM({ key, reason: failure.reason });
  if (name === 'KeyTooLongError') return storeErrors.KEY_INVALID({ key, reason: failure.reason });
  if (status === 507 || FULL.test(name)) return storeErrors.STORE_FULL(failure);
  if (status === 501) return storeErrors.STORE_REFUSED(failure);
  if (status === 503 || status === 429 || BUSY.has(name)) return storeErrors.STORE_BUSY(failure);
  return undefined;
}

/** Nobody answered: a network that failed, or a mistake that was found before anything was sent. */
function withoutReply({ code, name }: SdkError, failure: Failure): StoreError {
  const networkFailed = typeof code === 'string' && !code.startsWith('ERR_');
  // Credentials are fetched from services, which may be away for a moment like any other.
  const areCredentialsAway = name === 'CredentialsProviderError' || name === 'ProviderError';
  if (areCredentialsAway) return storeErrors.STORE_UNAVAILABLE({ ...failure, outcomeUnknown: false });
  if (networkFailed || name === 'TimeoutError' || name === 'AbortError') {
    const outcomeUnknown = !NOT_CONNECTED.has(String(code));
    return storeErrors.STORE_UNAVAILABLE({ ...failure, outcomeUnknown });
  }
  return storeErrors.STORE_REFUSED(failure);
}

function describe({ name, message, code }: SdkError, status: number | undefined): string {
  const label = typeof code === 'string' ? code : name;
  const text = message === 'UnknownError' || message === '' ? label : `${label}: ${message}`;
  return (status === undefined ? text : `${status} ${text}`).slice(0, MAX_REASON_CHARACTERS);
}
