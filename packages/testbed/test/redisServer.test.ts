/** A single server: start, data over restarts, freezing, TLS, ACL, and nothing left behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { freePort, startRedis, waitUntil } from '../src/index.js';

test('a server keeps its data over kill -9 and restart, and its folder goes with stop', async () => {
  const server = await startRedis({ config: { appendfsync: 'always' } });
  const { port, dir } = server;
  await server.command('SET', 'key', 'value');
  await server.kill9();
  assert.equal(server.running, false);
  await assert.rejects(server.command('PING'));
  await server.restart();
  assert.equal(server.port, port);
  assert.equal(await server.command('GET', 'key'), 'value');
  await server.restart();
  assert.equal(await server.command('GET', 'key'), 'value');
  await server.stop();
  assert.equal(existsSync(dir), false);
});

test('a paused server is silent until it is resumed', async () => {
  const server = await startRedis({ appendonly: false });
  server.pause();
  const answer = server.command('PING');
  assert.equal(await Promise.race([answer, sleep(100, 'silence')]), 'silence');
  server.resume();
  assert.equal(await answer, 'PONG');
  server.pause();
  await server.stop();
});

test('a server has the safe defaults and takes more configuration', async () => {
  const server = await startRedis({ config: { maxmemory: '20mb' } });
  const get = async (name: string): Promise<string> =>
    ((await server.command('CONFIG', 'GET', name)) as [string, string])[1];
  assert.equal(await get('appendonly'), 'yes');
  assert.equal(await get('maxmemory-policy'), 'noeviction');
  assert.equal(await get('maxmemory'), String(20 * 1024 * 1024));
  assert.equal((await server.info('persistence'))['aof_enabled'], '1');
  await server.stop();
});

test('a TLS server is trusted through its certificate and refuses plain text', async () => {
  const server = await startRedis({ tls: true });
  assert.ok(server.url.startsWith('rediss://'));
  const client = new Redis(server.url, { tls: { ca: server.ca } });
  assert.equal(await client.ping(), 'PONG');
  client.disconnect();
  assert.equal(await server.command('PING'), 'PONG');
  const plain = new Redis(server.port, server.host, { lazyConnect: true, retryStrategy: () => null });
  plain.on('error', () => {});
  await assert.rejects(plain.connect());
  await server.stop();
});

test('an ACL limits a user and leaves the testbed its way in', async () => {
  const server = await startRedis({ acl: ['user default off', 'user app on >p@ss ~app:* +get +set +info'] });
  const client = new Redis(server.urlAs('app', 'p@ss'));
  assert.equal(await client.set('app:1', 'x'), 'OK');
  await assert.rejects(client.set('other', 'x'), /NOPERM/);
  client.disconnect();
  assert.equal(await server.command('GET', 'app:1'), 'x');
  await server.stop();
});

test('a fixed port that is taken fails with the reason', async () => {
  const port = await freePort();
  const taken = createServer().listen(port, '127.0.0.1');
  await once(taken, 'listening');
  await assert.rejects(startRedis({ port }), /Address already in use/);
  taken.close();
});

test('a test process killed with kill -9 leaves no server, nothing that one started, and no folder', async () => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('leaver.js', import.meta.url))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const { pids, dir } = JSON.parse(line.toString()) as { pids: number[]; dir: string };
  assert.ok(pids.every(isAlive));
  child.kill('SIGKILL');
  await waitUntil('all of them and the folder are gone', () => !pids.some(isAlive) && !existsSync(dir));
});

/** A process that has ended stays in the list until its parent asks; that is no life. */
function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
  } catch {
    return false;
  }
}
