/** The server as a worker host: jobs come in, handlers run, a stop drains, a crash loses nothing. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Queue } from '@sluice/queue';
import { startRedis, waitUntil } from '@sluice/testbed';
import type { Errand } from './handlers.js';
import { newDataDir, startServer } from './serverProcess.js';

const HANDLERS = fileURLToPath(new URL('./handlers.js', import.meta.url));
const LEASE_MS = 1_000;
const PATIENCE = { timeoutMs: 60_000 };

/** A folder, the settings for handlers that write to a file in it, and a way to give them errands. */
function postOffice() {
  const dataDir = newDataDir();
  const file = join(dataDir, 'written');
  const env = { SLUICE_HANDLERS: HANDLERS, SLUICE_LEASE_MS: String(LEASE_MS) };
  const give = async (redisUrl: string, queue: string, errands: Omit<Errand, 'file'>[]) => {
    const producer = new Queue(queue, { redis: redisUrl });
    await producer.addMany(errands.map((errand) => ({ data: { file, ...errand } })));
    await producer.close();
  };
  const written = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []);
  return { dataDir, env, give, written };
}

test('the line that it prints adds a job when pasted, and the demonstration does it', async () => {
  const server = await startServer(newDataDir());
  await promisify(execFile)('sh', ['-c', server.addCommand]);
  const done = /"data":"{\\"hello\\":\\"world\\"}","msg":"a job was done by the demonstration"/;
  await waitUntil('the job was logged', () => done.test(server.output()), PATIENCE);
  assert.match(server.output(), /"queue":"default".*hello.*world/);
  await server.end('SIGTERM');
});

test('with a given Redis the line leads there, and no password is printed', async () => {
  const redis = await startRedis({
    acl: ['user default off', 'user post on >open-sesame ~* &* +@all'],
  });
  const url = redis.urlAs('post', 'open-sesame');
  const server = await startServer(newDataDir(), { SLUICE_REDIS_URL: url });
  assert.ok(!server.output().includes('open-sesame'), server.output());
  await promisify(execFile)('sh', ['-c', server.addCommand], {
    env: { ...process.env, SLUICE_REDIS_URL: url },
  });
  const isLogged = (): boolean => server.output().includes('a job was done by the demonstration');
  await waitUntil('the job was logged', isLogged, PATIENCE);
  await server.end('SIGTERM');
  await redis.stop();
});

test('each queue has its handler and runs as many jobs at once as it is told', async () => {
  const { dataDir, env, give, written } = postOffice();
  const server = await startServer(dataDir, { ...env, SLUICE_QUEUES: 'letters:1, parcels:2' });
  assert.match(server.output(), /^Queues: letters \(1 at a time\), parcels \(2 at a time\)$/m);
  const three = ['a', 'b', 'c'].map((text) => ({ text, takesMs: 100 }));
  await give(server.redisUrl, 'letters', three);
  await give(server.redisUrl, 'parcels', three);
  await waitUntil('all are done', () => written().length === 12, PATIENCE);
  for (const [queue, most] of [
    ['letters', 1],
    ['parcels', 2],
  ] as const) {
    let running = 0;
    const steps = written().filter((line) => line.startsWith(queue));
    const atOnce = steps.map((line) => (running += line.includes('begins') ? 1 : -1));
    assert.equal(Math.max(...atOnce), most, queue);
  }
  await server.end('SIGTERM');
});

test('without SLUICE_QUEUES it works on every queue that has a handler', async () => {
  const { dataDir, env } = postOffice();
  const server = await startServer(dataDir, env);
  assert.match(server.output(), /^Queues: letters, parcels$/m);
  await server.end('SIGTERM');
});

test('after kill -9 of the server the next one runs the jobs that waited and the one that was running', async () => {
  const { dataDir, env, give, written } = postOffice();
  const first = await startServer(dataDir, { ...env, SLUICE_QUEUES: 'letters:1' });
  const endless = { text: 'a', takesMs: 3_600_000, againMs: 0 };
  await give(first.redisUrl, 'letters', [endless, { text: 'b' }, { text: 'c' }]);
  await waitUntil('the first one runs', () => written().length === 1, PATIENCE);
  await first.end('SIGKILL');
  assert.deepEqual(written(), ['letters begins a']);
  const second = await startServer(dataDir, { ...env, SLUICE_QUEUES: 'letters:1' });
  const allDone = () => ['a', 'b', 'c'].every((text) => written().includes(`letters ends ${text}`));
  await waitUntil('all are done', allDone, PATIENCE);
  assert.equal(written().filter((line) => line === 'letters ends a').length, 1);
  await second.end('SIGTERM');
});

