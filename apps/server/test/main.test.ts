/** The server as a user meets it: start, ask, stop, start again, kill, start twice. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RedisLink } from '@sluice/redis';
import { spawnOwned, startRedis, waitUntil } from '@sluice/testbed';
import { MAIN, newDataDir, processesIn, startServer, START_TIMEOUT_MS } from './serverProcess.js';

const HANDLERS = fileURLToPath(new URL('./handlers.js', import.meta.url));
const PATIENCE = { timeoutMs: START_TIMEOUT_MS };

async function get(url: string, path: string): Promise<{ status: number; body: string }> {
  const response = await fetch(url + path);
  return { status: response.status, body: await response.text() };
}

async function ask(redisUrl: string, command: string, ...args: string[]): Promise<string> {
  const link = new RedisLink(redisUrl);
  try {
    return String(await link.call(command, args));
  } finally {
    link.close();
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  test(`${signal} stops the server and its Redis, and the next start finds the data`, async () => {
    const dataDir = newDataDir();
    const first = await startServer(dataDir);
    await ask(first.redisUrl, 'SET', 'kept', signal);
    assert.equal((await processesIn(join(dataDir, 'redis'))).length, 1);
    assert.equal(await first.end(signal), 0);
    assert.deepEqual(await processesIn(join(dataDir, 'redis')), []);
    const second = await startServer(dataDir);
    assert.equal(await ask(second.redisUrl, 'GET', 'kept'), signal);
    assert.equal(await second.end('SIGTERM'), 0);
  });
}

test('a stop that comes while the servers start ends all of them', async () => {
  const dataDir = newDataDir();
  const child = spawnOwned(process.execPath, [MAIN], {
    env: { ...process.env, SLUICE_DATA_DIR: dataDir, SLUICE_PORT: '0' },
    stdio: 'ignore',
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  // Whoever looks seldom may find it made already.
  const signs = ['draft', 'data/PG_VERSION'].map((name) => join(dataDir, 'postgres', name));
  await waitUntil('PostgreSQL is being made', () => signs.some((sign) => existsSync(sign)), {
    timeoutMs: START_TIMEOUT_MS,
  });
  child.kill('SIGTERM');
  assert.deepEqual((await ended)[0], 0);
  for (const part of ['redis', 'chunks', 'cache', 'postgres', 'postgres/data', 'postgres/draft']) {
    assert.deepEqual(await processesIn(join(dataDir, part)), [], part);
  }
});

test('its own Redis appends to a file, evicts nothing and listens on loopback only', async () => {
  const server = await startServer(newDataDir());
  const config = async (name: string): Promise<string> => ask(server.redisUrl, 'CONFIG', 'GET', name);
  assert.equal(await config('appendonly'), 'appendonly,yes');
  assert.equal(await config('appendfsync'), 'appendfsync,everysec');
  assert.equal(await config('maxmemory-policy'), 'maxmemory-policy,noeviction');
  assert.equal(await config('bind'), 'bind,127.0.0.1');
  await server.end('SIGTERM');
});

test('health, readiness and metrics are served', async () => {
  const server = await startServer(newDataDir());
  assert.deepEqual(await get(server.url, '/healthz'), { status: 200, body: '{"status":"ok"}\n' });
  assert.deepEqual(await get(server.url, '/readyz'), {
    status: 200,
    body: '{"status":"ok","redis":"ok","workers":"ok"}\n',
  });
  const { status, body } = await get(server.url, '/metrics');
  assert.equal(status, 200);
  assert.match(body, /^sluice_redis_up 1$/m);
  assert.match(body, /^sluice_redis_memory_bytes \d+$/m);
  assert.match(body, /^sluice_process_uptime_seconds \d/m);
  assert.equal((await get(server.url, '/nothing')).status, 404);
  assert.equal((await fetch(`${server.url}/healthz`, { method: 'POST' })).status, 405);
  await server.end('SIGTERM');
});

test('a second server in the same folder is refused with the reason', async () => {
  const dataDir = newDataDir();
  const first = await startServer(dataDir);
  await assert.rejects(startServer(dataDir), new RegExp(`process ${first.pid}\\) already uses`));
  assert.equal((await get(first.url, '/readyz')).status, 200);
  await first.end('SIGTERM');
});

test('of servers that find the same dead lock only one starts', async () => {
  const dataDir = newDataDir();
  await (await startServer(dataDir)).end('SIGKILL');
  const starts = await Promise.allSettled([1, 2, 3].map(() => startServer(dataDir)));
  const started = starts.filter((start) => start.status === 'fulfilled');
  assert.equal(started.length, 1);
  assert.equal((await processesIn(join(dataDir, 'redis'))).length, 1);
  await started[0]!.value.end('SIGTERM');
});

test('after kill -9 of the server the next one ends the orphaned Redis and finds its data', async () => {
  const dataDir = newDataDir();
  const first = await startServer(dataDir);
  await ask(first.redisUrl, 'SET', 'kept', 'yes');
  await first.end('SIGKILL');
  const [orphan] = await processesIn(join(dataDir, 'redis'));
  assert.ok(orphan);
  const second = await startServer(dataDir);
  assert.equal((await processesIn(join(dataDir, 'redis'))).includes(orphan), false);
  assert.equal(await ask(second.redisUrl, 'GET', 'kept'), 'yes');
  await second.end('SIGTERM');
});

test('a Redis that dies is started again on the same port', async () => {
  const dataDir = newDataDir();
  const server = await startServer(dataDir);
  const [pid] = await processesIn(join(dataDir, 'redis'));
  process.kill(pid!, 'SIGKILL');
  await waitUntil(
    'another Redis runs',
    async () => {
      const [now] = await processesIn(join(dataDir, 'redis'));
      return now !== undefined && now !== pid;
    },
    PATIENCE,
  );
  assert.equal(await ask(server.redisUrl, 'PING'), 'PONG');
  const isReady = async (): Promise<boolean> => (await get(server.url, '/readyz')).status === 200;
  await waitUntil('it is ready again', isReady, PATIENCE);
  assert.equal(await server.end('SIGINT'), 0);
  assert.deepEqual(await processesIn(join(dataDir, 'redis')), []);
});

test('a given Redis is used and left alone', async () => {
  const redis = await startRedis();
  const dataDir = newDataDir();
  const server = await startServer(dataDir, { SLUICE_REDIS_URL: redis.url });
  assert.equal((await get(server.url, '/readyz')).status, 200);
  assert.deepEqual(await processesIn(join(dataDir, 'redis')), []);
  redis.pause();
  assert.equal((await get(server.url, '/readyz')).status, 503);
  assert.match((await get(server.url, '/metrics')).body, /^sluice_redis_up 0$/m);
  redis.resume();
  assert.equal(await server.end('SIGTERM'), 0);
  assert.equal(await redis.command('PING'), 'PONG');
  await redis.stop();
});

test('two signals at once are one wish', async () => {
  const server = await startServer(newDataDir());
  process.kill(server.pid, 'SIGINT');
  assert.equal(await server.end('SIGINT'), 0);
  assert.match(server.output(), /^Stopped$/m);
});

test('a setting that makes no sense is refused in one line, with exit code 2', async () => {
  const module = (code: string): string => {
    const file = join(newDataDir(), 'handlers.mjs');
    writeFileSync(file, code);
    return file;
  };
  const wrong: [name: string, value: string, reason: RegExp][] = [
    ['SLUICE_PORT', 'x', /a whole number from 0 to 65535/],
    ['SLUICE_PORT', '65536', /a whole number/],
    ['SLUICE_HOST', '192.0.2.1', /SLUICE_KEYS/],
    ['SLUICE_LOG_LEVEL', 'loud', /debug, info, warn, error/],
    ['SLUICE_STOP_DEADLINE_MS', '0', /a whole number from 1/],
    ['SLUICE_LEASE_MS', '100', /a whole number from 500/],
    ['SLUICE_DATA_DIR', '/dev/null/sluice', /ENOTDIR/],
    ['SLUICE_QUEUES', 'a queue', /names of queues/],
    ['SLUICE_QUEUES', 'mail,', /names of queues/],
    ['SLUICE_QUEUES', 'mail:0', /a number from 1/],
    ['SLUICE_QUEUES', 'mail:many', /names of queues/],
    ['SLUICE_QUEUES', 'mail,mail:3', /none occurs twice/],
    ['SLUICE_REDIS_URL', 'http://localhost', /redis:\/\/host:port/],
    ['SLUICE_REDIS_URL', 'redis://me:secret@host:0', /me:\[redacted\]@host/],
    [
      'SLUICE_TENANTS',
      '{"acme":{"maxbytes":1}}',
      /maxBytes, maxOpenUploads, maxFileBytes and types, not maxbytes/,
    ],
    ['SLUICE_TENANTS', '{"acme":{"maxBytes":"1 GB"}}', /a whole number as maxBytes/],
    ['SLUICE_TENANTS', '{"acme":{"types":"image/*"}}', /types as a list/],
    ['SLUICE_TENANTS', '{"acme":5}', /an object of limits for each tenant/],
    ['SLUICE_ORIGINS', 'https://a.example/', /without a path or a slash/],
    ['SLUICE_ORIGINS', 'capacitor://localhost,a.example', /"a\.example", but it must be origins/],
    ['SLUICE_PUBLIC_URL', 'files.example.com', /like https:/],
    ['SLUICE_TRUST_PROXY', '1', /true or false/],
    ['SLUICE_S3_ENDPOINT', 'http://127.0.0.1:9000', /together with SLUICE_S3_BUCKET/],
    ['SLUICE_HANDLERS', '/nowhere/handlers.mjs', /cannot be loaded: Cannot find module/],
    ['SLUICE_HANDLERS', module('throw new Error("no")'), /cannot be loaded: no \(.*handlers\.mjs:1\)/],
    ['SLUICE_HANDLERS', module('export const other = 1'), /does not export "handlers"/],
    ['SLUICE_HANDLERS', module('export const handlers = {}'), /empty/],
    ['SLUICE_HANDLERS', module('export const handlers = { mail: 1 }'), /"mail" is no function/],
  ];
  for (const [name, value, reason] of wrong) {
    await assert.rejects(
      startServer(newDataDir(), { [name]: value }),
      (error: Error & { exitCode: number }) => {
        assert.equal(error.exitCode, 2, `${name}=${value}: ${error.message}`);
        assert.match(error.message, new RegExp(`^sluice: ${name} is [^\\n]*\\n$`));
        assert.match(error.message, reason);
        return true;
      },
    );
  }
});

test('a queue without a handler is refused, with exit code 2', async () => {
  const env = { SLUICE_HANDLERS: HANDLERS, SLUICE_QUEUES: 'letters,postcards' };
  await assert.rejects(startServer(newDataDir(), env), (error: Error & { exitCode: number }) => {
    assert.equal(error.exitCode, 2);
    assert.match(error.message, /handlers are for letters, parcels, and there is none for .* "postcards"/);
    return true;
  });
});

test('a taken port is refused in one line, with exit code 1, in every role, and nothing is left running', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const told = `sluice: 127.0.0.1:${port} is taken; set SLUICE_PORT to another port, or leave it out\n`;
  for (const roles of ['queues', 'queues,api,uploads,relay']) {
    const dataDir = newDataDir();
    const starting = startServer(dataDir, { SLUICE_PORT: String(port), SLUICE_ROLES: roles });
    await assert.rejects(starting, (error: Error & { exitCode: number }) => {
      assert.equal(error.message, told);
      assert.equal(error.exitCode, 1);
      return true;
    });
    for (const part of ['redis', 'chunks', 'cache', 'postgres', 'postgres/data'])
      assert.deepEqual(await processesIn(join(dataDir, part)), [], `${part} with ${roles}`);
  }
  taken.close();
});

test('an address that this machine does not have is refused in one line, with exit code 2', async () => {
  const dataDir = newDataDir();
  // One for documentation, which nobody has.
  const env = { SLUICE_HOST: '192.0.2.1', SLUICE_KEYS: '*=only-for-this-test-0123456789' };
  await assert.rejects(startServer(dataDir, env), (error: Error & { exitCode: number }) => {
    assert.match(
      error.message,
      /^sluice: SLUICE_HOST is "192\.0\.2\.1", but it must be an address and a port that this machine may listen on \(EADDRNOTAVAIL\)\n$/,
    );
    assert.equal(error.exitCode, 2);
    return true;
  });
  assert.deepEqual(await processesIn(join(dataDir, 'redis')), []);
});

test('without a Redis program it says what to install', async () => {
  await assert.rejects(
    startServer(newDataDir(), { PATH: '/nowhere' }),
    /neither redis-server nor valkey-server/,
  );
});
