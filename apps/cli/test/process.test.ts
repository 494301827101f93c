/** The command line as a process, which the other tests run without: exit code, pipes, Ctrl-C, and `sluice up` with all that it starts. */
import assert from 'node:assert/strict';
import { execFile, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { makeOwnedFolder, waitUntil } from '@sluice/testbed';
import { CLI, homeIn, spawnCli, startCli } from './commandLine.js';

/** A first start makes a database, which takes its time on a busy machine. */
const START_TIMEOUT_MS = 120_000;
const folder = makeOwnedFolder('process');
const data = join(folder, 'data');
let env: Record<string, string>;
let up: ChildProcess;
let said = '';

before(async () => {
  up = startCli(['up', '--port', '0', '--data', data], { env: homeIn(folder) });
  for (const stream of [up.stdout!, up.stderr!])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const runs = (): boolean => up.exitCode !== null || /^Upload a file: .*\n/m.test(said);
  await waitUntil('the server runs or gives up', runs, { timeoutMs: START_TIMEOUT_MS });
  assert.equal(up.exitCode, null, said);
  env = { ...homeIn(folder), SLUICE_URL: /runs at (\S+)/.exec(said)![1]! };
});
after(() => interrupt(up));

/** Ctrl-C on a terminal: everybody of the group hears it. */
function interrupt(child: ChildProcess): void {
  if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGINT');
}

test('the code of the command is the code of the process', async () => {
  assert.equal((await spawnCli(['drives', 'ls'], { env })).code, 0);
  assert.equal((await spawnCli(['bogus'], { env })).code, 2);
  const missing = await spawnCli(['download', 'main/nowhere.txt'], { env });
  assert.deepEqual([missing.code, missing.stdout], [3, '']);
  assert.match(missing.stderr, /^sluice: main\/nowhere\.txt was not found\n$/);
});

test('a pipe is read and a pipe is written, and nothing is said where there is no terminal', async () => {
  const bytes = 'through a pipe\n'.repeat(10_000);
  const sent = await spawnCli(['upload', '-', '--to', 'main/pipe.txt'], { env, input: bytes });
  assert.deepEqual([sent.code, sent.stderr], [0, '']);
  assert.match(sent.stdout, /^main\/pipe\.txt {2}146 KiB {2}\S+\n$/);
  const back = await spawnCli(['download', 'main/pipe.txt', '-'], { env });
  assert.deepEqual([back.code, back.stderr], [0, '']);
  assert.ok(back.stdout === bytes, 'the same bytes');
});

test('a stdin that nobody closes keeps no command that does not read it', async () => {
  const child = startCli(['drives', 'ls'], { env });
  child.stdout!.resume();
  assert.deepEqual(await once(child, 'exit'), [0, null]);
});

test('a closed pipe is silent', async () => {
  const line = `"$0" "$1" --help | head -n 1`;
  const { stdout, stderr } = await promisify(execFile)('sh', ['-c', line, process.execPath, CLI]);
  assert.match(stdout, /^Files in/);
  assert.equal(stderr, '');
});

test('Ctrl-C ends a command that waits, in silence, with 130', async () => {
  let isAsked = false;
  const deaf = createServer(() => (isAsked = true));
  await new Promise<void>((resolve) => deaf.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(deaf.address() as AddressInfo).port}`;
  const child = startCli(['queues', 'ls', '--url', url], { env });
  let printed = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  await waitUntil('it waits for an answer', () => isAsked, { timeoutMs: START_TIMEOUT_MS });
  interrupt(child);
  assert.deepEqual(await once(child, 'close'), [130, null]);
  assert.equal(printed, '');
  deaf.close();
});

test('up starts a server with all that it needs, and Ctrl-C ends all of it in order', async () => {
  const redisPort = Number(/^Redis: redis:\/\/[^:]+:(\d+)/m.exec(said)![1]);
  const postmaster = join(data, 'postgres', 'data', 'postmaster.pid');
  assert.ok((await listens(redisPort)) && existsSync(postmaster), said);
  const ended = once(up, 'close');
  interrupt(up);
  assert.deepEqual(await ended, [0, null], said);
  assert.match(said, /^Stopped$/m);
  assert.ok(!(await listens(redisPort)), 'Redis has ended');
  assert.ok(!existsSync(postmaster), 'PostgreSQL has ended');
  await assert.rejects(fetch(`${env['SLUICE_URL']}/healthz`));
});

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
