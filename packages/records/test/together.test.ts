/** Small files that come at once share transactions, and nothing else: not a refusal, not a wait, not what they tell. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startLossyProxy, startPostgres, type PostgresServer } from '@sluice/testbed';
import { Client } from 'pg';
import { openRecords, type Change, type Records, type StoreWhole } from '../src/index.js';

const tenant = 't';
const drive = 'd';

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.stop());

function whole(path: string, more: Partial<StoreWhole> = {}): StoreWhole {
  const id = randomUUID();
  const object = { size: 1, etag: 'e', contentType: 'text/plain' };
  return { id, tenant, drive, path, objectKey: id, ifExists: 'replace', ...object, ...more };
}

/** The event of the drive that `open` makes. */
const ofDrive = 1;

async function open(
  url: string,
  onChange: (change: Change) => Promise<void> = async () => {},
): Promise<Records> {
  const records = await openRecords({ url, onChange });
  await records.drives.create({ tenant, name: drive, bucket: 'b' });
  return records;
}

const numbered = (count: number, name = 'f'): string[] =>
  Array.from({ length: count }, (_, i) => `${name}${String(i).padStart(3, '0')}`);

test('files that come at once share transactions, and each gets its own answer', async () => {
  // On a machine that stands still for a moment they do not wait for the first, and go by themselves.
  let count: number;
  let tries = 0;
  do count = await transactionsForSixty();
  while (count > 30 && ++tries < 3);
  assert.ok(count <= 30, `${count} transactions for 60 files`);
});

async function transactionsForSixty(): Promise<number> {
  const url = await server.createDatabase();
  const records = await open(url);
  const paths = numbered(60);
  const requests = paths.map((path, size) => whole(path, { size }));
  const stored = await Promise.all(requests.map((request) => records.uploads.storeWhole(request)));
  for (const [i, { upload, node, result, replayed }] of stored.entries()) {
    const { id, size, objectKey } = requests[i]!;
    assert.deepEqual(
      [upload.id, node!.path, result.size, node!.objectKey, node!.version, replayed],
      [id, paths[i], size, objectKey, 1, false],
    );
  }
  // Every row carries the number of the transaction that wrote it.
  const [row] = await server.query('SELECT count(DISTINCT xmin::text)::int AS count FROM nodes', [], url);
  assert.equal((await records.outbox.state()).waiting, ofDrive + 3 * 60);
  await records.close();
  return row!['count'] as number;
}

test('a file that is refused refuses nobody else', async () => {
  const url = await server.createDatabase();
  const records = await open(url);
  await records.uploads.storeWhole(whole('file'));
  const paths = [...numbered(10), 'file/below', ...numbered(10, 'g')];
  const stored = await Promise.allSettled(paths.map((path) => records.uploads.storeWhole(whole(path))));
  for (const [i, each] of stored.entries()) {
    if (each.status === 'fulfilled') assert.equal(each.value.node!.path, paths[i]);
    else {
      assert.equal(paths[i], 'file/below');
      assert.ok(isSluiceError(each.reason, 'NOT_A_FOLDER'), String(each.reason));
    }
  }
  assert.equal(stored.filter(({ status }) => status === 'rejected').length, 1);
  assert.deepEqual(await records.uploads.usage(tenant), { bytes: 21, files: 21 });
  assert.equal((await records.outbox.state()).waiting, ofDrive + 3 * 21);
  await records.close();
});

test('files of one path are stored one after the other, in one transaction or in two', async () => {
  const url = await server.createDatabase();
  const records = await open(url);
  const requests = Array.from({ length: 12 }, () => whole('same'));
  const stored = await Promise.all(requests.map((request) => records.uploads.storeWhole(request)));
  const versions = stored.map(({ result }) => result.version).sort((a, b) => a - b);
  assert.deepEqual(
    versions,
    requests.map((_, i) => i + 1),
  );
  const last = stored.find(({ result }) => result.version === 12)!;
  const node = await records.nodes.getByPath(tenant, drive, 'same');
  assert.equal(node!.objectKey, last.upload.objectKey);
  const doomed = await server.query('SELECT object_key FROM doomed_objects', [], url);
  assert.deepEqual(
    new Set(doomed.map((row) => row['object_key'])),
    new Set(requests.map(({ objectKey }) => objectKey).filter((key) => key !== node!.objectKey)),
  );
  await records.close();
});

