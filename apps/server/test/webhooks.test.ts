/** Webhooks at `npm start`: an upload and a dead job are told of, across a kill, and only into networks that were allowed. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { Queue, readRules } from '@sluice/queue';
import { waitUntil } from '@sluice/testbed';
import { verify } from '@sluice/webhooks';
import { newDataDir, startServer } from './serverProcess.js';

const ALL = { SLUICE_ROLES: 'queues,api,uploads,relay' };
const PATIENCE = { timeoutMs: 60_000 };

interface Got {
  id: string;
  signature: string;
  timestamp: string;
  body: string;
}

async function startReceiver(t: TestContext): Promise<{ url: string; got: Got[] }> {
  const got: Got[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const header = (name: string): string => String(request.headers[name]);
      const [signature, timestamp] = [header('x-sluice-signature'), header('x-sluice-timestamp')];
      got.push({ id: header('x-sluice-id'), signature, timestamp, body });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, got };
}

const topicOf = ({ body }: Got): string => (JSON.parse(body) as { topic: string }).topic;

test('an upload and a dead job are told of, signed, also when the server is killed in between', async (t) => {
  const receiver = await startReceiver(t);
  const dataDir = newDataDir();
  const env = { ...ALL, SLUICE_WEBHOOK_ALLOW: '127.0.0.1/32', SLUICE_LEASE_MS: '1000' };
  const first = await startServer(dataDir, env);
  const reply = await fetch(`${first.url}/v1/webhooks?tenant=*`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ url: receiver.url, topics: ['repository.documents.*', 'jobs.dead'] }),
  });
  assert.equal(reply.status, 201, await reply.clone().text());
  const { secret } = (await reply.json()) as { secret: string };
  const put = await fetch(`${first.url}/v1/files/main/a.txt`, { method: 'PUT', body: 'a' });
  assert.equal(put.status, 201);
  await first.end('SIGKILL');

  const second = await startServer(dataDir, env);
  await waitUntil('the upload was told', () => receiver.got.length > 0, PATIENCE);
  assert.equal(topicOf(receiver.got[0]!), 'repository.documents.created');
  for (const got of receiver.got) assert.ok(verify(secret, got));
  const queue = new Queue('mail', { redis: second.redisUrl });
  await queue.ready();
  await waitUntil(
    'the queue is followed',
    async () => (await readRules(queue)).events !== undefined,
    PATIENCE,
  );
  await queue.work(() => Promise.reject(new Error('no'))).start();
  await queue.add('x', { attempts: 1 });
  await waitUntil('the death was told', () => receiver.got.map(topicOf).includes('jobs.dead'), PATIENCE);
  assert.equal(new Set(receiver.got.map(({ id }) => id)).size, 2);
  await queue.close(500);
  const metrics = await (await fetch(`${second.url}/metrics`)).text();
  assert.match(metrics, /^sluice_webhook_deliveries_dead 0$/m);
  assert.ok(!second.output().includes(secret) && !first.output().includes(secret));
  await second.end('SIGTERM');
});

test('without the setting this machine is out of bounds, and a setting that is no network is refused', async () => {
  const server = await startServer(newDataDir(), ALL);
  const reply = await fetch(`${server.url}/v1/webhooks`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ url: `${server.url}/v1/files/main/a`, topics: ['*'] }),
  });
  assert.equal(reply.status, 400);
  assert.match(await reply.text(), /ADDRESS_REFUSED/);
  await server.end('SIGTERM');
  const wrong = startServer(newDataDir(), { ...ALL, SLUICE_WEBHOOK_ALLOW: 'everywhere' });
  await assert.rejects(wrong, (error: Error & { exitCode: number }) => {
    assert.equal(error.exitCode, 2);
    return /SLUICE_WEBHOOK_ALLOW/.test(error.message);
  });
});
