// Uploads that nobody goes on with leave nothing behind; what ended stays readable; what is not ours is not touched.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { storeErrors, type ObjectStore } from '@sluice/store';
import { startRedis, waitUntil } from '@sluice/testbed';
import { Notes } from '../src/notes.js';
import {
  begin,
  bytesOf,
  contentOf,
  ended,
  faulty,
  mebibyte,
  nothingLeftBut,
  objectOf,
  quick,
  remainsOf,
  send,
  sendMissing,
  sendRange,
  servers,
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
  wasQuietFor,
  type Fault,
  type Service,
} from './harness.js';

after(stopServers);
const bytes = bytesOf(2 * mebibyte + 500_000);

/** Rounds of looking after, until the condition holds. */
function tendUntil({ uploads }: Service, what: string, holds: () => Promise<boolean>): Promise<void> {
  return waitUntil(what, async () => {
    await uploads.tend();
    return holds();
  });
}

/** Longer than buffered bytes stay in Redis, and far less than an upload may be idle. */
const quietMs = 600_000;
const dayMs = 86_400_000;

test('an idle upload expires and leaves nothing in Redis or in the store', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, mebibyte + 300_000);
  assert.equal((await remainsOf(service)).multiparts.length, 1);
  await wasQuietFor(service, id, dayMs);
  await tendUntil(service, 'it expires', async () => (await uploads.status(id)).state === 'EXPIRED');
  await nothingLeftBut(service, []);
  await assert.rejects(sendRange(uploads, id, bytes, 0, 10), { code: 'UPLOAD_ENDED' });
  assert.equal(await service.records.nodes.getByPath(tenant, 'main', 'f'), undefined);
});

test('an upload that goes on does not expire, however old it is', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads, link, keys } = service;
  const { id } = await begin(uploads, 'f', { size: 500_000 });
  const { state } = keys(id);
  await link.call('HSET', [state, 'created_at', Date.now() - 5 * dayMs]);
  for (let at = 0; at < 500_000; at += 100_000) {
    await wasQuietFor(service, id, dayMs - quietMs);
    await sendRange(uploads, id, bytes.subarray(0, 500_000), at, at + 100_000);
    const updatedAt = Number(await link.call('HGET', [state, 'updated_at']));
    assert.ok(Date.now() - updatedAt < quietMs, 'what comes is a sign of life');
    await uploads.tend();
  }
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
});

test('an idle tail leaves Redis for a staging object, and the upload then completes with the right digest', async (t) => {
  const service = await startService(t, { settings: { ...quick, lookAgainMs: 100 } });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: bytes.length, sha256: sha256(bytes) });
  await sendRange(uploads, id, bytes, 0, 200_000);
  await sendRange(uploads, id, bytes, 200_000, 400_000);
  await sendRange(uploads, id, bytes, 1_200_000, 1_500_000);
  await wasQuietFor(service, id, quietMs);
  await tendUntil(service, 'it takes no room in Redis', async () => {
    const { used, frames, objects } = await remainsOf(service);
    return used === 0 && frames.length === 0 && objects.length === 2;
  });
  const { receivedBytes, missing } = await uploads.status(id);
  assert.equal(receivedBytes, 700_000);
  assert.deepEqual(missing, [
    [400_000, 1_199_999],
    [1_500_000, bytes.length - 1],
  ]);
  const { state, result } = await sendMissing(uploads, id, bytes);
  assert.equal(state, 'COMPLETED');
  assert.equal(result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'f'), bytes);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('a chunk that waits for those before it leaves Redis too, and takes its place when they have come', async (t) => {
  const service = await startService(t, { settings: { ...quick, lookAgainMs: 100 } });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { sha256: sha256(bytes) });
  const cuts = [0, 500_000, 1_400_000, 2_000_000, bytes.length];
  const sendChunk = (number: number) =>
    send(uploads, id, { number, last: number === 3 }, bytes.subarray(cuts[number], cuts[number + 1]));
  await sendChunk(3);
  await sendChunk(1);
  await wasQuietFor(service, id, quietMs);
  await tendUntil(service, 'it takes no room in Redis', async () => {
    const { used, frames, objects } = await remainsOf(service);
    return used === 0 && frames.length === 0 && objects.length === 2;
  });
  assert.equal((await sendChunk(1)).duplicate, true);
  await sendChunk(0);
  await sendChunk(2);
  const { state, result } = await ended(uploads, id);
  assert.deepEqual([state, result?.sha256], ['COMPLETED', sha256(bytes)]);
  assert.deepEqual(await contentOf(service, 'f'), bytes);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('an empty chunk that waits for those before it costs nothing, and takes its place like the others', async (t) => {
  const service = await startService(t, { settings: { ...quick, lookAgainMs: 100 } });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f');
  await send(uploads, id, { number: 2, last: true }, Buffer.alloc(0));
  await send(uploads, id, { number: 1 }, bytes.subarray(10, 20));
  await wasQuietFor(service, id, quietMs);
  await tendUntil(service, 'the other one is staged', async () => {
    const { frames, objects } = await remainsOf(service);
    return frames.length === 0 && objects.length === 1;
  });
  await send(uploads, id, { number: 0 }, bytes.subarray(0, 10));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes.subarray(0, 20)));
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('the parts of a cancelled upload go also from a store that lists multipart uploads by their whole key only', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  let disk: ObjectStore | undefined;
  const wrap = (store: ObjectStore): ObjectStore => {
    disk = store;
    return faulty(store, faults);
  };
  const { uploads } = await startService(t, { wrap, settings: quick });
  faults.set('listMultiparts', async (_call, key) =>
    (await disk!.listMultiparts('')).filter((multipart) => multipart.key === key),
  );
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, mebibyte);
  assert.equal((await disk!.listMultiparts('')).length, 1);
  await uploads.cancel(id);
  await waitUntil('nothing is left', async () => (await disk!.listMultiparts('')).length === 0);
});

