// Notes of small files: they go in crowds, stay while bytes are coming, and whoever finds an old one leaves nothing behind.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openRecords } from '@sluice/records';
import { startLossyProxy, startRedis, waitUntil } from '@sluice/testbed';
import type { ObjectStore } from '@sluice/store';
import { makeId } from '../src/keys.js';
import { Notes } from '../src/notes.js';
import {
  bytesOf,
  contentOf,
  faulty,
  nothingLeftBut,
  objectOf,
  quick,
  servers,
  startService,
  stopServers,
  stream,
  tenant,
  type Fault,
} from './harness.js';

after(stopServers);

const place = { bucket: 'files', prefix: '' };
const file = { tenant, drive: 'main', path: 'f' };

test('the notes of files that end together go with two commands', async (t) => {
  const { link, prefix, redis, keys } = await startService(t, { settings: quick, workers: 0 });
  const notes = new Notes(link, prefix, 60_000);
  const ids = Array.from({ length: 20 }, () => makeId(0));
  for (const id of ids) await notes.leave(id, file, place, `objects/${id}`, 1);
  assert.equal(await link.call('ZCARD', [keys().attention]), 20);
  await redis.command('CONFIG', 'RESETSTAT');
  await Promise.all(ids.map((id) => notes.remove(id)));
  const statistics = String(await redis.command('INFO', 'commandstats'));
  for (const name of ['del', 'zrem'])
    assert.match(statistics, new RegExp(`cmdstat_${name}:calls=1,`), statistics);
  assert.equal(await link.call('ZCARD', [keys().attention]), 0);
  assert.equal(await link.call('EXISTS', [...ids.map((id) => keys(id).state)]), 0);
});

