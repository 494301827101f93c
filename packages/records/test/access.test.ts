/** Keys and the audit log in the records: what is true of them whoever asks, and however often a call is repeated. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startPostgres, type PostgresServer } from '@sluice/testbed';
import { openRecords, type CreateKey, type Records } from '../src/index.js';

let server: PostgresServer;
let records: Records;

before(async () => {
  server = await startPostgres();
  records = await openRecords({ url: await server.createDatabase() });
});

after(async () => {
  await records?.close();
  await server?.stop();
});

function aKey(more: Partial<CreateKey> = {}): CreateKey {
  const id = randomBytes(8).toString('hex');
  const digest = createHash('sha256').update(id).digest();
  return {
    id,
    digest,
    tenant: 'acme',
    role: 'viewer',
    name: 'a',
    createdBy: 'test',
    configured: true,
    ...more,
  };
}

const code = (wanted: string) => (error: unknown) => isSluiceError(error, wanted);

test('each change of keys raises the revision; questions, uses and repetitions of the same key do not add any', async () => {
  const revision = async (): Promise<number> => (await records.keys.state()).revision;
  const key = aKey();
  const start = await revision();
  await records.keys.create(key);
  const made = await revision();
  assert.ok(made > start);
  const again = await records.keys.create(key);
  assert.equal(again.id, key.id);
  const before = await revision();
  await records.keys.touch([key.id, 'nobody']);
  await records.keys.list();
  await records.keys.live();
  assert.equal(await revision(), before);
  assert.equal((await records.keys.list({ tenant: 'acme' })).filter(({ id }) => id === key.id).length, 1);
  await records.keys.revoke({ id: key.id, configuredAdmin: true });
  assert.ok((await revision()) > before);
});

test('live keys have their digests, others are not among them, and no list shows a digest', async () => {
  const [live, ended, short] = [aKey(), aKey(), aKey({ expiresInMs: 1 })];
  for (const key of [live, ended, short]) await records.keys.create(key);
  await records.keys.revoke({ id: ended.id, configuredAdmin: true });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const { keys } = await records.keys.live();
  const found = keys.find(({ id }) => id === live.id);
  assert.ok(found?.digest.equals(live.digest));
  assert.ok(!keys.some(({ id }) => id === ended.id || id === short.id));
  for (const key of await records.keys.list()) assert.ok(!('digest' in key) && !('oldDigest' in key));
});

test('a rotation that is repeated because its answer was lost is one rotation', async () => {
  const key = aKey();
  await records.keys.create(key);
  const digest = randomBytes(32);
  for (const _ of [1, 2]) await records.keys.rotate({ id: key.id, digest, graceMs: 60_000 });
  const found = (await records.keys.live()).keys.find(({ id }) => id === key.id)!;
  assert.ok(found.digest.equals(digest) && found.oldDigest!.equals(key.digest));
  await assert.rejects(
    records.keys.rotate({ id: key.id, tenant: 'other', digest, graceMs: 0 }),
    code('KEY_NOT_FOUND'),
  );
});

test('sessions that were ended are told until they would have ended anyway', async () => {
  await records.keys.endSession('mine', new Date(Date.now() + 60_000));
  await records.keys.endSession('mine', new Date(Date.now() + 60_000));
  await records.keys.endSession('old', new Date(Date.now() - 1_000));
  const { endedSessions } = await records.keys.live();
  assert.deepEqual(endedSessions, ['mine']);
});

test('a row of the audit log is begun without an outcome and completed with one', async () => {
  const entry = {
    ...{ tenant: 'acme', action: 'drive.create', target: 'x', actor: 'k', actorName: 'n', via: 'key' },
    ...{ address: '192.0.2.1', requestId: 'r' },
  };
  const id = await records.audit.begin(entry);
  const [begun] = await records.audit.list({ tenant: 'acme' });
  assert.deepEqual([begun!.id, begun!.outcome, begun!.status, begun!.endedAt], [id, null, null, null]);
  for (const _ of [1, 2])
    await records.audit.complete(id, { outcome: 'done', status: 200, details: { count: 3 } });
  const [ended, ...more] = await records.audit.list({ actor: 'k' });
  assert.deepEqual(
    [ended!.outcome, ended!.status, ended!.details, more.length],
    ['done', 200, { count: 3 }, 0],
  );
  assert.deepEqual(await records.audit.list({ tenant: 'other' }), []);
});
