/** The check behind docs/promises.md: what it accepts and what it objects to. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { root } from './repository.js';

type Broken = (markdown: string, records: object[]) => string[];
const { brokenPromises } = (await import(`${root}/scripts/promises.mjs`)) as { brokenPromises: Broken };

const document = [
  '# Promises',
  '| promise | proof |',
  '| --- | --- |',
  '| Nothing vanishes. | test: `a job comes back`, `suite > a restart loses nothing` |',
  '',
  'Also in prose, test: `a third one`.',
].join('\n');

const passed = [
  { name: 'a job comes back', path: 'a job comes back', outcome: 'passed' },
  { name: 'a restart loses nothing', path: 'suite > a restart loses nothing', outcome: 'passed' },
  { name: 'a third one', path: 'a third one', outcome: 'passed' },
];

test('a promise whose tests all passed is kept', () => {
  assert.deepEqual(brokenPromises(document, passed), []);
});

test('a promise is broken by a test that did not run, was skipped or failed', () => {
  assert.match(
    brokenPromises(document, passed.slice(1))[0]!,
    /line 4: the test did not run: a job comes back/,
  );
  for (const outcome of ['skipped', 'failed']) {
    const [first, ...rest] = passed;
    assert.equal(brokenPromises(document, [{ ...first, outcome }, ...rest]).length, 1);
    assert.equal(brokenPromises(document, [{ ...first, outcome }, ...passed]).length, 1);
  }
});

test('a row without a test and a document without promises are refused', () => {
  assert.match(brokenPromises(`${document}\n| Empty words. | |`, passed)[0]!, /names no test/);
  assert.deepEqual(brokenPromises('# Promises', passed), ['no promise found']);
});
