/** Who may do what, from the command line: the first key, roles, tenants, login, the audit log; and webhooks, which admins look after. */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { jsonLines, type Ran } from './commandLine.js';
import { startServer, type RunningServer } from './runningServer.js';

let server: RunningServer;
let admin: string;
let receiver: Server;

before(async () => {
  server = await startServer({ SLUICE_WEBHOOK_ALLOW: '127.0.0.0/8' });
  const made = await server.run(['keys', 'create', 'ops', '--for', '*', '--role', 'admin']);
  assert.equal(made.code, 0, made.stderr);
  admin = made.stdout.trim();
  receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
});
after(async () => {
  receiver.close();
  await server.stop();
});

function as(key: string, ...args: string[]): Promise<Ran> {
  return server.run(args, { env: { SLUICE_KEY: key } });
}

async function make(role: string, tenant: string): Promise<string> {
  const { code, stdout, stderr } = await as(
    admin,
    'keys',
    'create',
    `${role}-${tenant}`,
    '--for',
    tenant,
    '--role',
    role,
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^slk_\S+\n$/, 'the text alone, so that it can go into a file');
  return stdout.trim();
}

test('with the first key nobody gets in without one, and is told what to do', async () => {
  const { code, stderr, stdout } = await server.run(['files', 'ls']);
  assert.equal(code, 4);
  assert.equal(stdout, '');
  assert.match(stderr, /sluice login, or set SLUICE_KEY/);
  const wrong = await as('slk_0000000000000000_wrong-wrong-wrong-wrong', 'files', 'ls');
  assert.equal(wrong.code, 4);
  const found = await server.run(['doctor', '--json']);
  assert.equal(found.code, 1);
  const key = jsonLines<{ what: string; level: string; advice: string }>(found).find(
    ({ what }) => what === 'key',
  );
  assert.deepEqual([key?.level, key?.advice], ['fail', 'sluice login, or SLUICE_KEY']);
});

test('a role ends where it ends: what is not allowed is the code 4 and changes nothing', async () => {
  const viewer = await make('viewer', 'acme');
  assert.equal((await as(viewer, 'drives', 'ls')).code, 0);
  assert.equal((await as(viewer, 'drives', 'create', 'mine')).code, 4);
  assert.equal((await as(viewer, 'keys', 'ls')).code, 4);
  const upload = await server.run(['upload', '-', '--to', 'main/no.txt'], {
    input: 'x',
    env: { SLUICE_KEY: viewer },
  });
  assert.equal(upload.code, 4);
  const operator = await make('operator', 'acme');
  const taken = await server.run(['upload', '-', '--to', 'main/yes.txt'], {
    input: 'x',
    env: { SLUICE_KEY: operator },
  });
  assert.equal(taken.code, 0, taken.stderr);
  const seen = await as(admin, 'files', 'ls', 'main', '--tenant', 'acme');
  assert.match(seen.stdout, /yes\.txt/);
  assert.doesNotMatch(
    (await as(admin, 'files', 'ls', 'main')).stdout,
    /yes\.txt/,
    'another tenant has other files',
  );
});

test('a key is rotated and ended', async () => {
  const old = await make('viewer', 'beta');
  const id = old.split('_')[1]!;
  assert.equal((await as(admin, 'keys', 'rotate', id)).code, 2, 'nobody to ask');
  const plan = await as(admin, 'keys', 'rotate', id, '--grace', '1h', '--dry-run');
  assert.equal(plan.stdout, `${id} (viewer-beta): would get a new text; the old text ends in 1 h\n`);
  assert.equal((await as(admin, 'keys', 'rm', id, '--dry-run')).stdout, `${id} (viewer-beta): would end\n`);
  const renewed = (await as(admin, 'keys', 'rotate', id, '--grace', '1h', '--yes')).stdout.trim();
  assert.notEqual(renewed, old);
  for (const key of [old, renewed]) assert.equal((await as(key, 'drives', 'ls')).code, 0);
  assert.equal((await as(admin, 'keys', 'rm', id, '--yes')).code, 0);
  assert.equal((await as(renewed, 'drives', 'ls')).code, 4);
  assert.match(
    (await as(admin, 'keys', 'ls')).stdout,
    new RegExp(`^${id} +viewer-beta +beta +viewer +ended`, 'm'),
  );
  assert.equal((await as(admin, 'keys', 'rm', '0000000000000000', '--yes')).code, 3);
  assert.equal((await as(admin, 'keys', 'rm', '0000000000000000', '--dry-run')).code, 3);
});

