/** Names, paths and metadata: what is let in, and what the refusal says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { checkMetadata, checkName, checkPath } from '../src/index.js';

function refusal(check: () => unknown): { code: string; message: string } {
  try {
    check();
  } catch (error) {
    if (isSluiceError(error)) return { code: error.code, message: error.message };
    throw error;
  }
  return { code: 'ACCEPTED', message: '' };
}

test('a name that could mislead a path, a terminal or a reader is refused with the reason', () => {
  const wrong: [name: string, reason: RegExp][] = [
    ['', /empty/],
    ['.', /meaning of their own/],
    ['..', /meaning of their own/],
    ['a/b', /contains "\/"/],
    ['a\u0000b', /control character/],
    ['a\r\nb', /control character/],
    ['a\u0085b', /control character/],
    ['a\u007fb', /control character/],
    ['a\u2028b', /line separator/],
    ['invoice\u202Efdp.exe', /direction of text/],
    ['a\u200Eb', /direction of text/],
    ['a\u061Cb', /direction of text/],
    ['a\u2066b', /direction of text/],
    ['a\ud800b', /surrogate/],
    ['\udc00', /surrogate/],
    ['ü'.repeat(128), /256 bytes/],
  ];
  for (const [name, reason] of wrong) {
    const { code, message } = refusal(() => checkName(name));
    assert.equal(code, 'NAME_INVALID', JSON.stringify(name));
    assert.match(message, reason);
    assert.doesNotMatch(message, /[\p{Control}\u200E\u202E\u2028]/u, 'the message itself is safe to print');
  }
  assert.equal(refusal(() => checkName(7 as unknown as string)).code, 'NAME_INVALID');
});

test('ordinary names of any language are kept, in one normal form', () => {
  for (const name of [
    'a',
    '.hidden',
    'a b',
    '…',
    'été.txt',
    '日本語',
    '👩‍👩‍👧',
    'ü'.repeat(127),
    'name.',
    '~',
    'a\\b',
  ])
    assert.equal(checkName(name), name);
  assert.equal(checkName('e\u0301'), '\u00e9');
});

test('a path is names joined by slashes, and at most 1,024 bytes', () => {
  assert.equal(checkPath('a/b c/e\u0301'), 'a/b c/\u00e9');
  for (const path of ['', '/a', 'a/', 'a//b', 'a/../b', './a'])
    assert.equal(refusal(() => checkPath(path)).code, 'NAME_INVALID', path);
  assert.match(refusal(() => checkPath('/a')).message, /begins with a name that is empty/);
  assert.equal(checkPath(`${'a/'.repeat(511)}ab`).length, 1_024);
  assert.equal(refusal(() => checkPath(`${'a/'.repeat(511)}abc`)).code, 'PATH_TOO_LONG');
  assert.equal(refusal(() => checkPath('ü/'.repeat(500) + 'ü')).code, 'PATH_TOO_LONG');
  assert.equal(refusal(() => checkPath('a'.repeat(10_000_000))).code, 'PATH_TOO_LONG');
});

test('metadata is a bounded record of plain strings without a prototype', () => {
  const kept = checkMetadata({ colour: 'red', toString: 'fine' });
  assert.equal(Object.getPrototypeOf(kept), null);
  assert.deepEqual({ ...kept }, { colour: 'red', toString: 'fine' });
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 'v']));
  const wrong: [metadata: unknown, reason: RegExp][] = [
    [JSON.parse('{"__proto__":"x"}'), /__proto__/],
    [{ constructor: 'x' }, /constructor/],
    [{ prototype: 'x' }, /prototype/],
    [{ a: 1 }, /no string/],
    [{ a: { b: 'c' } }, /no string/],
    [['a'], /no object/],
    [null, /no object/],
    ['text', /no object/],
    [{ '': 'x' }, /empty/],
    [{ ['k'.repeat(129)]: 'v' }, /128 bytes/],
    [{ a: 'v'.repeat(2_049) }, /2048 bytes/],
    [{ a: 'b\nc' }, /control character/],
    [{ 'a\u0000': 'b' }, /control character/],
    [{ a: '\ud800' }, /Unicode/],
    [many, /65 entries/],
  ];
  for (const [metadata, reason] of wrong) {
    const { code, message } = refusal(() => checkMetadata(metadata as Record<string, string>));
    assert.equal(code, 'METADATA_INVALID', JSON.stringify(metadata));
    assert.match(message, reason);
  }
});
