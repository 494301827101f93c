/** The README's example is `readme-example.ts`, word for word, and it runs. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startPostgres, startRedis } from '@sluice/testbed';

const packageRoot = new URL('../../', import.meta.url);

test('the example in the README of upload is the file that runs', async () => {
  const readme = await readFile(new URL('README.md', packageRoot), 'utf8');
  const example = await readFile(new URL('test/readme-example.ts', packageRoot), 'utf8');
  assert.equal(/```ts\n([\s\S]*?)```/.exec(readme)?.[1], example);
});

test('the example in the README of upload runs to its end', async (t) => {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-example-'));
  t.after(() => Promise.all([postgres.stop(), redis.stop(), rm(folder, { recursive: true })]));
  process.env['SLUICE_EXAMPLE_POSTGRES'] = postgres.url;
  process.env['SLUICE_EXAMPLE_REDIS'] = redis.url;
  process.env['SLUICE_EXAMPLE_FOLDER'] = folder;
  await import('./readme-example.js');
  const rows = await postgres.query('SELECT path, status FROM nodes ORDER BY path');
  assert.deepEqual(rows, [
    { path: 'a.js', status: 'ACTIVE' },
    { path: 'b.js', status: 'ACTIVE' },
  ]);
});
