// The jobs of uploads carry the tenant and the owner of their upload, so that an API can show a tenant its own.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Queue } from '@sluice/queue';
import { waitUntil } from '@sluice/testbed';
import {
  begin,
  bytesOf,
  mebibyte,
  quick,
  sendRange,
  startService,
  stopServers,
  stream,
  tenant,
} from './harness.js';

after(stopServers);

test('jobs of uploads carry the tenant and the owner of their upload', async (t) => {
  const hooks = { afterComplete: async () => {} };
  const { uploads, redis, prefix } = await startService(t, { settings: quick, hooks });
  const queue = new Queue<{ do: string; upload: string }>('uploads', { redis: redis.url, prefix });
  t.after(() => queue.close(100));
  await queue.pause();
  const bytes = bytesOf(2 * mebibyte + 5);
  const { id } = await begin(uploads, 'large', { size: bytes.length, owner: 'ada' });
  await sendRange(uploads, id, bytes, 0);
  await uploads.store({ tenant, drive: 'main', path: 'small' }, stream(bytes.subarray(0, 99)), 99);
  const seen = async () => {
    const { items } = await queue.browse({ limit: 100 });
    return items.map(({ data, labels }) => `${data!.do} ${JSON.stringify(labels)}`);
  };
  await waitUntil('both have left jobs', async () => {
    const all = await seen();
    return all.some((job) => job.startsWith('complete')) && all.some((job) => job.startsWith('announce'));
  });
  const all = await seen();
  assert.ok(all.includes('complete {"tenant":"acme","owner":"ada"}'), all.join('\n'));
  assert.ok(all.includes('announce {"tenant":"acme"}'), all.join('\n'));
  await queue.resume();
});
