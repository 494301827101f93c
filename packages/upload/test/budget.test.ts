// The memory of the chunks Redis is paid for before the first byte, never more than there is, and all of it comes back. The lowest
// missing bytes of an upload always find room, so that nobody waits for ever.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startRedis, waitUntil } from '@sluice/testbed';
import { priceOf } from '../src/engine.js';
import type { Digest } from '../src/digest.js';
import {
  begin,
  bytesOf,
  ended,
  faulty,
  mebibyte,
  nothingLeftBut,
  objectOf,
  quick,
  remainsOf,
  send,
  sendRange,
  sha256,
  startService,
  stopServers,
  stream,
  type Fault,
} from './harness.js';
import type { ObjectStore } from '@sluice/store';
import { storeErrors } from '@sluice/store';

after(stopServers);
const bytes = bytesOf(8 * mebibyte);
const onePart = priceOf(mebibyte);

test('an upload reserves room for one part before its first chunk, or is refused and changes nothing', async (t) => {
  const budget = { budgetBytes: 2 * onePart, uploadBudgetBytes: 2 * onePart };
  const service = await startService(t, { settings: { ...quick, ...budget } });
  const { uploads, link, keys } = service;
  const ids: string[] = [];
  for (const path of ['a', 'b', 'c']) ids.push((await begin(uploads, path, { size: bytes.length })).id);
  await sendRange(uploads, ids[0]!, bytes, 0, 1_000);
  await sendRange(uploads, ids[1]!, bytes, 0, 1_000);
  assert.equal((await remainsOf(service)).used, 2 * onePart);
  const before = await link.call('HGETALL', [keys(ids[2]).state]);
  await assert.rejects(
    sendRange(uploads, ids[2]!, bytes, 0, 1_000),
    (error: Error & { retryable?: boolean }) => {
      assert.equal((error as { code?: string }).code, 'BUDGET_EXHAUSTED');
      assert.equal(error.retryable, true);
      return true;
    },
  );
  // Where the lowest part is was looked up; nothing else may differ.
  assert.deepEqual(String(await link.call('HGETALL', [keys(ids[2]).state])), String(before));
  assert.equal((await remainsOf(service)).used, 2 * onePart);
  // Whole parts need no room.
  await sendRange(uploads, ids[2]!, bytes, 0, mebibyte);
  await uploads.cancel(ids[0]!);
  await sendRange(uploads, ids[2]!, bytes, mebibyte, mebibyte + 1_000);
  for (const id of ids.slice(1)) await uploads.cancel(id);
  await nothingLeftBut(service, []);
});

test('uploads that find no room wait in line, unread, and get in one after the other', async (t) => {
  const budget = { budgetBytes: 2 * onePart, uploadBudgetBytes: 2 * onePart, roomWaitMs: 60_000 };
  const { uploads } = await startService(t, { settings: { ...quick, ...budget } });
  let reading = 0;
  let mostAtOnce = 0;
  const size = 900_000;
  const paths = Array.from({ length: 12 }, (_, n) => `f${n}`);
  await Promise.all(
    paths.map(async (path) => {
      const { id } = await begin(uploads, path, { size, chunkSize: 500_000 });
      const body = async function* () {
        mostAtOnce = Math.max(mostAtOnce, ++reading);
        try {
          yield* stream(bytes.subarray(0, 500_000));
        } finally {
          reading--;
        }
      };
      await uploads.receive(id, { number: 0 }, body(), 500_000);
      await send(uploads, id, { number: 1 }, bytes.subarray(500_000, size));
      assert.equal((await ended(uploads, id)).state, 'COMPLETED');
    }),
  );
  assert.ok(mostAtOnce <= 2, `there is room for two, and ${mostAtOnce} were read`);
  assert.match(await uploads.metrics(), /^sluice_upload_waiting_chunks 0$/m);
  assert.match(await uploads.metrics(), /^sluice_upload_refused_total 0$/m);
});

