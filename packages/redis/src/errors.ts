// The errors this package throws. "Outcome unknown" means that the command was sent and no answer
// came: it may have run. Every script of Sluice is safe to repeat, so callers may try again.
import { defineErrors } from '@sluice/base';

export const redisErrors = defineErrors({
  REDIS_UNAVAILABLE: {
    message: (d: { what: string; waitedMs: number; outcomeUnknown: boolean; reason: string }) =>
      `Redis did not do "${d.what}" within ${d.waitedMs} ms` +
      (d.reason === '' ? '' : ` (${d.reason})`) +
      (d.outcomeUnknown ? '; it may or may not have run, repeating it is safe.' : '; it has not run.') +
      ' Check that the server is up and reachable.',
    retryable: true,
  },
  REDIS_FULL: {
    message: (d: { what: string }) =>
      `Redis refused "${d.what}" because its memory is full. Raise maxmemory, or let workers drain the queues.`,
    retryable: true,
  },
  REDIS_REFUSED: {
    message: (d: { what: string; reason: string }) => `Redis refused "${d.what}": ${d.reason}`,
    retryable: false,
  },
  REDIS_TARGET: {
    message: (d: { target: string; reason: string }) =>
      `Cannot use "${d.target}" as a Redis address: ${d.reason}. ` +
      'Use redis://host:port, rediss://…, redis+cluster://h1:p1,h2:p2 or redis+sentinel://h1:p1,h2:p2/name.',
    retryable: false,
  },
  REDIS_CLOSED: {
    message: (d: { what: string }) => `"${d.what}" was called after the Redis connection had been closed.`,
    retryable: false,
  },
});
