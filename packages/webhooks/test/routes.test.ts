// Webhooks over HTTP: who may, what is answered, and that a secret is shown once.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import Fastify from 'fastify';
import { Access } from '@sluice/access';
import { silentLogger } from '@sluice/base';
import { directReads } from '@sluice/reads';
import { rest, serverOptions, type RestOptions } from '@sluice/rest';
import { webhookRoutes } from '../src/index.js';
import { startReceiver } from './receiver.js';
import { eventually, useServers } from './setup.js';

const bed = useServers();

interface Answer {
  status: number;
  text: string;
  body: {
    id: string;
    secret: string;
    secrets: number;
    delivery: string;
    items: { id: string; state: string }[];
    next: null;
    error: { code: string; details?: { field?: string } };
    [field: string]: unknown;
  };
}

type Who = 'admin' | 'operator' | 'stranger' | 'root';
const keys: Record<Who, string> = {
  admin: 'acme-admin-key-0001',
  operator: 'acme-operator-key-01',
  stranger: 'beta-admin-key-0001',
  root: 'installation-key-01',
};

async function startApi(t: TestContext) {
  const { webhooks, records } = await bed.open(t);
  const access = new Access({
    secret: 'only for this test',
    keys: [
      { tenant: 'acme', key: keys.admin, role: 'admin' },
      { tenant: 'acme', key: keys.operator, role: 'operator' },
      { tenant: 'beta', key: keys.stranger, role: 'admin' },
      { tenant: '*', key: keys.root, role: 'admin' },
    ],
  });
  const server = Fastify(serverOptions);
  const options = {
    ...{ records, reads: directReads(records), access, defaultBucket: 'disk' },
    ...{ more: webhookRoutes(webhooks), logger: silentLogger, version: '0.0.0' },
  };
  // Nothing of files is asked for here.
  await server.register(rest, options as unknown as RestOptions);
  await server.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => server.close());
  const base = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  return async (who: Who | undefined, method: string, path: string, body?: unknown): Promise<Answer> => {
    const headers = {
      ...(who && { Authorization: `Bearer ${keys[who]}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    };
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const response = await fetch(base + path, init);
    const text = await response.text();
    const parsed = (text === '' ? {} : JSON.parse(text)) as Answer['body'];
    return { status: response.status, text, body: parsed };
  };
}

test('a webhook is made, read, changed, tried, rotated and deleted', async (t) => {
  const call = await startApi(t);
  const receiver = await startReceiver(t);
  const made = await call('admin', 'POST', '/v1/webhooks', { url: receiver.url, topics: ['jobs.dead'] });
  assert.equal(made.status, 201, made.text);
  const { secret, ...view } = made.body;
  assert.match(secret, /^whsec_[\w-]{43}$/);
  const path = `/v1/webhooks/${view.id}`;
  assert.deepEqual((await call('admin', 'GET', path)).body, view);
  assert.deepEqual((await call('admin', 'GET', '/v1/webhooks')).body, { items: [view], next: null });
  const changed = await call('admin', 'PATCH', path, { topics: ['repository.*'] });
  assert.deepEqual([changed.status, changed.body['topics']], [200, ['repository.*']]);
  const tried = await call('admin', 'POST', `${path}/test`);
  assert.equal(tried.status, 202);
  await eventually('it was delivered', async () => {
    const { body } = await call('admin', 'GET', `${path}/deliveries`);
    return body.items[0]?.id === tried.body.delivery && body.items[0].state === 'delivered';
  });
  assert.equal(receiver.got.length, 1);
  const rotated = await call('admin', 'POST', `${path}/rotate`, { graceS: 60 });
  assert.deepEqual([rotated.status, rotated.body.secrets], [200, 2]);
  assert.notEqual(rotated.body.secret, secret);
  assert.equal((await call('admin', 'POST', `${path}/rotate`)).status, 200);
  for (const answer of [await call('admin', 'GET', path), await call('admin', 'GET', `${path}/deliveries`)])
    assert.ok(!answer.text.includes('whsec_'));
  assert.equal((await call('admin', 'DELETE', path)).status, 204);
  assert.equal((await call('admin', 'GET', path)).status, 404);
});

test('every route is for admins, of the own tenant, and of all tenants for the installation only', async (t) => {
  const call = await startApi(t);
  const receiver = await startReceiver(t);
  const { body } = await call('admin', 'POST', '/v1/webhooks', { url: receiver.url, topics: ['*'] });
  const attempts: [method: string, path: string, body?: unknown][] = [
    ['GET', `/v1/webhooks/${body.id}`],
    ['PATCH', `/v1/webhooks/${body.id}`, { active: false }],
    ['DELETE', `/v1/webhooks/${body.id}`],
    ['POST', `/v1/webhooks/${body.id}/rotate`, {}],
    ['POST', `/v1/webhooks/${body.id}/test`],
    ['GET', `/v1/webhooks/${body.id}/deliveries`],
  ];
  const lists: typeof attempts = [
    ['GET', '/v1/webhooks'],
    ['POST', '/v1/webhooks', { url: receiver.url, topics: ['*'] }],
  ];
  for (const [method, path, sent] of [...attempts, ...lists]) {
    assert.equal((await call(undefined, method, path, sent)).status, 401, path);
    assert.equal((await call('operator', method, path, sent)).status, 403, path);
    assert.equal((await call('admin', method, `${path}?tenant=*`, sent)).status, 403, path);
  }
  for (const [method, path, sent] of attempts) {
    const { status, body: refusal } = await call('stranger', method, path, sent);
    assert.deepEqual([status, refusal.error.code], [404, 'WEBHOOK_NOT_FOUND'], path);
    assert.equal((await call('root', method, `${path}?tenant=*`, sent)).status, 404, path);
  }
  assert.deepEqual((await call('stranger', 'GET', '/v1/webhooks')).body.items, []);
  const all = await call('root', 'POST', '/v1/webhooks?tenant=*', { url: receiver.url, topics: ['*'] });
  assert.deepEqual([all.status, all.body['tenant']], [201, '*']);
  assert.equal((await call('root', 'GET', '/v1/webhooks?tenant=*')).body.items.length, 1);
  assert.equal((await call('admin', 'GET', `/v1/webhooks/${all.body.id}`)).status, 404);
  assert.equal(receiver.got.length, 0);
});

test('what makes no sense is refused with the field, and an address out of bounds with its reason', async (t) => {
  const call = await startApi(t);
  const right = { url: 'https://hooks.invalid/', topics: ['*'] };
  const wrong: [status: number, code: string, field: string | undefined, body: object][] = [
    [400, 'REQUEST_INVALID', 'url', { topics: ['*'] }],
    [400, 'REQUEST_INVALID', 'topics', { url: right.url }],
    [400, 'REQUEST_INVALID', 'topics', { ...right, topics: [] }],
    [400, 'REQUEST_INVALID', 'secret', { ...right, secret: 'mine' }],
    [400, 'REQUEST_INVALID', 'tenant', { ...right, tenant: 'beta' }],
    [400, 'WEBHOOK_INVALID', 'topics', { ...right, topics: ['a.*.b'] }],
    [400, 'WEBHOOK_INVALID', 'url', { ...right, url: 'file:///etc/passwd' }],
    [400, 'WEBHOOK_INVALID', 'url', { ...right, url: 'https://user:pw@hooks.invalid/' }],
    [400, 'ADDRESS_REFUSED', undefined, { ...right, url: 'http://169.254.169.254/latest' }],
    [400, 'ADDRESS_REFUSED', undefined, { ...right, url: 'http://[::1]:8080/' }],
  ];
  for (const [status, code, field, body] of wrong) {
    const answer = await call('admin', 'POST', '/v1/webhooks', body);
    const { error } = answer.body;
    assert.deepEqual([answer.status, error.code, error.details?.field], [status, code, field], answer.text);
  }
  for (const id of ['x', 'wh_%00', 'x'.repeat(3_000), "wh_' OR 1=1"])
    assert.ok([400, 404].includes((await call('admin', 'GET', `/v1/webhooks/${id}`)).status), id);
});
