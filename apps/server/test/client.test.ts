/** The client and the server together, with a server that is killed in the middle. */
import assert from 'node:assert/strict';
import { createCipheriv, createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { upload } from '@sluice/client/node';
import { freePort, waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const ALL = { SLUICE_ROLES: 'api,uploads,relay' };
const MEBIBYTE = 1_048_576;

function bytesOf(size: number): Buffer {
  return createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16)).update(Buffer.alloc(size));
}

test('the client uploads files of all sizes to the server', async () => {
  const server = await startServer(newDataDir(), ALL);
  for (const size of [0, 1, 100_000, 8 * MEBIBYTE, 20 * MEBIBYTE + 3]) {
    const bytes = bytesOf(size);
    const task = upload(bytes, { url: server.url, drive: 'main', path: `of-${size}`, resume: false });
    const { sha256 } = await task.done;
    assert.equal(sha256, createHash('sha256').update(bytes).digest('hex'));
    const back = await fetch(`${server.url}/v1/files/main/of-${size}`);
    assert.ok(Buffer.from(await back.arrayBuffer()).equals(bytes), `${size} bytes`);
  }
  await server.end('SIGTERM');
});

test('a server that is killed in the middle of an upload costs the client only what was not stored', async () => {
  const [dataDir, folder, port] = [newDataDir(), newDataDir(), await freePort()];
  const env = { ...ALL, SLUICE_PORT: String(port) };
  const first = await startServer(dataDir, env);
  const bytes = bytesOf(40 * MEBIBYTE);
  const file = join(folder, 'large.bin');
  writeFileSync(file, bytes);
  const task = upload(file, {
    url: first.url,
    drive: 'main',
    path: 'large.bin',
    chunkSize: MEBIBYTE,
    parallel: 2,
    resume: false,
    // The next start takes as long as it takes.
    retry: { attempts: 1_000, baseMs: 50, capMs: 500 },
  });
  await waitUntil('some chunks are there', () => task.progress.ackedBytes > 5 * MEBIBYTE, {
    timeoutMs: 60_000,
  });
  await first.end('SIGKILL');
  const second = await startServer(dataDir, env);
  const { sha256 } = await task.done;
  assert.equal(sha256, createHash('sha256').update(bytes).digest('hex'));
  await second.end('SIGTERM');
});
