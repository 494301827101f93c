/** The code that readers see is code that runs: every block in the README files and guides is a part of an example. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sources = `${root}examples/src/`;
const examples = readdirSync(sources).map((name) => readFileSync(sources + name, 'utf8'));
const guides = readdirSync(`${root}docs/guides`).map((name) => `docs/guides/${name}`);
const documents = [
  'README.md',
  'packages/queue/README.md',
  'packages/cache/README.md',
  'examples/README.md',
  ...guides,
];

for (const document of documents.filter((name) => existsSync(root + name))) {
  test(`every block of code in ${document} is a part of an example`, () => {
    for (const [, block] of readFileSync(root + document, 'utf8').matchAll(
      /^```(?:ts|sh)\n([\s\S]*?)^```$/gm,
    )) {
      const found = examples.some((example) => withoutIndents(example).includes(withoutIndents(block!)));
      assert.ok(found, `no example contains this block:\n${block}`);
    }
  });
}

test('every example is named in examples/README.md', () => {
  const readme = readFileSync(`${root}examples/README.md`, 'utf8');
  for (const name of readdirSync(sources)) assert.ok(readme.includes(`(src/${name})`), name);
});

/** A block may be taken from inside a function. */
function withoutIndents(code: string): string {
  return code.replace(/^ +/gm, '').trim();
}