test('a small file whose bytes dribble in for longer than a note lives is stored', async (t) => {
  const service = await startService(t, { settings: { ...quick, idleMs: 1_600 } });
  const { uploads } = service;
  const bytes = bytesOf(10);
  const tending = setInterval(() => void uploads.tend().catch(() => {}), 100);
  t.after(() => clearInterval(tending));
  async function* dribble(): AsyncGenerator<Buffer> {
    for (let at = 0; at < bytes.length; at++) {
      await pause(250);
      yield bytes.subarray(at, at + 1);
    }
  }
  const { size } = await uploads.store(file, dribble(), bytes.length);
  assert.equal(size, bytes.length);
  assert.deepEqual(await contentOf(service, 'f'), bytes);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('a small file whose commit got no answer is stored once, and its owner is told once', async (t) => {
  const service = await startService(t, { settings: quick, workers: 0 });
  const { port } = (await servers()).postgres;
  const proxy = await startLossyProxy(port);
  t.after(() => proxy.stop());
  const records = await openRecords({ url: service.database.replace(String(port), String(proxy.port)) });
  t.after(() => records.close());
  const told: string[] = [];
  const hooks = { afterComplete: ({ path }: { path: string }) => void told.push(path) };
  const uploads = await service.another({ records, hooks, workers: 2 });
  proxy.loseReplyTo('sluice_store_whole');
  const bytes = bytesOf(1_000);
  const { version } = await uploads.store(file, stream(bytes), bytes.length);
  assert.equal(proxy.lost, 1);
  assert.equal(version, 1);
  await waitUntil('the owner is told', () => told.length > 0);
  assert.deepEqual(await contentOf(service, 'f'), bytes);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
  assert.deepEqual(told, ['f']);
});

test('a small file that is recorded is answered, also when Redis hangs before its note is gone', async (t) => {
  const redisServer = await startRedis();
  const hangAfter: Fault = (put) => put().finally(() => redisServer.pause());
  const wrap = (store: ObjectStore): ObjectStore => faulty(store, new Map([['put', hangAfter]]));
  const service = await startService(t, { settings: quick, redisServer, wrap });
  t.after(() => redisServer.stop());
  const stored = service.uploads.store(file, stream(bytesOf(10)), 10);
  // As long as Redis hangs nobody can tell it anything.
  const { size } = await stored.finally(() => redisServer.resume());
  assert.equal(size, 10);
  await nothingLeftBut(service, [await objectOf(service, 'f')]);
});

test('a note whose drive was removed is cleaned up like any other', async (t) => {
  const service = await startService(t, { settings: { ...quick, idleMs: 300 } });
  const { uploads, records, store, link, prefix } = service;
  await records.drives.create({ tenant, name: 'gone', bucket: 'files' });
  const id = makeId(0);
  const key = `tenants/${tenant}/${id}/object`;
  await store.put(key, Buffer.from('x'));
  await records.drives.delete(tenant, 'gone');
  // Last, because it is looked after from now on.
  await new Notes(link, prefix, 300).leave(id, { ...file, drive: 'gone' }, place, key, 1);
  const tending = setInterval(() => void uploads.tend().catch(() => {}), 100);
  t.after(() => clearInterval(tending));
  await waitUntil('its object is gone', async () => (await store.head(key)) === undefined);
  await nothingLeftBut(service, []);
});

test('a drive that was remembered takes nothing once it is gone, and nothing goes where its successor does not look', async (t) => {
  const service = await startService(t, { settings: quick });
  const { uploads, records } = service;
  const upload = { tenant, drive: 'other', path: 'f' };
  const put = () => uploads.store(upload, stream(bytesOf(10)), 10);
  const begin = () => uploads.initiate({ ...upload, size: 10 });
  const empty = async () => {
    const node = await records.nodes.getByPath(tenant, 'other', 'f');
    await records.nodes.delete({ tenant, id: node!.id });
    assert.equal(await records.drives.delete(tenant, 'other'), true);
  };
  await records.drives.create({ tenant, name: 'other', bucket: 'files', prefix: 'old/' });
  await put();
  await empty();
  await assert.rejects(begin(), { code: 'DRIVE_NOT_FOUND' });
  await assert.rejects(put(), { code: 'DRIVE_NOT_FOUND' });

  await records.drives.create({ tenant, name: 'other', bucket: 'files', prefix: 'old/' });
  await put();
  await empty();
  await records.drives.create({ tenant, name: 'other', bucket: 'files', prefix: 'old/' });
  await put();
  await empty();
  for (const [prefix, first] of [
    ['new/', put],
    ['newer/', begin],
  ] as const) {
    await records.drives.create({ tenant, name: 'other', bucket: 'files', prefix });
    await assert.rejects(first(), { code: 'DRIVE_NOT_FOUND' }, 'what it remembers is another place');
    await put();
    const { objectKey } = (await records.nodes.getByPath(tenant, 'other', 'f'))!;
    assert.ok(objectKey!.startsWith(prefix), objectKey);
    await empty();
  }
});

test('who comes late with a file whose note was taken for old learns that it has ended', async (t) => {
  const { records } = await startService(t, { settings: quick });
  const id = makeId(0);
  const late = { id, tenant, drive: 'main', path: 'f', objectKey: `objects/${id}` };
  await records.uploads.bury({ ...late, reason: 'nothing came' });
  const object = { size: 1, etag: 'e', contentType: 'text/plain' };
  const storing = records.uploads.storeWhole({ ...late, ...object, ifExists: 'replace', requestDigest: 'd' });
  await assert.rejects(storing, { code: 'UPLOAD_ENDED' });
});

test('what an upload had reserved comes back, however long nobody looked', async (t) => {
  const service = await startService(t, { settings: quick, workers: 0 });
  const { uploads, link, keys } = service;
  const { id } = await uploads.initiate({ tenant, drive: 'main', path: 'f', size: 900_000 });
  await uploads.receive(id, { offset: 0 }, stream(bytesOf(400_000)), 400_000);
  assert.ok(Number(await link.call('HGET', [keys().budget, 'used'])) > 0);
  // Days later every key that runs out has done so, and nobody has sent anything since.
  const { redis } = await servers();
  for (const key of (await redis.command('KEYS', `${service.prefix}:*`)) as string[])
    if (Number(await link.call('PTTL', [key])) > 0) await link.call('DEL', [key]);
  await link.call('HSET', [keys(id).state, 'updated_at', 1]);
  await link.call('ZADD', [keys().attention, 1, id]);
  const awake = await service.another({ workers: 2 });
  await waitUntil('it has ended', async () => (await awake.status(id)).state === 'EXPIRED');
  assert.equal(Number(await link.call('HGET', [keys().budget, 'used'])), 0);
  await nothingLeftBut(service, []);
});
