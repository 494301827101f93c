/** The entry for Node: files by path, native checksums, records in a folder. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeOwnedFolder } from '@sluice/testbed';
import { folderStore, upload } from '../src/node.js';
import { bytesOf, CHUNK, sha256Of, stage, to, withCode } from './stage.js';

test('a file is uploaded by its path, its URL and as a stream, each chunk with a native checksum', async (t) => {
  const server = await stage(t);
  const folder = makeOwnedFolder('files');
  const bytes = bytesOf(9 * CHUNK + 11);
  const file = join(folder, 'file.bin');
  writeFileSync(file, bytes);
  const resume = folderStore(join(folder, 'records'));
  await upload(file, to(server, { path: 'a', resume })).done;
  await upload(pathToFileURL(file), to(server, { path: 'b', resume, sha256: 'auto' })).done;
  await upload(createReadStream(file), to(server, { path: 'c', resume, sha256: 'auto' })).done;
  assert.equal(server.uploads.size, 3);
  for (const held of server.uploads.values()) assert.deepEqual(new Uint8Array(server.content(held)), bytes);
  assert.deepEqual(
    [...server.uploads.values()].map(({ sha256 }) => sha256),
    [null, sha256Of(bytes), sha256Of(bytes)],
  );
  const digests = server.seen.flatMap(({ headers }) => headers['content-digest'] ?? []);
  assert.ok(digests.length === 30 && digests.every((digest) => digest.startsWith('crc32=:')));
  assert.deepEqual(readdirSync(join(folder, 'records')), []);
});

test('what is no readable file is refused before any request', async (t) => {
  const server = await stage(t);
  const folder = makeOwnedFolder('unreadable');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
  for (const path of [folder, join(folder, 'absent'), join(folder, 'link'), '']) {
    assert.throws(() => upload(path, to(server)), withCode('SOURCE_UNREADABLE'));
  }
  assert.equal(server.seen.length, 0);
});

test('records are files that only their owner may read, and the oldest are forgotten', async () => {
  const folder = join(makeOwnedFolder('records'), 'uploads');
  const store = folderStore(folder);
  assert.equal(await store.get('sluice-upload-1'), undefined);
  await store.set('sluice-upload-1', 'one');
  await store.set('sluice-upload-1', 'two');
  assert.equal(await store.get('sluice-upload-1'), 'two');
  assert.deepEqual(readdirSync(folder), ['sluice-upload-1.json']);
  assert.equal(statSync(folder).mode & 0o077, 0);
  assert.equal(statSync(join(folder, 'sluice-upload-1.json')).mode & 0o077, 0);
  writeFileSync(join(folder, 'sluice-upload-1.json.4711.0.new'), 'left by a process that died');
  await store.remove('sluice-upload-1');
  await store.remove('sluice-upload-1');
  assert.deepEqual(readdirSync(folder), []);
  for (let age = 0; age < 120; age++) {
    const file = join(folder, `sluice-upload-${age}.json`);
    writeFileSync(file, '{}');
    utimesSync(file, 1_000_000 - age, 1_000_000 - age);
  }
  writeFileSync(join(folder, 'not-ours.json'), '');
  await folderStore(folder).set('sluice-upload-new', 'new');
  const left = readdirSync(folder);
  assert.equal(left.length, 101);
  assert.ok(left.includes('sluice-upload-0.json') && !left.includes('sluice-upload-119.json'));
  assert.ok(left.includes('not-ours.json') && left.includes('sluice-upload-new.json'));
});

test('a key cannot lead out of the folder of the records', async () => {
  const folder = join(makeOwnedFolder('escape'), 'uploads');
  mkdirSync(folder);
  await folderStore(folder).set('../../outside', 'text');
  assert.deepEqual(readdirSync(folder), ['______outside.json']);
});