test('login keeps the key for its owner alone, and sends it nowhere else', async () => {
  const signed = await server.run(['login', server.url, '--key-stdin', '--json'], { input: `${admin}\n` });
  assert.equal(signed.code, 0, signed.stderr);
  assert.ok(!signed.stdout.includes(admin));
  const file = join(server.folder, 'config', 'sluice', 'login.json');
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await server.run(['keys', 'ls'])).code, 0);
  const headers: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    headers.push(request.headers.authorization);
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  await server.run(['keys', 'ls', '--url', `http://127.0.0.1:${(other.address() as AddressInfo).port}`]);
  other.close();
  assert.deepEqual(headers, [undefined]);
  assert.equal((await server.run(['logout'])).code, 0);
  assert.equal((await server.run(['keys', 'ls'])).code, 4);
});

test('the audit log tells who did what, and what was refused', async () => {
  const { stdout, code } = await as(admin, 'audit', '--action', 'key.create', '--all');
  assert.equal(code, 0);
  assert.match(stdout, /^WHEN +WHO +FROM/);
  assert.match(stdout, / ops .* key\.create +done /);
  const rows = jsonLines<{ action: string }>(await as(admin, 'audit', '--json', '--limit', '2'));
  assert.equal(rows.length, 2);
});

test('a webhook is made, tried, changed and removed', async () => {
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  const [made] = jsonLines<{ id: string; secret: string }>(
    await as(admin, 'webhooks', 'create', url, '--topic', 'jobs.dead', '--json'),
  );
  const { id, secret } = made!;
  assert.match(secret, /^whsec_/);
  const list = await as(admin, 'webhooks', 'ls');
  assert.match(list.stdout, new RegExp(`^${id} +on +http`, 'm'));
  assert.ok(!list.stdout.includes(secret));
  const tried = await as(admin, 'webhooks', 'test', id, '--json');
  assert.equal(tried.code, 0, tried.stderr);
  assert.equal(jsonLines<{ status: number }>(tried)[0]!.status, 204);
  assert.match((await as(admin, 'webhooks', 'deliveries', id)).stdout, /delivered +204/);
  assert.equal((await as(admin, 'webhooks', 'set', id)).code, 2);
  const dryMade = await as(admin, 'webhooks', 'create', url, '--topic', 'jobs.done', '--dry-run');
  assert.match(dryMade.stdout, /would be told of jobs\.done/);
  assert.match((await as(admin, 'webhooks', 'set', id, '--off', '--dry-run')).stdout, /would be changed/);
  assert.equal((await as(admin, 'webhooks', 'set', 'nothing', '--off', '--dry-run')).code, 3);
  assert.equal((await as(admin, 'webhooks', 'set', id, '--off')).code, 0);
  assert.match((await as(admin, 'webhooks', 'ls')).stdout, new RegExp(`^${id} +off`, 'm'));
  for (const change of ['rotate', 'rm']) {
    const plan = await as(admin, 'webhooks', change, id, '--dry-run');
    assert.ok(plan.stdout.startsWith(`${id}: would `) && plan.stdout.includes(url), plan.stdout);
    assert.equal((await as(admin, 'webhooks', change, 'nothing', '--dry-run')).code, 3);
  }
  assert.match((await as(admin, 'webhooks', 'rotate', id, '--yes')).stdout, /^whsec_/);
  assert.equal((await as(admin, 'webhooks', 'rm', id, '--yes')).code, 0);
  assert.equal((await as(admin, 'webhooks', 'rm', id, '--yes')).code, 3);
});

test('alerts are listed with what they keep', async () => {
  const { stdout, code } = await as(admin, 'alerts');
  assert.equal(code, 0);
  assert.match(stdout, /^deadLetters +ok .*below 50/m);
});
