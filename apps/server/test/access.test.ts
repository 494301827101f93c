/**
 * Who may use the server as it really is: keys that are made while it runs, and its log searched for every secret that was sent to it.
 * Every route is tried as everybody in everyRoute.test.ts.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { startPostgres, waitUntil } from '@sluice/testbed';
import { newDataDir, startServer, type ServerProcess } from './serverProcess.js';

const ALL = { SLUICE_ROLES: 'api,uploads,relay' };
const PATIENCE = { timeoutMs: 60_000 };
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever comes back
type Loose = any;
type Headers = Record<string, string>;

interface Answer {
  status: number;
  headers: globalThis.Headers;
  body: Loose;
}

async function call(
  { url }: ServerProcess,
  method: string,
  path: string,
  headers: Headers = {},
  body?: unknown,
): Promise<Answer> {
  const isText = typeof body === 'string';
  const response = await fetch(url + path, {
    method,
    headers: { ...(body !== undefined && !isText && { 'Content-Type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: isText ? body : JSON.stringify(body) }),
    // What streams for ever has said what it has to say when it begins.
    signal: AbortSignal.timeout(30_000),
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (isStream) await response.body?.cancel();
  const text = isStream ? '' : await response.text();
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

function as(key: string): Headers {
  return { Authorization: `Bearer ${key}` };
}

test('the first key is made while the server runs; then others may reach it, also after a restart', async () => {
  const dataDir = newDataDir();
  const first = await startServer(dataDir, ALL);
  const made = await call(first, 'POST', '/v1/keys', {}, { name: 'root', tenant: '*', role: 'admin' });
  assert.equal(made.status, 201);
  const key = made.body.key as string;
  assert.equal((await call(first, 'GET', '/v1/drives')).status, 401);
  assert.ok(!first.output().includes(key));
  await first.end('SIGTERM');
  // Now it may listen everywhere: nobody gets in without the key.
  const second = await startServer(dataDir, { ...ALL, SLUICE_HOST: '0.0.0.0' });
  assert.match(second.output(), /^Upload a file: curl -H "X-Sluice-Key: \$KEY" /m);
  assert.equal((await call(second, 'GET', '/v1/drives')).status, 401);
  assert.equal((await call(second, 'GET', '/v1/drives', as(key))).status, 200);
  assert.equal(
    (await call(second, 'GET', '/v1/drives', { ...as(key), Host: 'files.example.com' })).status,
    200,
  );
  await second.end('SIGTERM');
});

test('a key that was revoked in one process opens nothing in another a moment later', async () => {
  const postgres = await startPostgres();
  const root = `root-${randomBytes(16).toString('hex')}`;
  const shared = {
    ...ALL,
    SLUICE_KEYS: `*=${root}`,
    SLUICE_DATABASE_URL: await postgres.createDatabase(),
    SLUICE_SECRET: root,
  };
  const [one, two] = [await startServer(newDataDir(), shared), await startServer(newDataDir(), shared)];
  const made = await call(one, 'POST', '/v1/keys', as(root), { name: 'k', tenant: '*', role: 'viewer' });
  const key = made.body.key as string;
  await waitUntil(
    'the other one knows it',
    async () => (await call(two, 'GET', '/v1/drives', as(key))).status === 200,
    PATIENCE,
  );
  const session = await call(two, 'POST', '/v1/session', {}, { key });
  const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
  assert.equal((await call(one, 'GET', '/v1/session', { cookie })).status, 200, 'a session is known to both');
  await call(one, 'DELETE', `/v1/keys/${made.body.id}`, as(root));
  await waitUntil(
    'it is refused',
    async () => (await call(two, 'GET', '/v1/drives', as(key))).status === 401,
  );
  assert.equal((await call(two, 'GET', '/v1/session', { cookie })).status, 401);
  await Promise.all([one.end('SIGTERM'), two.end('SIGTERM')]);
  await postgres.stop();
});

test('too many wrong keys are told so with a time to wait, and a right key is not held back', async () => {
  const root = `root-${randomBytes(16).toString('hex')}`;
  const server = await startServer(newDataDir(), {
    ...ALL,
    SLUICE_KEYS: `*=${root}`,
    SLUICE_FAILURE_RATE: '5',
  });
  const statuses: number[] = [];
  let last: Answer | undefined;
  for (let index = 0; index < 8; index++) {
    last = await call(server, 'GET', '/v1/drives', as(`wrong-${index}`));
    statuses.push(last.status);
  }
  assert.deepEqual(statuses.slice(0, 5), [401, 401, 401, 401, 401]);
  assert.ok(statuses.includes(429));
  assert.ok(Number(last!.headers.get('retry-after')) >= 1);
  assert.equal((await call(server, 'POST', '/v1/session', {}, { key: 'wrong' })).status, 429);
  assert.equal((await call(server, 'GET', '/v1/drives')).status, 401, 'who shows nothing guesses nothing');
  assert.equal((await call(server, 'GET', '/v1/drives', as(root))).status, 200);
  await server.end('SIGTERM');
});

test('with keys, figures are for keys of the installation, and probes learn which part fails but not why', async () => {
  const root = `root-${randomBytes(16).toString('hex')}`;
  const server = await startServer(newDataDir(), { ...ALL, SLUICE_KEYS: `*=${root},ada=ada-${root}` });
  assert.equal((await call(server, 'GET', '/metrics')).status, 401);
  assert.equal((await call(server, 'GET', '/metrics', as(`ada-${root}`))).status, 403);
  assert.equal((await call(server, 'GET', '/metrics', as(root))).status, 200);
  assert.equal((await call(server, 'GET', '/healthz')).status, 200);
  const probe = await call(server, 'GET', '/readyz');
  assert.deepEqual([probe.status, probe.body.status, probe.body.records], [200, 'ok', 'ok']);
  await server.end('SIGTERM');
});

test('no secret that is sent to the server, or configured, is in its log', async () => {
  const canary = (name: string): string => `CANARY${name}${randomBytes(12).toString('hex')}`;
  const configured = { key: canary('Key'), service: canary('Service'), secret: canary('Secret') };
  const server = await startServer(newDataDir(), {
    ...ALL,
    SLUICE_LOG_LEVEL: 'debug',
    SLUICE_KEYS: `*=${configured.key}`,
    SLUICE_SERVICE_KEYS: configured.service,
    SLUICE_SECRET: configured.secret,
    SLUICE_TRUST_PROXY: 'true',
  });
  const root = as(configured.key);
  const made = await call(server, 'POST', '/v1/keys', root, { name: 'k', tenant: 'default', role: 'admin' });
  const rotated = await call(server, 'POST', `/v1/keys/${made.body.id}/rotate`, root);
  const text = rotated.body.key as string;
  const { body: token } = await call(server, 'POST', '/v1/tokens', as(text), { drive: 'main' });
  const file = await call(server, 'PUT', '/v1/files/main/a.txt', as(token.token), 'bytes');
  const link = await call(server, 'POST', '/v1/links', as(text), { nodeId: file.body.nodeId });
  const signature = new URL(link.body.url as string, server.url).searchParams.get('signature')!;
  const session = await call(server, 'POST', '/v1/session', {}, { key: text });
  const cookie = session.headers.get('set-cookie')!.split(';')[0]!;
  const csrf = session.body.csrf as string;
  const sent = Array.from({ length: 12 }, (_, index) => canary(`Sent${index}`));
  const [a, b, c, d, e, f, g, h] = sent as [string, string, string, string, string, string, string, string];
  const wrongKey = `slk_${'0'.repeat(16)}_${randomBytes(32).toString('base64url')}`;
  const attempts: [method: string, path: string, headers: Headers, body?: unknown][] = [
    ['GET', link.body.url as string, {}],
    ['GET', '/v1/session', { cookie }],
    ['DELETE', '/v1/session', { cookie, 'X-Sluice-CSRF': csrf, 'Sec-Fetch-Site': 'same-origin' }],
    ['DELETE', '/v1/session', { cookie, 'X-Sluice-CSRF': a, 'Sec-Fetch-Site': 'same-origin' }],
    ['GET', '/v1/drives', as(b)],
    ['GET', '/v1/drives', { 'X-Sluice-Key': c }],
    ['GET', '/v1/drives', as(wrongKey)],
    ['GET', '/v1/drives', { cookie: `sluice_session=${d}` }],
    ['GET', '/v1/drives', { Authorization: `Basic ${e}` }],
    ['POST', '/v1/session', {}, { key: f }],
    ['POST', '/v1/session', {}, { wrong: g }],
    ['GET', `/v1/nodes/${file.body.nodeId}/content?tenant=default&signature=${h}`, {}],
    ['POST', '/internal/verification/result', { 'X-Service-Key': sent[8]! }, { documentId: 'x' }],
    ['POST', '/internal/verification/result', { 'X-Service-Key': configured.service }, { nonsense: 1 }],
    ['GET', `/v1/nowhere?X-Amz-Signature=${sent[9]}`, root],
    ['POST', '/v1/nodes', { ...root, 'X-Request-Id': `bad id ${sent[10]}` }, { drive: 'nothing', name: 'x' }],
    ['GET', `/v1/nodes/${wrongKey}`, root],
    ['DELETE', `/v1/drives/${text}`, root],
  ];
  for (const [method, path, headers, body] of attempts) await call(server, method, path, headers, body);
  await call(server, 'GET', '/v1/drives', { ...root, 'X-Request-Id': 'the-last-one' });
  await waitUntil('the log has the last request', () => server.output().includes('the-last-one'), PATIENCE);
  await server.end('SIGTERM');
  const log = server.output();
  assert.match(log, /"action":"key.rotate"/);
  assert.match(log, /"status":401/);
  assert.doesNotMatch(log, /CANARY/);
  const secrets = {
    ...{ 'the key before': made.body.key, 'the key': text, 'a wrong key': wrongKey, token: token.token },
    ...{ signature, cookie: cookie.split('=')[1], csrf },
  } as Record<string, string>;
  for (const [name, secret] of Object.entries(secrets)) {
    // What proves it: the end of the text. The id of a key may be known.
    assert.ok(!log.includes(secret.slice(-20)), `${name} is in the log`);
  }
});
