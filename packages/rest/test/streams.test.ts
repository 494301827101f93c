// Streams of server-sent events: they end with what opened them, and nobody can take all of them.
import assert from 'node:assert/strict';
import { after, test, type TestContext } from 'node:test';
import { mostStreams } from '../src/openStream.js';
import { startApi, stopServers, type Api, type Loose } from './harness.js';

after(stopServers);

type Who = Record<string, string>;

const rootKey = 'root-of-the-installation-0123456789';

async function opened(
  t: TestContext,
): Promise<{ api: Api; root: Who; key: string; keyId: string; path: string }> {
  const api = await startApi(t, {
    tenants: ['acme'],
    access: { keys: [{ tenant: '*', role: 'admin', key: rootKey }] },
  });
  const root = { Authorization: `Bearer ${rootKey}` };
  const made = await api.call('POST', '/v1/keys', { name: 'acme', tenant: 'acme', role: 'operator' }, root);
  const { key, id: keyId } = made.body as { key: string; id: string };
  const upload = await api.call(
    'POST',
    '/v1/uploads',
    { drive: 'main', path: 'film.mp4', size: 10_000_000 },
    { Authorization: `Bearer ${key}` },
  );
  return { api, root, key, keyId, path: `/v1/uploads/${upload.body.id}/events` };
}

/** A stream that is open, and how long it stays so. */
async function follow(t: TestContext, url: string, headers: Who) {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const reply = await fetch(url, { headers, signal: stop.signal });
  const text = reply.text().catch(() => '');
  const ended = text.then(() => true);
  return { status: reply.status, text, ended, stop: () => stop.abort() };
}

async function endsWithin(ended: Promise<boolean>, ms: number): Promise<boolean> {
  const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), ms).unref());
  return Promise.race([ended, late]);
}

test('a stream ends within five seconds of the end of the key, session or token that opened it', async (t) => {
  const { api, root, key, keyId, path } = await opened(t);
  const byKey = { Authorization: `Bearer ${key}` };
  const token = await api.call('POST', '/v1/tokens', { drive: 'main' }, byKey);
  const signedIn = async () => {
    const answer = await api.call('POST', '/v1/session', { key });
    const cookie = answer.headers.get('set-cookie')!.split(';')[0]!;
    return { cookie, 'X-Sluice-CSRF': answer.body.csrf as string, 'Sec-Fetch-Site': 'same-origin' };
  };
  const [leaving, staying] = [await signedIn(), await signedIn()];
  const streams = {
    key: await follow(t, api.url + path, byKey),
    token: await follow(t, api.url + path, { Authorization: `Bearer ${token.body.token}` }),
    leaving: await follow(t, api.url + path, leaving),
    staying: await follow(t, api.url + path, staying),
  };
  for (const { status } of Object.values(streams)) assert.equal(status, 200);
  assert.equal((await api.call('DELETE', '/v1/session', undefined, leaving)).status < 300, true);
  assert.equal(await endsWithin(streams.leaving.ended, 5_000), true, 'signed out');
  for (const name of ['key', 'token', 'staying'] as const)
    assert.equal(await endsWithin(streams[name].ended, 100), false, name);
  assert.equal((await api.call('DELETE', `/v1/keys/${keyId}`, undefined, root)).status, 200);
  for (const name of ['key', 'token', 'staying'] as const)
    assert.equal(await endsWithin(streams[name].ended, 5_000), true, name);
});

