// How long the steps of an upload wait for a store or a database that is away.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { recordsErrors } from '@sluice/records';
import { storeErrors, type Multipart, type ObjectStore } from '@sluice/store';
import { startRedis, waitUntil } from '@sluice/testbed';
import { uploadErrors } from '../src/errors.js';
import { backoff, waitFor } from '../src/work.js';
import {
  begin,
  bytesOf,
  ended,
  faulty,
  mebibyte,
  quick,
  sendRange,
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
  type Fault,
} from './harness.js';

after(stopServers);
const away = () =>
  storeErrors.STORE_UNAVAILABLE({ operation: 'put', key: 'k', reason: 'a test', outcomeUnknown: true });

test('however long a store or a database was away, a step is tried again within ten seconds', () => {
  const { delayMs, factor } = backoff;
  const unavailable = { what: 'activate', waitedMs: 1, outcomeUnknown: true, reason: 'a test' };
  for (const error of [away(), recordsErrors.RECORDS_UNAVAILABLE(unavailable)])
    for (let attempt = 1; attempt <= 200; attempt++) {
      const pauseMs = waitFor(error, attempt)?.delayMs ?? delayMs * factor ** (attempt - 1);
      assert.ok(pauseMs <= 10_000, `attempt ${attempt} is followed by a pause of ${pauseMs} ms`);
    }
});

test('what does not pass is not waited for', () => {
  assert.equal(waitFor(uploadErrors.DIGEST_CONFLICT(), 100), undefined);
  assert.equal(waitFor(new Error('a mistake of ours'), 100), undefined);
});

test('a part that found the store away again and again is written soon after it is back', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  let tries = 0;
  const service = await startService(t, { settings: quick, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  const bytes = bytesOf(300_000);
  const { id } = await begin(uploads, 'f', { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, 200_000);
  faults.set('put', () => {
    tries += 1;
    return Promise.reject(away());
  });
  await sendRange(uploads, id, bytes, 200_000);
  await waitUntil('it was tried five times', () => tries >= 5, { timeoutMs: 60_000 });
  faults.clear();
  const { state, result } = await ended(uploads, id, 60_000);
  assert.equal(state, 'COMPLETED');
  assert.equal(result!.sha256, sha256(bytes));
});

test('whoever waits long for the end of a file asks seldom', async (t) => {
  const redisServer = await startRedis();
  t.after(() => redisServer.stop());
  const tried = new Set<string>();
  const refuse: Fault = (_, multipart) => {
    tried.add((multipart as Multipart).key);
    return Promise.reject(away());
  };
  const faults = new Map<keyof ObjectStore, Fault>([['completeMultipart', refuse]]);
  const wrap = (store: ObjectStore) => faulty(store, faults);
  const { uploads } = await startService(t, { settings: quick, redisServer, wrap });
  const bytes = bytesOf(3 * mebibyte);
  const files = Array.from({ length: 10 }, (_, n) =>
    uploads.store({ tenant, drive: 'main', path: `f${n}` }, stream(bytes), bytes.length),
  );
  await waitUntil('nothing of them is missing but the end', () => tried.size === 10);
  // By then everybody asks as seldom as it ever will.
  await pause(4_000);
  await redisServer.command('CONFIG', 'RESETSTAT');
  await pause(1_000);
  const statistics = String(await redisServer.command('INFO', 'commandstats'));
  const asked = Number(/cmdstat_hgetall:calls=(\d+)/.exec(statistics)?.[1]);
  faults.clear();
  for (const file of await Promise.all(files)) assert.equal(file.sha256, sha256(bytes));
  assert.ok(asked < 150, `${asked} questions in a second, for ten files`);
});