test('whoever waits for room is refused when patience ends, when it is gone, or when the service stops', async (t) => {
  const budget = { budgetBytes: onePart, uploadBudgetBytes: onePart };
  const service = await startService(t, { settings: { ...quick, ...budget } });
  const holder = await begin(service.uploads, 'holder', { size: bytes.length });
  await sendRange(service.uploads, holder.id, bytes, 0, 1_000);
  const hasty = await service.another({ settings: { ...quick, ...budget, roomWaitMs: 300 } });
  const { id } = await begin(hasty, 'hasty', { size: bytes.length });
  const began = performance.now();
  await assert.rejects(sendRange(hasty, id, bytes, 0, 1_000), { code: 'BUDGET_EXHAUSTED' });
  assert.ok(performance.now() - began >= 299, 'it waited');

  const patient = await service.another({ settings: { ...quick, ...budget, roomWaitMs: 600_000 } });
  const gone = Readable.from([bytes.subarray(0, 1_000)]);
  const waiting = (): Promise<boolean> =>
    patient.metrics().then((text) => /^sluice_upload_waiting_chunks 1$/m.test(text));
  const leaving = patient.receive(id, { offset: 0 }, gone, 1_000);
  leaving.catch(() => {});
  await waitUntil('it waits', waiting);
  gone.destroy(new Error('the client went away'));
  await assert.rejects(leaving);
  const stopped = sendRange(patient, id, bytes, 0, 1_000);
  stopped.catch(() => {});
  await waitUntil('it waits', waiting);
  patient.endWaits();
  await assert.rejects(stopped, { code: 'BUDGET_EXHAUSTED' });
  await service.uploads.cancel(holder.id);
  await sendRange(hasty, id, bytes, 0, 1_000);
  await service.uploads.cancel(id);
  await nothingLeftBut(service, []);
});

test('chunks out of order are refused beyond the limit of an upload, the lowest ones never', async (t) => {
  const limit = 4 * onePart;
  const service = await startService(t, {
    settings: { ...quick, budgetBytes: 100 * onePart, uploadBudgetBytes: limit },
  });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: bytes.length, chunkSize: mebibyte / 2 });
  const chunkAt = (number: number) => bytes.subarray((number * mebibyte) / 2, ((number + 1) * mebibyte) / 2);
  const refused: number[] = [];
  // The first half of every part, the last part first: none of them can be written yet.
  for (let number = 14; number >= 0; number -= 2) {
    await send(uploads, id, { number }, chunkAt(number)).catch((error: { code?: string }) => {
      assert.equal(error.code, 'BUDGET_EXHAUSTED');
      refused.push(number);
    });
    assert.ok((await remainsOf(service)).used <= limit);
  }
  assert.ok(refused.length > 0 && !refused.includes(0), String(refused));
  for (let number = 0; number < 16; number++) await send(uploads, id, { number }, chunkAt(number));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

for (const [way, options, addressOf] of [
  ['numbered chunks of one size', { chunkSize: 400_000 }, (number: number) => ({ number })],
  ['numbered chunks of any size', {}, (number: number) => ({ number })],
  ['ranges', {}, (number: number) => ({ offset: number * 400_000 })],
] as const) {
  test(`${way}: an upload whose room others got while it was quiet goes on all the same, past Redis`, async (t) => {
    const room = { budgetBytes: onePart, uploadBudgetBytes: onePart, spillAfterMs: 200, lookAgainMs: 100 };
    const service = await startService(t, { settings: { ...quick, ...room } });
    const { uploads, link, keys } = service;
    const file = bytes.subarray(0, 2_200_000);
    const { id } = await begin(uploads, 'f', { size: file.length, ...options });
    const chunkOf = (number: number) => file.subarray(number * 400_000, (number + 1) * 400_000);
    const sendOne = (number: number, digest?: Digest) =>
      send(uploads, id, addressOf(number), chunkOf(number), digest);
    await sendOne(0);
    const used = async () => (await remainsOf(service)).used;
    await waitUntil('it gave its room back', async () => {
      await uploads.tend();
      return (await used()) === 0;
    });
    const { budget } = keys(id);
    await link.call('HINCRBY', [budget, 'used', onePart]);
    // What lies ahead waits for better times, and nothing stays of a chunk that was damaged.
    await assert.rejects(sendOne(4), { code: 'BUDGET_EXHAUSTED' });
    const wrong = { algorithm: 'crc32' as const, value: Buffer.alloc(4) };
    await assert.rejects(sendOne(1, wrong), { code: 'DIGEST_MISMATCH' });
    for (let number = 1; number < 6; number++) {
      const { ack, duplicate } = await sendOne(number);
      assert.deepEqual({ ack, duplicate }, { ack: 'stored', duplicate: false });
      assert.equal((await sendOne(number)).duplicate, true);
      assert.equal(await used(), onePart);
    }
    assert.equal((await ended(uploads, id)).result!.sha256, sha256(file));
    await link.call('HINCRBY', [budget, 'used', -onePart]);
    await nothingLeftBut(service, [await objectOf(service, 'f')]);
  });
}

