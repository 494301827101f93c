// Every error of object storage. The codes are those of what happened, not of the store it happened in: S3 and disk throw the
// same ones. None of them carries a request's headers or a server's whole reply, because credentials and signatures are in
// there; `reason` is the short name or sentence that the store gave.
import { defineErrors } from '@sluice/base';

interface Failure {
  operation: string;
  key: string;
  reason: string;
  /** Of its answer, if there was one. */
  status?: number;
  /** The store's own number for the request, for those who ask its operator. */
  requestId?: string;
}

const where = (d: Failure): string => `${d.operation} of "${d.key}"`;

export const storeErrors = defineErrors({
  OBJECT_NOT_FOUND: {
    message: (d: { key: string }) => `There is no object "${d.key}".`,
    retryable: false,
  },
  OBJECT_CHANGED: {
    message: (d: { key: string; expected: string }) =>
      `The object "${d.key}" is no longer the one with ETag ${d.expected}. Look at it again before reading on.`,
    retryable: false,
  },
  RANGE_NOT_SATISFIABLE: {
    message: (d: { key: string; first: number; last?: number | undefined }) =>
      `"${d.key}" has no bytes ${d.first}-${d.last ?? ''}. Ask for a range within its size.`,
    retryable: false,
  },
  MULTIPART_NOT_FOUND: {
    message: (d: { key: string; id: string }) =>
      `There is no multipart upload ${d.id} of "${d.key}": it was completed or aborted before, or never begun. Look at the object.`,
    retryable: false,
  },
  PARTS_REFUSED: {
    message: (d: Failure) =>
      `The parts do not make the object "${d.key}": ${d.reason}. List the parts and compare.`,
    retryable: false,
  },
  BODY_CHECKSUM: {
    message: (d: { key: string; reason: string }) =>
      `The bytes for "${d.key}" do not have the CRC-64/NVME that was declared (${d.reason}). Nothing was stored; send them again.`,
    retryable: false,
  },
  BODY_LENGTH: {
    message: (d: { key: string; declared: number; came: string }) =>
      `The body for "${d.key}" was to have ${d.declared} bytes, and ${d.came}. Nothing was stored.`,
    retryable: false,
  },
  BODY_FAILED: {
    message: (d: { key: string; reason: string }) =>
      `The stream of bytes for "${d.key}" broke off: ${d.reason}. Nothing was stored.`,
    retryable: false,
  },
  KEY_INVALID: {
    message: (d: { key: string; reason: string }) => `"${d.key}" cannot be a key: ${d.reason}.`,
    retryable: false,
  },
  INPUT_INVALID: {
    message: (d: { what: string; reason: string }) => `${d.what}: ${d.reason}.`,
    retryable: false,
  },
  STORE_BUSY: {
    message: (d: Failure) =>
      `The store is too busy for ${where(d)} (${d.reason}). Try again later, and less at once.`,
    retryable: true,
  },
  STORE_UNAVAILABLE: {
    message: (d: Failure & { outcomeUnknown: boolean }) =>
      `The store did not do ${where(d)}: ${d.reason}` +
      (d.outcomeUnknown ? '; it may have been done all the same, and repeating it is safe.' : '.') +
      ' Check that it is up and reachable.',
    retryable: true,
  },
  STORE_FULL: {
    message: (d: Failure) =>
      `The store has no room for ${where(d)} (${d.reason}). Free some, or raise its quota.`,
    retryable: true,
  },
  STORE_REFUSED: {
    message: (d: Failure) =>
      `The store refused ${where(d)}: ${d.reason}. Check credentials, rights and settings.`,
    retryable: false,
  },
  STORE_TRUNCATED: {
    message: (d: { key: string; length: number; came: number; reason: string }) =>
      `Reading "${d.key}" ended after ${d.came} of ${d.length} bytes: ${d.reason}. Read the rest with a range.`,
    retryable: true,
  },
  STORE_CORRUPT: {
    message: (d: Failure) =>
      `What ${where(d)} left in the store is not what was sent: ${d.reason}. Send it again.`,
    retryable: true,
  },
  STORE_CLOSED: {
    message: (d: { operation: string }) => `"${d.operation}" was called after the store had been closed.`,
    retryable: false,
  },
});

export type StoreError = ReturnType<(typeof storeErrors)[keyof typeof storeErrors]>;
