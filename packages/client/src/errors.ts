/**
 * Everything an upload can fail with, on one page. Errors of the server keep the server's code and message; the table below
 * holds those that arise on this side. The package stands alone in a browser, so the class is its own; it carries the mark
 * by which `isSluiceError` of @sluice/base knows its kin.
 */

type Details = Readonly<Record<string, unknown>>;

interface ErrorFacts {
  /** The HTTP status of the reply that brought the error; absent when there was none. */
  status?: number;
  /** Whether the same upload may succeed later without anybody changing anything. */
  retryable?: boolean;
  details?: Details;
  cause?: unknown;
  /** How long the server asked to be left alone. */
  retryAfterMs?: number;
}

export class SluiceUploadError extends Error {
  static {
    this.prototype.name = 'SluiceUploadError';
    Object.defineProperty(this.prototype, Symbol.for('sluice.error'), { value: true });
  }

  readonly code: string;
  readonly status?: number;
  readonly retryable: boolean;
  readonly details?: Details;
  readonly retryAfterMs?: number;

  constructor(code: string, message: string, facts: ErrorFacts = {}) {
    super(message, 'cause' in facts ? { cause: facts.cause } : undefined);
    this.code = code;
    this.retryable = facts.retryable ?? false;
    if (facts.status !== undefined) this.status = facts.status;
    if (facts.details) this.details = facts.details;
    if (facts.retryAfterMs !== undefined) this.retryAfterMs = facts.retryAfterMs;
  }
}

const messages = {
  OPTION_INVALID: (why: string) => `The upload was not started: ${why}`,
  SOURCE_UNREADABLE: (why: string) =>
    `The file could not be read (${why}). Check that it still exists, then start again.`,
  SOURCE_CHANGED: (why: string) =>
    `The file changed while it was being uploaded (${why}). Start again when nobody writes to it.`,
  SOURCE_CONSUMED: (why: string) =>
    `The server needs bytes of a stream that have been read and dropped (${why}). ` +
    'Start again with a new stream, or upload a file, which can be read twice.',
  NETWORK: (why: string) => `No answer from the server (${why}). Check the address and the connection.`,
  TOKEN_UNAVAILABLE: (why: string) =>
    `The function that fetches the upload token failed (${why}). Check whether the user is still signed in.`,
  BAD_REPLY: (why: string) =>
    `The answer is not one of Sluice (${why}). Check that the url leads to a Sluice server.`,
  STALLED: (why: string) =>
    `The upload makes no progress: ${why}. Try again later; it continues where it was.`,
  RESULT_MISMATCH: (why: string) => `What the server stored is not what was sent: ${why}. Upload it again.`,
  UPLOAD_GONE: (why: string) =>
    `The server does not know the upload any more (${why}). Start it again from the beginning.`,
  KEY_REUSED: (why: string) =>
    `The idempotency key belongs to another upload (${why}). Use one key for one file and one path.`,
  CANCELLED: () => 'The upload was cancelled.',
  ABORTED: () => 'The upload was stopped by its signal. Start it again to continue where it was.',
} satisfies Record<string, (why: string) => string>;

/** Only these may succeed when the same thing is simply tried again. */
const retryableCodes: string[] = [
  'NETWORK',
  'TOKEN_UNAVAILABLE',
  'BAD_REPLY',
  'STALLED',
] satisfies (keyof typeof messages)[];

export function uploadError(
  code: keyof typeof messages,
  why = '',
  facts: Omit<ErrorFacts, 'retryable'> = {},
): SluiceUploadError {
  return new SluiceUploadError(code, messages[code](why), {
    ...facts,
    retryable: retryableCodes.includes(code),
  });
}

/** What a thrown value says of itself, for a message. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  // fetch of Node says "fetch failed" and hides the reason one level down.
  const { cause } = thrown;
  return cause instanceof Error && cause.message !== '' ? cause.message : thrown.message;
}
