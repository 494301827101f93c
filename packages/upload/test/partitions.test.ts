// Uploads are spread over partitions, whose number may change while there are some.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import { keysOf } from '../src/keys.js';
import {
  begin,
  bytesOf,
  mebibyte,
  quick,
  sendMissing,
  sendRange,
  sha256,
  startService,
  stopServers,
  wasQuietFor,
  type Service,
} from './harness.js';

after(stopServers);
const bytes = bytesOf(300_000);

/** An upload in the last of eight partitions, half of which is there. */
async function inLastPartition({ uploads }: Service): Promise<string> {
  for (let i = 0; ; i++) {
    const { id } = await begin(uploads, `f${i}`, { size: bytes.length });
    if (!id.startsWith('7-')) {
      await uploads.cancel(id);
      continue;
    }
    await sendRange(uploads, id, bytes, 0, 150_000);
    return id;
  }
}

test('with fewer partitions than before, old uploads are read, go on and are completed', async (t) => {
  const service = await startService(t, { settings: { ...quick, partitions: 8 } });
  const id = await inLastPartition(service);
  await service.uploads.stop();
  const fewer = await service.another({ settings: { partitions: 1 } });
  assert.equal((await fewer.status(id)).receivedBytes, 150_000);
  const { state, result } = await sendMissing(fewer, id, bytes);
  assert.equal(state, 'COMPLETED');
  assert.equal(result!.sha256, sha256(bytes));
});

test('with fewer partitions than before, old uploads that nobody goes on with expire and leave nothing', async (t) => {
  const service = await startService(t, { settings: { ...quick, partitions: 8 } });
  const { link, prefix, store } = service;
  const id = await inLastPartition(service);
  await service.uploads.stop();
  await wasQuietFor({ link, keys: () => keysOf(prefix, 7, id) }, id, 86_400_000);
  const fewer = await service.another({ settings: { partitions: 1 } });
  await waitUntil('it expires', async () => {
    await fewer.tend();
    return (await fewer.status(id)).state === 'EXPIRED';
  });
  await waitUntil('nobody need look at it', async () => {
    const keys = keysOf(prefix, 7, id);
    const left = (await link.call('ZCARD', [keys.attention])) as number;
    const used = Number(await link.call('HGET', [keys.budget, 'used']));
    return left === 0 && used === 0;
  });
  assert.deepEqual((await store.list('')).objects, []);
});

test('with fewer partitions than before, all of them together keep to the budget', async (t) => {
  const settings = { ...quick, partitions: 8, budgetBytes: 16 * mebibyte };
  const service = await startService(t, { settings });
  const id = await inLastPartition(service);
  const fewer = await service.another({ settings: { partitions: 1 } });
  const { id: other } = await begin(fewer, 'other', { size: 8 * mebibyte });
  // One partition alone would have room for it, if there had never been others.
  const far = bytesOf(8 * mebibyte);
  const sending = [1, 2, 3, 4].map((part) =>
    sendRange(fewer, other, far, part * mebibyte + 1, (part + 1) * mebibyte),
  );
  const refused = (await Promise.allSettled(sending)).filter(({ status }) => status === 'rejected');
  assert.ok(refused.length > 0, 'nobody was refused');
  assert.equal((await fewer.status(id)).receivedBytes, 150_000);
});
