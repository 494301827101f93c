import { isSluiceError } from '@sluice/base';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  type Backoff,
  checkBackoff,
  defaultAttempts,
  defaultBackoff,
  MAX_RETRY_DELAY_MS,
  retryDelayMs,
} from '../src/backoff.js';

const noError = new Error('failed');

function delays(backoff: Backoff, count: number, random?: () => number): number[] {
  return Array.from({ length: count }, (_, i) => retryDelayMs(backoff, i + 1, noError, random));
}

test('by default a job runs three times with 3 s and 9 s between the runs', () => {
  assert.deepEqual(delays(defaultBackoff, defaultAttempts - 1), [3_000, 9_000]);
});

test('a fixed backoff waits the same each time', () => {
  assert.deepEqual(delays({ type: 'fixed', delayMs: 250 }, 3), [250, 250, 250]);
});

test('an exponential backoff doubles unless told otherwise and stops growing at its cap', () => {
  assert.deepEqual(delays({ type: 'exponential', delayMs: 100 }, 4), [100, 200, 400, 800]);
  assert.deepEqual(delays({ type: 'exponential', delayMs: 100, factor: 10, maxMs: 500 }, 3), [100, 500, 500]);
  assert.deepEqual(delays({ type: 'exponential', delayMs: 0, factor: 1e300 }, 5), [0, 0, 0, 0, 0]);
});

test('jitter takes away at most its share of the wait', () => {
  const backoff = { type: 'exponential', delayMs: 1_000, factor: 1, jitter: 0.25 } as const;
  assert.deepEqual(
    delays(backoff, 1, () => 0),
    [1_000],
  );
  assert.deepEqual(
    delays(backoff, 1, () => 0.5),
    [875],
  );
  assert.deepEqual(
    delays({ ...backoff, jitter: 1 }, 1, () => 1),
    [0],
  );
});

test('every valid backoff gives a whole number of milliseconds within bounds after any number of failures', () => {
  const valid = fc.record({
    type: fc.constant('exponential' as const),
    delayMs: fc.double({ min: 0, max: MAX_RETRY_DELAY_MS, noNaN: true }),
    factor: fc.double({ min: 1, max: 1e6, noNaN: true }),
    maxMs: fc.double({ min: 0, max: MAX_RETRY_DELAY_MS, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(
      valid,
      fc.integer({ min: 0, max: 1e6 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (b, n, r) => {
        checkBackoff(b);
        const delayMs = retryDelayMs(b, n, noError, () => r);
        assert.ok(Number.isInteger(delayMs) && delayMs >= 0 && delayMs <= Math.round(b.maxMs));
      },
    ),
  );
});

test('a custom backoff is asked with the number of failures and the error', () => {
  const seen: unknown[] = [];
  const custom = (attempt: number, error: unknown) => {
    seen.push(attempt, error);
    return 12.6;
  };
  assert.equal(retryDelayMs(custom, 4, noError), 13);
  assert.deepEqual(seen, [4, noError]);
});

test('a custom backoff that throws or returns no delay is replaced by the default and a warning', () => {
  const broken: unknown[] = [
    () => {
      throw new Error('oops');
    },
    () => NaN,
    () => -1,
    () => Infinity,
    () => undefined,
    () => '100',
    () => Promise.reject(new Error('async by mistake')),
  ];
  for (const backoff of broken) {
    const warnings: string[] = [];
    const warn = (warning: string) => void warnings.push(warning);
    assert.equal(retryDelayMs(backoff as Backoff, 2, noError, Math.random, warn), 9_000);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!, /^the backoff function .* the default backoff is used$/);
  }
});

test('a custom delay beyond 365 days is cut to 365 days with a warning', () => {
  const warnings: string[] = [];
  const warn = (warning: string) => void warnings.push(warning);
  assert.equal(
    retryDelayMs(() => 1e15, 1, noError, Math.random, warn),
    MAX_RETRY_DELAY_MS,
  );
  assert.match(warnings[0]!, /365 days/);
});

test('a backoff that makes no sense is refused with the field and what it must be', () => {
  const cases: [unknown, RegExp][] = [
    [{ type: 'fixed', delayMs: -1 }, /backoff delayMs must be a number from 0 to 31536000000, not -1/],
    [{ type: 'fixed', delayMs: NaN }, /delayMs .* not NaN/],
    [{ type: 'fixed', delayMs: '5' }, /delayMs/],
    [{ type: 'fixed' }, /delayMs .* not undefined/],
    [{ type: 'exponential', delayMs: MAX_RETRY_DELAY_MS + 1 }, /delayMs/],
    [{ type: 'exponential', delayMs: 1, factor: 0.5 }, /factor must be a number from 1 or more, not 0.5/],
    [{ type: 'exponential', delayMs: 1, factor: Infinity }, /factor/],
    [{ type: 'exponential', delayMs: 1, maxMs: -1 }, /maxMs/],
    [{ type: 'exponential', delayMs: 1, jitter: 1.1 }, /jitter must be a number from 0 to 1, not 1.1/],
    [{ type: 'linear', delayMs: 1 }, /type must be 'fixed', 'exponential' or a function, not linear/],
    [undefined, /type/],
    [null, /type/],
  ];
  for (const [backoff, message] of cases) {
    assert.throws(
      () => checkBackoff(backoff as Backoff),
      (error) => isSluiceError(error, 'BACKOFF_INVALID') && message.test(error.message),
    );
  }
  checkBackoff(defaultBackoff);
  checkBackoff(() => 0);
});
