// The README's example is `readme-example.ts`, word for word, and it runs.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { startRedis } from '@sluice/testbed';

const packageRoot = new URL('../../', import.meta.url);

test('the example in the README of redis is the file that runs', async () => {
  const readme = await readFile(new URL('README.md', packageRoot), 'utf8');
  const example = await readFile(new URL('test/readme-example.ts', packageRoot), 'utf8');
  assert.equal(/```ts\n([\s\S]*?)```/.exec(readme)?.[1], example);
});

test('the example in the README of redis runs to its end', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  process.env['SLUICE_EXAMPLE_REDIS'] = redis.url;
  await import('./readme-example.js');
  assert.equal(await redis.command('GET', 'greeting'), 'hello');
});