test('an upload expires although as many bytes wait for their place as the file has', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: 500_000 });
  const { state } = await send(uploads, id, { number: 1 }, bytes.subarray(0, 500_000));
  assert.equal(state.receivedBytes, 500_000);
  await wasQuietFor(service, id, dayMs);
  await tendUntil(service, 'it expires', async () => (await uploads.status(id)).state === 'EXPIRED');
  await nothingLeftBut(service, []);
});

test('objects that cannot be deleted keep no others from being deleted', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const wrap = (store: ObjectStore): ObjectStore => faulty(store, faults);
  const service = await startService(t, { wrap, settings: quick });
  const { uploads, records, store } = service;
  const put = (path: string) =>
    uploads.store({ tenant, drive: 'main', path }, stream(bytes.subarray(0, 10)), 10);
  const isStuck = new Set<string>();
  faults.set('delete', (call, key) => {
    const failure = { operation: 'delete', key: String(key), reason: 'NoSuchBucket' };
    return isStuck.has(String(key)) ? Promise.reject(storeErrors.STORE_REFUSED(failure)) : call();
  });
  // More than are tried at once, all older than the one that can be deleted.
  for (let i = 0; i < 110; i++) {
    await put(`stuck-${i}`);
    isStuck.add(await objectOf(service, `stuck-${i}`));
  }
  await put('free');
  const free = await objectOf(service, 'free');
  for (const path of [...Array.from({ length: 110 }, (_, i) => `stuck-${i}`), 'free'])
    await records.nodes.delete({ tenant, id: (await records.nodes.getByPath(tenant, 'main', path))!.id });
  await tendUntil(service, 'it is gone', async () => (await store.head(free)) === undefined);
  assert.equal((await store.list('')).objects.length, 110);
  isStuck.clear();
  await tendUntil(service, 'the others follow', async () => (await store.list('')).objects.length === 0);
});

test('a quiet upload with nothing in Redis gives its reservation back', async (t) => {
  const service = await startService(t, { settings: { ...quick, lookAgainMs: 100 } });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, 300_000);
  await sendRange(uploads, id, bytes, 300_000, mebibyte);
  await waitUntil('the part is stored', async () => (await uploads.status(id)).storedBytes === mebibyte);
  assert.ok((await remainsOf(service)).used > 0);
  await wasQuietFor(service, id, quietMs);
  await tendUntil(service, 'nothing is reserved', async () => (await remainsOf(service)).used === 0);
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
});

test('the result stays readable for at least an hour', async (t) => {
  const service = await startService(t, { settings: { ...quick, keepMs: 1_000 } });
  const { uploads, link, keys } = service;
  const { id } = await begin(uploads, 'f', { size: 1_000 });
  await sendRange(uploads, id, bytes.subarray(0, 1_000), 0);
  const { result } = await ended(uploads, id);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
  const ttl = Number(await link.call('PTTL', [keys(id).state]));
  assert.ok(ttl > 3_590_000 && ttl <= 3_600_000, `${ttl}`);
  assert.equal(result!.sha256, sha256(bytes.subarray(0, 1_000)));
});

