/** What somebody meets who knows nothing but the address: the way to the documentation, and refusals in the usual form. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { test } from 'node:test';
import { newDataDir, startServer, type ServerProcess } from './serverProcess.js';

const start = (): Promise<ServerProcess> => startServer(newDataDir(), { SLUICE_ROLES: 'api' });

test('the front page leads to the documentation; browsers get a page that runs nothing but our own', async () => {
  const server = await start();
  const plain = await fetch(server.url);
  assert.match(await plain.text(), /^\/docs$/m);
  const page = await fetch(server.url, { headers: { Accept: 'text/html,*/*' } });
  assert.match(page.headers.get('content-type')!, /^text\/html/);
  assert.match(page.headers.get('content-security-policy')!, /default-src 'none'/);
  const docs = await fetch(new URL('/docs', server.url));
  assert.equal(docs.status, 200);
  assert.match(await docs.text(), /The HTTP interface/);
  await server.end('SIGTERM');
});

test('an address that does not exist is refused in the usual form, whatever body comes with it', async () => {
  const server = await start();
  const bodies: [method: string, headers: Record<string, string>, body: string][] = [
    ['POST', { 'Content-Type': 'application/json' }, '{'],
    ['PUT', { 'Content-Type': 'text/html' }, '<p>'],
    ['POST', { 'Content-Type': 'application/json' }, `"${'x'.repeat(1_100_000)}"`],
    ['QUERY', {}, ''],
  ];
  for (const path of ['/nowhere', '/internal/nowhere', '/v1/nowhere'])
    for (const [method, headers, body] of bodies) {
      const { status, text } = await ask(method, new URL(path, server.url), headers, body);
      assert.ok(status >= 400 && status < 500, `${method} ${path}: ${status} ${text}`);
      const { error } = JSON.parse(text) as { error: { code: string; retryable: boolean } };
      assert.match(error.code, /^[A-Z_]+$/);
      assert.equal(error.retryable, false);
    }
  await server.end('SIGTERM');
});

/** Of a method that `fetch` may not know. */
function ask(
  method: string,
  url: URL,
  headers: Record<string, string>,
  body: string,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers }, (reply) => {
      let text = '';
      reply.on('data', (piece: Buffer) => (text += piece.toString()));
      reply.on('end', () => resolve({ status: reply.statusCode!, text }));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}
