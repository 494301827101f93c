// Everything that can go wrong with an upload, each with what to do about it. The codes are part of the API.
import { defineErrors } from '@sluice/base';

export const uploadErrors = defineErrors({
  UPLOAD_NOT_FOUND: {
    message: (d: { id: string }) => `there is no upload ${d.id}; begin a new one`,
    retryable: false,
  },
  UPLOAD_ENDED: {
    message: (d: { id: string; state: string; reason?: string }) =>
      `the upload ${d.id} is ${d.state}${d.reason ? ` (${d.reason})` : ''} and takes no more bytes; begin a new one`,
    retryable: false,
  },
  UPLOAD_FAILED: {
    message: (d: { id: string; state: string; code: string; reason: string }) =>
      `the upload ${d.id} is ${d.state}: ${d.reason}`,
    retryable: false,
  },
  UPLOAD_INVALID: {
    message: (d: { what: string; wanted: string }) => `${d.what} must be ${d.wanted}`,
    retryable: false,
  },
  FILE_TOO_LARGE: {
    message: (d: { size: number; limit: number }) =>
      `the file has ${d.size} bytes, and at most ${d.limit} are taken`,
    retryable: false,
  },
  CHUNK_NUMBER: {
    message: (d: { number: string; wanted: string }) =>
      `"${d.number}" is no chunk of this upload; it must be ${d.wanted}`,
    retryable: false,
  },
  CHUNK_LENGTH: {
    message: (d: { number: number; length: number; wanted: number }) =>
      `chunk ${d.number} has ${d.length} bytes and must have ${d.wanted}; mark it as the last one if the file ends with it`,
    retryable: false,
  },
  CHUNK_TOO_LARGE: {
    message: (d: { length: number; limit: number }) =>
      `a chunk of ${d.length} bytes that is no whole part must be buffered and is too large for that (at most ${d.limit}); name a chunkSize when you begin, or send whole parts`,
    retryable: false,
  },
  CHUNK_CONFLICT: {
    message: (d: { chunk: string }) =>
      `${d.chunk} was received before with other bytes; ask for the status and send what is missing, or begin a new upload`,
    retryable: false,
  },
  RANGE_OVERLAPS: {
    message: (d: { chunk: string }) =>
      `${d.chunk} overlaps bytes that are there already; ask for the status and send the missing ranges only`,
    retryable: false,
  },
  BEYOND_END: {
    message: (d: { chunk: string; size?: number }) =>
      `${d.chunk} lies beyond the end of the file${d.size === undefined ? '' : `, which has ${d.size} bytes`}`,
    retryable: false,
  },
  LAST_CONFLICT: {
    message: (d: { chunk: string }) =>
      `${d.chunk} cannot be the last one: the end of the file is known, and it is elsewhere`,
    retryable: false,
  },
  SIZE_CONFLICT: {
    message: (d: { size: number }) =>
      `the file cannot have ${d.size} bytes: another size was declared, or more bytes are there already`,
    retryable: false,
  },
  DIGEST_CONFLICT: {
    message: () => 'another SHA-256 was declared before; begin a new upload for other content',
    retryable: false,
  },
  DECLARED_TOO_LATE: {
    message: (d: { id: string }) =>
      `the upload ${d.id} is being completed, and a digest that is declared now is not compared any more; compare it with the result, and declare it with the last bytes or before`,
    retryable: false,
  },
  TOO_MANY_CHUNKS: {
    message: (d: { limit: number }) =>
      `an upload has at most ${d.limit} chunks, and as many parts as its store takes; use larger chunks`,
    retryable: false,
  },
  WINDOW_EXCEEDED: {
    message: (d: { sendFirst: number }) =>
      `too many chunks wait for their predecessors; send chunk ${d.sendFirst} first`,
    retryable: true,
  },
  BUDGET_EXHAUSTED: {
    message: (d: { retryAfterS: number }) =>
      `there is no room to buffer this chunk now; send the lowest missing bytes first, or whole parts, or this again after ${d.retryAfterS} s`,
    retryable: true,
  },
  DIGEST_INVALID: {
    message: (d: { digest: string }) =>
      `"${d.digest}" is no digest; write sha-256=:<base64>:, crc32c=:…:, crc32=:…: or crc64nvme=:…:`,
    retryable: false,
  },
  DIGEST_MISMATCH: {
    message: (d: { algorithm: string; declared: string; computed: string }) =>
      `the ${d.algorithm} of the bytes is ${d.computed}, declared was ${d.declared}; nothing was kept, send them again`,
    retryable: true,
  },
  BODY_SLOW: {
    message: (d: { idleMs: number }) =>
      `no byte arrived for ${d.idleMs / 1000} s; what was missing can be sent again`,
    retryable: true,
  },
  BODY_TRUNCATED: {
    message: (d: { wanted: number; got: number }) =>
      `the bytes ended after ${d.got} of ${d.wanted}; ask for the status and send what is missing`,
    retryable: true,
  },
  BODY_TOO_LONG: {
    message: (d: { wanted: number }) => `more than the announced ${d.wanted} bytes arrived; nothing was kept`,
    retryable: false,
  },
  STORE_DIFFERS: {
    message: (d: { what: string; store: string; sent: string }) =>
      `the store has other bytes than were sent (${d.what}: CRC-64 ${d.store} instead of ${d.sent}); nothing counts, send them again`,
    retryable: true,
  },
  STORE_SILENT: {
    message: (d: { what: string }) => `the store did not say what it has stored of ${d.what}; send it again`,
    retryable: true,
  },
  UPLOAD_OVERTAKEN: {
    message: (d: { id: string }) =>
      `the upload ${d.id} ended, or got all its bytes from other requests, while these were under way; send them again to learn what counts`,
    retryable: true,
  },
  CHUNKS_LOST: {
    message: () => 'buffered bytes were lost before they could be stored; the status names what is missing',
    retryable: true,
  },
});
