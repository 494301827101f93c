// What is said about a file after its upload began: it counts, or it is refused, and is never passed over in silence.
import assert from 'node:assert/strict';
import { after, test, type TestContext } from 'node:test';
import type { ObjectStore } from '@sluice/store';
import { waitUntil } from '@sluice/testbed';
import {
  begin,
  bytesOf,
  ended,
  faulty,
  quick,
  send,
  sendRange,
  sha256,
  startService,
  stopServers,
  type Fault,
  type Service,
} from './harness.js';

after(stopServers);
const bytes = bytesOf(300_000);
const other = sha256(bytesOf(10));

/** An upload that stays COMPLETING until it is let go. */
async function completing(
  t: TestContext,
  declared?: string,
): Promise<Service & { id: string; letGo: () => void }> {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings: quick, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  let letGo = (): void => {};
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  faults.set('head', (call) => gate.then(call));
  const digest = declared === undefined ? {} : { sha256: declared };
  const { id } = await begin(uploads, 'f', { size: bytes.length, ...digest });
  await sendRange(uploads, id, bytes, 0);
  await waitUntil('it is being completed', async () => (await uploads.status(id)).state === 'COMPLETING');
  return { ...service, id, letGo };
}

test('a digest that is declared while the upload is being completed is refused, and nothing changes', async (t) => {
  const { uploads, id, letGo } = await completing(t);
  await assert.rejects(uploads.declare(id, { sha256: other }), { code: 'DECLARED_TOO_LATE' });
  await assert.rejects(uploads.declare(id, { sha256: sha256(bytes) }), { code: 'DECLARED_TOO_LATE' });
  letGo();
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
});

test('what was declared before may be said again while the upload is being completed, nothing else', async (t) => {
  const { uploads, id, letGo } = await completing(t, sha256(bytes));
  const { state } = await uploads.declare(id, { size: bytes.length, sha256: sha256(bytes) });
  assert.equal(state, 'COMPLETING');
  await assert.rejects(uploads.declare(id, { sha256: other }), { code: 'DIGEST_CONFLICT' });
  await assert.rejects(uploads.declare(id, { size: 1 }), { code: 'SIZE_CONFLICT' });
  letGo();
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
});

test('a file does not end before chunks that wait for their place, and none may wait that cannot have one', async (t) => {
  const { uploads } = await startService(t, { settings: quick });
  const { id } = await begin(uploads, 'f');
  await send(uploads, id, { number: 0 }, bytes.subarray(0, 10));
  await send(uploads, id, { number: 2, last: true }, bytes.subarray(20, 30));
  await assert.rejects(uploads.declare(id, { size: 10 }), { code: 'SIZE_CONFLICT' });
  assert.equal((await uploads.status(id)).size, null);
  await send(uploads, id, { number: 1 }, bytes.subarray(10, 20));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes.subarray(0, 30)));
  const { id: sized } = await begin(uploads, 'g', { size: 30 });
  await send(uploads, sized, { number: 0 }, bytes.subarray(0, 10));
  await assert.rejects(send(uploads, sized, { number: 2 }, bytes.subarray(0, 21)), { code: 'BEYOND_END' });
  assert.equal((await uploads.status(sized)).receivedBytes, 10);
});

test('a completed upload confirms its own digest and refuses another; one that has ended says so', async (t) => {
  const { uploads } = await startService(t, { settings: quick });
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0);
  await ended(uploads, id);
  assert.equal((await uploads.declare(id, { sha256: sha256(bytes) })).state, 'COMPLETED');
  await assert.rejects(uploads.declare(id, { sha256: other }), { code: 'DIGEST_CONFLICT' });
  const { id: cancelled } = await begin(uploads, 'g');
  await uploads.cancel(cancelled);
  await assert.rejects(uploads.declare(cancelled, { size: 1 }), { code: 'UPLOAD_ENDED' });
});