test('many uploads that all send their last part first do not wait for each other', async (t) => {
  const count = 12;
  const service = await startService(t, {
    settings: { ...quick, budgetBytes: 5 * onePart, uploadBudgetBytes: 3 * onePart },
  });
  const { uploads } = service;
  const size = 3 * mebibyte;
  const file = bytes.subarray(0, size);
  const one = async (n: number): Promise<string> => {
    const { id } = await begin(uploads, `f${n}`, { size, chunkSize: mebibyte / 4 });
    const left = Array.from({ length: 12 }, (_, number) => number).toReversed();
    while (left.length > 0) {
      // A client that is refused sends what comes first in the file.
      for (const number of [...left]) {
        const chunk = file.subarray((number * mebibyte) / 4, ((number + 1) * mebibyte) / 4);
        const isTaken = await send(uploads, id, { number }, chunk).then(
          () => true,
          (error: { code?: string }) => {
            assert.equal(error.code, 'BUDGET_EXHAUSTED');
            return false;
          },
        );
        if (isTaken) left.splice(left.indexOf(number), 1);
        else {
          left.sort((a, b) => a - b);
          break;
        }
      }
      await pause(10);
    }
    return (await ended(uploads, id)).result!.sha256;
  };
  const digests = await Promise.all(Array.from({ length: count }, (_, n) => one(n)));
  assert.deepEqual(new Set(digests), new Set([sha256(file)]));
  // The frames of the last part go when it is recorded, which may be after the upload has its end.
  const { used, queued } = await remainsOf(service);
  assert.deepEqual({ used, queued }, { used: 0, queued: 0 });
  await nothingLeftBut(
    service,
    await Promise.all(Array.from({ length: count }, (_, n) => objectOf(service, `f${n}`))),
  );
});

test('a part that is larger than the budget of an upload is put together from staged pieces', async (t) => {
  const service = await startService(t, {
    settings: { ...quick, preferredPartBytes: 4 * mebibyte, uploadBudgetBytes: 2 * onePart },
  });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: 7 * mebibyte, chunkSize: mebibyte / 2 });
  for (let number = 0; number < 14; number++)
    await send(
      uploads,
      id,
      { number },
      bytes.subarray((number * mebibyte) / 2, ((number + 1) * mebibyte) / 2),
    );
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes.subarray(0, 7 * mebibyte)));
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
  const large = await begin(uploads, 'g', { size: 7 * mebibyte });
  await assert.rejects(
    uploads.receive(large.id, { offset: 0 }, stream(bytes), 3 * mebibyte, {
      algorithm: 'crc64nvme',
      value: Buffer.alloc(8),
    }),
    { code: 'CHUNK_TOO_LARGE' },
  );
});

