/*
 * The ways in which a benchmark can fail to produce a figure.
 */
import { defineErrors } from '@sluice/base';

export const errors = defineErrors({
  BAD_COMMAND_LINE: { message: (d: { why: string }) => d.why, retryable: false },
  TURN_FAILED: {
    message: (d: { system: string; turn: string; why: string }) => `${d.turn} on ${d.system}: ${d.why}`,
    retryable: true,
  },
  TIMED_OUT: {
    message: (d: { what: string; deadlineMs: number }) => `${d.what} took more than ${d.deadlineMs} ms`,
    retryable: true,
  },
  S3_MISSING: {
    message: (d: { version: string }) =>
      `there is no S3 server to write to: put versitygw ${d.version} on the PATH (go install github.com/versity/versitygw/cmd/versitygw@${d.version})`,
    retryable: false,
  },
  S3_FAILED: { message: (d: { why: string }) => `the S3 server did not start: ${d.why}`, retryable: true },
  SERVER_FAILED: {
    message: (d: { side: string; why: string }) => `the server of ${d.side} did not start: ${d.why}`,
    retryable: false,
  },
  REQUEST_CUT: {
    message: (d: { method: string; path: string; why: string; reused: boolean }) =>
      `${d.method} ${d.path} got no answer on a ${d.reused ? 'kept' : 'new'} connection: ${d.why}`,
    retryable: true,
  },
  REPLY_UNEXPECTED: {
    message: (d: { what: string; status: number; text: string }) => `${d.what}: ${d.status} ${d.text}`,
    retryable: false,
  },
  CONTENT_DIFFERS: {
    message: (d: { name: string; sent: string; stored: string }) =>
      `${d.name} was sent as ${d.sent} and is stored as ${d.stored}; its speed does not count`,
    retryable: false,
  },
  BYTES_MISSING: {
    message: (d: { side: string; turn: string; sent: number; stored: number }) =>
      `${d.turn} on ${d.side}: ${d.sent} bytes were sent and S3 has ${d.stored}`,
    retryable: false,
  },
});
