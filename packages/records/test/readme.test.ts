/** The README's example is `readme-example.ts`, word for word, and it runs. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { startPostgres } from '@sluice/testbed';

const packageRoot = new URL('../../', import.meta.url);

test('the example in the README of records is the file that runs', async () => {
  const readme = await readFile(new URL('README.md', packageRoot), 'utf8');
  const example = await readFile(new URL('test/readme-example.ts', packageRoot), 'utf8');
  assert.equal(/```ts\n([\s\S]*?)```/.exec(readme)?.[1], example);
});

test('the example in the README of records runs to its end', async (t) => {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  process.env['SLUICE_EXAMPLE_POSTGRES'] = postgres.url;
  await import('./readme-example.js');
  const rows = await postgres.query('SELECT path, status FROM nodes WHERE version = 1 AND size = 5');
  assert.deepEqual(rows, [{ path: 'letters/hello.txt', status: 'ACTIVE' }]);
});
