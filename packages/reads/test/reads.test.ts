/** Files, drives and ended uploads through the cache: as fast as a copy, and never older than the last change. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test, type TestContext } from 'node:test';
import { applyEvent, Cache } from '@sluice/cache';
import { followerKey, RedisStreamSink, Relay } from '@sluice/events';
import { openRecords, type Change, type Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { startPostgres, startRedis, waitUntil, type PostgresServer, type RedisServer } from '@sluice/testbed';
import { CachedReads, ChangeFollower, eventsOfChange, eventsOfMessage } from '../src/index.js';

const drive = 'main';
let redis: RedisServer;
let cacheRedis: RedisServer;
let postgres: PostgresServer;

before(async () => {
  [redis, cacheRedis, postgres] = await Promise.all([
    startRedis(),
    startRedis({ appendonly: false, config: { 'maxmemory-policy': 'allkeys-lru' } }),
    startPostgres({ fsync: false }),
  ]);
});
after(async () => {
  await Promise.all([redis?.stop(), cacheRedis?.stop(), postgres?.stop()]);
});

interface Process {
  cache: Cache;
  records: Records;
  reads: CachedReads;
}

interface Service {
  tenant: string;
  prefix: string;
  /** One that tells of its changes, as a server does; or one that dies before it can. */
  open: (options?: { tells?: boolean }) => Promise<Process>;
}

async function service(t: TestContext): Promise<Service> {
  const url = await postgres.createDatabase();
  const prefix = `reads-${randomUUID()}`;
  const tenant = 'acme';
  const open = async ({ tells = true } = {}): Promise<Process> => {
    const cache = new Cache({ redis: cacheRedis.url, prefix, patienceMs: 10_000 });
    await cache.start();
    const onChange = async (change: Change) => void (await applyEvent(cache, ...eventsOfChange(change)));
    const records = await openRecords({ url, poolSize: 2, ...(tells && { onChange }) });
    t.after(async () => {
      await records.close();
      cache.close();
    });
    await records.drives.create({ tenant, name: drive, bucket: 'b' });
    return { cache, records, reads: new CachedReads(cache, records) };
  };
  return { tenant, prefix, open };
}

function store({ records }: Process, tenant: string, path: string, etag: string) {
  const id = randomUUID();
  const what = { size: 1, etag, contentType: 'text/plain', ifExists: 'replace' } as const;
  return records.uploads.storeWhole({ id, tenant, drive, path, objectKey: `o/${id}`, ...what });
}

const loadsOf = ({ cache }: Process, family: string): number =>
  cache.statistics().families.find((one) => one.family === family)!.loads;

test('a file is read from the records once, and a change is seen by whoever asks after it', async (t) => {
  const { tenant, open } = await service(t);
  const [one, two] = [await open(), await open()];
  const { node } = await store(one, tenant, 'in/a', 'v1');
  for (const { reads } of [one, two, one, two]) {
    const found = (await reads.nodeAt(tenant, drive, 'in/a'))!;
    // Where there is nothing, JSON has no field.
    const known = (await one.records.nodes.get(tenant, node!.id))!;
    assert.deepEqual(
      found,
      Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined)),
    );
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

test('what is not there, is still to come, or is a folder is asked for every time', async (t) => {
  const { tenant, open } = await service(t);
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
  const { tenant, prefix, open } = await service(t);
  const [reader, dying] = [await open(), await open({ tells: false })];
  const { node } = await store(reader, tenant, 'a', 'v1');
  assert.equal((await reader.reads.nodeAt(tenant, drive, 'a'))?.etag, 'v1');
  await store(dying, tenant, 'a', 'v2');
  assert.equal((await reader.reads.nodeAt(tenant, drive, 'a'))?.etag, 'v1', 'nobody knows it yet');

  const link = new RedisLink(redis.url);
  const relay = new Relay({ records: reader.records, sink: new RedisStreamSink({ redis: link, prefix }) });
  void relay.start();
  const follow = () => {
    const follower = new ChangeFollower({ cache: reader.cache, redis: new RedisLink(redis.url), prefix });
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
  const cursor = async () => String(await redis.command('GET', followerKey('cache', prefix)));
  const before = await cursor();
  await waitUntil('the event is out', async () => (await reader.records.outbox.state()).waiting === 0);
  cacheRedis.pause();
  follower = follow();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  assert.equal(await cursor(), before);
  cacheRedis.resume();
  await until('v3');
  await dying.records.nodes.delete({ tenant, id: node!.id });
  await until(undefined);
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
