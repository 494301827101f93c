/** The server's own PostgreSQL: its data outlives stops, kills and the death of its parent; nobody else gets in. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isSluiceError, silentLogger } from '@sluice/base';
import { openRecords } from '@sluice/records';
import { makeOwnedFolder, spawnOwned, waitUntil } from '@sluice/testbed';
import { startPostgresProcess, type PostgresProcess } from '../src/postgresProcess.js';
import { markOf } from '../src/processMark.js';

const PARENT = fileURLToPath(new URL('./postgresParent.js', import.meta.url));
const STOP_MS = 10_000;

async function start(dataDir: string): Promise<PostgresProcess> {
  const postgres = await startPostgresProcess({ dataDir, logger: silentLogger });
  // A test that fails must not leave one that runs.
  after(() => postgres.stop(STOP_MS));
  return postgres;
}

async function remember(url: string, name: string): Promise<void> {
  const records = await openRecords({ url });
  await records.drives.create({ tenant: 't', name, bucket: 'b' });
  await records.close();
}

async function remembered(url: string): Promise<string[]> {
  const records = await openRecords({ url });
  const names = (await records.drives.list('t')).map(({ name }) => name);
  await records.close();
  return names;
}

async function startParent(dataDir: string): Promise<{ parent: ChildProcess; pid: number; url: string }> {
  const parent = spawnOwned(process.execPath, [PARENT, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  after(() => parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout!, 'data')) as [Buffer];
  return { parent, ...(JSON.parse(line.toString()) as { pid: number; url: string }) };
}

/** A process that has ended and that nobody has asked about yet is no longer alive. */
function isAlive(pid: number): boolean {
  return markOf(pid) !== undefined;
}

test('it keeps its data over a stop and a start, and stops completely', async () => {
  const dataDir = makeOwnedFolder('own-postgres');
  const first = await start(dataDir);
  const pid = first.pid!;
  await remember(first.url, 'kept');
  await first.stop(STOP_MS);
  assert.equal(isAlive(pid), false);
  await first.stop(STOP_MS);
  const second = await start(dataDir);
  assert.deepEqual(await remembered(second.url), ['kept']);
  await second.stop(STOP_MS);
});

test('it lets nobody in without the password, which only its owner can read', async () => {
  const dataDir = makeOwnedFolder('own-postgres');
  const postgres = await start(dataDir);
  const file = join(dataDir, 'postgres', 'password');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(join(dataDir, 'postgres', 'data')).mode & 0o777, 0o700);
  const password = readFileSync(file, 'utf8').trim();
  assert.ok(postgres.url.includes(password));
  for (const wrong of ['', 'guess']) {
    const url = postgres.url.replace(password, wrong);
    await assert.rejects(openRecords({ url, deadlineMs: 2_000 }), (error) => isSluiceError(error));
  }
  const owner = statSync(join(dataDir, 'postgres', 'data')).uid;
  assert.notEqual(owner, 0, 'PostgreSQL does not run as root');
  await postgres.stop(STOP_MS);
});

test('a second server in the same folder is refused with the reason', async () => {
  const dataDir = makeOwnedFolder('own-postgres');
  const first = await start(dataDir);
  await assert.rejects(start(dataDir), (error) => isSluiceError(error, 'ALREADY_RUNNING'));
  await remember(first.url, 'fine');
  await first.stop(STOP_MS);
});

test('one that dies is started again on the same port with its data', async () => {
  const postgres = await start(makeOwnedFolder('own-postgres'));
  const pid = postgres.pid!;
  await remember(postgres.url, 'kept');
  process.kill(pid, 'SIGKILL');
  const isAnother = (): boolean => postgres.pid !== undefined && postgres.pid !== pid;
  await waitUntil('another one runs', isAnother, { timeoutMs: 60_000 });
  assert.deepEqual(await remembered(postgres.url), ['kept']);
  await postgres.stop(STOP_MS);
  assert.equal(postgres.pid, undefined);
});

test('after kill -9 of the parent the next start ends the orphan and finds its data', async () => {
  const dataDir = makeOwnedFolder('own-postgres');
  for (const mark of ['with its mark', 'without a mark']) {
    const { parent, pid, url } = await startParent(dataDir);
    await remember(url, mark);
    const ended = once(parent, 'exit');
    parent.kill('SIGKILL');
    await ended;
    assert.equal(isAlive(pid), true, 'it is an orphan');
    if (mark === 'without a mark') rmSync(join(dataDir, 'postgres', 'postgres-process.json'));
    const next = await start(dataDir);
    assert.equal(isAlive(pid), false);
    assert.ok((await remembered(next.url)).includes(mark));
    await next.stop(STOP_MS);
  }
});

test('a first start that was killed half-way is begun again', async () => {
  const dataDir = makeOwnedFolder('own-postgres');
  mkdirSync(join(dataDir, 'postgres', 'draft'), { recursive: true });
  writeFileSync(join(dataDir, 'postgres', 'draft', 'PG_VERSION'), '18\n');
  const postgres = await start(dataDir);
  await remember(postgres.url, 'fine');
  assert.equal(existsSync(join(dataDir, 'postgres', 'draft')), false);
  await postgres.stop(STOP_MS);
});

test('it ends in order with a parent that ends in order', async () => {
  const dataDir = makeOwnedFolder('own-postgres');
  const { parent, pid } = await startParent(dataDir);
  const ended = once(parent, 'exit');
  parent.kill('SIGTERM');
  await ended;
  assert.equal(isAlive(pid), false);
  assert.equal(existsSync(join(dataDir, 'postgres', 'postgres-process.json')), false);
  assert.equal(existsSync(join(dataDir, 'postgres', 'data', 'postmaster.pid')), false);
});
