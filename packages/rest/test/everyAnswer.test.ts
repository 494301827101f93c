// What every answer has: the id of its request, and headers for browsers.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import Fastify from 'fastify';
import { Access } from '@sluice/access';
import { consoleLogger } from '@sluice/base';
import { notFound, serverOptions, type RestOptions, type Route } from '../src/index.js';
import { serve } from '../src/rest.js';
import { converse, raw } from './harness.js';

const key = 'acme-key-0123456789';
const table: Route[] = [
  {
    ...{
      method: 'GET',
      url: '/v1/thing',
      needs: 'viewer',
      of: 'tenant',
      summary: 'A thing.',
      answers: '200',
    },
    handle: async () => ({ thing: true }),
  },
  {
    ...{ method: 'GET', url: '/v1/broken', needs: 'viewer', of: 'tenant', summary: 'Fails.', answers: '200' },
    handle: async () => {
      throw new Error('with a secret inside: postgres://me:hunter2hunter2@db');
    },
  },
];
const server = Fastify(serverOptions);
let url: string;
let log = '';

before(async () => {
  const access = new Access({ keys: [{ tenant: 'acme', key }], secret: 'only for this test' });
  const logger = consoleLogger({ level: 'debug', write: (line) => void (log += line) });
  server.setNotFoundHandler((request, reply) => notFound(request, reply));
  // These routes need nothing behind them.
  const options = { access, logger, version: '0.0.0' } as unknown as RestOptions;
  await server.register((scope) => serve(scope, options, table));
  await server.listen({ host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
});

after(() => server.close());

test('every answer has the id of its request, refusals also in the body, and the log knows it', async () => {
  const ways: [path: string, status: number, who: Record<string, string>][] = [
    ['/v1/thing', 200, { 'X-Sluice-Key': key }],
    ['/v1/thing', 401, {}],
    ['/v1/nothing', 404, {}],
    ['/elsewhere', 404, {}],
    ['/v1/broken', 500, { 'X-Sluice-Key': key }],
    ['/v1/%ff', 400, {}],
    ['/openapi.json', 200, {}],
  ];
  for (const [index, [path, status, who]] of ways.entries()) {
    const id = `trace-${index}/a.b:c`;
    const answer = await raw(url, path, { headers: { ...who, 'X-Request-Id': id } });
    assert.deepEqual([answer.status, answer.headers['x-request-id']], [status, id], path);
    if (status >= 400) assert.equal(JSON.parse(answer.text).error.requestId, id, path);
  }
  assert.match(log, /"requestId":"trace-1\/a.b:c".*"status":401/);
  assert.match(log, /"requestId":"trace-4\/a.b:c"/);
  assert.doesNotMatch(log, /hunter2/);
});

test('an id that could not stand in a header or a log is replaced', async () => {
  const ids = new Set<unknown>();
  for (const id of ['', 'a b', 'x'.repeat(129), '"', '{}', '\u00e9'])
    ids.add((await raw(url, '/v1/thing', { headers: { 'X-Request-Id': id } })).headers['x-request-id']);
  assert.equal(ids.size, 6);
  for (const id of ids) assert.match(String(id), /^[0-9a-f-]{36}$/);
  const broken = await converse(url, ['this is no HTTP\r\n\r\n']);
  const [, given] = /X-Request-Id: ([0-9a-f-]{36})/.exec(broken) ?? [];
  assert.ok(given !== undefined && broken.includes(`"requestId":"${given}"`));
});

test('no answer can be framed, sniffed, or run as a page', async () => {
  for (const path of ['/v1/thing', '/v1/nothing', '/elsewhere', '/openapi.json']) {
    const { headers } = await raw(url, path, { headers: { 'X-Sluice-Key': key } });
    assert.equal(headers['content-security-policy'], "default-src 'none'; frame-ancestors 'none'", path);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.match(String(headers['content-type']), /^application\/json/);
  }
});
