// The programs that come inside npm run, as somebody who is not root and can write to the folder.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { preparePrograms } from '../src/index.js';

test('the packaged programs run, and the folder belongs to whoever runs them', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-programs-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const run = preparePrograms([folder]);
  for (const name of ['postgres', 'initdb'] as const) {
    const child = run(name, ['--version']);
    let output = '';
    child.stdout!.on('data', (bytes: Buffer) => (output += bytes.toString()));
    const [code] = (await once(child, 'close')) as [number];
    assert.equal(code, 0);
    assert.match(output, /PostgreSQL\) \d+/);
  }
  assert.notEqual(statSync(folder).uid, 0, 'it is root’s, and PostgreSQL does not run as root');
});
