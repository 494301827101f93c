/** A cache of another process beside a running server: what it caches is seen, looked up and invalidated through the server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cache, defineCache } from '@sluice/cache';
import { startRedis, waitUntil } from '@sluice/testbed';
import { newDataDir, startServer } from './serverProcess.js';

const PATIENCE = { timeoutMs: 60_000 };

test('what another process caches is looked up and invalidated through the server, and its copies go', async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const server = await startServer(newDataDir(), {
    SLUICE_ROLES: 'api,relay',
    SLUICE_REDIS_URL: redis.url,
  });
  // This process is the other one; the server knows nothing of its family.
  const cache = new Cache({ redis: redis.url, patienceMs: 10_000, publishMs: 200 });
  t.after(() => cache.close());
  let greeting = 'hello';
  const greetings = cache.open(
    defineCache({
      name: 'greeting',
      key: (language: string) => language,
      ttlMs: 600_000,
      groups: () => ['greetings'],
      load: async () => greeting,
    }),
  );
  const isCopied = async () => {
    await greetings.get('en');
    return cache.statistics().nearEntries === 1;
  };
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(server.url + path, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const isSeen = async () => (await ask('GET', '/v1/cache/greeting/entry?key=en')).status === 200;
  await waitUntil('there is a copy', isCopied, PATIENCE);
  await waitUntil('the server sees it', isSeen, PATIENCE);
  assert.deepEqual((await ask('GET', '/v1/cache/greeting/entry?key=en')).body, { value: 'hello' });
  assert.equal((await ask('GET', '/v1/cache/greeting/explain?key=en')).body['state'], 'fresh');
  for (const [said, what] of [
    ['good morning', { key: 'en' }],
    ['good evening', { group: 'greetings' }],
  ] as const) {
    await waitUntil('there is a copy', isCopied, PATIENCE);
    greeting = said;
    const { body } = await ask('POST', '/v1/cache/greeting/invalidate', what);
    assert.deepEqual(body, { invalidated: 'applied' });
    await waitUntil('it is loaded anew', async () => (await greetings.get('en')) === said, PATIENCE);
  }
  await server.end('SIGTERM');
});
