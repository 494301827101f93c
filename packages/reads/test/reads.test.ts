/** Files, drives and ended uploads through the cache: as fast as a copy, and never older than the last change. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { silentLogger } from '@sluice/base';
import { followerKey, RedisStreamSink, Relay } from '@sluice/events';
import { RedisLink } from '@sluice/redis';
import { waitUntil } from '@sluice/testbed';
import { ChangeFollower, eventsOfMessage } from '../src/index.js';
import { drive, known, loadsOf, store, useServers, type Process } from './setup.js';

const bed = useServers();

test('a file is read from the records once, and a change is seen by whoever asks after it', async (t) => {
  const { tenant, open } = await bed.service(t);
  const [one, two] = [await open(), await open()];
  const { node } = await store(one, tenant, 'in/a', 'v1');
  for (const { reads } of [one, two, one, two]) {
    const found = (await reads.nodeAt(tenant, drive, 'in/a'))!;
    assert.deepEqual(found, known(await one.records.nodes.get(tenant, node!.id)));
    assert.deepEqual(await reads.node(tenant, node!.id), found);
    assert.equal((await reads.drive(tenant, drive))?.id, found.driveId);
    assert.equal((await reads.driveById(tenant, found.driveId))?.name, drive);
  }
  for (const family of ['node', 'node:at', 'drive', 'drive:id'])
    assert.equal(loadsOf(one, family) + loadsOf(two, family), 1, family);

  const seen = async (path: string, wanted: string | undefined) => {
    assert.equal((await one.reads.nodeAt(tenant, drive, path))?.etag, wanted);
    // Another process follows as soon as it hears of it.
    await waitUntil(`${wanted} at ${path}`, async () => {
      return (await two.reads.nodeAt(tenant, drive, path))?.etag === wanted;
    });
  };
  await store(one, tenant, 'in/a', 'v2');
  await seen('in/a', 'v2');
  assert.equal((await one.reads.node(tenant, node!.id))?.etag, 'v2');
  const folder = await one.records.nodes.getByPath(tenant, drive, 'in');
  await one.records.nodes.move({ tenant, id: folder!.id, name: 'out' });
  await seen('in/a', undefined);
  await seen('out/a', 'v2');
  assert.equal((await one.reads.node(tenant, node!.id))?.path, 'out/a');
  await one.records.nodes.delete({ tenant, id: folder!.id, recursive: true });
  await seen('out/a', undefined);
  assert.equal(await one.reads.node(tenant, node!.id), undefined);
  await one.records.drives.delete(tenant, drive);
  assert.equal(await one.reads.drive(tenant, drive), undefined);
});

test('what is not there, or is still to come, is asked for every time', async (t) => {
  const { tenant, open } = await bed.service(t);
  const process = await open();
  const { reads, records } = process;
  const id = randomUUID();
  assert.equal(await reads.nodeAt(tenant, drive, 'new'), undefined);
  const { node } = await records.uploads.begin({
    ...{ id, tenant, drive, path: 'new', objectKey: 'o' },
    ifExists: 'replace',
  });
  assert.equal((await reads.nodeAt(tenant, drive, 'new'))?.status, 'PENDING');
  await records.nodes.markUploading(node!.id);
  assert.equal((await reads.nodeAt(tenant, drive, 'new'))?.status, 'UPLOADING');
  assert.equal(await reads.endedUpload(tenant, id), undefined);
  await records.uploads.end({ id, status: 'CANCELLED', reason: 'enough' });
  assert.equal(await reads.nodeAt(tenant, drive, 'new'), undefined);
  const upload = await reads.endedUpload(tenant, id);
  assert.deepEqual([upload?.status, upload?.endedAt instanceof Date], ['CANCELLED', true]);
  assert.equal(await reads.endedUpload('somebody else', id), undefined);
  const loads = loadsOf(process, 'upload:ended');
  await reads.endedUpload(tenant, id);
  assert.equal(loadsOf(process, 'upload:ended'), loads);
});

test('a change whose writer died before it could tell is corrected from the outbox', async (t) => {
  const { tenant, prefix, open } = await bed.service(t);
  const [reader, dying] = [await open(), await open({ tells: false })];
  const { node } = await store(reader, tenant, 'a', 'v1');
  assert.equal((await reader.reads.nodeAt(tenant, drive, 'a'))?.etag, 'v1');
  await store(dying, tenant, 'a', 'v2');
  assert.equal((await reader.reads.nodeAt(tenant, drive, 'a'))?.etag, 'v1', 'nobody knows it yet');

  const link = new RedisLink(bed.redis.url);
  const relay = new Relay({ records: reader.records, sink: new RedisStreamSink({ redis: link, prefix }) });
  void relay.start();
  const follow = () => {
    const follower = new ChangeFollower({ cache: reader.cache, redis: new RedisLink(bed.redis.url), prefix });
    follower.start();
    return follower;
  };
  let follower = follow();
  t.after(async () => {
    await Promise.all([relay.stop(), follower.stop()]);
    link.close();
  });
  const until = (etag: string | undefined) =>
    waitUntil(`it is ${etag}`, async () => (await reader.reads.nodeAt(tenant, drive, 'a'))?.etag === etag, {
      timeoutMs: 20_000,
    });
  await until('v2');
  await follower.stop();

  // While nobody follows, and Redis cannot be told, nothing is passed over.
  await store(dying, tenant, 'a', 'v3');
  const cursor = async () => String(await bed.redis.command('GET', followerKey('cache', prefix)));
  const before = await cursor();
  await waitUntil('the event is out', async () => (await reader.records.outbox.state()).waiting === 0);
  bed.cacheRedis.pause();
  follower = follow();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(await cursor(), before);
  bed.cacheRedis.resume();
  await until('v3');
  await dying.records.nodes.delete({ tenant, id: node!.id });
  await until(undefined);
});

test('the drives are listed from the records once, and one that comes or goes is in the next list', async (t) => {
  const { tenant, open } = await bed.service(t);
  const [one, two] = [await open(), await open()];
  const names = async ({ reads }: Process, page: { after?: string; limit: number } = { limit: 10 }) =>
    (await reads.drives(tenant, page)).map(({ name }) => name);
  for (const process of [one, two, one, two]) assert.deepEqual(await names(process), [drive]);
  assert.equal(loadsOf(one, 'drive:list') + loadsOf(two, 'drive:list'), 1);
  assert.deepEqual(await one.reads.drives(tenant, { limit: 10 }), await one.records.drives.list(tenant));
  assert.deepEqual(await names(one, { limit: 10, after: drive }), []);

  const seen = async (...wanted: string[]) => {
    assert.deepEqual(await names(one), wanted);
    await waitUntil(`${String(wanted)} in another process`, async () => {
      return String(await names(two)) === String(wanted);
    });
  };
  await one.records.drives.create({ tenant, name: 'photos', bucket: 'b' });
  await seen(drive, 'photos');
  assert.deepEqual(await names(one, { limit: 10, after: drive }), ['photos'], 'the other pages too');
  await one.records.drives.delete(tenant, drive);
  await seen('photos');
  assert.deepEqual(await one.reads.drives('somebody else', { limit: 10 }), []);
});

test('a drive whose maker died before it could tell is in the list by the outbox, and so is one that went', async (t) => {
  const { tenant, prefix, open } = await bed.service(t);
  const [reader, dying] = [await open(), await open({ tells: false })];
  const names = async () => (await reader.reads.drives(tenant, { limit: 10 })).map(({ name }) => name);
  assert.deepEqual(await names(), [drive]);
  await dying.records.drives.create({ tenant, name: 'photos', bucket: 'b' });
  assert.deepEqual(await names(), [drive], 'nobody knows it yet');
  const link = new RedisLink(bed.redis.url);
  const relay = new Relay({ records: reader.records, sink: new RedisStreamSink({ redis: link, prefix }) });
  const follower = new ChangeFollower({ cache: reader.cache, redis: new RedisLink(bed.redis.url), prefix });
  void relay.start();
  follower.start();
  t.after(async () => {
    await Promise.all([relay.stop(), follower.stop()]);
    link.close();
  });
  const until = (...wanted: string[]) =>
    waitUntil(`the list is ${String(wanted)}`, async () => String(await names()) === String(wanted), {
      timeoutMs: 20_000,
    });
  await until(drive, 'photos');
  await dying.records.drives.delete(tenant, 'photos');
  await until(drive);
});

test('an event that makes no sense is passed over with a line in the log, and those behind it are applied', async (t) => {
  const { tenant, prefix, open } = await bed.service(t);
  const [reader, dying] = [await open(), await open({ tells: false })];
  await store(reader, tenant, 'a', 'v1');
  assert.equal((await reader.reads.nodeAt(tenant, drive, 'a'))?.etag, 'v1');
  const link = new RedisLink(bed.redis.url);
  t.after(() => link.close());
  const sink = new RedisStreamSink({ redis: link, prefix });
  const senseless: [topic: string, value: object][] = [
    ['repository.drives.updated', { tenant: null }],
    ['repository.documents.updated', { tenant, nodeId: 'n', drive, path: 7 }],
    ['repository.folders.updated', { tenant, drive, path: { a: 1 } }],
    ['repository.uploads.completed', { tenant: 'x'.repeat(2_000), uploadId: 'u' }],
  ];
  await sink.publish(
    senseless.map(([topic, value]) => ({
      ...{ eventId: randomUUID(), topic, key: 'k' },
      value: JSON.stringify(value),
    })),
  );
  const relay = new Relay({ records: reader.records, sink });
  void relay.start();
  await store(dying, tenant, 'a', 'v2');
  const told: unknown[] = [];
  const warn = (fields: object) => void told.push((fields as { topic?: string }).topic);
  const redis = new RedisLink(bed.redis.url);
  const logger = { ...silentLogger, warn };
  const follower = new ChangeFollower({ cache: reader.cache, redis, prefix, logger });
  t.after(() => Promise.all([relay.stop(), follower.stop()]));
  follower.start();
  await waitUntil('it is v2', async () => (await reader.reads.nodeAt(tenant, drive, 'a'))?.etag === 'v2', {
    timeoutMs: 20_000,
  });
  assert.deepEqual(
    told,
    senseless.map(([topic]) => topic),
  );
});

test('events that are none of ours, or are damaged, change nothing and stop nobody', () => {
  for (const [topic, value] of [
    ['somebody.else', '{}'],
    ['repository.documents.updated', 'not JSON'],
    ['repository.documents.updated', 'null'],
    ['repository.documents.updated', '{"tenant":"t"}'],
    ['repository.uploads.initiated', '{"tenant":"t","uploadId":"u"}'],
  ] as const)
    assert.deepEqual(eventsOfMessage(topic, value), [], topic);
});