test('two processes that store the same files at once wait for each other, and never both', async () => {
  const url = await server.createDatabase();
  const [one, two] = [await open(url), await open(url)];
  const paths = numbered(40, 'deep/folder/');
  const stored = await Promise.all([
    ...paths.map((path) => one.uploads.storeWhole(whole(path))),
    ...paths.toReversed().map((path) => two.uploads.storeWhole(whole(path))),
  ]);
  assert.equal(stored.length, 80);
  assert.deepEqual(await one.uploads.usage(tenant), { bytes: 40, files: 40 });
  const rows = await server.query(`SELECT DISTINCT version FROM nodes WHERE type = 'FILE'`, [], url);
  assert.deepEqual(rows, [{ version: 2 }]);
  const circles = `SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()`;
  assert.deepEqual(await server.query(circles, [], url), [{ deadlocks: 0 }]);
  await Promise.all([one.close(), two.close()]);
});

test('a file whose predecessors are stuck does not wait for them', async () => {
  const url = await server.createDatabase();
  const records = await open(url);
  await records.uploads.storeWhole(whole('a'));
  const holder = new Client({ connectionString: url });
  await holder.connect();
  await holder.query(`BEGIN; SELECT * FROM nodes WHERE path = 'a' FOR UPDATE`);
  let isStuck = true;
  const stuck = records.uploads.storeWhole(whole('a')).finally(() => (isStuck = false));
  const { node } = await records.uploads.storeWhole(whole('b'));
  assert.deepEqual([node!.path, isStuck], ['b', true]);
  await holder.query('COMMIT');
  await holder.end();
  assert.equal((await stuck).node!.version, 2);
  // Those that come later share again.
  await Promise.all(numbered(5).map((path) => records.uploads.storeWhole(whole(path))));
  await records.close();
});

test('files that share a transaction with one that is stuck do not wait for it', async () => {
  const url = await server.createDatabase();
  const records = await open(url);
  await records.uploads.storeWhole(whole('stuck'));
  const holder = new Client({ connectionString: url });
  await holder.connect();
  await holder.query(`BEGIN; SELECT * FROM nodes WHERE path = 'stuck' FOR UPDATE`);
  // The first goes alone, and those that come meanwhile go together.
  const first = records.uploads.storeWhole(whole('first'));
  let isStuck = true;
  const stuck = records.uploads.storeWhole(whole('stuck')).finally(() => (isStuck = false));
  const others = numbered(10).map((path) => records.uploads.storeWhole(whole(path)));
  await Promise.all([first, ...others]);
  assert.equal(isStuck, true);
  await holder.query('COMMIT');
  await holder.end();
  assert.equal((await stuck).node!.version, 2);
  assert.deepEqual(await records.uploads.usage(tenant), { bytes: 12, files: 12 });
  await records.close();
});

test('files whose common answer was lost are stored once, and each is told', async () => {
  const proxy = await startLossyProxy(server.port);
  const url = await server.createDatabase();
  const records = await open(url.replace(String(server.port), String(proxy.port)));
  let isReplayed = false;
  // On a machine that stands still for a moment they go by themselves, and there is no common answer.
  for (let files = 10; files <= 50 && !isReplayed; files += 10) {
    proxy.loseReplyTo('sluice_store_together');
    const paths = numbered(10, `f${files}-`);
    const stored = await Promise.all(paths.map((path) => records.uploads.storeWhole(whole(path))));
    assert.ok(stored.every(({ node }) => node!.version === 1));
    isReplayed = stored.some(({ replayed }) => replayed);
    assert.deepEqual(await records.uploads.usage(tenant), { bytes: files, files });
    assert.equal((await records.outbox.state()).waiting, ofDrive + 3 * files);
  }
  assert.ok(isReplayed);
  assert.ok(proxy.lost > 0);
  await records.close();
  await proxy.stop();
});

test('each file tells of the folders that were made for it, and of no others', async () => {
  const changes: Change[] = [];
  const records = await open(await server.createDatabase(), async (change) => void changes.push(change));
  const paths = ['first', 'a/b/one', 'a/b/two', 'c/three', 'four'];
  await Promise.all(paths.map((path) => records.uploads.storeWhole(whole(path))));
  const folders = changes.flatMap((change) =>
    change.what === 'file' ? [[change.path, change.folders ?? []] as const] : [],
  );
  // Whichever of the two files below a/b was the first has made its folders.
  const isOne = folders.find(([path]) => path === 'a/b/one')![1].length > 0;
  const [maker, other] = isOne ? ['one', 'two'] : ['two', 'one'];
  assert.deepEqual(Object.fromEntries(folders), {
    first: [],
    [`a/b/${maker}`]: [''],
    [`a/b/${other}`]: [],
    'c/three': [''],
    four: [],
  });
  await records.close();
});
