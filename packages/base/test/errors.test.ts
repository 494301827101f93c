import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineErrors, isSluiceError, SluiceError } from '../src/index.js';

const errors = defineErrors({
  QUEUE_FULL: { message: (d: { queue: string }) => `queue ${d.queue} is full`, retryable: true },
  NO_REDIS: { message: () => 'Redis is not there', retryable: false },
});

function pourWater(): Error {
  return errors.QUEUE_FULL({ queue: 'mail' });
}

test('an error from the table carries code, message, details, cause and whether retrying helps', () => {
  const cause = new Error('OOM');
  const error = errors.QUEUE_FULL({ queue: 'mail' }, { cause });
  assert.ok(error instanceof SluiceError && error instanceof Error);
  assert.equal(error.code, 'QUEUE_FULL');
  assert.equal(error.message, 'queue mail is full');
  assert.equal(error.retryable, true);
  assert.deepEqual(error.details, { queue: 'mail' });
  assert.equal(error.cause, cause);
  assert.equal(String(error), 'SluiceError: queue mail is full');
});

test('an error without details needs none, and has no cause unless it is given one', () => {
  const error = errors.NO_REDIS();
  assert.equal(error.retryable, false);
  assert.equal(error.details, undefined);
  assert.equal('cause' in error, false);
  assert.equal('cause' in errors.NO_REDIS({}, { cause: undefined }), true);
});

test('the stack of an error begins where it was thrown', () => {
  const lines = pourWater().stack?.split('\n') ?? [];
  assert.equal(lines[0], 'SluiceError: queue mail is full');
  assert.match(lines[1] ?? '', /pourWater/);
  assert.match(new SluiceError('X', 'made by hand').stack ?? '', /^SluiceError: made by hand\n/);
});

test('details and codes are checked by the compiler', () => {
  // @ts-expect-error the queue is missing
  errors.QUEUE_FULL({});
  // @ts-expect-error there is no such error
  assert.equal(errors.QUEUE_EMPTY, undefined);
  const code: 'QUEUE_FULL' = errors.QUEUE_FULL({ queue: 'mail' }).code;
  assert.equal(code, 'QUEUE_FULL');
});

test('a Sluice error is recognised by its code, whatever else was thrown', () => {
  const error: unknown = errors.QUEUE_FULL({ queue: 'mail' });
  assert.ok(isSluiceError(error));
  assert.ok(isSluiceError(error, 'QUEUE_FULL'));
  assert.ok(!isSluiceError(error, 'NO_REDIS'));
  const hostile = new Proxy({}, { get: () => assert.fail('trap'), has: () => assert.fail('trap') });
  for (const other of [
    undefined,
    null,
    'QUEUE_FULL',
    7,
    {},
    { code: 'QUEUE_FULL' },
    new Error('x'),
    hostile,
  ]) {
    assert.ok(!isSluiceError(other, 'QUEUE_FULL'));
  }
});

test('an error of another installed copy of the package is recognised', () => {
  const foreign = Object.assign(new Error('full'), {
    code: 'QUEUE_FULL',
    [Symbol.for('sluice.error')]: true,
  });
  assert.ok(isSluiceError(foreign, 'QUEUE_FULL'));
});
