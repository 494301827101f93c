// The errors of operations: what a request may not be.
import { defineErrors } from '@sluice/base';

export const operationErrors = defineErrors({
  OPERATION_INVALID: {
    message: (d: { field: string; value: unknown; allowed: string }) =>
      `"${d.field}" is ${String(d.value)}; it must be ${d.allowed}.`,
    retryable: false,
  },
  OPERATION_QUEUE_UNKNOWN: {
    message: (d: { queue: string }) => `There is no queue "${d.queue}".`,
    retryable: false,
  },
});
