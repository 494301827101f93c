/** Each fault of the proxy, seen by a real client of a real server. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startProxy, startRedis, type Proxy, type RedisServer } from '../src/index.js';
import { MessageCounter } from '../src/messageCounter.js';

let server: RedisServer;
let proxy: Proxy;
let client: Redis;

before(async () => {
  server = await startRedis({ appendonly: false });
});
after(() => server.stop());

beforeEach(async () => {
  proxy = await startProxy(server.port);
  client = new Redis(proxy.port, proxy.host, {
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    disableClientInfo: true,
  });
  client.on('error', () => {});
  await client.ping();
});
afterEach(async () => {
  client.disconnect();
  await proxy.stop();
});

test('without faults everything passes, also large values', async () => {
  const large = 'x'.repeat(3_000_000);
  await client.set('large', large);
  assert.equal(await client.get('large'), large);
  assert.equal(proxy.connectionCount, 1);
});

test('a delay slows both directions and keeps the order', async () => {
  proxy.delay(20);
  const began = performance.now();
  const replies = await Promise.all(Array.from({ length: 50 }, (_, i) => client.echo(String(i))));
  assert.ok(performance.now() - began >= 39);
  assert.deepEqual(
    replies,
    Array.from({ length: 50 }, (_, i) => String(i)),
  );
});

test('sliced bytes still make whole replies', async () => {
  proxy.slice(true);
  assert.deepEqual(await client.call('COMMAND', 'GETKEYS', 'MSET', 'a', '1', 'b', '2'), ['a', 'b']);
});

test('a cut ends the connection at once', async () => {
  const answer = client.blpop('nothing', 0);
  await sleep(20);
  proxy.cut();
  await assert.rejects(answer);
});

test('a black hole keeps the connection open and silent', async () => {
  proxy.blackHole(true);
  const answer = client.ping();
  answer.catch(() => {});
  assert.equal(await Promise.race([answer, sleep(100, 'silence')]), 'silence');
  assert.equal(client.status, 'ready');
});

test('a refused connection is cut before it says anything', async () => {
  proxy.refuse(true);
  const late = new Redis(proxy.port, proxy.host, { lazyConnect: true, retryStrategy: () => null });
  late.on('error', () => {});
  await assert.rejects(late.connect());
  proxy.heal();
});

test('a lost reply means that the command was carried out and nobody was told', async () => {
  const lost = proxy.loseReplies({ when: (request) => request.includes('counter') });
  const earlier = client.ping();
  assert.equal(await earlier, 'PONG');
  await assert.rejects(client.incr('counter'));
  await lost;
  assert.equal(await server.command('GET', 'counter'), '1');
});

test('a lost reply is the right one behind other requests under way', async () => {
  const rejected = Array.from({ length: 20 }, (_, i) => client.set(`busy:${i}`, 'x'));
  await sleep(0);
  const lost = proxy.loseReplies({ when: (request) => request.includes('behind') });
  rejected.push(client.set('behind', 'x'));
  await Promise.allSettled(rejected);
  await lost;
  assert.equal(await server.command('GET', 'behind'), 'x');
});

test('messages are counted wherever the stream is cut', () => {
  const replies =
    '+OK\r\n$5\r\nhel\r\n\r\n*2\r\n:1\r\n*2\r\n$-1\r\n$0\r\n\r\n%1\r\n+a\r\n#t\r\n*0\r\n_\r\n>2\r\n+x\r\n+y\r\n-ERR no\r\n';
  const bytes = Buffer.from(replies);
  for (let size = 1; size <= bytes.length; size++) {
    const counter = new MessageCounter();
    for (let at = 0; at < bytes.length; at += size) counter.read(bytes.subarray(at, at + size));
    assert.equal(counter.total, 7, `in chunks of ${size}`);
  }
});
