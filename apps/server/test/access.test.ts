/**
 * Who may use the server as it really is: every route that it describes, tried as everybody; keys that are made while it runs; and its log
 * searched for every secret that was sent to it.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { sampleOf, startPostgres, waitUntil } from '@sluice/testbed';
import { newDataDir, startServer, type ServerProcess } from './serverProcess.js';

const ALL = { SLUICE_ROLES: 'api,uploads,relay' };
const UNAUDITED = [
  'DELETE /v1/session',
  'POST /internal/verification/result',
  'POST /v1/session',
  'POST /v1/uploads',
  'POST /v1/uploads/nothing/complete',
  'PUT /v1/files/nothing/nothing',
  'PUT /v1/uploads/nothing/bytes',
  'PUT /v1/uploads/nothing/chunks/nothing',
];
const ROLES = ['viewer', 'operator', 'admin'] as const;
const TENANTS = ['ada', 'bob', '*'] as const;

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

interface Declaration {
  needs: (typeof ROLES)[number] | 'nobody';
  of: 'tenant' | 'installation';
  tokens: boolean;
  links: boolean;
  serviceKey: boolean;
  /** False where a row is not worth it; undefined where nobody said. */
  audit: string | false | undefined;
}

function declarationOf(operation: Loose): Declaration {
  return {
    needs: operation['x-needs'],
    of: operation['x-of'],
    tokens: operation['x-tokens'] === true,
    links: operation['x-links'] === true,
    serviceKey: operation['x-service-key'] === true,
    audit: operation['x-audit'],
  };
}

interface Operation {
  method: string;
  path: string;
  access: Declaration;
  body: unknown;
}

/** Every route of the document, with a body that its schema accepts and ids of nothing. */
async function operations(server: ServerProcess): Promise<Operation[]> {
  const { body: document } = await call(server, 'GET', '/openapi.json');
  return Object.entries<Loose>(document.paths).flatMap(([path, item]) =>
    Object.entries<Loose>(item).map(([method, operation]) => {
      const content = operation.requestBody?.content ?? {};
      const json = content['application/json']?.schema as Record<string, unknown> | undefined;
      const isRaw = content['application/octet-stream'] !== undefined;
      return {
        method: method.toUpperCase(),
        path: path.replace(/\{\w+\}/g, 'nothing'),
        access: declarationOf(operation),
        body: isRaw ? 'bytes' : json && sampleOf(json),
      };
    }),
  );
}

interface Who {
  title: string;
  tenant: (typeof TENANTS)[number];
  role: (typeof ROLES)[number];
  key: string;
}

test('every route that the server describes refuses whom it is not for, and nothing changes', async () => {
  const root = `root-${randomBytes(16).toString('hex')}`;
  const server = await startServer(newDataDir(), {
    ...ALL,
    SLUICE_KEYS: `*=${root},ada=ada-${root},bob=bob-${root}`,
    SLUICE_FAILURE_RATE: '0',
    SLUICE_KEY_RATE: '0',
  });
  const people: Who[] = [];
  for (const tenant of TENANTS)
    for (const role of ROLES) {
      const { body } = await call(server, 'POST', '/v1/keys', as(root), { name: 'k', tenant, role });
      people.push({ title: `${role} of ${tenant}`, tenant, role, key: body.key as string });
    }
  assert.equal((await call(server, 'PUT', '/v1/files/main/a.txt', as(`ada-${root}`), 'ada')).status, 201);
  const { body: made } = await call(server, 'POST', '/v1/tokens', as(`ada-${root}`), { drive: 'main' });
  const token = as(made.token as string);

  /** What there is, as far as these requests could change it. Whatever is changed has a row. */
  const picture = async (): Promise<string> => {
    const asAda = as(`ada-${root}`);
    const paths = ['/v1/drives', '/v1/nodes?drive=main', '/v1/files/main/a.txt'];
    const seen = await Promise.all(paths.map((path) => call(server, 'GET', path, asAda)));
    const audit = await call(server, 'GET', '/v1/audit?limit=1', as(root));
    return JSON.stringify([...seen, audit].map(({ status, body }) => [status, body]));
  };
  const refusedAs = async (operation: Operation, title: string, headers: Headers, status: number) => {
    const { method, path, body } = operation;
    const answer = await call(server, method, path, headers, body);
    const where = `${method} ${path} as ${title}: ${JSON.stringify(answer.body)}`;
    assert.equal(answer.status, status, where);
    assert.ok(answer.headers.get('x-request-id'), where);
    if (method !== 'HEAD')
      assert.equal(answer.body.error.requestId, answer.headers.get('x-request-id'), where);
  };

  const all = await operations(server);
  assert.ok(all.length >= 30);
  const unaudited: string[] = [];
  for (const operation of all) {
    const { method, path, access } = operation;
    assert.ok(access, `${method} ${path} does not say whom it is for`);
    const isSafe = method === 'GET' || method === 'HEAD';
    if (isSafe) assert.equal(access.audit, undefined, `${method} ${path} changes nothing`);
    else if (access.audit === false) unaudited.push(`${method} ${path}`);
    else
      assert.match(
        String(access.audit),
        /^[a-z]+(\.[a-z]+)+$/,
        `${method} ${path} has no name in the audit log`,
      );
    const before = await picture();
    if (access.serviceKey) {
      await refusedAs(operation, 'a wrong service', { 'X-Service-Key': 'wrong' }, 401);
      continue;
    }
    if (access.needs === 'nobody') continue;
    for (const headers of [{}, as('wrong'), as(`slk_${'0'.repeat(16)}_${'A'.repeat(43)}`)])
      await refusedAs(operation, 'no one', headers, 401);
    if (!access.tokens) await refusedAs(operation, 'a token', token, 403);
    for (const { title, tenant, role, key } of people) {
      const mayNot =
        ROLES.indexOf(role) < ROLES.indexOf(access.needs) || (access.of === 'installation' && tenant !== '*');
      if (mayNot) await refusedAs(operation, title, as(key), 403);
    }
    if (!isSafe) {
      const { key } = people.at(-1)!;
      const signed = await call(server, 'POST', '/v1/session', {}, { key });
      const cookie = signed.headers.get('set-cookie')!.split(';')[0]!;
      await refusedAs(
        operation,
        'a page without the token',
        { cookie, 'Sec-Fetch-Site': 'same-origin' },
        403,
      );
      const csrf = signed.body.csrf as string;
      const elsewhere = { cookie, 'X-Sluice-CSRF': csrf, 'Sec-Fetch-Site': 'cross-site' };
      await refusedAs(operation, 'a page of somebody else', elsewhere, 403);
    }
    assert.equal(await picture(), before, `${method} ${path}`);
  }
  // Signing in, and the data plane, which says by itself who stored what; nothing else.
  assert.deepEqual(unaudited.sort(), UNAUDITED);
  // Whom a route is for gets past the door. What is there then is for the tests of the route.
  for (const operation of all.filter(({ access }) => access.needs !== 'nobody'))
    for (const { title, tenant, role, key } of people) {
      const { method, path, access, body } = operation;
      const may = role === access.needs && (access.of === 'tenant' || tenant === '*');
      if (!may) continue;
      const { status } = await call(server, method, path, as(key), body);
      assert.ok(![401, 403].includes(status) && status < 500, `${method} ${path} as ${title}: ${status}`);
    }
  await server.end('SIGTERM');
});

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
  await waitUntil('the log has the last request', () => server.output().includes('the-last-one'));
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