test('failed chunks give back what they paid: a wrong digest, a cut body, a refused range', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: 4 * mebibyte });
  await sendRange(uploads, id, bytes, 0, 1_000);
  const { used } = await remainsOf(service);
  const digest = { algorithm: 'crc32' as const, value: Buffer.alloc(4) };
  const some = bytes.subarray(2_000, 300_000);
  await assert.rejects(send(uploads, id, { offset: 2_000 }, some, digest), { code: 'DIGEST_MISMATCH' });
  await assert.rejects(uploads.receive(id, { offset: 2_000 }, stream(some), 400_000), {
    code: 'BODY_TRUNCATED',
  });
  await assert.rejects(sendRange(uploads, id, bytes, 500, 3_000), { code: 'RANGE_OVERLAPS' });
  const after = await remainsOf(service);
  assert.equal(after.used, used);
  assert.equal(after.frames.length, 1);
  assert.equal((await uploads.status(id)).receivedBytes, 1_000);
});

test('what a process had paid for that died in the middle of a chunk comes back after a while', async (t) => {
  const service = await startService(t, {
    settings: { ...quick, attemptMs: 1_500, spillAfterMs: 200, lookAgainMs: 100 },
  });
  const { uploads, link, keys, another } = service;
  const { id } = await begin(uploads, 'f', { size: 4 * mebibyte });
  // What a process leaves that was killed after it had paid.
  const dying = await another({ workers: 0 });
  const endless = async function* () {
    yield bytes.subarray(0, 10);
    await pause(60_000, undefined, { ref: false });
  };
  const receiving = dying.receive(id, { offset: 0 }, endless(), 200_000);
  receiving.catch(() => {});
  await waitUntil(
    'it has paid',
    async () => Number(await link.call('HGET', [keys(id).state, 'charged'])) > 0,
  );
  const admitted = await link.call('HGETALL', [keys(id).attempts]);
  assert.ok(String(admitted).length > 0);
  await dying.stop(0).catch(() => {});
  await waitUntil('the budget is whole', async () => {
    await uploads.tend();
    return (await remainsOf(service)).used === 0;
  });
  assert.equal(Number(await link.call('HGET', [keys(id).state, 'charged'])), 0);
});

test('attempts are looked through only when one of them may be overdue', async (t) => {
  const service = await startService(t, { settings: quick, workers: 0 });
  const { uploads, link, keys } = service;
  const { id } = await begin(uploads, 'f', { size: 10 * mebibyte, chunkSize: 1_000 });
  const chunk = bytesOf(1_000);
  await send(uploads, id, { number: 1 }, chunk);
  // Of a process that died long ago; nobody knows of it.
  await link.call('HSET', [keys(id).attempts, 'dead', '1000 1 1']);
  await link.call('HINCRBY', [keys(id).state, 'charged', 1_000]);
  await send(uploads, id, { number: 2 }, chunk);
  assert.equal(Number(await link.call('HEXISTS', [keys(id).attempts, 'dead'])), 1);
  await link.call('HSET', [keys(id).state, 'overdue_at', 1]);
  await send(uploads, id, { number: 3 }, chunk);
  assert.equal(Number(await link.call('HEXISTS', [keys(id).attempts, 'dead'])), 0);
  assert.ok(Number(await link.call('HGET', [keys(id).state, 'overdue_at'])) > 1);
});

test('an upload with very many small chunks ends, is looked after and is cancelled like any other', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads, link, keys } = service;
  // More than a script can hand over one by one.
  const frames = Array.from({ length: 9_000 }, (_, i) => [`!${i}`, '1']).flat();
  const { id } = await begin(uploads, 'f', { size: 2 * mebibyte });
  await sendRange(uploads, id, bytesOf(1_000), 0);
  await link.call('HSET', [keys(id).attempts, ...frames]);
  await link.call('ZADD', [keys().attention, 'XX', 1, id]);
  await waitUntil('all frames are dropped', async () => {
    await uploads.tend();
    return Number(await link.call('HLEN', [keys(id).attempts])) < 10;
  });
  await link.call('HSET', [keys(id).attempts, ...frames]);
  assert.equal((await uploads.cancel(id)).state, 'CANCELLED');
  await nothingLeftBut(service, []);
});

