/**
 * Alerts at `npm start`: dead letters beyond the limit reach a webhook, once, also across a restart; and what needs attention says so, and
 * nothing while all is well.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { GiveUp, Queue } from '@sluice/queue';
import { RedisLink } from '@sluice/redis';
import { waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const PATIENCE = { timeoutMs: 60_000 };

interface Row {
  name: string;
  state: string;
  value: number;
}

test('a crossed threshold is told to a webhook once, with a link, and not again after a restart', async (t) => {
  const got: { topic: string; data: { name: string; link: string; value: number } }[] = [];
  const receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      got.push(JSON.parse(body) as (typeof got)[number]);
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const env = {
    SLUICE_ROLES: 'queues,api,uploads,relay',
    SLUICE_WEBHOOK_ALLOW: '127.0.0.1',
    SLUICE_ALERTS: '{"deadLetters":3}',
    SLUICE_ALERT_FOR_MS: '0',
    SLUICE_ALERT_EVERY_MS: '500',
    SLUICE_PUBLIC_URL: 'https://sluice.example',
  };
  const dataDir = newDataDir();
  const first = await startServer(dataDir, env);
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const made = await fetch(`${first.url}/v1/webhooks?tenant=*`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ url, topics: ['sluice.alerts.*'] }),
  });
  assert.equal(made.status, 201, await made.text());
  const queue = new Queue('mail', { redis: first.redisUrl });
  await queue.work(() => Promise.reject(new GiveUp('no'))).start();
  await queue.addMany([1, 2, 3].map((data) => ({ data })));
  await waitUntil('it was told', () => got.length > 0, PATIENCE);
  await queue.close(500);
  assert.equal(got[0]!.topic, 'sluice.alerts.raised');
  const { name, link, value } = got[0]!.data;
  assert.deepEqual([name, link, value], ['deadLetters', 'https://sluice.example/dead', 3]);
  await first.end('SIGTERM');

  const second = await startServer(dataDir, env);
  const read = async () =>
    ((await (await fetch(`${second.url}/v1/alerts`)).json()) as { items: Row[] }).items.find(
      (row) => row.name === 'deadLetters',
    )!;
  const { state, value: letters } = await read();
  assert.deepEqual([state, letters], ['raised', 3]);
  const again = new Queue('mail', { redis: second.redisUrl });
  await again.dead.discard('all');
  await waitUntil('it was taken back', () => got.length > 1, PATIENCE);
  assert.deepEqual(
    got.map(({ topic }) => topic),
    ['sluice.alerts.raised', 'sluice.alerts.cleared'],
  );
  await again.close(500);
  await second.end('SIGTERM');
});

interface Attention {
  code: string;
  target?: { name: string; value: number; limit: number; link: string };
}

test('a fresh server needs nobody; what may lose jobs and a missed target need somebody at once', async (t) => {
  const server = await startServer(newDataDir(), {
    SLUICE_ROLES: 'queues,api,uploads,relay',
    SLUICE_ALERTS: '{"deadLetters":3}',
    SLUICE_ALERT_EVERY_MS: '500',
  });
  const redis = new RedisLink(server.redisUrl);
  t.after(() => redis.close());
  const ask = async <T>(path: string) => (await (await fetch(server.url + path)).json()) as T;
  const attention = async () => (await ask<{ attention: Attention[] }>('/v1/overview')).attention;
  const isJudged = async () => {
    const { items } = await ask<{ items: Row[] }>('/v1/alerts');
    return items.some(({ name, value }) => name === 'deadLetters' && value === 0);
  };
  await waitUntil('the targets are judged', isJudged, PATIENCE);
  assert.deepEqual(await attention(), []);
  await redis.call('CONFIG', ['SET', 'maxmemory-policy', 'allkeys-lru', 'appendonly', 'no']);
  const codes = async () => (await attention()).map(({ code }) => code).join();
  await waitUntil(
    'it is noticed',
    async () => (await codes()) === 'REDIS_MAY_EVICT,REDIS_KEEPS_NO_FILE',
    PATIENCE,
  );
  await redis.call('CONFIG', ['SET', 'maxmemory-policy', 'noeviction', 'appendonly', 'yes']);
  await waitUntil('it is mended', async () => (await codes()) === '', PATIENCE);
  const queue = new Queue('mail', { redis: server.redisUrl });
  await queue.work(() => Promise.reject(new GiveUp('no'))).start();
  await queue.addMany([1, 2, 3].map((data) => ({ data })));
  await waitUntil('it is missed', async () => (await codes()) === 'DEAD_LETTERS,TARGET_MISSED', PATIENCE);
  const { target } = (await attention()).find(({ code }) => code === 'TARGET_MISSED')!;
  assert.deepEqual(
    [target!.name, target!.value, target!.limit, target!.link],
    ['deadLetters', 3, 3, '/dead'],
  );
  await queue.close(500);
  await server.end('SIGTERM');
});
