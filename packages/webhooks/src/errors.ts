// Everything that can go wrong with a webhook. No message shows more of an address than where it points: the rest of it is often a
// secret.
import { defineErrors } from '@sluice/base';

export const webhookErrors = defineErrors({
  WEBHOOK_NOT_FOUND: {
    message: (d: { id: string }) => `there is no webhook ${d.id}`,
    retryable: false,
  },
  WEBHOOK_INVALID: {
    message: (d: { field: string; reason: string }) => `${d.field} cannot be used: ${d.reason}`,
    retryable: false,
  },
  ADDRESS_REFUSED: {
    message: (d: { host: string; address: string }) =>
      `${d.host} is at ${d.address}, which is not on the public network; allow it with SLUICE_WEBHOOK_ALLOW if it is meant`,
    retryable: false,
  },
  HOST_UNKNOWN: {
    message: (d: { host: string; reason: string }) => `${d.host} was not found (${d.reason})`,
    retryable: true,
  },
  DELIVERY_FAILED: {
    message: (d: { origin: string; reason: string }) => `${d.origin} did not take it: ${d.reason}`,
    retryable: true,
  },
});
