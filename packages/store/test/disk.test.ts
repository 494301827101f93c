/** The disk store: the contract of all stores, and what it owes a full disk, a crash and its folder. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, open, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { buffer as readAll } from 'node:stream/consumers';
import { mock, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder } from '@sluice/testbed';
import { crc64, DiskStore } from '../src/index.js';
import { conforms, rejectsWith, streamOf } from './conformance.js';

const shared = new DiskStore({ folder: makeOwnedFolder('disk'), fsync: false });
conforms('disk', { store: () => shared, problem: undefined, anyKey: true });

const KILLS = 5;

test('disk: with fsync, what was put is there for another store on the same folder', async () => {
  const folder = makeOwnedFolder('disk');
  const first = new DiskStore({ folder });
  await first.put('a', Buffer.from('bytes'));
  const multipart = await first.createMultipart('b');
  const part = await first.putPart(multipart, 1, Buffer.from('part'));
  first.close();
  const second = new DiskStore({ folder });
  assert.equal((await readAll((await second.get('a')).stream)).toString(), 'bytes');
  await second.completeMultipart(multipart, [part], { size: 4 });
  await second.delete('a');
  assert.deepEqual(await filesIn(folder, 'temporary'), []);
  await rejectsWith('STORE_CLOSED', first.head('a'));
});

test('disk: after kill -9 in the middle of puts every object is whole, and temporary files are cleaned', async () => {
  const folder = makeOwnedFolder('disk');
  const program = fileURLToPath(new URL('diskWriter.js', import.meta.url));
  for (let round = 0; round < KILLS; round++) {
    const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    setTimeout(() => child.kill('SIGKILL'), 40 + round * 30);
    await ended;
    const store = new DiskStore({ folder });
    const { objects } = await store.list('');
    assert.deepEqual(await filesIn(folder, 'temporary'), []);
    for (const { key, size, crc64: expected } of objects) {
      const bytes = await readAll((await store.get(key)).stream);
      assert.deepEqual([bytes.length, crc64(bytes)], [size, expected], key);
    }
    assert.ok(objects.length > 0);
  }
});

test('disk: only leftovers of dead processes and of long ago are removed', async () => {
  const folder = makeOwnedFolder('disk');
  await new DiskStore({ folder }).check();
  const uuid = '00000000-0000-4000-8000-000000000000';
  const machine = hostname().replaceAll(/[^\w-]/g, '-');
  const names = {
    dead: `${machine}.999999999.${uuid}`,
    alive: `${machine}.${process.ppid}.${uuid}`,
    ours: `${machine}.${process.pid}.${uuid}`,
    elsewhere: `another-machine.1.${uuid}`,
    longAgo: `another-machine.2.${uuid}`,
    foreign: 'notes.txt',
  };
  for (const name of Object.values(names)) await writeFile(join(folder, 'temporary', name), 'x');
  const longAgo = new Date(Date.now() - 25 * 60 * 60 * 1_000);
  for (const name of [names.longAgo, names.foreign])
    await utimes(join(folder, 'temporary', name), longAgo, longAgo);
  await new DiskStore({ folder }).check();
  const kept = [names.alive, names.ours, names.elsewhere, names.foreign].toSorted();
  assert.deepEqual(await filesIn(folder, 'temporary'), kept);
});

test('disk: a full disk is STORE_FULL, and nothing is left of what did not fit', async () => {
  const folder = makeOwnedFolder('disk');
  const store = new DiskStore({ folder, fsync: false });
  const multipart = await store.createMultipart('m');
  const part = await store.putPart(multipart, 1, Buffer.from('part'));
  await store.put('kept', Buffer.from('kept'));
  const file = await open(join(folder, 'probe'), 'w');
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
    code: 'ENOSPC',
    syscall: 'write',
  });
  const writev = mock.method(Object.getPrototypeOf(file) as typeof file, 'writev', () =>
    Promise.reject(full),
  );
  await file.close();
  await rejectsWith('STORE_FULL', store.put('a', Buffer.alloc(100)));
  await rejectsWith('STORE_FULL', store.put('a', streamOf(Buffer.alloc(3_000_000))));
  await rejectsWith('STORE_FULL', store.put('kept', Buffer.from('larger')));
  await rejectsWith('STORE_FULL', store.putPart(multipart, 1, Buffer.from('other')));
  await rejectsWith('STORE_FULL', store.completeMultipart(multipart, [part], { size: 4 }));
  await rejectsWith('STORE_FULL', store.createMultipart('n'));
  await rejectsWith('STORE_FULL', store.check());
  writev.mock.restore();
  assert.deepEqual(await filesIn(folder, 'temporary'), []);
  assert.equal(await store.head('a'), undefined);
  assert.equal((await store.head('kept'))!.size, 4);
  await store.completeMultipart(multipart, [part], { size: 4 });
});

test('disk: on a disk that is really full nothing is lost or left, and it works again when there is room', async (t) => {
  const bytes = 8 * 1_048_576;
  const folder = makeOwnedFolder('full');
  // A disk in memory that only this process sees, and that goes with it.
  const mount = `mount -t tmpfs -o size=${bytes} tmpfs "$0" || exit 77; exec "$@"`;
  const filler = [process.execPath, fileURLToPath(new URL('diskFiller.js', import.meta.url))];
  const args = ['--map-root-user', '--mount', 'sh', '-c', mount, folder, ...filler, folder, `${bytes}`];
  const child = spawn('unshare', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const said = readAll(child.stderr);
  const code = await new Promise<number | null>((resolve) =>
    child.once('close', resolve).once('error', () => resolve(77)),
  );
  const text = String(await said);
  if (code === 77 || text.startsWith('unshare: '))
    return t.diagnostic(`this system gives us no disk to fill: ${text}`);
  assert.equal(code, 0, text);
});

test('disk: objects that lie by the hash of their key alone are found, and then lie by folder', async () => {
  const folder = makeOwnedFolder('disk');
  const before = new DiskStore({ folder, fsync: false });
  const keys = ['a', 'x/1', 'x/2', 'x/y/3'];
  for (const key of keys) await before.put(key, Buffer.from(key));
  const objects = join(folder, 'objects');
  const filesIn = async (path: string): Promise<string[]> =>
    (await readdir(path, { recursive: true })).filter((file) => file.length > 20).sort();
  const byFolder = await filesIn(objects);
  for (const file of byFolder) {
    const hash = basename(file);
    await mkdir(join(objects, hash.slice(0, 2), hash.slice(2, 4)), { recursive: true });
    await rename(join(objects, file), join(objects, hash.slice(0, 2), hash.slice(2, 4), hash));
  }
  await rm(join(folder, 'objects-lie-by-folder'));
  assert.notDeepEqual(await filesIn(objects), byFolder);
  const [one, other] = [new DiskStore({ folder, fsync: false }), new DiskStore({ folder, fsync: false })];
  await Promise.all([one.check(), other.check()]);
  assert.deepEqual(await filesIn(objects), byFolder);
  for (const key of keys) assert.equal((await one.head(key))?.key, key);
  assert.deepEqual(
    (await one.list('x/', { shallow: true })).objects.map(({ key }) => key),
    ['x/1', 'x/2'],
  );
});

test('disk: a file that was cut short or overwritten is no object', async () => {
  const folder = makeOwnedFolder('disk');
  const store = new DiskStore({ folder, fsync: false });
  await store.put('a', Buffer.from('bytes'));
  await store.put('b', Buffer.from('bytes'));
  const [name] = (await readdir(join(folder, 'objects'), { recursive: true })).filter(
    (file) => file.length > 20,
  );
  for (const nonsense of [
    '',
    'short',
    Buffer.concat([Buffer.alloc(8), Buffer.from([255, 255, 255, 255]), Buffer.from('SLUICE1\n')]),
  ]) {
    await writeFile(join(folder, 'objects', name!), nonsense);
    const outcomes = await Promise.allSettled([store.get('a'), store.get('b')]);
    const failed = outcomes.filter((outcome) => outcome.status === 'rejected');
    assert.deepEqual(
      failed.map(({ reason }) => (reason as { code: string }).code),
      ['STORE_CORRUPT'],
    );
    for (const outcome of outcomes) if (outcome.status === 'fulfilled') outcome.value.stream.destroy();
    assert.equal((await store.list('')).objects.length, 1);
  }
});

test('disk: a part that changed on disk is found when the object is made of it', async () => {
  const folder = makeOwnedFolder('disk');
  const store = new DiskStore({ folder, fsync: false });
  const multipart = await store.createMultipart('a');
  const part = await store.putPart(multipart, 1, Buffer.from('bytes'));
  const file = await open(join(folder, 'uploads', multipart.id, '00001'), 'r+');
  await file.write('B', 0);
  await file.close();
  await rejectsWith('STORE_CORRUPT', store.completeMultipart(multipart, [part], { size: 5 }));
  assert.equal(await store.head('a'), undefined);
});

test('disk: a folder that cannot be made is refused with the reason, and is tried again', async () => {
  const folder = makeOwnedFolder('disk');
  const inside = join(folder, 'file', 'store');
  await writeFile(join(folder, 'file'), '');
  const store = new DiskStore({ folder: inside });
  await rejectsWith('STORE_REFUSED', store.check());
  await rm(join(folder, 'file'));
  await store.check();
});

async function filesIn(folder: string, name: string): Promise<string[]> {
  return (await readdir(join(folder, name))).toSorted();
}