test('one session or token opens a bounded number of streams, and others still get theirs', async (t) => {
  const { api, key, path } = await opened(t);
  const byKey = { Authorization: `Bearer ${key}` };
  const token = await api.call('POST', '/v1/tokens', { drive: 'main' }, byKey);
  const cookie = (await api.call('POST', '/v1/session', { key })).headers.get('set-cookie')!.split(';')[0]!;
  for (const [who, limit] of [
    [{ Authorization: `Bearer ${token.body.token}` }, 20],
    [{ cookie }, 50],
  ] as [Who, number][]) {
    const streams = await Promise.all(Array.from({ length: limit }, () => follow(t, api.url + path, who)));
    assert.ok(streams.every(({ status }) => status === 200));
    const refused = await fetch(api.url + path, { headers: who });
    assert.equal(refused.status, 429);
    assert.ok(Number(refused.headers.get('retry-after')) >= 1);
    const { error } = (await refused.json()) as { error: { code: string; details: { limit: number } } };
    assert.deepEqual([error.code, error.details.limit], ['TOO_MANY_STREAMS', limit]);
    const other = await follow(t, api.url + path, byKey);
    assert.equal(other.status, 200, 'whoever comes otherwise');
    other.stop();
    for (const { stop } of streams) stop();
    for (const end = performance.now() + 10_000; ;) {
      const again = await follow(t, api.url + path, who);
      again.stop();
      if (again.status === 200) break;
      assert.ok(performance.now() < end, 'places come back');
    }
  }
});

test('a key, a tenant and the process have a bounded number of streams each, and a place that is left is free again', async (t) => {
  // What is usual, and so few of it that all of it can be taken here.
  assert.deepEqual(mostStreams, { process: 1_000, tenant: 500, key: 250, session: 50, token: 20 });
  const api = await startApi(t, {
    tenants: ['acme', 'beta', 'gamma'],
    rest: { streams: { process: 12, tenant: 6, key: 3 } },
    access: { keys: [{ tenant: '*', role: 'admin', key: rootKey }] },
  });
  const paths = new Map<string, string>();
  const newHolder = async (tenant: string): Promise<() => ReturnType<typeof follow>> => {
    const root = { Authorization: `Bearer ${rootKey}` };
    const made = await api.call('POST', '/v1/keys', { name: 'k', tenant, role: 'operator' }, root);
    const who = { Authorization: `Bearer ${made.body.key}` };
    if (!paths.has(tenant)) {
      const body = { drive: 'main', path: 'film.mp4', size: 10_000_000 };
      const upload = await api.call('POST', '/v1/uploads', body, who);
      paths.set(tenant, `/v1/uploads/${upload.body.id}/events`);
    }
    return () => follow(t, api.url + paths.get(tenant)!, who);
  };
  const fill = async (open: () => ReturnType<typeof follow>, count: number) => {
    const streams = await Promise.all(Array.from({ length: count }, open));
    assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200]);
    return streams;
  };
  const refused = async (open: () => ReturnType<typeof follow>, limit: number, of: string) => {
    const { status, text } = await open();
    assert.equal(status, 429, of);
    const { error } = JSON.parse(await text) as { error: Loose };
    assert.deepEqual([error.code, error.retryable, error.details.limit], ['TOO_MANY_STREAMS', true, limit]);
    assert.equal(error.message, `${limit} live streams of this ${of} are open already; close some`);
  };
  const isFreed = async (open: () => ReturnType<typeof follow>): Promise<void> => {
    for (const end = performance.now() + 10_000; (await open()).status !== 200;)
      assert.ok(performance.now() < end, 'the place comes back');
  };
  const acme = [await newHolder('acme'), await newHolder('acme'), await newHolder('acme')] as const;
  const beta = [await newHolder('beta'), await newHolder('beta')] as const;
  const gamma = await newHolder('gamma');
  const [first] = await fill(acme[0], 3);
  await refused(acme[0], 3, 'key');
  first!.stop();
  await isFreed(acme[0]);
  await refused(acme[0], 3, 'key');

  const [second] = await fill(acme[1], 3);
  await refused(acme[2], 6, 'tenant');
  second!.stop();
  await isFreed(acme[2]);
  await refused(acme[2], 6, 'tenant');

  await fill(beta[0], 3);
  const [last] = await fill(beta[1], 3);
  await refused(gamma, 12, 'process');
  last!.stop();
  await isFreed(gamma);
  await refused(gamma, 12, 'process');
});