test('a stop lets the running job end and leaves the others for the next start', async () => {
  const { dataDir, env, give, written } = postOffice();
  const first = await startServer(dataDir, { ...env, SLUICE_QUEUES: 'letters:1' });
  const until = join(dataDir, 'enough');
  await give(first.redisUrl, 'letters', [{ text: 'a', until }, { text: 'b' }]);
  await waitUntil('the first one runs', () => written().length === 1, PATIENCE);
  const ended = first.end('SIGTERM');
  await waitUntil('it says that it is stopping', async () => {
    const { status, workers } = (await (await fetch(`${first.url}/readyz`)).json()) as Record<string, string>;
    return status === 'unready' && workers === 'stopping';
  });
  writeFileSync(until, '');
  assert.equal(await ended, 0);
  assert.deepEqual(written(), ['letters begins a', 'letters ends a']);
  const second = await startServer(dataDir, { ...env, SLUICE_QUEUES: 'letters:1' });
  await waitUntil('the other is done', () => written().includes('letters ends b'), PATIENCE);
  await second.end('SIGTERM');
});

test('a job that outlasts the deadline of a stop goes back at once and runs after the next start', async () => {
  const { dataDir, env, give, written } = postOffice();
  const impatient = { ...env, SLUICE_STOP_DEADLINE_MS: '4000' };
  const first = await startServer(dataDir, impatient);
  await give(first.redisUrl, 'letters', [{ text: 'a', takesMs: 120_000, againMs: 0 }]);
  await waitUntil('it runs', () => written().length === 1, PATIENCE);
  const began = performance.now();
  assert.equal(await first.end('SIGTERM'), 0);
  assert.ok(performance.now() - began < 30_000);
  const second = await startServer(dataDir, env);
  await waitUntil('it is done', () => written().includes('letters ends a'), PATIENCE);
  assert.deepEqual(written(), ['letters begins a', 'letters begins a', 'letters ends a']);
  await second.end('SIGTERM');
});

test('a server whose workers cannot work is not ready, although Redis answers, until they can', async () => {
  const redis = await startRedis();
  const server = await startServer(newDataDir(), { SLUICE_REDIS_URL: redis.url });
  const ready = async () => {
    const response = await fetch(`${server.url}/readyz`);
    const { redis, workers } = (await response.json()) as { redis: string; workers: string };
    return { status: response.status, redis, workers };
  };
  assert.equal((await ready()).status, 200);
  // A replica answers PING and refuses to be written to.
  await redis.command('REPLICAOF', '127.0.0.1', '1');
  await waitUntil('it is not ready', async () => (await ready()).status === 503, { timeoutMs: 30_000 });
  const { redis: link, workers } = await ready();
  assert.deepEqual([link, workers], ['ok', 'degraded: default']);
  assert.match(
    await (await fetch(`${server.url}/metrics`)).text(),
    /^sluice_worker_degraded\{queue="default"\} 1$/m,
  );
  await redis.command('REPLICAOF', 'NO', 'ONE');
  await waitUntil('it is ready again', async () => (await ready()).status === 200, { timeoutMs: 30_000 });
  await server.end('SIGTERM');
  await redis.stop();
});

test('metrics show the queues, and an outage of Redis is a figure, not an error', async () => {
  const { dataDir, env, give, written } = postOffice();
  const redis = await startRedis();
  const server = await startServer(dataDir, {
    ...env,
    SLUICE_REDIS_URL: redis.url,
    SLUICE_QUEUES: 'letters:1',
  });
  const metrics = async () => (await fetch(`${server.url}/metrics`)).text();
  await give(redis.url, 'letters', [{ text: 'a', takesMs: 3_600_000 }, { text: 'b' }, { text: 'c' }]);
  await waitUntil('one runs', () => written().length === 1, PATIENCE);
  const text = await metrics();
  assert.match(text, /^sluice_queue_jobs\{queue="letters",state="waiting"\} 2$/m);
  assert.match(text, /^sluice_queue_jobs\{queue="letters",state="active"\} 1$/m);
  assert.match(text, /^sluice_worker_running_jobs\{queue="letters"\} 1$/m);
  redis.pause();
  const dark = await metrics();
  assert.match(dark, /^sluice_redis_up 0$/m);
  assert.match(dark, /^sluice_worker_running_jobs\{queue="letters"\} 1$/m);
  redis.resume();
  await server.end('SIGKILL');
  await redis.stop();
});

test('a queue Redis that may throw jobs away is refused in one line', async () => {
  const redis = await startRedis({ config: { 'maxmemory-policy': 'allkeys-lru' } });
  await assert.rejects(
    startServer(newDataDir(), { SLUICE_REDIS_URL: redis.url }),
    (error: Error & { exitCode: number }) => {
      assert.equal(error.exitCode, 1);
      assert.match(error.message, /sluice: This Redis may throw queue keys away/);
      return true;
    },
  );
  await redis.stop();
});
