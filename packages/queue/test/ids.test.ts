/** Ids that are made here. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IdMaker, randomName } from '../src/ids.js';

const many = 5_000;

test('no id begins with a dash, which a command line would take for an option', () => {
  const names = Array.from({ length: many }, randomName);
  const ids = Array.from({ length: many }, () => new IdMaker().next());
  for (const text of [...names, ...ids]) assert.match(text, /^\w[\w-]{8}$/);
  assert.equal(new Set([...names, ...ids]).size, 2 * many);
});