test('a chunks Redis that is full refuses with BUDGET_EXHAUSTED, and takes the same chunk later', async (t) => {
  const chunks = await startRedis({ appendonly: false });
  t.after(() => chunks.stop());
  const service = await startService(t, { chunksRedis: chunks.url, settings: quick });
  const { uploads } = service;
  const { id } = await begin(uploads, 'f', { size: mebibyte, chunkSize: mebibyte / 2 });
  await chunks.command('CONFIG', 'SET', 'maxmemory', '1000000');
  const file = bytes.subarray(0, mebibyte);
  const half = (number: number) => file.subarray((number * mebibyte) / 2, ((number + 1) * mebibyte) / 2);
  await assert.rejects(send(uploads, id, { number: 1 }, half(1)), {
    code: 'BUDGET_EXHAUSTED',
    retryable: true,
  });
  await chunks.command('CONFIG', 'SET', 'maxmemory', '0');
  for (const number of [1, 0]) await send(uploads, id, { number }, half(number));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(file));
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('the memory of the chunks Redis stays within the budget while a store is slow', async (t) => {
  const chunks = await startRedis({ appendonly: false });
  t.after(() => chunks.stop());
  const faults = new Map<keyof ObjectStore, Fault>([
    ['putPart', (call) => pause(150).then(call)],
    ['put', (call) => pause(150).then(call)],
  ]);
  const budgetBytes = 12 * mebibyte;
  const service = await startService(t, {
    chunksRedis: chunks.url,
    settings: { ...quick, budgetBytes, uploadBudgetBytes: 4 * mebibyte },
    wrap: (store) => faulty(store, faults),
    workers: 4,
  });
  const { uploads } = service;
  const used = async (): Promise<number> => Number((await chunks.info('memory'))['used_memory']);
  const empty = await used();
  let most = 0;
  const watching = setInterval(
    () =>
      void used().then(
        (now) => (most = Math.max(most, now - empty)),
        () => {},
      ),
    20,
  );
  t.after(() => clearInterval(watching));
  const size = 4 * mebibyte;
  const file = bytes.subarray(0, size);
  const one = async (n: number): Promise<void> => {
    const { id } = await begin(uploads, `f${n}`, { size, chunkSize: 300_000 });
    await Promise.all(
      Array.from({ length: Math.ceil(size / 300_000) }, async (_, number) => {
        const chunk = file.subarray(number * 300_000, (number + 1) * 300_000);
        for (;;) {
          const isTaken = await send(uploads, id, { number }, chunk).then(
            () => true,
            (error: { code?: string }) => error.code !== 'BUDGET_EXHAUSTED',
          );
          if (isTaken) return;
          await pause(50);
        }
      }),
    );
    assert.equal((await ended(uploads, id)).result!.sha256, sha256(file));
  };
  await Promise.all(Array.from({ length: 8 }, (_, n) => one(n)));
  // The connections themselves take some: their buffers hold frames on the way.
  assert.ok(most < budgetBytes + 6 * mebibyte, `${most}`);
  assert.ok(most > mebibyte, 'it was measured');
  const { used: reserved } = await remainsOf(service, chunks);
  assert.equal(reserved, 0);
});

test('a store that is away keeps what it could not take in the budget, and gives it back when it works again', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings: quick, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  faults.set('putPart', () =>
    Promise.reject(
      storeErrors.STORE_UNAVAILABLE({
        operation: 'putPart',
        key: 'k',
        reason: 'test',
        outcomeUnknown: false,
      }),
    ),
  );
  const { id } = await begin(uploads, 'f', { size: 2 * mebibyte, chunkSize: mebibyte / 2 });
  for (const number of [0, 1, 2, 3])
    await send(
      uploads,
      id,
      { number },
      bytes.subarray((number * mebibyte) / 2, ((number + 1) * mebibyte) / 2),
    );
  await pause(300);
  assert.ok((await remainsOf(service)).used >= 2 * mebibyte);
  faults.clear();
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});
