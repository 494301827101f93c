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
});
