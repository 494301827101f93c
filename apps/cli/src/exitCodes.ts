// What the command ends with, so that scripts can tell the cases apart. The numbers are a contract; README.md lists them.
import { isSluiceError } from '@sluice/base';

export const exitCodes = {
  ok: 0,
  /** It was tried and did not work; also a finding of `doctor`. */
  failed: 1,
  /** The command line makes no sense, or the question was not answered with yes. */
  misuse: 2,
  notFound: 3,
  /** No key, a wrong key, or a key that may not do this. */
  notAllowed: 4,
  /** Nobody answers, or who answers says that a part is down. */
  serverAway: 5,
  /** What is there does not allow it, or changed meanwhile. */
  conflict: 6,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

/** By the error's code where the command line itself objects, by the status where the server does. */
export function exitCodeOf(error: unknown): number {
  if (isAbort(error)) return exitCodes.interrupted;
  if (!isSluiceError(error)) return exitCodes.failed;
  const own = codes[error.code];
  if (own !== undefined) return own;
  const status = Number((error as { status?: number }).status ?? error.details?.['status'] ?? 0);
  if (status === 401 || status === 403) return exitCodes.notAllowed;
  if (status === 404) return exitCodes.notFound;
  if (status === 409 || status === 412) return exitCodes.conflict;
  if (status === 400 || status === 422) return exitCodes.misuse;
  return status === 502 || status === 503 || status === 504 ? exitCodes.serverAway : exitCodes.failed;
}

export function isAbort(error: unknown): boolean {
  const { name, code } = (error ?? {}) as { name?: string; code?: string };
  return name === 'AbortError' || code === 'ABORTED' || code === 'ABORT_ERR';
}

const codes: Record<string, number> = {
  SERVER_AWAY: exitCodes.serverAway,
  NETWORK: exitCodes.serverAway,
  STALLED: exitCodes.serverAway,
  BAD_REPLY: exitCodes.serverAway,
  USAGE: exitCodes.misuse,
  NOT_CONFIRMED: exitCodes.misuse,
  OPTION_INVALID: exitCodes.misuse,
  NONE: exitCodes.notFound,
  NOT_FOUND: exitCodes.notFound,
};
