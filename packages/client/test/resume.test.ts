/** Nothing that arrived is sent twice, and no two files are mixed: after a pause, a crash, a reload, a lost reply. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { utimesSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { latch, makeOwnedFolder, spawnOwned, waitUntil } from '@sluice/testbed';
import { upload } from '../src/index.js';
import type { UploadOptions, UploadState } from '../src/index.js';
import type { ProtocolServer } from './protocolServer.js';
import { bytesOf, CHUNK, memoryStore, piecesOf, sha256Of, stage, to, withCode } from './stage.js';

const KILLED_CHUNK = 4096;

test('a process killed in the middle leaves an upload that the next one finishes, sending only what is missing', async (t) => {
  const server = await stage(t);
  const folder = makeOwnedFolder('killed');
  const file = join(folder, 'file.bin');
  const bytes = bytesOf(64 * KILLED_CHUNK);
  writeFileSync(file, bytes);
  // From the thirtieth on nothing gets through, so that the process is in the middle however late it is killed.
  server.fault = ({ kind, count }) => (kind === 'chunk' && count > 30 ? { drop: 'before' } : undefined);
  const first = startUploader(server, file, join(folder, 'records'));
  await waitUntil('twenty chunks have arrived', () => [...server.uploads.values()][0]!.pieces.size >= 20);
  first.kill('SIGKILL');
  await once(first, 'exit');
  await waitUntil('nobody is connected', () => server.isDeserted());
  server.fault = () => undefined;
  const arrived = new Set([...server.only.pieces.keys()].map((firstByte) => firstByte / KILLED_CHUNK));
  assert.ok(arrived.size >= 20 && arrived.size <= 30, `${arrived.size} chunks had arrived`);
  const before = server.seen.length;
  const second = startUploader(server, file, join(folder, 'records'));
  const printed: string[] = [];
  second.stdout!.on('data', (text) => printed.push(String(text)));
  const [code] = (await once(second, 'close')) as [number];
  assert.equal(code, 0);
  assert.match(printed.join(''), new RegExp(`stored ${sha256Of(bytes)}`));
  assert.deepEqual(new Uint8Array(server.content(server.only)), bytes);
  const resent = server.seen.slice(before).flatMap(({ chunk }) => (chunk === null ? [] : [chunk]));
  assert.deepEqual(
    resent.filter((chunk) => arrived.has(chunk)),
    [],
  );
  assert.equal(resent.length, 64 - arrived.size);
  assert.deepEqual(await readdir(join(folder, 'records')), []);
});

function startUploader(server: ProtocolServer, file: string, records: string): ReturnType<typeof spawnOwned> {
  const program = fileURLToPath(new URL('killedUploader.js', import.meta.url));
  return spawnOwned(process.execPath, [program, server.url, file, records, String(KILLED_CHUNK)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

test('a crash between the first request and its reply makes no second upload', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(3 * CHUNK);
  server.fault = () => ({ drop: 'after' });
  await assert.rejects(
    upload(bytes, to(server, { resume, retry: { attempts: 1 } })).done,
    withCode('NETWORK'),
  );
  assert.equal(server.uploads.size, 1);
  server.fault = () => undefined;
  await upload(bytes, to(server, { resume })).done;
  assert.deepEqual(new Uint8Array(server.content(server.only)), bytes);
  assert.equal(resume.texts.size, 0);
});

test('a stopped upload continues with what is missing, and what was sent is compared with the file', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(10 * CHUNK + 3);
  const arrived = await sendSome(server, bytes, resume);
  const states = new Set<UploadState>();
  const onProgress = ({ state }: { state: UploadState }): void => void states.add(state);
  await upload(bytes, to(server, { resume, onProgress })).done;
  assert.deepEqual(new Uint8Array(server.content(server.only)), bytes);
  assert.equal(server.chunksSeen().length - arrived.sent, 11 - arrived.stored);
  assert.ok(states.has('verifying'));
});

test('a file that looks the same but differs in the middle is never mixed with the one before', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const size = 200 * CHUNK;
  const before = bytesOf(size);
  const now = before.slice();
  // The chunks around the middle are not a part of what the two are told apart by.
  now[70 * CHUNK]! ^= 1;
  await sendSome(server, before, resume, 90);
  assert.equal(resume.texts.size, 1);
  const key = [...resume.texts.keys()][0]!;
  await upload(now, to(server, { resume })).done;
  assert.equal(server.uploads.size, 2, 'it was started anew');
  assert.deepEqual(new Uint8Array(server.content(server.uploads.get('u2'))), now);
  assert.ok(!resume.texts.has(key), 'both have the same key');
});

test('chunks of which no digest is remembered are sent again, and a conflict starts the upload anew', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const before = bytesOf(200 * CHUNK);
  const now = before.slice();
  now[70 * CHUNK]! ^= 1;
  await sendSome(server, before, resume, 90);
  const [key, text] = [...resume.texts][0]!;
  resume.texts.set(key, text.replace(/"prints":"[^"]*"/, '"prints":""'));
  await upload(now, to(server, { resume })).done;
  assert.equal(server.uploads.size, 2);
  assert.deepEqual(new Uint8Array(server.content(server.uploads.get('u2'))), now);
});

test('a remembered upload of another size is left alone', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(5 * CHUNK);
  await sendSome(server, bytes, resume);
  server.only.size = 4 * CHUNK;
  await upload(bytes, to(server, { resume })).done;
  assert.equal(server.uploads.size, 2);
  assert.deepEqual(new Uint8Array(server.content(server.uploads.get('u2'))), bytes);
});

for (const state of ['FAILED', 'EXPIRED', 'CANCELLED', 'forgotten'] as const) {
  test(`a remembered upload that is ${state.toLowerCase()} is started anew`, async (t) => {
    const server = await stage(t);
    const resume = memoryStore();
    const bytes = bytesOf(5 * CHUNK);
    await sendSome(server, bytes, resume);
    const { only } = server;
    if (state === 'forgotten') server.uploads.set('u0', { ...only, id: 'u0' });
    if (state === 'forgotten') server.uploads.delete(only.id);
    else only.state = state;
    await upload(bytes, to(server, { resume })).done;
    assert.deepEqual(new Uint8Array(server.content(server.uploads.get('u2'))), bytes);
    assert.equal(resume.texts.size, 0);
  });
}

test('an upload that expires while it is running is started anew; a stream says that it cannot', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind, count }) => {
    if (kind === 'chunk' && count === 3) server.uploads.get('u1')!.state = 'EXPIRED';
    return undefined;
  };
  const bytes = bytesOf(6 * CHUNK);
  await upload(bytes, to(server)).done;
  assert.deepEqual(new Uint8Array(server.content(server.uploads.get('u2'))), bytes);
  const other = await stage(t);
  other.fault = ({ kind, count }) => {
    if (kind === 'chunk' && count === 3) other.uploads.delete('u1');
    return undefined;
  };
  await assert.rejects(upload(piecesOf(bytes), to(other)).done, withCode('UPLOAD_NOT_FOUND'));
});

test('an upload that had completed before the crash is recognised, and no byte is sent', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(5 * CHUNK);
  const forgetful = { ...resume, remove: () => {} };
  const first = await upload(bytes, to(server, { resume: forgetful })).done;
  const sent = server.count('chunk');
  const second = await upload(bytes, to(server, { resume })).done;
  assert.deepEqual(second, first);
  assert.equal(server.count('chunk'), sent);
});

test('what had completed more than a day ago is uploaded again: it may be gone by now', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(5 * CHUNK);
  await upload(bytes, to(server, { resume: { ...resume, remove: () => {} } })).done;
  for (const [key, text] of resume.texts) {
    const record = JSON.parse(text) as { savedAt: number };
    resume.texts.set(key, JSON.stringify({ ...record, savedAt: record.savedAt - 25 * 3_600_000 }));
  }
  const again = await upload(bytes, to(server, { resume })).done;
  assert.equal(again.nodeId, 'node-u2');
});

test('an old upload that is finished, paused and resumed now is not begun again', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(8 * CHUNK);
  await sendSome(server, bytes, resume, 4);
  for (const [key, text] of resume.texts) {
    const record = JSON.parse(text) as { savedAt: number };
    resume.texts.set(key, JSON.stringify({ ...record, savedAt: record.savedAt - 25 * 3_600_000 }));
  }
  const { opened, open } = latch();
  server.fault = ({ kind }) => (kind === 'chunk' ? { heldUntil: opened } : undefined);
  const task = upload(bytes, to(server, { resume }));
  await waitUntil('it is being sent', () => server.busy > 0);
  task.pause();
  open();
  await waitUntil('what was on its way has arrived', () => server.busy === 0);
  const held = server.only;
  for (let first = 0; first < bytes.length; first += CHUNK)
    held.pieces.set(first, { first, bytes: Buffer.from(bytes.subarray(first, first + CHUNK)) });
  held.state = 'COMPLETING';
  server.finish(held);
  task.resume();
  assert.equal((await task.done).nodeId, 'node-u1');
  assert.equal(server.uploads.size, 1);
});

test('a token that takes long is asked for once', async (t) => {
  const server = await stage(t);
  const { opened, open } = latch();
  let asked = 0;
  const token = async (): Promise<string> => {
    asked++;
    await opened;
    return 'slow';
  };
  const task = upload(bytesOf(5 * CHUNK), to(server, { token }));
  await waitUntil('somebody has asked', () => asked === 1);
  task.pause();
  task.resume();
  open();
  await task.done;
  assert.equal(asked, 1);
});

test('who asks for other metadata, another type or another end of a conflict begins another upload', async (t) => {
  const bytes = bytesOf(8 * CHUNK);
  for (const other of [
    { metadata: { title: 'b' } },
    { contentType: 'text/plain' },
    { ifExists: 'fail' },
  ] satisfies Partial<UploadOptions>[]) {
    const server = await stage(t);
    const resume = memoryStore();
    await sendSome(server, bytes, resume, 4);
    await upload(bytes, to(server, { resume, ...other })).done;
    assert.equal(server.uploads.size, 2);
    assert.equal(server.uploads.get('u1')!.state, 'UPLOADING');
  }
});

test('a stream that breaks while the upload is paused fails it, and is never taken for its end', async (t) => {
  const server = await stage(t);
  const { opened: mayBreak, open: break_ } = latch();
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield bytesOf(CHUNK);
    await mayBreak;
    throw new Error('ECONNRESET');
  }
  const task = upload(broken(), to(server, { sha256: 'auto' }));
  await waitUntil('the first chunk has arrived', () => server.count('chunk') > 0);
  task.pause();
  break_();
  await sleep(20);
  task.resume();
  await assert.rejects(task.done, withCode('SOURCE_UNREADABLE'));
  assert.notEqual(server.only.state, 'COMPLETED');
});

test('the end of a stream is said again when the server has forgotten it', async (t) => {
  const server = await stage(t, { completeMs: 60_000 });
  const bytes = bytesOf(3 * CHUNK);
  let forgotten = false;
  server.fault = ({ kind }) => {
    const [held] = server.uploads.values();
    // As after a failover to a Redis that had not heard of it.
    if (held?.state === 'COMPLETING' && !forgotten && kind !== 'complete') {
      forgotten = true;
      Object.assign(held, { state: 'UPLOADING', size: null });
    } else if (forgotten && held?.state === 'COMPLETING') server.finish(held);
    return undefined;
  };
  const result = await upload(piecesOf(bytes), to(server)).done;
  assert.equal(result.size, bytes.length);
  assert.equal(server.count('complete'), 2);
});

test('a token that never comes keeps nobody from stopping, nor hashing from cancelling', async (t) => {
  const server = await stage(t);
  const stop = new AbortController();
  const waiting = upload(
    bytesOf(10),
    to(server, { token: () => new Promise(() => {}), signal: stop.signal }),
  );
  await sleep(20);
  stop.abort();
  await assert.rejects(waiting.done, withCode('ABORTED'));
  const hashing = upload(bytesOf(50 * CHUNK), to(server, { sha256: 'auto' }));
  assert.equal(await hashing.cancel(), true);
  assert.equal(server.seen.length, 0);
});

test('a record that is damaged, and a store that fails, cost nothing but the resumption', async (t) => {
  const server = await stage(t);
  const bytes = bytesOf(3 * CHUNK);
  for (const text of ['', '{', 'null', '{"idempotencyKey":5}', '[]']) {
    const resume = { ...memoryStore(), get: () => text };
    await upload(bytes, to(server, { resume })).done;
  }
  const full = (): never => {
    throw new Error('quota exceeded');
  };
  await upload(bytes, to(server, { resume: { get: full, set: full, remove: full } })).done;
  assert.equal(server.uploads.size, 6);
  for (const held of server.uploads.values()) assert.deepEqual(new Uint8Array(server.content(held)), bytes);
});

test('a key of the caller is one upload, on whatever machine, and never holds two files', async (t) => {
  const server = await stage(t);
  const bytes = bytesOf(4 * CHUNK);
  const options = to(server, { idempotencyKey: 'order-7' });
  const first = await upload(bytes, options).done;
  assert.deepEqual(await upload(bytes, options).done, first);
  assert.equal(server.uploads.size, 1);
  for (const other of [bytesOf(9), bytesOf(4 * CHUNK, 'other')]) {
    await assert.rejects(upload(other, options).done, withCode('KEY_REUSED'));
  }
  const half = to(server, { idempotencyKey: 'order-8' });
  await sendSome(server, bytes, false, 2, 'order-8');
  const other = bytesOf(4 * CHUNK, 'other');
  await assert.rejects(upload(other, half).done, withCode('CHUNK_CONFLICT'));
});

test('a key of the caller whose upload has failed long ago leads to a new one, the same on each start', async (t) => {
  const server = await stage(t);
  const options = to(server, { idempotencyKey: 'order-9' });
  server.fault = ({ kind, headers }) =>
    kind === 'initiate' && headers['idempotency-key'] === 'order-9'
      ? { status: 409, code: 'UPLOAD_ENDED' }
      : undefined;
  const first = await upload(bytesOf(10), options).done;
  assert.deepEqual(await upload(bytesOf(10), options).done, first);
  assert.equal(server.uploads.size, 1);
});

test('a pause ends the requests in flight at once, and nothing is sent until it is over', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind, count }) => (kind === 'chunk' && count > 4 ? { slowMs: 5_000 } : undefined);
  const bytes = bytesOf(12 * CHUNK);
  const task = upload(bytes, to(server));
  await waitUntil('three requests are in flight', () => server.busy === 3 && server.count('chunk') > 6);
  task.pause();
  assert.equal(task.progress.state, 'paused');
  const requests = server.seen.length;
  server.fault = () => undefined;
  await sleep(60);
  assert.equal(server.seen.length, requests);
  assert.equal(task.progress.state, 'paused');
  task.resume();
  await task.done;
  assert.deepEqual(new Uint8Array(server.content(server.only)), bytes);
  assert.equal(task.progress.state, 'done');
});

test('pausing and resuming at any moment loses nothing, of files and of streams', async (t) => {
  const server = await stage(t, { completeMs: 10 });
  server.fault = ({ count }) => ({ slowMs: count % 3 });
  const bytes = bytesOf(30 * CHUNK + 1);
  const inputs = { file: bytes, stream: piecesOf(bytes) };
  for (const [path, input] of Object.entries(inputs)) {
    const task = upload(input, to(server, { path, resume: memoryStore() }));
    for (let turn = 0; turn < 25 && task.progress.state !== 'done'; turn++) {
      task.pause();
      if (turn % 2 === 0) await sleep(turn % 5);
      task.resume();
      await sleep(turn % 7);
    }
    await task.done;
  }
  assert.equal(server.uploads.size, 2);
  for (const held of server.uploads.values()) assert.deepEqual(new Uint8Array(server.content(held)), bytes);
});

test('cancelling deletes the upload on the server and forgets it', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind, count }) => (kind === 'chunk' && count > 2 ? { slowMs: 5_000 } : undefined);
  const resume = memoryStore();
  const task = upload(bytesOf(9 * CHUNK), to(server, { resume }));
  await waitUntil('chunks are in flight', () => server.count('chunk') > 3);
  assert.equal(await task.cancel(), true);
  await assert.rejects(task.done, withCode('CANCELLED'));
  assert.equal(server.only.state, 'CANCELLED');
  assert.equal(task.progress.state, 'cancelled');
  assert.equal(resume.texts.size, 0);
  assert.equal(await task.cancel(), true);
});

test('cancelling while the first reply is on its way still finds the upload and deletes it', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind, count }) => {
    if (kind === 'initiate' && count === 1) return { drop: 'after' };
    // The pause before the second try is chosen at random, and may be none.
    return kind === 'chunk' ? { drop: 'before' } : undefined;
  };
  const task = upload(bytesOf(10), to(server, { retry: { baseMs: 60_000, capMs: 60_000 } }));
  await waitUntil('the upload exists', () => server.uploads.size === 1);
  assert.equal(await task.cancel(), true);
  assert.equal(server.only.state, 'CANCELLED');
});

test('cancelling too late changes nothing: the result stands', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind }) => {
    if (kind !== 'chunk') return undefined;
    queueMicrotask(() => void task.cancel().then((cancelled) => (answer = cancelled)));
    return { drop: 'after' };
  };
  let answer: boolean | undefined;
  const task = upload(bytesOf(10), to(server));
  const result = await task.done;
  await waitUntil('cancelling was answered', () => answer !== undefined);
  assert.equal(result.size, 10);
  assert.equal(answer, false);
  assert.equal(await task.cancel(), false);
});

test('cancelling and pausing also work while a stream brings nothing', async (t) => {
  const server = await stage(t);
  let returned = false;
  const silent: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => {
        returned = true;
        return { done: true, value: undefined };
      },
    }),
  };
  const task = upload(silent, to(server));
  await waitUntil('the upload is known', () => task.uploadId !== null);
  task.pause();
  await sleep(10);
  assert.equal(await task.cancel(), true);
  assert.equal(server.only.state, 'CANCELLED');
  assert.ok(returned, 'the stream was told that nobody reads on');
});

test('a signal stops the upload and leaves it to be continued', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(8 * CHUNK);
  const { stored } = await sendSome(server, bytes, resume, 4);
  assert.equal(server.only.state, 'UPLOADING');
  assert.ok(stored >= 4);
  const stopped = upload(bytes, to(server, { resume, signal: AbortSignal.abort() }));
  await assert.rejects(stopped.done, withCode('ABORTED'));
});

test('two tasks that upload the same file at the same time end with one upload', async (t) => {
  const server = await stage(t);
  const resume = memoryStore();
  const bytes = bytesOf(12 * CHUNK);
  const { opened, open } = latch();
  server.fault = ({ kind }) => (kind === 'chunk' ? { heldUntil: opened } : undefined);
  const first = upload(bytes, to(server, { resume }));
  await waitUntil('the upload is known', () => first.uploadId !== null);
  const second = upload(bytes, to(server, { resume }));
  await waitUntil('the other knows it too', () => second.uploadId !== null);
  open();
  assert.deepEqual(await first.done, await second.done);
  assert.deepEqual(new Uint8Array(server.content(server.only)), bytes);
});

test('a file on disk that is written to while it is uploaded is refused', async (t) => {
  const { upload: uploadFile } = await import('../src/node.js');
  const server = await stage(t);
  const file = join(makeOwnedFolder('changing'), 'file.bin');
  writeFileSync(file, bytesOf(20 * CHUNK));
  server.fault = ({ kind, count }) => {
    if (kind === 'chunk' && count === 4) utimesSync(file, new Date(), new Date(1_000_000));
    return undefined;
  };
  await assert.rejects(uploadFile(file, to(server)).done, withCode('SOURCE_CHANGED'));
});

/** Starts an upload and stops it when some chunks have arrived. */
async function sendSome(
  server: ProtocolServer,
  bytes: Uint8Array<ArrayBuffer>,
  resume: ReturnType<typeof memoryStore> | false,
  chunks = 3,
  idempotencyKey?: string,
): Promise<{ sent: number; stored: number }> {
  const stop = new AbortController();
  const held = server.uploads.size;
  const started = server.count('chunk');
  server.fault = ({ kind, count }) =>
    kind === 'chunk' && count - started > chunks ? { drop: 'before' } : undefined;
  const task = upload(
    bytes,
    to(server, {
      resume,
      signal: stop.signal,
      retry: { baseMs: 60_000, capMs: 60_000 },
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    }),
  );
  await waitUntil('some chunks have arrived', () => {
    const upload = [...server.uploads.values()][held];
    return upload !== undefined && upload.pieces.size >= chunks && server.busy === 0;
  });
  stop.abort();
  await assert.rejects(task.done, withCode('ABORTED'));
  server.fault = () => undefined;
  const stored = [...server.uploads.values()][held]!.pieces.size;
  return { sent: server.chunksSeen().length, stored };
}
