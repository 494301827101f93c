/** Who sees figures and reasons of a process, in whichever role it runs, and which queues are among the figures. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { GiveUp, Queue } from '@sluice/queue';
import { startPostgres, waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const ROOT = 'root-of-the-installation-0123456789';
const KEYS = `*=${ROOT},acme=key-of-acme-0123456789`;

async function statusOf(url: string, headers: Record<string, string> = {}): Promise<number> {
  // Not fetch: it does not let anybody choose the Host.
  return new Promise((resolve, reject) => {
    const asked = request(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    });
    asked.on('error', reject);
    asked.end();
  });
}

for (const roles of ['queues', 'uploads', 'relay']) {
  test(`without keys a process with the role ${roles} answers this machine only`, async () => {
    const env = { SLUICE_ROLES: roles };
    const failure = await startServer(newDataDir(), { ...env, SLUICE_HOST: '0.0.0.0' }).catch(
      (e: unknown) => e,
    );
    // Where no key of the database counts, nobody is told to make one there.
    const advice =
      roles === 'queues'
        ? /role queues alone knows no other keys.*set SLUICE_KEYS/
        : /SLUICE_KEYS.*or .*POST/;
    assert.match(String(failure), advice);
    assert.equal((failure as { exitCode: number }).exitCode, 2);
  });
}

test('a worker without keys answers loopback names only, and with keys shows its figures to keys of the installation', async () => {
  const open = await startServer(newDataDir());
  assert.equal(await statusOf(`${open.url}/metrics`), 200);
  assert.equal(await statusOf(`${open.url}/metrics`, { Host: 'rebound.example.com' }), 403);
  await open.end('SIGTERM');
  const closed = await startServer(newDataDir(), { SLUICE_KEYS: KEYS, SLUICE_HOST: '0.0.0.0' });
  const url = closed.url.replace('0.0.0.0', '127.0.0.1');
  assert.equal(await statusOf(`${url}/healthz`), 200);
  assert.equal(await statusOf(`${url}/readyz`), 200);
  assert.equal(await statusOf(`${url}/metrics`), 401);
  assert.equal(await statusOf(`${url}/metrics`, { 'X-Sluice-Key': 'key-of-acme-0123456789' }), 403);
  assert.equal(await statusOf(`${url}/metrics`, { 'X-Sluice-Key': ROOT }), 200);
  // One of the database, as far as anybody can see: which keys count here is said, and where they come from.
  const made = `slk_${'0'.repeat(16)}_${'A'.repeat(43)}`;
  const refused = await fetch(`${url}/metrics`, { headers: { 'X-Sluice-Key': made } });
  const { error } = (await refused.json()) as { error: { code: string; message: string } };
  assert.deepEqual([refused.status, error.code], [401, 'UNAUTHENTICATED']);
  assert.match(error.message, /role queues alone knows the keys in its SLUICE_KEYS only/);
  await closed.end('SIGTERM');
});

test('a process that works on no queue tells the figures of all, also of those of Sluice', async () => {
  const server = await startServer(newDataDir(), { SLUICE_ROLES: 'api,uploads' });
  const mail = new Queue('mail', { redis: server.redisUrl });
  mail.work(() => {
    throw new GiveUp('it died');
  });
  await mail.add('letter');
  const lookAt = async (): Promise<string> => (await fetch(`${server.url}/metrics`)).text();
  const seen = /^sluice_queue_jobs\{queue="mail",state="dead"\} 1$/m;
  await waitUntil('its letter is counted', async () => seen.test(await lookAt()), { timeoutMs: 30_000 });
  const figures = await lookAt();
  for (const queue of ['uploads', 'sluice.operations'])
    assert.ok(figures.includes(`sluice_queue_jobs{queue="${queue}",state="dead"} 0`), queue);
  // Every figure is described once: Prometheus refuses a second description.
  const described = figures.match(/^# TYPE \S+/gm)!;
  assert.equal(new Set(described).size, described.length);
  await mail.close(1_000);
  await server.end('SIGTERM');
});

test('a server whose database or store is away is not ready, and says which', async () => {
  const postgres = await startPostgres();
  const dataDir = newDataDir();
  const database = await postgres.createDatabase();
  const env = { SLUICE_ROLES: 'api,uploads,relay', SLUICE_DATABASE_URL: database };
  const server = await startServer(dataDir, env);
  const ready = async (): Promise<{ status: number; body: Record<string, string> }> => {
    const reply = await fetch(`${server.url}/readyz`);
    return { status: reply.status, body: (await reply.json()) as Record<string, string> };
  };
  await waitUntil('it is ready', async () => (await ready()).status === 200, { timeoutMs: 30_000 });
  const objects = join(dataDir, 'objects');
  rmSync(objects, { recursive: true });
  writeFileSync(objects, 'no folder');
  const storeless = await ready();
  assert.equal(storeless.status, 503);
  assert.notEqual(storeless.body['store'], 'ok');
  assert.equal(storeless.body['records'], 'ok');
  rmSync(objects);
  await postgres.stop();
  await waitUntil('the database is missed', async () => (await ready()).body['records'] !== 'ok', {
    timeoutMs: 30_000,
  });
  assert.equal((await ready()).status, 503);
  await server.end('SIGTERM');
});
