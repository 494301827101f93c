// What is lost or fails on the way is noticed, asked for again or waited for; nothing else than the bytes that were sent is ever
// called complete.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Body, Multipart, ObjectStore } from '@sluice/store';
import { storeErrors } from '@sluice/store';
import { latch, startPostgres, startProxy, startRedis, waitUntil } from '@sluice/testbed';
import { openRecords } from '@sluice/records';
import { keysOf } from '../src/keys.js';
import { scripts } from '../src/scripts.js';
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
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
  type Fault,
  type Service,
} from './harness.js';

after(stopServers);
const size = 3 * mebibyte + 400_000;
const bytes = bytesOf(size);
const settings = { ...quick, lookAgainMs: 150 };

async function isWhole(service: Service, path: string, wanted = bytes): Promise<void> {
  assert.deepEqual(await contentOf(service, path), wanted);
  await nothingLeftBut(service, [await objectOf(service, path)]);
}

test('frames that vanish become missing ranges, and sent again the file is whole', async (t) => {
  const service = await startService(t, { settings });
  const { uploads, link } = service;
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0, 500_000);
  await sendRange(uploads, id, bytes, 500_000, 900_000);
  const { frames } = await remainsOf(service);
  await link.call('DEL', [frames[0]!]);
  await sendRange(uploads, id, bytes, 900_000, mebibyte);
  await waitUntil('bytes are missing', async () => (await uploads.status(id)).receivedBytes < mebibyte);
  const { missing } = await uploads.status(id);
  assert.ok(missing[0]![0] === 0 || missing[0]![0] === 500_000, JSON.stringify(missing));
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

test('a frame that has changed in Redis is as good as gone, and sent again the file is whole', async (t) => {
  const service = await startService(t, { settings: { ...settings, recentFrames: 0 } });
  const { uploads, link } = service;
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0, 500_000);
  await sendRange(uploads, id, bytes, 500_000, 900_000);
  const { frames } = await remainsOf(service);
  await link.call('SETRANGE', [frames[0]!, 1_000, 'other bytes']);
  await sendRange(uploads, id, bytes, 900_000, mebibyte);
  await waitUntil('bytes are missing', async () => (await uploads.status(id)).receivedBytes < mebibyte);
  const { missing } = await uploads.status(id);
  assert.ok(
    ['[[0,499999]', '[[500000,899999]'].some((range) => JSON.stringify(missing).startsWith(range)),
    JSON.stringify(missing),
  );
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

test('a chunks Redis that forgets everything costs only what was buffered', async (t) => {
  const chunks = await startRedis({ appendonly: false });
  t.after(() => chunks.stop());
  const service = await startService(t, { settings, chunksRedis: chunks.url });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0, mebibyte + 300_000);
  await chunks.command('FLUSHALL');
  await sendRange(uploads, id, bytes, mebibyte + 300_000, size);
  await waitUntil('bytes are missing', async () => (await uploads.status(id)).missing.length > 0);
  assert.ok((await uploads.status(id)).storedBytes >= mebibyte);
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
  assert.deepEqual(await contentOf(service, 'f'), bytes);
});

test('a lost chunk of no fixed size takes its old place again, also when only a piece of it was lost', async (t) => {
  const service = await startService(t, { settings });
  const { uploads, link } = service;
  const { id } = await begin(uploads, 'f');
  const cuts = [0, 900_000, 1_700_000, 1_900_000];
  const chunk = (number: number) => bytes.subarray(cuts[number], cuts[number + 1]);
  for (const number of [0, 1]) await send(uploads, id, { number }, chunk(number));
  // Chunk 1 lies in two parts: the first one is written, of the other one its frames vanish.
  await waitUntil('a part is stored', async () => (await uploads.status(id)).storedBytes === mebibyte);
  await waitUntil('one frame is left', async () => (await remainsOf(service)).frames.length === 1);
  for (const key of (await remainsOf(service)).frames) await link.call('DEL', [key]);
  await send(uploads, id, { number: 2, last: true }, chunk(2));
  await waitUntil('it is missed', async () => (await uploads.status(id)).receivedBytes < 1_900_000);
  await assert.rejects(send(uploads, id, { number: 1 }, bytesOf(800_000, 5)), { code: 'CHUNK_CONFLICT' });
  await send(uploads, id, { number: 1 }, chunk(1));
  const { state, result } = await ended(uploads, id);
  assert.equal(state, 'COMPLETED');
  assert.equal(result!.sha256, sha256(bytes.subarray(0, 1_900_000)));
  await isWhole(service, 'f', bytes.subarray(0, 1_900_000));
});

test('a lost range may be sent again in another cut', async (t) => {
  const service = await startService(t, { settings });
  const { uploads, store } = service;
  const { id } = await begin(uploads, 'f', { size });
  const digest = {
    algorithm: 'sha-256' as const,
    value: Buffer.from(sha256(bytes.subarray(0, 2 * mebibyte)), 'hex'),
  };
  await send(uploads, id, { offset: 0 }, bytes.subarray(0, 2 * mebibyte), digest);
  const [multipart] = await store.listMultiparts('');
  await store.putPart(multipart!, 1, bytesOf(mebibyte, 7));
  await sendRange(uploads, id, bytes, 2 * mebibyte, size);
  await waitUntil('the first part is missing', async () => {
    const { missing } = await uploads.status(id);
    return JSON.stringify(missing) === `[[0,${mebibyte - 1}]]`;
  });
  await sendRange(uploads, id, bytes, 0, 400_000);
  await sendRange(uploads, id, bytes, 400_000, mebibyte);
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

for (const when of ['before the last byte', 'after the last byte'] as const)
  test(`a multipart upload that was aborted behind our back, ${when}, is begun again`, async (t) => {
    const faults = new Map<keyof ObjectStore, Fault>();
    const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
    const { uploads, store } = service;
    const { id } = await begin(uploads, 'f', { size });
    await sendRange(uploads, id, bytes, 0, 2 * mebibyte);
    const abort = async (): Promise<void> => {
      for (const multipart of await store.listMultiparts('')) await store.abortMultipart(multipart);
    };
    if (when === 'before the last byte') {
      await abort();
      await assert.rejects(sendRange(uploads, id, bytes, 2 * mebibyte, 3 * mebibyte), { retryable: true });
      assert.equal((await uploads.status(id)).storedBytes, 0);
    } else
      faults.set('completeMultipart', async (call) => {
        faults.clear();
        await abort();
        return call();
      });
    assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
    await isWhole(service, 'f');
  });

test('an object that was made by a process that died is taken, not made again', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  let made = 0;
  faults.set('completeMultipart', async (call) => {
    made++;
    const object = await call();
    if (made > 1) return object;
    throw storeErrors.STORE_UNAVAILABLE({
      operation: 'completing',
      key: 'k',
      reason: 'lost',
      outcomeUnknown: true,
    });
  });
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0);
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

test('a state Redis that is killed and comes back loses no upload', async (t) => {
  const redisServer = await startRedis({ config: { appendfsync: 'always' } });
  t.after(() => redisServer.stop());
  const service = await startService(t, { settings, redisServer });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0, 700_000);
  await redisServer.kill9();
  const sending = sendRange(uploads, id, bytes, 700_000, 1_500_000);
  await pause(300);
  await redisServer.restart();
  await sending;
  assert.equal((await uploads.status(id)).receivedBytes, 1_500_000);
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

test('a clock that is set back does not make the lease of a dead process last', async (t) => {
  const service = await startService(t, { settings, workers: 0 });
  const { uploads, link, keys } = service;
  const { id } = await begin(uploads, 'f', { size, chunkSize: mebibyte });
  for (const number of [0, 1, 2, 3])
    await send(uploads, id, { number }, bytes.subarray(number * mebibyte, (number + 1) * mebibyte));
  // As a process leaves it that took the lease, before Redis was set back by an hour, and died.
  const [seconds] = (await link.call('TIME', [])) as Buffer[];
  const lease = { lease_until: (Number(seconds) + 3_600) * 1_000, lease_ms: quick.leaseMs!, fence: 1 };
  const fields = Object.entries({ ...lease, status: 'COMPLETING', lease_holder: 'dead' }).flat();
  await link.call('HSET', [keys(id).state, ...fields]);
  await service.another({ workers: 2 });
  assert.equal((await ended(uploads, id, 8_000)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

test('a clock that is set back makes nobody wait longer for a look', async (t) => {
  const { link, prefix } = await startService(t, { settings });
  // Where nobody else looks.
  const { attention, budget } = keysOf(`${prefix}-quiet`, 0, '');
  const now = async (): Promise<number> => Number(((await link.call('TIME', [])) as Buffer[])[0]) * 1_000;
  const look = async (): Promise<string[]> =>
    ((await link.run(scripts.overdue, { attention, budget }, { limit: 10, pauseMs: 1_000 })) as Buffer[]).map(
      String,
    );
  const hour = 3_600_000;
  // As it was before Redis was set back by an hour: one look was due at once, the other in a minute.
  const before = (await now()) + hour;
  await link.call('ZADD', [attention, before, 'due', before + 60_000, 'later']);
  await link.call('HSET', [budget, 'looked', before]);
  await waitUntil('what was due is looked at', async () => (await look()).includes('due'), {
    timeoutMs: 5_000,
  });
  const left = Number(await link.call('ZSCORE', [attention, 'later'])) - (await now());
  assert.ok(left > 30_000 && left <= 61_000, `${left} ms`);
  // Servers differ by a little after a failover; that is no reason to hurry.
  await link.call('HSET', [budget, 'looked', (await now()) + 500]);
  const score = await link.call('ZSCORE', [attention, 'later']);
  assert.ok(!(await look()).includes('later'));
  assert.deepEqual(await link.call('ZSCORE', [attention, 'later']), score);
});

test('a database that is away while an upload completes is waited for', async (t) => {
  const postgres = await startPostgres({ fsync: false });
  const proxy = await startProxy(postgres.port);
  const url = (await postgres.createDatabase()).replace(`:${postgres.port}`, `:${proxy.port}`);
  const records = await openRecords({ url, deadlineMs: 5_000 });
  await records.drives.create({ tenant, name: 'main', bucket: 'files' });
  t.after(async () => {
    await records.close();
    await proxy.stop();
    await postgres.stop();
  });
  const service = await startService(t, { settings, records });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: 300_000 });
  await sendRange(uploads, id, bytes.subarray(0, 300_000), 0, 200_000);
  proxy.refuse(true);
  await sendRange(uploads, id, bytes.subarray(0, 300_000), 200_000);
  await pause(1_000);
  assert.notEqual((await uploads.status(id)).state, 'COMPLETED');
  proxy.heal();
  const { result } = await ended(uploads, id);
  assert.equal(result!.sha256, sha256(bytes.subarray(0, 300_000)));
});

const troubles: [string, () => Error][] = [
  ['is away', () => storeErrors.STORE_UNAVAILABLE({ ...where(), outcomeUnknown: true })],
  ['is full', () => storeErrors.STORE_FULL(where())],
  ['is busy', () => storeErrors.STORE_BUSY(where())],
];
const where = () => ({ operation: 'put', key: 'k', reason: 'a test' });

for (const [trouble, error] of troubles)
  test(`a store that ${trouble} refuses whole parts, keeps what is buffered, and works again later`, async (t) => {
    const faults = new Map<keyof ObjectStore, Fault>();
    const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
    const { uploads } = service;
    const { id } = await begin(uploads, 'f', { size });
    const failing: Fault = () => Promise.reject(error());
    for (const name of ['put', 'putPart', 'completeMultipart'] as const) faults.set(name, failing);
    await assert.rejects(sendRange(uploads, id, bytes, 0, mebibyte), { retryable: true });
    assert.equal((await uploads.status(id)).receivedBytes, 0);
    await sendRange(uploads, id, bytes, 0, 600_000);
    await sendRange(uploads, id, bytes, 600_000, mebibyte);
    await pause(100);
    assert.equal((await uploads.status(id)).receivedBytes, mebibyte);
    faults.clear();
    assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
    await isWhole(service, 'f');
  });

test('a store that stores other bytes than it was sent is noticed, and the upload is never completed', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  let real: ObjectStore | undefined;
  const service = await startService(t, {
    settings,
    wrap: (store) => {
      real = store;
      return faulty(store, faults);
    },
  });
  const { uploads } = service;
  // Tells of the right bytes, and keeps wrong ones.
  faults.set('putPart', async (_call, ...args) => {
    const [multipart, number, body] = args as [Multipart, number, Body];
    const right = body instanceof Uint8Array ? Buffer.from(body) : await collect(body.stream);
    const told = await real!.putPart(multipart, number, right);
    const wrong = Buffer.from(right);
    wrong[0]! ^= 1;
    if (number === 2) await real!.putPart(multipart, number, wrong);
    return told;
  });
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0);
  await waitUntil('it is asked for again', async () => (await uploads.status(id)).missing.length > 0);
  assert.deepEqual((await uploads.status(id)).missing, [[mebibyte, 2 * mebibyte - 1]]);
  assert.equal(
    await service.records.nodes.getByPath(tenant, 'main', 'f').then((node) => node?.objectKey),
    undefined,
  );
  faults.clear();
  assert.equal((await sendMissing(uploads, id, bytes)).result!.sha256, sha256(bytes));
  await isWhole(service, 'f');
});

test('an object that differs from what was received fails the upload with the reason', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  faults.set('completeMultipart', async (call) => ({ ...((await call()) as object), crc64: 1n }));
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0);
  const { state, error } = await ended(uploads, id);
  assert.equal(state, 'FAILED');
  assert.equal(error!.code, 'CRC_MISMATCH');
  assert.equal(
    await service.records.nodes.getByPath(tenant, 'main', 'f').then((node) => node?.objectKey),
    undefined,
  );
  await nothingLeftBut(service, []);
});

test('a chunk that comes twice and is late while the file is made takes nothing away', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  const chunkSize = mebibyte;
  const { id } = await begin(uploads, 'f', { size, chunkSize });
  const chunk = (number: number) =>
    send(uploads, id, { number }, bytes.subarray(number * chunkSize, (number + 1) * chunkSize));
  const made = latch();
  const late = latch();
  let isFirst = true;
  faults.set('putPart', async (call) => {
    if (isFirst) {
      isFirst = false;
      await made.opened;
    }
    return call();
  });
  faults.set('completeMultipart', async (call) => {
    const object = await call();
    made.open();
    await late.opened;
    return object;
  });
  const twice = chunk(0);
  twice.catch(() => {});
  await waitUntil('it is under way', () => !isFirst);
  for (const number of [0, 1, 2, 3]) await chunk(number);
  await assert.rejects(twice, { code: 'UPLOAD_OVERTAKEN', retryable: true });
  const { state, missing, receivedBytes } = await uploads.status(id);
  assert.deepEqual([state, missing, receivedBytes], ['COMPLETING', [], size]);
  assert.equal((await chunk(0)).duplicate, true);
  late.open();
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  assert.equal((await chunk(0)).duplicate, true);
  await isWhole(service, 'f');
});

test('requests that bring different bytes for the same chunk at once never make a mixed file', async (t) => {
  const service = await startService(t, { settings });
  const { uploads, another } = service;
  const second = await another();
  const chunkSize = mebibyte;
  const versions = [bytes, bytesOf(size, 2)];
  for (let round = 0; round < 4; round++) {
    const path = `f${round}`;
    const { id } = await begin(uploads, path, { size, chunkSize: round % 2 ? chunkSize : 350_000 });
    const each = round % 2 ? chunkSize : 350_000;
    const tries = versions.flatMap((version, v) =>
      Array.from({ length: Math.ceil(size / each) }, (_, number) =>
        send(
          v === 0 ? uploads : second,
          id,
          { number },
          version.subarray(number * each, (number + 1) * each),
        ).catch((error: { code?: string }) => assert.match(error.code!, /CONFLICT|ENDED|OVERLAPS|OVERTAKEN/)),
      ),
    );
    await Promise.all(tries);
    // Whatever was refused or lost: what is called complete is what its chunks and its digest say.
    const until = performance.now() + 15_000;
    for (;;) {
      const view = await uploads.status(id);
      if (view.state === 'COMPLETED' || performance.now() > until) break;
      for (const [first] of view.missing) {
        const number = Math.floor(first / each);
        await send(uploads, id, { number }, bytes.subarray(number * each, (number + 1) * each)).catch(
          () => {},
        );
      }
      await pause(30);
    }
    const { state, result } = await uploads.status(id);
    assert.equal(state, 'COMPLETED');
    const content = await contentOf(service, path);
    assert.equal(sha256(content), result!.sha256, 'the digest is that of the object');
    for (let at = 0; at < size; at += each) {
      const piece = content.subarray(at, at + each);
      const isOfOne = versions.some((version) => piece.equals(version.subarray(at, at + each)));
      assert.ok(isOfOne, `chunk at ${at} is mixed`);
    }
  }
});

test('a body that brings nothing for too long is slow, one that dribbles for long is fine', async (t) => {
  const service = await startService(t, { settings: { ...settings, slowMs: 6_000, attemptMs: 3_000 } });
  const { uploads } = service;
  const file = bytes.subarray(0, 2_000);
  const { id } = await begin(uploads, 'f', { size: file.length });
  const dribble = async function* (stallMs: number) {
    for (let at = 0; at < 1_000; at += 100) {
      yield file.subarray(at, at + 100);
      await pause(at === 500 ? stallMs : 500, undefined, { ref: at !== 500 });
    }
  };
  await assert.rejects(uploads.receive(id, { offset: 0 }, dribble(60_000), 1_000), { code: 'BODY_SLOW' });
  assert.equal((await uploads.status(id)).receivedBytes, 0);
  // Longer than an attempt lives unless it is extended.
  await uploads.receive(id, { offset: 0 }, dribble(500), 1_000);
  assert.equal((await uploads.status(id)).receivedBytes, 1_000);
  assert.equal((await sendMissing(uploads, id, file)).result!.sha256, sha256(file));
});

test('a client that goes away in the middle leaves nothing of a chunk, and whole frames of a range', async (t) => {
  const service = await startService(t, { settings: { ...settings, preferredPartBytes: 8 * mebibyte } });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: 8 * mebibyte, chunkSize: 4 * mebibyte });
  const cut = async function* (after: number) {
    yield* stream(bytes.subarray(0, after));
    throw new Error('the client went away');
  };
  await assert.rejects(uploads.receive(id, { number: 0 }, cut(2_500_000), 4 * mebibyte), /went away/);
  assert.equal((await uploads.status(id)).receivedBytes, 0);
  assert.deepEqual((await remainsOf(service)).frames, []);
  await assert.rejects(uploads.receive(id, { offset: 0 }, cut(2_500_000), 4 * mebibyte), /went away/);
  const { receivedBytes, missing } = await uploads.status(id);
  assert.equal(receivedBytes, 2 * mebibyte);
  assert.deepEqual(missing, [[2 * mebibyte, 8 * mebibyte - 1]]);
  const whole = Buffer.concat([bytes.subarray(0, 2 * mebibyte), bytesOf(6 * mebibyte, 3)]);
  assert.equal((await sendMissing(uploads, id, whole)).result!.sha256, sha256(whole));
  await isWhole(service, 'f', whole);
});

