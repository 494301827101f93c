// Everything that can go wrong with a cache, each with what to do about it. What a loader throws is passed on as it is.
import { defineErrors } from '@sluice/base';

export const cacheErrors = defineErrors({
  NAME_INVALID: {
    message: (d: { name: string }) =>
      `"${d.name}" cannot name a family or a group: use words of letters, digits, dashes and underscores with colons between them.`,
    retryable: false,
  },
  NAME_TOO_LONG: {
    message: (d: { name: string; length: number }) =>
      `The key ${d.name.slice(0, 60)}… has ${d.length} characters. Put a hash of what is long into it.`,
    retryable: false,
  },
  KEY_INVALID: {
    message: (d: { part: unknown }) =>
      `A key is made of texts and numbers, not of ${d.part === null ? 'null' : typeof d.part}. Look at what the key function got.`,
    retryable: false,
  },
  PARTS_WANTED: {
    message: (d: { family: string }) =>
      `How a key of ${d.family} becomes a name is known only where it was opened. Give the parts that follow its name: "17", or ["17", "en"].`,
    retryable: false,
  },
  NAME_TAKEN: {
    message: (d: { name: string }) =>
      `The family ${d.name} is open already. Open it once and share what open() returns.`,
    retryable: false,
  },
  OPTION_INVALID: {
    message: (d: { option: string; value: unknown; allowed: string }) =>
      `Option ${d.option} is ${String(d.value)}; it must be ${d.allowed}.`,
    retryable: false,
  },
  LOADER_MISSING: {
    message: (d: { family: string }) =>
      `The family ${d.family} has no loader. Give load or loadMany to defineCache or to open.`,
    retryable: false,
  },
  LOAD_TIMEOUT: {
    message: (d: { family: string; timeoutMs: number }) =>
      `Loading a value of ${d.family} took more than ${d.timeoutMs} ms and was given up.`,
    retryable: true,
  },
  LOAD_OVERLOAD: {
    message: (d: { atOnce: number; waiting: number }) =>
      `Redis is away, ${d.atOnce} loads run and ${d.waiting} wait already; this one was refused to protect what is loaded from.`,
    retryable: true,
  },
  BATCH_RESULTS: {
    message: (d: { family: string; keys: number; results: number }) =>
      `loadMany of ${d.family} got ${d.keys} keys and returned ${d.results} results; it must return one per key, in their order.`,
    retryable: false,
  },
  VALUE_NOT_JSON: {
    message: (d: { name: string; reason: string }) =>
      `The value of ${d.name} cannot be written as JSON (${d.reason}). Return plain data from the loader.`,
    retryable: false,
  },
  VALUE_INVALID: {
    message: (d: { name: string; issues: readonly string[] }) =>
      `What was loaded for ${d.name} does not fit its schema: ${d.issues.join('; ')}`,
    retryable: false,
  },
  SCHEMA_UNSUPPORTED: {
    message: () => 'the schema does not implement Standard Schema v1 (zod 3.24+, valibot 1+, arktype 2+ do)',
    retryable: false,
  },
  INVALIDATIONS_FULL: {
    message: (d: { kept: number }) =>
      `Redis is away and ${d.kept} invalidations wait for it already; this one was not kept. Repeat it when Redis is back.`,
    retryable: true,
  },
  REDIS_AWAY: {
    message: (d: { what: string; reason: string }) => `"${d.what}" was not done: ${d.reason}.`,
    retryable: true,
  },
  EVICTING_QUEUE_REDIS: {
    message: (d: { policy: string }) =>
      `The cache and the queue share a Redis that throws keys away (maxmemory-policy ${d.policy}), jobs included. ` +
      'Give the cache a Redis of its own, or set "maxmemory-policy noeviction".',
    retryable: false,
  },
  RESTLESS: {
    message: (d: { name: string; rounds: number }) =>
      `${d.name} was invalidated during each of ${d.rounds} attempts to read it.`,
    retryable: true,
  },
  CLOSED: { message: () => 'The cache is closed.', retryable: false },
});
