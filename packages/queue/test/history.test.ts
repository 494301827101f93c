import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  attemptKinds,
  type AttemptRecord,
  boundHistory,
  decodeAttempt,
  encodeAttempt,
  MAX_HISTORY_RECORDS,
  mergeHistories,
} from '../src/history.js';

function failure(attempt: number, more: Partial<AttemptRecord> = {}): AttemptRecord {
  const text = {
    worker: 'w1',
    name: 'Error',
    message: `failure ${attempt}`,
    stack: 'Error\n    at f (a.js:1:1)',
  };
  return { attempt, atMs: 1_000 * attempt, kind: 'error', ...text, ...more };
}

const attemptsOf = (history: readonly AttemptRecord[]) => history.map((record) => record.attempt);

test('a record survives being written and read', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 20 });
  const fields = {
    attempt: fc.nat(),
    atMs: fc.nat(),
    worker: text,
    kind: fc.constantFrom(...attemptKinds),
    name: text,
    message: text,
    stack: text,
  };
  const record = fc.record(fields, { noNullPrototype: true });
  fc.assert(fc.property(record, (r) => assert.deepEqual(decodeAttempt(encodeAttempt(r)), r)));
});

test('the texts of a record are cut to their bounds when it is written', () => {
  const long = 'ü'.repeat(100_000);
  const read = decodeAttempt(
    encodeAttempt(failure(1, { worker: long, name: long, message: long, stack: long })),
  );
  assert.deepEqual(
    [read.worker, read.name, read.message, read.stack].map((t) => Math.ceil(Buffer.byteLength(t) / 2) * 2),
    [128, 128, 2_048, 4_096],
  );
});

test('a damaged record is shown as unreadable with its text, and never throws', () => {
  for (const damaged of [
    '',
    '{',
    'null',
    '[]',
    '{"a":1}',
    '[1,2,"error","w","n","m"]',
    '[1,2,"odd","","","",""]',
  ]) {
    const read = decodeAttempt(damaged);
    assert.equal(read.kind, 'unreadable');
    assert.equal(read.message, damaged);
  }
  fc.assert(fc.property(fc.json(), (json) => void decodeAttempt(json)));
});

test('of a long history the first and the last 19 are kept', () => {
  let history: AttemptRecord[] = [];
  for (let attempt = 1; attempt <= 100; attempt++) history = mergeHistories(history, [failure(attempt)]);
  assert.deepEqual(attemptsOf(history), [1, ...Array.from({ length: 19 }, (_, i) => 82 + i)]);
});

test('a history within the bound is kept whole', () => {
  const whole = Array.from({ length: MAX_HISTORY_RECORDS }, (_, i) => i);
  assert.deepEqual(boundHistory(whole), whole);
  assert.deepEqual(boundHistory([...whole, 20]), [0, ...whole.slice(2), 20]);
  assert.deepEqual(boundHistory([]), []);
});

test('merging the same record twice keeps it once, and order does not matter', () => {
  const [one, two, three] = [failure(1), failure(2), failure(3)];
  assert.deepEqual(mergeHistories([one, two], [two, three]), [one, two, three]);
  assert.deepEqual(mergeHistories([three], [two, one]), [one, two, three]);
});

test('two crashes within one attempt are two records', () => {
  const crashes = [failure(1, { kind: 'crash', atMs: 5 }), failure(1, { kind: 'crash', atMs: 9 })];
  assert.deepEqual(mergeHistories([], crashes), crashes);
});