test('uploads that Redis forgot are ended, and only their own multipart uploads and objects are removed', async (t) => {
  const redisServer = await startRedis();
  t.after(() => redisServer.stop());
  const faults = new Map<keyof ObjectStore, Fault>();
  const wrap = (store: ObjectStore): ObjectStore => faulty(store, faults);
  const service = await startService(t, { redisServer, wrap, settings: quick });
  const { store, uploads, another, database } = service;
  const kept = await uploads.store(
    { tenant, drive: 'main', path: 'kept' },
    stream(bytes.subarray(0, 50)),
    50,
  );
  assert.equal(kept.size, 50);
  await store.put('somebody/else', Buffer.from('x'));
  const foreign = await store.createMultipart('somebody/elses');
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, mebibyte);
  await redisServer.command('FLUSHALL');
  // The store is away when the upload has just been ended.
  let refusals = 0;
  faults.set('listMultiparts', (call) => {
    if (++refusals > 2) faults.delete('listMultiparts');
    const failure = { operation: 'list', key: '', reason: 'away', outcomeUnknown: false };
    return refusals > 2 ? call() : Promise.reject(storeErrors.STORE_UNAVAILABLE(failure));
  });
  // A fresh process asks the records at once.
  const fresh = await another({ settings: { idleMs: 500 } });
  const { postgres } = await servers();
  await waitUntil('it is ended', async () => {
    await fresh.tend();
    const rows = await postgres.query('SELECT status FROM uploads WHERE id = $1', [id], database);
    return rows[0]!['status'] === 'EXPIRED';
  });
  await waitUntil('it was tried again', async () => refusals > 2);
  await waitUntil('its parts are gone', async () => (await store.listMultiparts('')).length === 1);
  assert.deepEqual(
    (await store.listMultiparts('')).map((multipart) => multipart.id),
    [foreign.id],
  );
  const { objects } = await store.list('');
  assert.deepEqual(
    objects.map(({ key }) => key).sort(),
    [await objectOf(service, 'kept'), 'somebody/else'].sort(),
  );
});

test('the objects of files that were replaced or deleted are removed from the store', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads, records } = service;
  const put = (path: string, seed: number) =>
    uploads.store({ tenant, drive: 'main', path }, stream(bytesOf(999, seed)), 999);
  const first = await put('a', 1);
  await put('b', 2);
  await put('a', 3);
  const b = await records.nodes.getByPath(tenant, 'main', 'b');
  await records.nodes.delete({ tenant, id: b!.id });
  await tendUntil(service, 'nothing is doomed', async () => (await records.doomed.list()).length === 0);
  await nothingLeftBut(service, [await objectOf(service, 'a')]);
  assert.notEqual(first.sha256, sha256(await contentOf(service, 'a')));
});

test('the object of a file that was replaced stays for downloads under way, and goes when their time is over', async (t) => {
  const service = await startService(t, { settings: { ...quick, deleteGraceMs: 3_600_000 } });
  const { uploads, another } = service;
  const put = (seed: number) =>
    uploads.store({ tenant, drive: 'main', path: 'a' }, stream(bytesOf(999, seed)), 999);
  await put(1);
  const before = await objectOf(service, 'a');
  await put(2);
  await uploads.tend();
  await nothingLeftBut(service, [before, await objectOf(service, 'a')]);
  const impatient = await another({ settings: { deleteGraceMs: 0 } });
  await impatient.tend();
  await nothingLeftBut(service, [await objectOf(service, 'a')]);
});

test('uploads that ended long ago leave the records, the files stay', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads, another, database } = service;
  const { id } = await begin(uploads, 'a', { size: 1_000 });
  await sendRange(uploads, id, bytes.subarray(0, 1_000), 0);
  await ended(uploads, id);
  await begin(uploads, 'b', { size: 1_000 });
  const { postgres } = await servers();
  const older = `UPDATE uploads SET created_at = created_at - interval '31 days', ended_at = ended_at - interval '31 days'
    WHERE status <> 'OPEN'`;
  await postgres.query(older, [], database);
  // A fresh process looks at once.
  await (await another()).tend();
  assert.deepEqual(await postgres.query('SELECT path FROM uploads', [], database), [{ path: 'b' }]);
  assert.deepEqual(await contentOf(service, 'a'), bytes.subarray(0, 1_000));
});

test('a Redis that was restored to long ago takes no file away that was completed since', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads, link, keys, records, prefix } = service;
  const { id } = await begin(uploads, 'parts', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, mebibyte);
  const before = (await link.call('HGETALL', [keys(id).state])) as Buffer[];
  await sendRange(uploads, id, bytes, mebibyte);
  await ended(uploads, id);
  await uploads.store({ tenant, drive: 'main', path: 'small' }, stream(bytes.subarray(0, 1_000)), 1_000);
  await nothingLeftBut(service, [await objectOf(service, 'parts'), await objectOf(service, 'small')]);
  // The records have forgotten how the files came; Redis is as it was when they were on their way, 40 days ago.
  while ((await records.uploads.prune({ endedMs: 0, limit: 100 })) > 0);
  const small = await objectOf(service, 'small');
  const noted = small.split('/').at(-2)!;
  const place = { bucket: 'files', prefix: '' };
  const file = { tenant, drive: 'main', path: 'small' };
  await new Notes(link, prefix, 1_000).leave(noted, file, place, small, 1_000);
  await link.call('DEL', [keys(id).state]);
  await link.call('HSET', [keys(id).state, ...before]);
  const then = Date.now() - 40 * 86_400_000;
  for (const upload of [id, noted]) {
    await link.call('HSET', [keys(upload).state, 'created_at', then, 'updated_at', then, 'reserved', 0]);
    await link.call('ZADD', [keys().attention, 1, upload]);
  }
  await tendUntil(service, 'both are ended', async () => (await remainsOf(service)).attention.length === 0);
  assert.deepEqual(await contentOf(service, 'parts'), bytes);
  assert.deepEqual(await contentOf(service, 'small'), bytes.subarray(0, 1_000));
});

