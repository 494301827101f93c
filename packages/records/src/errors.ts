/**
 * Everything that can go wrong with a record. Codes that come from a SQL function (SQLSTATE `SLUIC`) are spelt there as
 * they are spelt here; `refusal` makes the one from the other.
 */
import { defineErrors, type SluiceError } from '@sluice/base';

export const recordsErrors = defineErrors({
  RECORDS_UNAVAILABLE: {
    message: (d: { what: string; waitedMs: number; outcomeUnknown: boolean; reason: string }) =>
      `PostgreSQL did not do "${d.what}" within ${d.waitedMs} ms (${d.reason})` +
      (d.outcomeUnknown ? '; it may or may not have run, repeating it is safe.' : '; it has not run.') +
      ' Check that the server is up and reachable.',
    retryable: true,
  },
  RECORDS_REFUSED: {
    message: (d: { what: string; reason: string }) => `PostgreSQL refused "${d.what}": ${d.reason}`,
    retryable: false,
  },
  RECORDS_CLOSED: {
    message: (d: { what: string }) => `"${d.what}" was called after the records had been closed.`,
    retryable: false,
  },
  SCHEMA_TOO_NEW: {
    message: (d: { found: number; known: number }) =>
      `The database has schema version ${d.found}, this program knows versions up to ${d.known}. ` +
      'Start the newer program, or restore a backup from before the upgrade.',
    retryable: false,
  },
  NAME_INVALID: {
    message: (d: { name: string; reason: string }) => `The name ${d.name} cannot be used: ${d.reason}.`,
    retryable: false,
  },
  PATH_TOO_LONG: {
    message: (d: { bytes?: number; limit: number }) =>
      `The path${d.bytes === undefined ? '' : ` has ${d.bytes} bytes and`} is too long; at most ${d.limit} bytes are allowed. ` +
      'Use shorter names or fewer folders.',
    retryable: false,
  },
  METADATA_INVALID: {
    message: (d: { reason: string }) => `The metadata cannot be kept: ${d.reason}.`,
    retryable: false,
  },
  VALUE_INVALID: {
    message: (d: { field: string; reason: string }) => `${d.field} cannot be used: ${d.reason}.`,
    retryable: false,
  },
  DRIVE_NOT_FOUND: {
    message: (d: { drive: string }) => `There is no drive "${d.drive}". Create it first.`,
    retryable: false,
  },
  DRIVE_CONFLICT: {
    message: (d: { drive: string }) =>
      `The drive "${d.drive}" exists with another bucket or prefix. Use another name, or the same settings.`,
    retryable: false,
  },
  DRIVE_NOT_EMPTY: {
    message: (d: { drive: string }) =>
      `The drive "${d.drive}" still holds nodes or open uploads. Delete or end them first.`,
    retryable: false,
  },
  NODE_NOT_FOUND: {
    message: (d: { node: string; isFolder?: boolean }) =>
      d.isFolder
        ? `"${d.node}" is a folder, and this is for files. Folders are listed, moved and deleted as nodes.`
        : `There is no node ${d.node}.`,
    retryable: false,
  },
  NODE_EXISTS: {
    message: (d: { path: string; node?: string }) =>
      `There is already a node at "${d.path}". Use another path, or delete what is there first; an upload may also replace a file.`,
    retryable: false,
  },
  PRECONDITION_FAILED: {
    message: (d: { path: string }) =>
      `The file at "${d.path}" is not, or not any more, the one that was meant. Read it again and decide.`,
    retryable: false,
  },
  NOT_A_FOLDER: {
    message: (d: { path: string }) => `"${d.path}" is a file, so nothing can be put into it.`,
    retryable: false,
  },
  MOVE_INTO_ITSELF: {
    message: (d: { path: string; to: string }) =>
      `"${d.path}" cannot be moved to "${d.to}", which is inside of it.`,
    retryable: false,
  },
  FOLDER_NOT_EMPTY: {
    message: (d: { path: string }) =>
      `The folder "${d.path}" is not empty. Ask for a recursive deletion, or empty it first.`,
    retryable: false,
  },
  FOLDER_TOO_LARGE: {
    message: (d: { path: string; limit: number }) =>
      `The folder "${d.path}" holds more than ${d.limit} nodes. Delete the folders inside of it first.`,
    retryable: false,
  },
  UPLOAD_NOT_FOUND: {
    message: (d: { upload: string }) => `There is no upload ${d.upload}.`,
    retryable: false,
  },
  UPLOAD_ENDED: {
    message: (d: { upload: string; status: string }) =>
      `Upload ${d.upload} has ended: ${d.status}. Begin a new one.`,
    retryable: false,
  },
  UPLOAD_FENCED: {
    message: (d: { upload: string; fence: number; known: number }) =>
      `Upload ${d.upload} was taken over: fence ${d.known} stands, ${d.fence} is older.`,
    retryable: false,
  },
  IDEMPOTENCY_CONFLICT: {
    message: (d: { key: string }) =>
      `The key "${d.key}" was used for another request. Use a new key, or repeat the same request.`,
    retryable: false,
  },
  RESULT_CONFLICT: {
    message: (d: { result: string }) =>
      `The result "${d.result}" was delivered before and said something else. Give each result an id of its own.`,
    retryable: false,
  },
  TOO_MANY_WEBHOOKS: {
    message: (d: { limit: number }) => `At most ${d.limit} webhooks are allowed. Delete one first.`,
    retryable: false,
  },
  IDEMPOTENCY_IN_PROGRESS: {
    message: (d: { upload: string }) =>
      `The same request is still under way as upload ${d.upload}. Wait until it has ended.`,
    retryable: true,
  },
  QUOTA_EXCEEDED: {
    message: (d: { used: number; open: number; size: number; limit: number }) =>
      `${d.size} bytes do not fit: ${d.used} are stored and ${d.open} announced of ${d.limit}. Delete something first.`,
    retryable: false,
  },
  FILE_TOO_LARGE: {
    message: (d: { size: number; limit: number }) =>
      `The file has ${d.size} bytes; at most ${d.limit} are allowed.`,
    retryable: false,
  },
  TOO_MANY_UPLOADS: {
    message: (d: { open: number; limit: number }) =>
      `${d.open} uploads are open; at most ${d.limit} are allowed. Complete or cancel one first.`,
    retryable: true,
  },
  SIZE_MISMATCH: {
    message: (d: { declared: number; size: number }) =>
      `The upload announced ${d.declared} bytes, the object has ${d.size}.`,
    retryable: false,
  },
  DIGEST_MISMATCH: {
    message: (d: { declared: string; sha256: string }) =>
      `The upload announced SHA-256 ${d.declared}, the object has ${d.sha256}.`,
    retryable: false,
  },
  KEY_NOT_FOUND: {
    message: (d: { key: string }) => `There is no key ${d.key}.`,
    retryable: false,
  },
  KEY_ENDED: {
    message: (d: { key: string }) => `The key ${d.key} was revoked or has expired. Make a new one.`,
    retryable: false,
  },
  FIRST_KEY: {
    message: () =>
      'The first key must be an admin of the installation (tenant "*", role "admin"); otherwise nobody could make another one.',
    retryable: false,
  },
  LAST_ADMIN: {
    message: (d: { key: string }) =>
      `${d.key} is the last key of an admin of the installation. Make another one first.`,
    retryable: false,
  },
  TOO_MANY_KEYS: {
    message: (d: { limit: number }) => `There are already ${d.limit} keys. Revoke some first.`,
    retryable: false,
  },
});

export type RecordsErrorCode = keyof typeof recordsErrors;

/** The error behind a code and details that a SQL function raised; undefined if the code is none of ours. */
export function refusal(code: string, detail: string | undefined, cause: unknown): SluiceError | undefined {
  if (!Object.hasOwn(recordsErrors, code)) return undefined;
  const make = recordsErrors[code as RecordsErrorCode] as (d: object, o: { cause: unknown }) => SluiceError;
  return make(JSON.parse(detail ?? '{}') as object, { cause });
}
