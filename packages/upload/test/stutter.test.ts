// Every script of uploads may run twice: the connection repeats a call whose answer got lost. Here every one of them does, always, and
// the caller gets the second answer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { RedisLink, type Script } from '@sluice/redis';
import { scripts } from '../src/scripts.js';
import {
  begin,
  bytesOf,
  contentOf,
  ended,
  mebibyte,
  nothingLeftBut,
  objectOf,
  quick,
  remainsOf,
  send,
  sendMissing,
  sendRange,
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
  wasQuietFor,
} from './harness.js';
import { waitUntil } from '@sluice/testbed';

const repeated = new Set<Script>(Object.values(scripts));
const ran = new Set<string>();
type Run = (script: Script, ...rest: unknown[]) => Promise<unknown>;

before(() => {
  // Typed by its own class; here any script may come.
  const link = RedisLink.prototype as unknown as { run: Run };
  const { run } = link;
  link.run = async function twice(this: RedisLink, script, ...rest) {
    const answer = await run.call(this, script, ...rest);
    // Those who are due are handed out once: the second time there are none, and they come again later.
    if (!repeated.has(script) || script.name === 'overdue') return answer;
    ran.add(script.name);
    return run.call(this, script, ...rest);
  };
});
after(stopServers);

test('with every answer lost once, buffered chunks in any order become the file, and nothing is left', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const bytes = bytesOf(3 * mebibyte + 777);
  const { id } = await begin(uploads, 'f', { size: bytes.length, chunkSize: 400_000 });
  for (const number of [8, 3, 0, 1, 7, 2, 5, 4, 6].filter((n) => n * 400_000 < bytes.length)) {
    const chunk = bytes.subarray(number * 400_000, (number + 1) * 400_000);
    const { duplicate } = await send(uploads, id, { number }, chunk);
    assert.equal(duplicate, false, 'its own first run is no duplicate');
  }
  const { state, result } = await ended(uploads, id);
  assert.equal(state, 'COMPLETED');
  assert.equal(result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'f'), bytes);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('with every answer lost once, whole parts and a whole file go to the store once', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const bytes = bytesOf(2 * mebibyte + 5);
  const big = await begin(uploads, 'big', { size: bytes.length });
  await sendRange(uploads, big.id, bytes, 0);
  const one = bytes.subarray(0, mebibyte);
  const single = await begin(uploads, 'single', { size: mebibyte, chunkSize: mebibyte });
  await send(uploads, single.id, { number: 0 }, one);
  const small = await uploads.store(
    { tenant, drive: 'main', path: 'small' },
    stream(one.subarray(0, 99)),
    99,
  );
  assert.equal((await ended(uploads, big.id)).result!.sha256, sha256(bytes));
  assert.equal((await ended(uploads, single.id)).result!.sha256, sha256(one));
  assert.equal(small.size, 99);
  const objects = await Promise.all(['big', 'single', 'small'].map((path) => objectOf(service, path)));
  await nothingLeftBut(service, objects);
});

test('with every answer lost once, an idle tail is staged once, and lost bytes are asked for once', async (t) => {
  const service = await startService(t, { settings: { ...quick, lookAgainMs: 100 } });
  const { uploads, link, prefix } = service;
  const bytes = bytesOf(2 * mebibyte);
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, 300_000);
  await wasQuietFor(service, id, 600_000);
  const hasSpilled = async (): Promise<boolean> => {
    await uploads.tend();
    const { used, frames, objects } = await remainsOf(service);
    return used === 0 && frames.length === 0 && objects.length === 1;
  };
  await waitUntil('the tail is staged', hasSpilled);
  assert.equal((await uploads.status(id)).receivedBytes, 300_000);
  await sendRange(uploads, id, bytes, 300_000, 600_000);
  for (const key of (await remainsOf(service)).frames) await link.call('DEL', [key]);
  assert.ok(prefix);
  const { state, result } = await sendMissing(uploads, id, bytes);
  assert.equal(state, 'COMPLETED');
  assert.equal(result!.sha256, sha256(bytes));
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('with every answer lost once, chunks of no fixed size, a late length and a cancellation are right', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const bytes = bytesOf(mebibyte + 300_000);
  const { id } = await begin(uploads, 'f', { limits: { maxBytes: 10 * mebibyte } });
  const cuts = [0, 100_000, 100_001, 600_000, 900_000, bytes.length];
  for (const number of [2, 1, 4, 0, 3])
    await send(uploads, id, { number, last: number === 4 }, bytes.subarray(cuts[number], cuts[number + 1]));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  const other = await begin(uploads, 'other');
  await sendRange(uploads, other.id, bytes, 0, 5_000);
  await uploads.declare(other.id, { size: 9_000 });
  assert.equal((await uploads.cancel(other.id)).state, 'CANCELLED');
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
  // Renewed and extended only by what takes long, as on a busy machine; see lost.test.ts, body.test.ts and notes.test.ts.
  const seldom = ['extend', 'overdue', 'release', 'renew', 'renote'];
  const missed = Object.keys(scripts).filter((name) => !ran.has(name) && !seldom.includes(name));
  assert.deepEqual(missed, []);
});