test('a Redis that is full gets room again: what is abandoned expires, what is complete is completed', async (t) => {
  const [redisServer, chunks] = await Promise.all([startRedis(), startRedis()]);
  t.after(() => Promise.all([redisServer.stop(), chunks.stop()]));
  const faults = new Map<keyof ObjectStore, Fault>([
    [
      'completeMultipart',
      () => Promise.reject(storeErrors.STORE_BUSY({ operation: 'o', key: 'k', reason: 'r' })),
    ],
  ]);
  const service = await startService(t, {
    settings: { ...quick, idleMs: 6_000 },
    ...{ redisServer, chunksRedis: chunks.url, wrap: (store: ObjectStore) => faulty(store, faults) },
  });
  const { uploads } = service;
  const abandoned = await begin(uploads, 'abandoned', { size: bytes.length });
  await sendRange(uploads, abandoned.id, bytes, 0, 1_500_000);
  const sent = await begin(uploads, 'sent', { size: bytes.length });
  await sendRange(uploads, sent.id, bytes, 0);
  await redisServer.command('CONFIG', 'SET', 'maxmemory', '1');
  await assert.rejects(begin(uploads, 'another', { size: 1 }), { code: 'REDIS_FULL' });
  faults.clear();
  const stateOf = async ({ id }: { id: string }) => (await uploads.status(id)).state;
  await tendUntil(service, 'one has expired', async () => (await stateOf(abandoned)) === 'EXPIRED');
  await tendUntil(service, 'one is complete', async () => (await stateOf(sent)) === 'COMPLETED');
  assert.deepEqual(await contentOf(service, 'sent'), bytes);
  await tendUntil(service, 'both are cleaned up', async () => {
    const { objects, multiparts, frames } = await remainsOf(service, chunks);
    return objects.length === 1 && multiparts.length + frames.length === 0;
  });
});

test('what a dead process had sent to the store is removed also when it arrives after the clean-up', async (t) => {
  const service = await startService(t, { settings: { ...quick, lateMs: 4_000 } });
  const { uploads, store, link, keys } = service;
  for (const path of ['cancelled', 'completed']) {
    const { id } = await begin(uploads, path, { size: 1_000 });
    if (path === 'cancelled') await uploads.cancel(id);
    else await sendRange(uploads, id, bytes.subarray(0, 1_000), 0);
    await ended(uploads, id);
    const { state } = keys(id);
    await waitUntil(
      'it is cleaned up',
      async () => (await link.call('HEXISTS', [state, 'cleaned_at'])) === 1,
    );
    await store.put(`${id}/file-late`, bytes.subarray(0, 10));
    await store.createMultipart(`${id}/file`);
  }
  await nothingLeftBut(service, [await objectOf(service, 'completed')]);
  assert.deepEqual(await contentOf(service, 'completed'), bytes.subarray(0, 1_000));
});

test('a small file that the store did not confirm leaves nothing, also when it arrives late', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  // Long enough for what arrives late to arrive before anybody cleans up after it.
  const settings = { ...quick, idleMs: 3_000 };
  const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
  const { uploads, store } = service;
  const late: string[] = [];
  const where = { operation: 'put', reason: 'a test' };
  faults.set('put', (_call, key) => {
    late.push(String(key));
    return Promise.reject(
      storeErrors.STORE_UNAVAILABLE({ ...where, key: String(key), outcomeUnknown: true }),
    );
  });
  const file = bytes.subarray(0, 50);
  const sending = uploads.store({ tenant, drive: 'main', path: 'a' }, stream(file), 50);
  await assert.rejects(sending, { code: 'STORE_UNAVAILABLE' });
  faults.clear();
  for (const key of late) await store.put(key, file);
  await nothingLeftBut(service, []);
});

test('a small file that the records refuse leaves no object', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const put = (ifExists: 'replace' | 'fail') =>
    uploads.store({ tenant, drive: 'main', path: 'a', ifExists }, stream(bytes.subarray(0, 999)), 999);
  await put('replace');
  await assert.rejects(put('fail'), { code: 'NODE_EXISTS' });
  await nothingLeftBut(service, [await objectOf(service, 'a')]);
});