test('bytes for a part that is stored are refused before they can replace it', async (t) => {
  const service = await startService(t, { settings });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size });
  const wrong = bytesOf(2 * mebibyte, 9);
  await sendRange(uploads, id, bytes, 0, mebibyte);
  const digest = { algorithm: 'sha-256' as const, value: Buffer.from(sha256(wrong), 'hex') };
  await assert.rejects(uploads.receive(id, { offset: 0 }, stream(wrong), wrong.length, digest), {
    code: /CHUNK_CONFLICT|RANGE_OVERLAPS/,
  });
  await sendRange(uploads, id, bytes, mebibyte);
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
});

async function collect(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of source) pieces.push(piece);
  return Buffer.concat(pieces);
}

test('lost frames are noticed by whoever looks after the upload, also those of chunks that wait for others', async (t) => {
  const service = await startService(t, { settings });
  const { uploads, link } = service;
  const { id } = await begin(uploads, 'f');
  await send(uploads, id, { number: 1, last: true }, bytes.subarray(1_000, 3_000));
  await send(uploads, id, { number: 0 }, bytes.subarray(0, 1_000));
  const waiting = await begin(uploads, 'g');
  await send(uploads, waiting.id, { number: 2, last: true }, bytes.subarray(2_000, 3_000));
  await send(uploads, waiting.id, { number: 0 }, bytes.subarray(0, 1_000));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes.subarray(0, 3_000)));
  for (const key of (await remainsOf(service)).frames) await link.call('DEL', [key]);
  await waitUntil('nothing is there', async () => {
    await link.call('ZADD', [service.keys().attention, 'XX', 1, waiting.id]);
    await uploads.tend();
    return (await uploads.status(waiting.id)).receivedBytes === 0;
  });
  for (const number of [2, 1, 0])
    await send(
      uploads,
      waiting.id,
      { number, last: number === 2 },
      bytes.subarray(number * 1_000, (number + 1) * 1_000),
    );
  assert.equal((await ended(uploads, waiting.id)).result!.sha256, sha256(bytes.subarray(0, 3_000)));
});

test('a part that the store has with the same bytes under another ETag is taken as it is', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  let sent = 0;
  faults.set('putPart', async (call) => {
    const stored = (await call()) as object;
    return ++sent === 2 ? { ...stored, etag: '"as-it-was-then"' } : stored;
  });
  const { id } = await begin(uploads, 'f', { size });
  await sendRange(uploads, id, bytes, 0);
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  assert.equal(sent, 4, 'nothing was sent again');
  await isWhole(service, 'f');
});
