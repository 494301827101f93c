// The errors that questions are answered with when they cannot be answered.
import { defineErrors } from '@sluice/base';

export const inspectErrors = defineErrors({
  UNKNOWN_QUEUE: {
    message: (d: { queue: string; known: string }) =>
      `There is no queue "${d.queue}" here; there is ${d.known || 'none'}.`,
    retryable: false,
  },
  QUESTION_INVALID: {
    message: (d: { field: string; value: unknown; allowed: string }) =>
      `"${d.field}" is ${String(d.value)}; it must be ${d.allowed}.`,
    retryable: false,
  },
  SAMPLE_TIMEOUT: {
    message: (d: { what: string; waitedMs: number }) =>
      `${d.what} did not answer within ${d.waitedMs} ms; figures are those from before.`,
    retryable: true,
  },
});
