/** Small objects leave the SDK's long way once it is known, and nobody can tell but by the time it takes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { mock, test, type TestContext } from 'node:test';
import { startVersitygw, versitygwProblem } from '@sluice/testbed';
import { S3Store } from '../src/index.js';

const skip = versitygwProblem() ?? false;
const refusal = '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>not today</Message></Error>';

/** A store on a real server, and who made each put: the SDK says its name, the short way does not. */
async function open(t: TestContext) {
  const gateway = await startVersitygw();
  const puts: ('sdk' | 'short')[] = [];
  const way = { refuses: false };
  const front = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'PUT')
      puts.push(String(request.headers['user-agent']).includes('aws-sdk') ? 'sdk' : 'short');
    if (way.refuses) return void request.resume().once('end', () => response.writeHead(403).end(refusal));
    const { method, url, headers } = request;
    const onward = send({ port: gateway.port, host: '127.0.0.1', method, path: url, headers }, (reply) => {
      response.writeHead(reply.statusCode!, reply.headers);
      reply.pipe(response);
    });
    request.pipe(onward);
  }).listen(0, '127.0.0.1');
  await once(front, 'listening');
  const store = new S3Store({
    endpoint: `http://127.0.0.1:${(front.address() as AddressInfo).port}`,
    region: gateway.region,
    bucket: gateway.bucket,
    credentials: { accessKeyId: gateway.accessKey, secretAccessKey: gateway.secretKey },
  });
  t.after(async () => {
    store.close();
    front.close();
    front.closeAllConnections();
    await gateway.stop();
  });
  return { store, puts, way };
}

test(
  'the second small object of a bucket takes the short way, whatever its key and type',
  { skip },
  async (t) => {
    const { store, puts } = await open(t);
    const keys = ['first', "a b/ü€/(it's)!*", 'plus+and&amp;=', '%41/percent', `long/${'x'.repeat(200)}`];
    for (const [n, key] of keys.entries()) {
      const bytes = Buffer.from(`bytes of ${key}`);
      const put = await store.put(key, bytes, { contentType: `text/plain; n=${n}` });
      const { stream, ...info } = await store.get(key);
      assert.deepEqual(await buffer(stream), bytes);
      assert.equal(info.etag, put.etag);
      assert.equal(info.contentType, `text/plain; n=${n}`);
      assert.equal(info.crc64, put.crc64);
    }
    assert.deepEqual(puts, ['sdk', 'short', 'short', 'short', 'short']);
  },
);

test(
  'a refusal on the short way has its name, and the next object goes through the SDK again',
  { skip },
  async (t) => {
    const { store, puts, way } = await open(t);
    await store.put('one', Buffer.from('1'));
    way.refuses = true;
    await assert.rejects(store.put('two', Buffer.from('2')), {
      code: 'STORE_REFUSED',
      message: /403 AccessDenied: not today/,
    });
    way.refuses = false;
    await store.put('three', Buffer.from('3'));
    await store.put('four', Buffer.from('4'));
    assert.deepEqual(puts, ['sdk', 'short', 'sdk', 'short']);
  },
);

test('a small object with metadata goes through the SDK', { skip }, async (t) => {
  const { store, puts } = await open(t);
  await store.put('one', Buffer.from('1'));
  await store.put('two', Buffer.from('2'), { metadata: { color: 'blue' } });
  assert.deepEqual(puts, ['sdk', 'sdk']);
  assert.deepEqual((await store.head('two'))?.metadata, { color: 'blue' });
});

test('a clock that jumps costs some tries, whatever is asked, and no call', { skip }, async (t) => {
  const { store } = await open(t);
  await store.put('one', Buffer.from('1'));
  const realNow = Date.now.bind(Date);
  let aheadMs = 0;
  const clock = mock.method(Date, 'now', () => realNow() + aheadMs);
  t.after(() => clock.mock.restore());
  const calls = [
    () => store.put('two', Buffer.from('2')),
    () => store.head('one'),
    () => store.get('one').then(({ stream }) => buffer(stream)),
    () => store.createMultipart('three').then((multipart) => store.abortMultipart(multipart)),
    () => store.list(''),
  ];
  for (const [n, call] of calls.entries()) {
    // Further away each time, and back and forth.
    aheadMs = 3_600_000 * (n + 1) * (n % 2 === 0 ? 1 : -1);
    await call();
  }
});
