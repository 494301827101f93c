// Chunks in every order and of every size become the file that was sent, or nothing changes.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { crc64, type ObjectStore } from '@sluice/store';
import { parseDigest, type NewUpload } from '../src/index.js';
import {
  bytesOf,
  contentOf,
  ended,
  faulty,
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

test('a file whose only chunk says that it is the last is one object, not a multipart upload', async (t) => {
  const made: string[] = [];
  const wrap = (store: ObjectStore): ObjectStore =>
    faulty(store, new Map([['createMultipart', (call, key) => (made.push(String(key)), call())]]));
  const service = await startService(t, { settings: small, wrap });
  const { uploads } = service;
  const bytes = bytesOf(100);
  const upload = { tenant, drive: 'main', chunkSize: mebibyte };
  const numbered = await uploads.initiate({ ...upload, path: 'numbered' });
  await uploads.receive(numbered.id, { number: 0, last: true }, stream(bytes), bytes.length);
  const ranged = await uploads.initiate({ tenant, drive: 'main', path: 'ranged' });
  await uploads.receive(ranged.id, { offset: 0, total: 100 }, stream(bytes), bytes.length);
  for (const { id, path } of [numbered, ranged]) {
    assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
    assert.deepEqual(await contentOf(service, path), bytes);
  }
  assert.deepEqual(made, []);
});

test('other bytes with the same checksum, sent again elsewhere, do not change the digest of the file', async (t) => {
  const service = await startService(t, { settings: small });
  const { uploads: first, another } = service;
  const second = await another();
  const bytes = bytesOf(600_000);
  const chunkSize = 300_000;
  const chunk = bytes.subarray(0, chunkSize);
  const twin = withCrcOf(chunk, bytesOf(chunkSize, 7));
  assert.equal(crc64(twin), crc64(chunk));
  const upload = { tenant, drive: 'main', path: 'f', size: bytes.length, chunkSize };
  const { id } = await first.initiate(upload);
  await first.receive(id, { number: 0 }, stream(chunk), chunkSize);
  const again = await second.receive(id, { number: 0 }, stream(twin), chunkSize);
  assert.equal(again.duplicate, true);
  await second.receive(id, { number: 1 }, stream(bytes.subarray(chunkSize)), chunkSize);
  assert.equal((await ended(second, id)).result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'f'), bytes);
});

/** The other bytes, of which the last eight are chosen so that they have the same CRC-64: every bit of them changes it by a pattern. */
function withCrcOf(wanted: Buffer, other: Buffer): Buffer {
  const forged = Buffer.from(other);
  const at = forged.length - 8;
  const before = crc64(forged.subarray(0, at));
  const crcOf = (last: bigint): bigint => {
    forged.writeBigUInt64LE(last, at);
    return crc64(forged.subarray(at), before);
  };
  const base = crcOf(0n);
  // Gaussian elimination over bits: of each pattern its highest bit, and which bits make it.
  const rows: { pattern: bigint; bits: bigint }[] = [];
  const reduced = (pattern: bigint, bits: bigint) => {
    for (const row of rows)
      if ((pattern ^ row.pattern) < pattern) [pattern, bits] = [pattern ^ row.pattern, bits ^ row.bits];
    return { pattern, bits };
  };
  for (let bit = 0n; bit < 64n; bit++) {
    const row = reduced(crcOf(1n << bit) ^ base, 1n << bit);
    if (row.pattern !== 0n) rows.push(row);
    rows.sort((a, b) => (a.pattern > b.pattern ? -1 : 1));
  }
  const { pattern, bits } = reduced(crc64(wanted) ^ base, 0n);
  assert.equal(pattern, 0n);
  crcOf(bits);
  return forged;
}

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
