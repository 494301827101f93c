// One request: to the machine that was checked and no other, without redirects, with bounds on time and on what is read.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { isSluiceError } from '@sluice/base';
import { makeOwnedFolder } from '@sluice/testbed';
import { send } from '../src/send.js';
import { startReceiver } from './receiver.js';

const failed = (reason: RegExp) => (error: unknown) =>
  isSluiceError(error, 'DELIVERY_FAILED') && reason.test(error.message);
const usual = { headers: { 'X-Test': 'yes' }, body: '{"a":"ü"}', timeoutMs: 10_000 };

test('the connection goes to the address that was checked, with the name in Host', async (t) => {
  const receiver = await startReceiver(t);
  // No resolver on earth knows this name: only the pinned address can lead anywhere.
  const url = new URL(`http://hooks.invalid:${receiver.port}/path?query=1`);
  const answer = await send({ url, addresses: ['127.0.0.1'] }, usual);
  assert.equal(answer.status, 204);
  const [got] = receiver.got;
  assert.deepEqual([got!.path, got!.body], ['/path?query=1', '{"a":"ü"}']);
  assert.equal(got!.headers.host, `hooks.invalid:${receiver.port}`);
  assert.equal(got!.headers['x-test'], 'yes');
  assert.equal(got!.headers['content-length'], '10');
});

test('with TLS the certificate must be that of the name, and the name is in the greeting', async (t) => {
  const folder = makeOwnedFolder('webhooks');
  const [key, cert] = [join(folder, 'key'), join(folder, 'cert')];
  const args = ['req', '-x509', '-nodes', '-days', '2', '-subj', '/CN=x', '-newkey', 'ec'];
  const kind = ['-pkeyopt', 'ec_paramgen_curve:prime256v1', '-addext', 'subjectAltName=DNS:hooks.invalid'];
  await promisify(execFile)('openssl', [...args, ...kind, '-keyout', key, '-out', cert]);
  const ca = readFileSync(cert, 'utf8');
  const receiver = await startReceiver(t, { key: readFileSync(key, 'utf8'), cert: ca });
  const to = (host: string) => ({
    url: new URL(`https://${host}:${receiver.port}/`),
    addresses: ['127.0.0.1'],
  });
  assert.equal((await send(to('hooks.invalid'), { ...usual, ca })).status, 204);
  assert.equal(receiver.got[0]!.servername, 'hooks.invalid');
  await assert.rejects(send(to('other.invalid'), { ...usual, ca }), failed(/ALTNAME/));
  await assert.rejects(send(to('hooks.invalid'), usual), failed(/SELF_SIGNED/));
});

test('a redirect is an answer like any other and is not followed', async (t) => {
  const target = await startReceiver(t);
  const receiver = await startReceiver(t);
  receiver.answer = (_got, response) => void response.writeHead(307, { Location: target.url }).end();
  const answer = await send({ url: new URL(receiver.url), addresses: ['127.0.0.1'] }, usual);
  assert.equal(answer.status, 307);
  assert.equal(target.got.length, 0);
});

test('an answer that does not come, or never ends, costs a bounded time and a bounded memory', async (t) => {
  const receiver = await startReceiver(t);
  const to = { url: new URL(receiver.url), addresses: ['127.0.0.1'] };
  receiver.answer = () => {};
  await assert.rejects(send(to, { ...usual, timeoutMs: 200 }), failed(/no answer within 200 ms/));
  let closed = false;
  receiver.answer = (_got, response) => {
    response.on('close', () => (closed = true));
    response.writeHead(200);
    const pour = (): void => void (!closed && response.write('x'.repeat(65_536), () => setImmediate(pour)));
    pour();
  };
  assert.equal((await send(to, usual)).status, 200);
  while (!closed) await new Promise((resolve) => setTimeout(resolve, 10));
  receiver.answer = (_got, response) => void response.writeHead(200, { 'X-Long': 'x'.repeat(40_000) }).end();
  await assert.rejects(send(to, usual), failed(/HPE_HEADER_OVERFLOW/));
});

test('a receiver that is not there, or hangs up, is a failure that names no more than its origin', async (t) => {
  const receiver = await startReceiver(t);
  receiver.answer = (_got, response) => void response.destroy();
  const url = new URL(`${receiver.url}/secret-token?also=secret`);
  await assert.rejects(send({ url, addresses: ['127.0.0.1'] }, usual), (error: Error) => {
    assert.ok(!error.message.includes('secret'), error.message);
    return failed(/ECONNRESET|socket hang up/)(error);
  });
  const nobody = { url: new URL('http://hooks.invalid:1/'), addresses: ['127.0.0.1', '127.0.0.2'] };
  await assert.rejects(send(nobody, usual), failed(/ECONNREFUSED/));
});
