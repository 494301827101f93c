/** What an edit changed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { diffLines } from '../src/diff.js';

test('a changed line is removed and added, the others stay', () => {
  const lines = diffLines('{\n  "a": 1,\n  "b": 2\n}', '{\n  "a": 1,\n  "b": 3\n}');
  assert.deepEqual(
    lines.map(({ kind, text }) => `${kind} ${text.trim()}`),
    ['same {', 'same "a": 1,', 'removed "b": 2', 'added "b": 3', 'same }'],
  );
});

test('whatever the texts are, the difference leads from one to the other', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      const without = (kind: string): string =>
        lines
          .filter((line) => line.kind !== kind)
          .map((line) => line.text)
          .join('\n');
      assert.equal(without('added'), before);
      assert.equal(without('removed'), after);
    }),
  );
});

test('a huge edit is shown as replaced, not computed for ever', () => {
  const many = (word: string): string => Array.from({ length: 3_000 }, (_, i) => `${word}${i}`).join('\n');
  assert.equal(diffLines(many('a'), many('b')).length, 6_000);
});
