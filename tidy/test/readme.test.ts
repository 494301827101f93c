/**
 * The README shows code; the examples are that code. Each TypeScript block of the README must stand, line by line, in a file
 * of `examples/src`, which the tests of the examples run.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { files, read } from './repository.js';

test('every TypeScript block of the README stands in an example that the tests run', () => {
  const examples = files()
    .filter((file) => file.startsWith('examples/src/') && file.endsWith('.ts'))
    .map(read);
  const blocks = [...read('README.md').matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!.trim());
  assert.ok(blocks.length >= 3);
  for (const block of blocks) {
    assert.ok(
      examples.some((example) => example.includes(block)),
      `no example contains:\n${block}`,
    );
  }
});

test('every file that the README points to exists', () => {
  const links = [...read('README.md').matchAll(/\]\(([^)#]+)\)/g)].map(([, link]) => link!);
  const known = files();
  for (const link of links) {
    assert.ok(
      known.some((file) => file === link || file.startsWith(`${link}/`)),
      `${link} does not exist`,
    );
  }
});
