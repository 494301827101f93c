/** What arrives is what was sent: every size, every kind of source, and what the caller sees of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SluiceUploadError, upload } from '../src/index.js';
import type { UploadInput, UploadOptions, UploadProgress } from '../src/index.js';
import { ownChunkSize } from '../src/session.js';
import { bytesOf, CHUNK, piecesOf, sha256Of, stage, to, withCode } from './stage.js';

const sizes = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 20 * CHUNK + 7];

for (const size of sizes) {
  test(`a file of ${size} bytes arrives as it was sent`, async (t) => {
    const server = await stage(t);
    const bytes = bytesOf(size);
    const result = await upload(new Blob([bytes]), to(server)).done;
    assert.deepEqual(new Uint8Array(server.content()), bytes);
    assert.equal(result.size, size);
    assert.equal(result.sha256, sha256Of(bytes));
    assert.equal(result.nodeId, 'node-u1');
  });

  test(`a stream of ${size} bytes arrives as it was sent, though nobody knew its length`, async (t) => {
    const server = await stage(t);
    const bytes = bytesOf(size);
    const task = upload(piecesOf(bytes), to(server));
    const result = await task.done;
    assert.deepEqual(new Uint8Array(server.content()), bytes);
    assert.equal(result.size, size);
    assert.deepEqual(task.progress, {
      sentBytes: size,
      ackedBytes: size,
      size,
      percent: 100,
      state: 'done',
    });
  });

  test(`without a chunk size, ${size} bytes travel as ranges of the server's part size`, async (t) => {
    const server = await stage(t, { partSize: 512 });
    const { chunkSize: _, ...options } = to(server);
    const bytes = bytesOf(size);
    await upload(bytes, options).done;
    await upload(piecesOf(bytes), { ...options, path: 'b.bin' }).done;
    for (const held of server.uploads.values()) assert.deepEqual(new Uint8Array(server.content(held)), bytes);
    assert.equal(server.count('bytes'), 2 * Math.ceil(size / 512));
    assert.equal(server.count('chunk'), 0);
  });
}

test('a ReadableStream, a File and an array are all accepted', async (t) => {
  const server = await stage(t);
  const bytes = bytesOf(5000);
  const inputs = [new Blob([bytes]).stream(), new File([bytes], 'x'), bytes, Buffer.from(bytes)];
  for (const [index, input] of inputs.entries()) {
    await upload(input as UploadInput, to(server, { path: `${index}` })).done;
  }
  for (const held of server.uploads.values()) assert.deepEqual(new Uint8Array(server.content(held)), bytes);
  assert.equal(server.uploads.size, 4);
});

test('a chunk never crosses the end of a part, however large parts are', () => {
  const mebibyte = 1024 * 1024;
  assert.equal(ownChunkSize(8 * mebibyte), 8 * mebibyte);
  assert.equal(ownChunkSize(0), 16 * mebibyte);
  for (const partSize of [16, 17, 21, 64, 97, 5 * 1024].map((size) => size * mebibyte)) {
    const chunkSize = ownChunkSize(partSize);
    assert.equal(partSize % chunkSize, 0);
    assert.ok(chunkSize <= 16 * mebibyte && chunkSize >= mebibyte, `${chunkSize}`);
  }
});

test('chunks travel in parallel and out of order, never more at once than allowed', async (t) => {
  const server = await stage(t);
  server.fault = ({ chunk }) => ({ slowMs: chunk! % 4 === 0 ? 100 : 10 });
  const bytes = bytesOf(16 * CHUNK);
  await upload(bytes, to(server, { parallel: 4 })).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.equal(server.mostBusy, 4);
});

test('what the caller says of the file reaches the server', async (t) => {
  const server = await stage(t);
  const file = new File(['text'], 'a.txt', { type: 'text/plain' });
  await upload(file, to(server, { metadata: { author: 'Ada' }, key: 'k', path: 'letters/a b.txt' })).done;
  assert.equal(server.only.contentType, 'text/plain');
  assert.deepEqual(server.only.metadata, { author: 'Ada' });
  assert.equal(server.only.path, 'letters/a b.txt');
  assert.ok(server.seen.every(({ headers }) => headers['x-sluice-key'] === 'k'));
});

test('a digest of the whole file is computed, declared and checked', async (t) => {
  const server = await stage(t);
  const bytes = bytesOf(3 * CHUNK + 5);
  await upload(new Blob([bytes]), to(server, { sha256: 'auto' })).done;
  assert.equal(server.only.sha256, sha256Of(bytes));
  const wrong = upload(bytes, to(server, { path: 'b', sha256: sha256Of(bytesOf(9)) }));
  await assert.rejects(wrong.done, withCode('DIGEST_MISMATCH'));
  assert.equal(wrong.progress.state, 'failed');
});

test('the digest of a stream is declared at its end', async (t) => {
  const server = await stage(t);
  for (const size of [0, CHUNK, 2 * CHUNK + 100]) {
    const bytes = bytesOf(size);
    const result = await upload(piecesOf(bytes), to(server, { sha256: 'auto', path: `${size}` })).done;
    assert.equal(result.sha256, sha256Of(bytes));
  }
  assert.deepEqual(
    [...server.uploads.values()].map(({ sha256, size }) => sha256 === sha256Of(bytesOf(size!))),
    [true, true, true],
  );
});

test('a stream is never held in memory beyond the chunks in flight', async (t) => {
  const server = await stage(t);
  server.fault = () => ({ slowMs: 2 });
  const parallel = 3;
  let produced = 0;
  let mostAhead = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (let piece = 0; piece < 64; piece++) {
      produced += CHUNK;
      const received = [...server.uploads.values()][0]?.pieces.size ?? 0;
      mostAhead = Math.max(mostAhead, produced - received * CHUNK);
      yield bytesOf(CHUNK, String(piece));
    }
  }
  await upload(endless(), to(server, { parallel })).done;
  assert.equal(server.content().length, 64 * CHUNK);
  assert.ok(mostAhead <= parallel * CHUNK, `${mostAhead} bytes were read ahead`);
});

test('progress never goes back, whatever goes wrong, and says 100 once, at the end', async (t) => {
  const server = await stage(t, { completeMs: 20 });
  server.fault = ({ kind, count }) => {
    if (kind !== 'chunk') return undefined;
    return count % 3 === 0 ? { drop: 'after' } : count % 4 === 0 ? { status: 503 } : undefined;
  };
  let lost = false;
  server.beforeComplete = (held) => {
    if (!lost) server.lose(held, 2 * CHUNK);
    return lost || ((lost = true), false);
  };
  const told: UploadProgress[] = [];
  await upload(bytesOf(12 * CHUNK), to(server, { onProgress: (progress) => told.push(progress) })).done;
  for (const [index, now] of told.entries()) {
    const before = told[index - 1] ?? now;
    assert.ok(now.ackedBytes >= before.ackedBytes && now.sentBytes >= before.sentBytes);
    assert.ok(now.percent! >= before.percent! && now.ackedBytes <= now.sentBytes);
    assert.ok(now.sentBytes <= 12 * CHUNK);
  }
  assert.deepEqual(
    told.filter(({ percent }) => percent === 100).map(({ state }) => state),
    ['done'],
  );
  assert.equal(told[0]!.state, 'uploading');
  assert.equal(told.at(-1)!.state, 'done');
  assert.ok(lost);
});

test('the end is heard of through events, and without them by asking', async (t) => {
  const withEvents = await stage(t, { completeMs: 3_000 });
  await upload(bytesOf(10), to(withEvents)).done;
  assert.equal(withEvents.count('events'), 1);
  const before = withEvents.count('status');
  assert.ok(before <= 2, `${before} status requests`);
  const without = await stage(t, { completeMs: 3_000, events: false });
  await upload(bytesOf(10), to(without)).done;
  assert.equal(without.only.state, 'COMPLETED');
  assert.ok(without.count('status') >= 2);
});

test('a server that takes its time to store what it has got is waited for, not pestered', async (t) => {
  for (const events of [true, false]) {
    const server = await stage(t, { flushMs: 900, events });
    const task = upload(bytesOf(3 * CHUNK), to(server));
    assert.equal((await task.done).size, 3 * CHUNK);
    const asked = server.count('status') + server.count('complete') + server.count('events');
    assert.ok(asked <= (events ? 2 : 9), `${asked} requests while waiting`);
    assert.equal(server.count('chunk'), 3);
  }
});

test('a small file costs two requests', async (t) => {
  const server = await stage(t);
  await upload(bytesOf(100), to(server)).done;
  assert.deepEqual(
    server.seen.map(({ kind }) => kind),
    ['initiate', 'chunk'],
  );
});

test('options that make no sense are refused with what to do, before any request', async (t) => {
  const server = await stage(t);
  const wrong: Partial<UploadOptions>[] = [
    { url: 'ftp://host' },
    { url: 'host' },
    { drive: '' },
    { path: '' },
    { chunkSize: 0 },
    { chunkSize: 1.5 },
    { parallel: 0 },
    { parallel: 65 },
    { sha256: 'abc' },
    { retry: { attempts: 0 } },
    { retry: { baseMs: -1 } },
  ];
  for (const options of wrong) {
    assert.throws(
      () => upload(bytesOf(1), to(server, options)),
      (error) => error instanceof SluiceUploadError && error.code === 'OPTION_INVALID' && !error.retryable,
      JSON.stringify(options),
    );
  }
  assert.throws(() => upload('text' as unknown as Blob, to(server)), withCode('OPTION_INVALID'));
  assert.throws(() => upload(null as unknown as Blob, to(server)), withCode('OPTION_INVALID'));
  assert.equal(server.seen.length, 0);
});

test('a stream that fails, or brings no bytes, fails the upload and says why', async (t) => {
  const server = await stage(t);
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield bytesOf(3000);
    throw new Error('the disk is gone');
  }
  const failed = upload(broken(), to(server)).done;
  await assert.rejects(failed, /the disk is gone/);
  await assert.rejects(failed, withCode('SOURCE_UNREADABLE'));
  async function* texts(): AsyncGenerator<Uint8Array> {
    yield 'text' as unknown as Uint8Array;
  }
  await assert.rejects(upload(texts(), to(server)).done, withCode('SOURCE_UNREADABLE'));
});
