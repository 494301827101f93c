// Two requests with the same bytes at once: the one that comes too late hears what it would have heard a moment later.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Records } from '@sluice/records';
import type { ObjectStore } from '@sluice/store';
import { latch, waitUntil } from '@sluice/testbed';
import {
  begin,
  bytesOf,
  ended,
  faulty,
  mebibyte,
  quick,
  send,
  sha256,
  startService,
  stopServers,
  stream,
  tenant,
  type Fault,
  type Service,
} from './harness.js';

after(stopServers);
const limits = { maxBytes: 10 * mebibyte };

/** An instance whose chunks stop before or after they have claimed their bytes of the quota, until they are let go. */
async function lateInstance({ another, records }: Service, stops: 'before' | 'after' = 'after') {
  const letGo = latch();
  const looked = { times: 0 };
  const stop = (): Promise<void> => {
    looked.times += 1;
    return letGo.opened;
  };
  const claim: Fault = async (call) => {
    if (stops === 'before') await stop();
    const claimed = await call();
    if (stops === 'after') await stop();
    return claimed;
  };
  const uploads = { value: faulty(records.uploads, new Map([['claim', claim]])) };
  const late = await another({ records: Object.create(records, { uploads }) as Records });
  return { late, letGo, looked };
}

for (const stops of ['before', 'after'] as const)
  test(`a piped file that is sent again and overtaken ${stops} it claims its bytes is one version, and both are told of it`, async (t) => {
    const service = await startService(t, { settings: quick });
    const { late, letGo, looked } = await lateInstance(service, stops);
    const bytes = bytesOf(mebibyte + 600_000);
    const file = { tenant, drive: 'main', path: 'f', idempotencyKey: 'once', limits };
    const second = late.store(file, stream(bytes), undefined);
    second.catch(() => {});
    await waitUntil('it has looked', () => looked.times === 1);
    const first = await service.uploads.store(file, stream(bytes), undefined);
    letGo.open();
    assert.deepEqual(await second, first);
    assert.deepEqual([first.version, first.sha256], [1, sha256(bytes)]);
  });

test('a chunk whose upload gets all its bytes meanwhile is compared, or answered with the end', async (t) => {
  const faults = new Map<keyof ObjectStore, Fault>();
  const service = await startService(t, { settings: quick, wrap: (store) => faulty(store, faults) });
  const { uploads } = service;
  const made = latch();
  faults.set('put', async (call) => {
    await made.opened;
    return call();
  });
  const bytes = bytesOf(1_000);
  const { late, letGo, looked } = await lateInstance(service);
  const { id } = await begin(uploads, 'f', { limits });
  const other = Buffer.from(bytes.toReversed());
  const [same, different] = [bytes, other].map((body) => send(late, id, { number: 0, last: true }, body));
  for (const one of [same, different]) one!.catch(() => {});
  await waitUntil('both have looked', () => looked.times === 2);
  await send(uploads, id, { number: 0, last: true }, bytes);
  letGo.open();
  await assert.rejects(different!, { code: 'CHUNK_CONFLICT' });
  assert.equal((await same!).duplicate, true);
  made.open();
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
});

test('a chunk whose upload is cancelled meanwhile is told so', async (t) => {
  const service = await startService(t, { settings: quick });
  const { late, letGo, looked } = await lateInstance(service);
  const { id } = await begin(service.uploads, 'f', { limits });
  const sent = send(late, id, { number: 0 }, bytesOf(1_000));
  sent.catch(() => {});
  await waitUntil('it has looked', () => looked.times === 1);
  await service.uploads.cancel(id);
  letGo.open();
  await assert.rejects(sent, { code: 'UPLOAD_ENDED', message: /is CANCELLED/ });
});
