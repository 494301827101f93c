/** PostgreSQL away, frozen, restarted, and replies that never arrive: a typed error in time, or the right answer. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import {
  freePort,
  startLossyProxy,
  startPostgres,
  startProxy,
  waitUntil,
  type PostgresServer,
} from '@sluice/testbed';
import { Database } from '../src/database.js';
import { openRecords, type Records, type StoreWhole } from '../src/index.js';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.stop());

const isUnavailable = (error: unknown): boolean =>
  isSluiceError(error, 'RECORDS_UNAVAILABLE') && error.retryable;

function whole(path: string): StoreWhole {
  const id = randomUUID();
  const object = { size: 1, etag: 'e', contentType: 'text/plain' };
  return { id, tenant: 't', drive: 'd', path, objectKey: id, ifExists: 'replace', ...object };
}

async function open(url: string, deadlineMs?: number): Promise<Records> {
  const records = await openRecords({ url, ...(deadlineMs !== undefined && { deadlineMs }) });
  await records.drives.create({ tenant: 't', name: 'd', bucket: 'b' });
  return records;
}

async function within<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  try {
    return await work();
  } finally {
    const took = performance.now() - began;
    assert.ok(took < ms, `took ${took} ms`);
  }
}

test('a server that is not there is reported in time, and wrong credentials at once', async () => {
  const nobody = `postgres://sluice@127.0.0.1:${await freePort()}/x`;
  await within(9_000, () => assert.rejects(openRecords({ url: nobody, deadlineMs: 500 }), isUnavailable));
  const unknown = server.url.replace('sluice@', 'stranger@');
  await within(9_000, () =>
    assert.rejects(openRecords({ url: unknown }), (error) => isSluiceError(error, 'RECORDS_REFUSED')),
  );
});

test('a server that does not answer is reported in time, and the next call works once it does', async () => {
  const proxy = await startProxy(server.port);
  const url = (await server.createDatabase()).replace(String(server.port), String(proxy.port));
  // Its tables are made before anybody is in a hurry.
  await (await open(url)).close();
  const records = await openRecords({ url, deadlineMs: 1_000 });
  proxy.blackHole(true);
  await within(9_000, () => assert.rejects(records.uploads.storeWhole(whole('a')), isUnavailable));
  await within(9_000, () => assert.rejects(records.check(), isUnavailable));
  proxy.heal();
  proxy.cut();
  // One of a busy machine's answers may take longer than this deadline, too.
  await waitUntil('it works again', async () => {
    const { node } = await records.uploads.storeWhole(whole('a'));
    await records.check();
    return node!.status === 'ACTIVE';
  });
  await records.close();
  await proxy.stop();
});

test('a restart in the middle of many calls is waited out, and each call happened once', async () => {
  const own = await startPostgres();
  const url = await own.createDatabase();
  // Three starts of a server take their time on a busy machine.
  const records = await open(url, 120_000);
  const requests = Array.from({ length: 300 }, (_, i) => whole(`dir${i % 5}/f${i}`));
  const stored = Promise.all(requests.map((request) => records.uploads.storeWhole(request)));
  await own.restart();
  await own.kill9();
  await own.restart();
  assert.ok((await stored).every(({ node }) => node!.version === 1));
  assert.deepEqual(await records.uploads.usage('t'), { bytes: 300, files: 300 });
  // Three of each file, and one of each folder that was made, and of the drive.
  assert.equal((await records.outbox.state()).waiting, 906);
  await records.close();
  await own.stop();
});

test('a commit whose reply was lost is repeated and happens once', async () => {
  const proxy = await startLossyProxy(server.port);
  const url = await server.createDatabase();
  const records = await open(url.replace(String(server.port), String(proxy.port)));
  proxy.loseReplyTo('sluice_store_whole');
  const { node, replayed } = await records.uploads.storeWhole(whole('a'));
  assert.deepEqual([node!.version, replayed], [1, true]);
  assert.equal(proxy.lost, 1);
  const { upload } = await records.uploads.begin(whole('b'));
  proxy.loseReplyTo('sluice_activate');
  const object = { size: 1, etag: 'e', contentType: 'text/plain' };
  const { result } = await records.uploads.activate({ id: upload.id, fence: 0, ...object });
  assert.equal(result.version, 1);
  proxy.loseReplyTo('sluice_move');
  assert.equal((await records.nodes.move({ tenant: 't', id: node!.id, name: 'c' })).node.version, 2);
  proxy.loseReplyTo('sluice_delete');
  await records.nodes.delete({ tenant: 't', id: node!.id });
  proxy.loseReplyTo('sluice_end');
  const { upload: other } = await records.uploads.begin(whole('d'));
  assert.equal(
    (await records.uploads.end({ id: other.id, status: 'FAILED', reason: 'x' })).upload.status,
    'FAILED',
  );
  proxy.loseReplyTo('sluice_verify');
  const { node: rest } = await records.uploads.storeWhole(whole('e'));
  const taken = await records.verifications.take({ nodeId: rest!.id, result: 'approved' });
  assert.equal(taken.replayed, true);
  proxy.loseReplyTo('sluice_create_drive');
  assert.equal((await records.drives.create({ tenant: 't', name: 'more', bucket: 'b' })).name, 'more');
  assert.equal(proxy.lost, 7);
  assert.deepEqual(await records.uploads.usage('t'), { bytes: 2, files: 2 });
  const rows = await server.query('SELECT event_id FROM outbox', [], url);
  assert.equal(rows.length, 3 + 3 + 2 + 2 + 4 + 2);
  await records.close();
  await proxy.stop();
});

test('what may have been carried out is never called refused: callers remove what was', async () => {
  const isUnknown = (error: unknown): boolean =>
    isUnavailable(error) && isSluiceError(error) && error.details?.['outcomeUnknown'] === true;
  const proxy = await startLossyProxy(server.port);
  const url = (await server.createDatabase()).replace(String(server.port), String(proxy.port));
  // Repeated, it would be refused: the table is there.
  const database = new Database({ url });
  proxy.loseReplyTo('CREATE TABLE once');
  await assert.rejects(database.query('make a table', 'CREATE TABLE once (a int)'), isUnknown);
  await assert.rejects(database.query('make a table', 'CREATE TABLE once (a int)'), (error) =>
    isSluiceError(error, 'RECORDS_REFUSED'),
  );
  await database.close();
  const records = await open(url);
  let closed: Promise<void> | undefined;
  // Each reply: closing takes a moment, in which it may be repeated.
  const lose = (): void => {
    closed ??= records.close();
    proxy.loseReplyTo('sluice_store_whole', lose);
  };
  proxy.loseReplyTo('sluice_store_whole', lose);
  await assert.rejects(records.uploads.storeWhole(whole('a')), isUnknown);
  assert.ok(proxy.lost >= 2);
  await closed;
  await proxy.stop();
});

test('a closed connection says so', async () => {
  const records = await open(await server.createDatabase());
  await records.close();
  await records.close();
  await assert.rejects(records.check(), (error) => isSluiceError(error, 'RECORDS_CLOSED'));
});
