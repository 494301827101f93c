/** Files by the command line, against a real server: up, down, listed, moved, shared, deleted. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { jsonLines, type Ran } from './commandLine.js';
import { startServer, type RunningServer } from './runningServer.js';

const big = randomBytes(5_000_000);
let server: RunningServer;
let at: (name: string) => string;

before(async () => {
  server = await startServer();
  at = (name) => join(server.folder, name);
  await mkdir(at('photos/deep'), { recursive: true });
  await writeFile(at('photos/deep/big.bin'), big);
  await writeFile(at('photos/note.txt'), 'hello\n');
  await symlink('/etc/hostname', at('photos/link'));
});
after(() => server.stop());

test('a folder goes up with all that is in it and comes down the same; links are left out, which is said', async () => {
  const up = await server.run(['upload', 'photos', '--to', 'main/2026/', '--json']);
  assert.equal(up.code, 0, up.stderr);
  const places = jsonLines<{ place: string; sha256: string }>(up).map(({ place }) => place);
  assert.deepEqual(places.sort(), ['main/2026/photos/deep/big.bin', 'main/2026/photos/note.txt']);
  assert.match(up.stderr, /warning: photos\/link was left out/);
  const down = await server.run(['download', '-r', 'main/2026/photos', 'back']);
  assert.equal(down.code, 0, down.stderr);
  assert.equal(down.stderr, '', 'nothing is said where there is no terminal');
  assert.ok(big.equals(await readFile(at('back/photos/deep/big.bin'))));
  assert.equal(await readFile(at('back/photos/note.txt'), 'utf8'), 'hello\n');
});

test('a pipe goes up and comes down', async () => {
  const up = await server.run(['upload', '-', '--to', 'main/pipe.bin'], { input: big });
  assert.equal(up.code, 0, up.stderr);
  const down = await server.run(['download', 'main/pipe.bin', 'pipe.bin']);
  assert.equal(down.code, 0, down.stderr);
  assert.ok(big.equals(await readFile(at('pipe.bin'))));
  const bytes = await server.run(['upload', '-', '--to', 'main/small.txt'], { input: 'through' });
  assert.equal(bytes.code, 0);
  assert.equal((await server.run(['download', 'main/small.txt', '-'])).stdout, 'through');
});

test('a download that was cut goes on where it was, and one of another file begins anew', async () => {
  await server.run(['upload', 'photos/deep/big.bin', '--to', 'main/cut.bin']);
  const [node] = jsonLines<{ etag: string }>(await server.run(['files', 'ls', 'main/cut.bin', '--json']));
  await writeFile(at('cut.bin.sluice-part'), big.subarray(0, 2_000_000));
  await writeFile(at('cut.bin.sluice-part.etag'), node!.etag);
  assert.equal((await server.run(['download', 'main/cut.bin', 'cut.bin'])).code, 0);
  assert.ok(big.equals(await readFile(at('cut.bin'))));
  await writeFile(at('other.bin.sluice-part'), 'something else');
  await writeFile(at('other.bin.sluice-part.etag'), '"another"');
  assert.equal((await server.run(['download', 'main/cut.bin', 'other.bin'])).code, 0);
  assert.ok(big.equals(await readFile(at('other.bin'))));
});

test('bytes that are not what is stored are refused and removed', async () => {
  await server.run(['upload', 'photos/deep/big.bin', '--to', 'main/wrong.bin']);
  const [node] = jsonLines<{ etag: string }>(await server.run(['files', 'ls', 'main/wrong.bin', '--json']));
  await writeFile(at('wrong.bin.sluice-part'), Buffer.alloc(2_000_000));
  await writeFile(at('wrong.bin.sluice-part.etag'), node!.etag);
  const { code, stderr } = await server.run(['download', 'main/wrong.bin', 'wrong.bin']);
  assert.equal(code, 1);
  assert.match(stderr, /not what is stored/);
  assert.equal(
    (await server.run(['download', 'main/wrong.bin', 'wrong.bin'])).code,
    0,
    'the next try begins anew',
  );
});

test('what is there is not replaced by a download unless it is forced', async () => {
  await server.run(['upload', 'photos/note.txt', '--to', 'main/keep.txt']);
  await writeFile(at('keep.txt'), 'mine');
  assert.equal((await server.run(['download', 'main/keep.txt'])).code, 1);
  assert.equal(await readFile(at('keep.txt'), 'utf8'), 'mine');
  assert.equal((await server.run(['download', 'main/keep.txt', '--force'])).code, 0);
  assert.equal(await readFile(at('keep.txt'), 'utf8'), 'hello\n');
});

test('files are listed, moved, shared and deleted by their place', async () => {
  await server.run(['upload', 'photos/note.txt', '--to', 'main/list/one.txt']);
  const table = await server.run(['files', 'ls', 'main/list']);
  assert.match(table.stdout, /SIZE\s+CHANGED\s+NAME\s+STATUS\s+ID\n\s*6 B .* one\.txt\s+active /);
  const dry = async (...words: string[]) => (await server.run([...words, '--dry-run'])).stdout;
  assert.equal(await dry('files', 'mkdir', 'main/list/sub'), 'main/list/sub: would be made\n');
  assert.equal((await server.run(['files', 'mkdir', 'main/list/sub'])).code, 0);
  assert.equal(await dry('files', 'mkdir', 'main/list/sub'), 'main/list/sub: is there already\n');
  assert.equal(
    await dry('files', 'mv', 'main/list/one.txt', 'main/list/sub/'),
    'main/list/one.txt → main/list/sub/one.txt: would be moved\n',
  );
  const nowhere = await server.run(['files', 'mv', 'main/list/one.txt', 'main/none/']);
  assert.deepEqual(
    [nowhere.code, nowhere.stderr],
    [3, 'sluice: main/none was not found; make it with: sluice files mkdir main/none\n'],
  );
  assert.equal((await server.run(['files', 'mv', 'main/list/one.txt', 'main/list/sub/'])).code, 0);
  assert.equal((await server.run(['files', 'mv', 'main/list/sub/one.txt', 'main/list/sub/two.txt'])).code, 0);
  const link = (await server.run(['files', 'link', 'main/list/sub/two.txt', '--for', '1h'])).stdout.trim();
  assert.equal(await (await fetch(link)).text(), 'hello\n');
  assert.equal(
    (await server.run(['files', 'rm', 'main/list', '--yes'])).code,
    2,
    'a folder needs --recursive',
  );
  const plan = await server.run(['files', 'rm', 'main/list', '-r', '--dry-run']);
  assert.deepEqual(plan.stdout.split('\n').filter(Boolean), [
    'main/list/',
    'main/list/sub/',
    'main/list/sub/two.txt',
  ]);
  assert.equal((await server.run(['files', 'rm', 'main/list', '-r'])).code, 2, 'nobody to ask');
  assert.equal((await server.run(['files', 'rm', '-', '-r', '--yes'], { input: 'main/list\n' })).code, 0);
  assert.equal((await server.run(['files', 'ls', 'main/list'])).code, 3);
});

test('drives are made and deleted', async () => {
  const dryDrive = await server.run(['drives', 'create', 'archive', '--dry-run']);
  assert.equal(dryDrive.stdout, 'the drive archive would be there\n');
  assert.ok(!(await server.run(['drives', 'ls'])).stdout.includes('archive'));
  assert.equal((await server.run(['drives', 'create', 'archive'])).code, 0);
  assert.match((await server.run(['files', 'ls'])).stdout, /^archive /m);
  const plan = (name: string): Promise<Ran> => server.run(['drives', 'rm', name, '--dry-run']);
  assert.equal((await plan('archive')).stdout, 'the drive archive would be deleted\n');
  assert.match((await plan('main')).stdout, /would stay, because it is not empty/);
  assert.equal((await plan('nothing')).code, 3);
  assert.equal((await server.run(['drives', 'rm', 'archive', '--yes'])).code, 0);
  assert.doesNotMatch((await server.run(['drives', 'ls'])).stdout, /^archive /m);
});

test('a dry run of an upload says what would go where, and sends nothing', async () => {
  const plan = await server.run(['upload', 'photos', '--to', 'main/plan/', '--dry-run']);
  assert.match(plan.stdout, /^photos\/note\.txt → main\/plan\/photos\/note\.txt {2}6 B$/m);
  const piped = await server.run(['upload', '-', '--to', 'main/plan/x', '--dry-run'], { input: 'x' });
  assert.equal(piped.stdout, 'stdin → main/plan/x; nothing was sent\n');
  assert.equal((await server.run(['files', 'ls', 'main/plan'])).code, 3);
});

test('a taken place is the code 6, a missing file the code 1 here and 3 there', async () => {
  await server.run(['upload', 'photos/note.txt', '--to', 'main/taken.txt']);
  const taken = await server.run([
    'upload',
    'photos/note.txt',
    '--to',
    'main/taken.txt',
    '--if-exists',
    'fail',
  ]);
  assert.equal(taken.code, 6);
  assert.match(taken.stderr, /^sluice: There is already a node/);
  assert.equal((await server.run(['upload', 'nowhere.txt'])).code, 1);
  assert.equal((await server.run(['download', 'main/nowhere.txt'])).code, 3);
});

test('of several files those that can be uploaded are, and the code says that not all were', async () => {
  await mkdir(at('some'), { recursive: true });
  await writeFile(at('some/good.txt'), 'good');
  await writeFile(at('some/taken.txt'), 'bad');
  await server.run(['upload', 'some/taken.txt', '--to', 'main/some/taken.txt']);
  const { code, stdout, stderr } = await server.run([
    'upload',
    'some',
    '--to',
    'main/',
    '--if-exists',
    'fail',
  ]);
  assert.equal(code, 1);
  assert.match(stdout, /^main\/some\/good\.txt /);
  assert.match(stderr, /failed: some\/taken\.txt: .*\nsluice: 1 of 2 failed/);
});

test('an empty folder, an empty file and names of all the world survive', async () => {
  await mkdir(at('empty'), { recursive: true });
  assert.equal((await server.run(['upload', 'empty'])).code, 0);
  await mkdir(at('names'), { recursive: true });
  const names = ['leer.txt', 'with space & %2F.txt', 'ünïcödé.txt', '漢字.txt', 'quote\'d "x".txt'];
  for (const name of names) await writeFile(at(`names/${name}`), '');
  const up = await server.run(['upload', 'names', '--to', 'main/']);
  assert.equal(up.code, 0, up.stderr);
  assert.equal((await server.run(['download', '-r', 'main/names', 'names-back'])).code, 0);
  for (const name of names) assert.equal(await readFile(at(`names-back/names/${name}`), 'utf8'), '');
});

test('an upload is looked at by its id, also after its end', async () => {
  const missing = await server.run(['uploads', 'show', '0-nothing']);
  assert.equal(missing.code, 3);
});

test('doctor and status find a fresh server well', async () => {
  const doctor = await server.run(['doctor', '--json']);
  const failed = jsonLines<{ what: string; level: string; text: string }>(doctor).filter(
    ({ level }) => level === 'fail',
  );
  assert.deepEqual(failed, []);
  assert.equal(doctor.code, 0);
  const status = await server.run(['status']);
  assert.equal(status.code, 0, status.stderr);
  assert.match(status.stdout, /127\.0\.0\.1:\d+ {2}ready/);
});
