// Chunks in every order and of every size become the file that was sent, or nothing changes.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { parseDigest, type NewUpload } from '../src/index.js';
import {
  bytesOf,
  contentOf,
  ended,
  mebibyte,
  servers,
  sha256,
  startService,
  stream,
  tenant,
} from './harness.js';

after(async () => {
  const { redis, postgres } = await servers();
  await Promise.all([redis.stop(), postgres.stop()]);
});

const small = { preferredPartBytes: mebibyte, wholeBytes: mebibyte };

test('chunks smaller than a part arrive out of order and become the file', async (t) => {
  const service = await startService(t, { settings: small });
  const { uploads } = service;
  const bytes = bytesOf(5 * mebibyte + 12_345);
  const chunkSize = 300_000;
  const upload = await uploads.initiate({
    tenant,
    drive: 'main',
    path: 'a/b.bin',
    size: bytes.length,
    chunkSize,
  });
  const numbers = Array.from({ length: Math.ceil(bytes.length / chunkSize) }, (_, n) => n).toReversed();
  for (const number of numbers) {
    const chunk = bytes.subarray(number * chunkSize, (number + 1) * chunkSize);
    const { ack } = await uploads.receive(upload.id, { number }, stream(chunk), chunk.length);
    assert.equal(ack, 'buffered');
  }
  const { state, result, missing } = await ended(uploads, upload.id);
  assert.equal(state, 'COMPLETED');
  assert.deepEqual(missing, []);
  assert.equal(result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'a/b.bin'), bytes);
});

test('a chunk that is a whole part goes straight to the store', async (t) => {
  const service = await startService(t, { settings: small });
  const { uploads } = service;
  const bytes = bytesOf(4 * mebibyte + 1);
  const upload = await uploads.initiate({
    tenant,
    drive: 'main',
    path: 'big',
    size: bytes.length,
    chunkSize: mebibyte,
  });
  assert.equal(upload.partSize, mebibyte);
  await Promise.all(
    [0, 1, 2, 3, 4].map(async (number) => {
      const chunk = bytes.subarray(number * mebibyte, (number + 1) * mebibyte);
      const { ack } = await uploads.receive(upload.id, { number }, stream(chunk), chunk.length);
      assert.equal(ack, 'stored');
    }),
  );
  const { result } = await ended(uploads, upload.id);
  assert.equal(result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'big'), bytes);
});

test('a file in one call is stored, whatever its size', async (t) => {
  const service = await startService(t, { settings: small });
  for (const size of [0, 1, 100_000, mebibyte, mebibyte + 1, 3 * mebibyte + 7]) {
    const bytes = bytesOf(size, size);
    for (const length of [size, undefined]) {
      const path = `${size}-${String(length)}`;
      const file = await service.uploads.store({ tenant, drive: 'main', path }, stream(bytes), length);
      assert.equal(file.sha256, sha256(bytes), path);
      assert.deepEqual(await contentOf(service, path), bytes, path);
    }
  }
});

test('nobody listens to a body any more when its file was refused, or broke off', async (t) => {
  const { uploads } = await startService(t, { settings: small });
  const listeners: [string, number][] = [];
  const refuse = async (what: string, file: Partial<NewUpload>, length?: number): Promise<void> => {
    const source = new Readable({ read() {} });
    source.push(bytesOf(10));
    const storing = uploads.store({ tenant, drive: 'main', path: what, ...file }, source, length);
    if (length === undefined) source.destroy(new Error('cut'));
    await assert.rejects(storing, what);
    listeners.push([what, source.listenerCount('data')]);
  };
  await refuse('no drive', { drive: 'none' }, 10);
  await refuse('no path', { path: '../x' }, 10);
  await refuse('too large', { limits: { maxFileBytes: 5 } }, 10);
  await refuse('no large drive', { drive: 'none' }, 2 * mebibyte);
  await refuse('cut off', {});
  assert.deepEqual(
    listeners.filter(([, count]) => count > 0),
    [],
  );
});

test('the same bytes again are a success, other bytes are a conflict', async (t) => {
  const { uploads } = await startService(t, { settings: small });
  const bytes = bytesOf(2 * mebibyte);
  const upload = await uploads.initiate({
    tenant,
    drive: 'main',
    path: 'dup',
    size: bytes.length,
    chunkSize: 500_000,
  });
  const chunk = bytes.subarray(0, 500_000);
  await uploads.receive(upload.id, { number: 0 }, stream(chunk), chunk.length);
  const again = await uploads.receive(upload.id, { number: 0 }, stream(chunk), chunk.length);
  assert.equal(again.duplicate, true);
  assert.equal(again.state.receivedBytes, 500_000);
  const other = bytesOf(500_000, 9);
  await assert.rejects(uploads.receive(upload.id, { number: 0 }, stream(other), other.length), {
    code: 'CHUNK_CONFLICT',
  });
  assert.equal((await uploads.status(upload.id)).receivedBytes, 500_000);
});

test('a range that is sent again is compared, wherever it was cut, and other bytes are a conflict', async (t) => {
  const service = await startService(t, { settings: small });
  const { uploads } = service;
  const bytes = bytesOf(5 * mebibyte);
  const { id } = await uploads.initiate({ tenant, drive: 'main', path: 'dup', size: bytes.length });
  // Over three parts, of which the last is cut in the middle: two of its frames have arrived by then.
  const [first, last] = [mebibyte / 2, 4 * mebibyte];
  const range = bytes.subarray(first, last);
  const cutAt = range.length - 200_000;
  await assert.rejects(
    uploads.receive(id, { offset: first }, stream(range.subarray(0, cutAt)), range.length),
    {
      code: 'BODY_TRUNCATED',
    },
  );
  const { receivedBytes } = await uploads.status(id);
  const changed = Buffer.from(range);
  changed[10]! ^= 1;
  await assert.rejects(uploads.receive(id, { offset: first }, stream(changed), range.length), {
    code: 'CHUNK_CONFLICT',
  });
  assert.equal((await uploads.status(id)).receivedBytes, receivedBytes);
  const whole = await uploads.receive(id, { offset: first }, stream(range), range.length);
  assert.equal(whole.duplicate, false);
  for (const again of [1, 2]) {
    const { duplicate, state } = await uploads.receive(id, { offset: first }, stream(range), range.length);
    assert.deepEqual([duplicate, state.receivedBytes], [true, range.length], `time ${again}`);
  }
  for (const [from, to] of [
    [0, first],
    [last, bytes.length],
  ] as const)
    await uploads.receive(id, { offset: from }, stream(bytes.subarray(from, to)), to - from);
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'dup'), bytes);
});

test('a wrong digest leaves nothing behind', async (t) => {
  const { uploads } = await startService(t, { settings: small });
  const upload = await uploads.initiate({ tenant, drive: 'main', path: 'd', size: 100, chunkSize: 50 });
  const digest = parseDigest(`sha-256=:${Buffer.alloc(32).toString('base64')}:`);
  const chunk = bytesOf(50);
  await assert.rejects(uploads.receive(upload.id, { number: 0 }, stream(chunk), 50, digest), {
    code: 'DIGEST_MISMATCH',
  });
  const { receivedBytes, missing } = await uploads.status(upload.id);
  assert.equal(receivedBytes, 0);
  assert.deepEqual(missing, [[0, 99]]);
});
