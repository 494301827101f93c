// What a link promises: every call settles by its deadline, nothing is resent behind the caller's back, what is ordinary in the
// life of a Redis is waited out, and the rest is a typed error.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isSluiceError } from '@sluice/base';
import type { SluiceError } from '@sluice/base';
import { startProxy, startRedis, waitUntil } from '@sluice/testbed';
import type { Proxy, RedisServer } from '@sluice/testbed';
import { RedisLink, defaultDeadlineMs } from '../src/index.js';

/** What a busy machine may take on top. */
const slackMs = 2_000;
let redis: RedisServer;
let proxy: Proxy;

before(async () => {
  redis = await startRedis();
  proxy = await startProxy(redis.port);
});
after(async () => {
  await proxy.stop();
  await redis.stop();
});

function open(t: TestContext, target: string = redis.url): RedisLink {
  const link = new RedisLink(target, { name: 'link-test' });
  t.after(() => link.close());
  return link;
}

/** A link through the proxy, connected; afterwards the proxy is healthy again. */
async function openThroughProxy(t: TestContext): Promise<RedisLink> {
  proxy.heal();
  t.after(() => proxy.heal());
  const link = open(t, proxy.url);
  await link.call('PING', []);
  return link;
}

async function failure(promise: Promise<unknown>): Promise<SluiceError> {
  const error = await promise.then(
    () => assert.fail('it must not succeed'),
    (e: unknown) => e,
  );
  assert.ok(isSluiceError(error), String(error));
  return error;
}

/** The call fails with this code, not much after the deadline. */
async function failsInTime(
  promise: Promise<unknown>,
  code: string,
  deadlineMs: number,
): Promise<SluiceError> {
  const began = performance.now();
  const error = await failure(promise);
  const tookMs = performance.now() - began;
  assert.equal(error.code, code, error.message);
  assert.ok(tookMs < deadlineMs + slackMs, `it took ${tookMs} ms`);
  return error;
}

test('a call to a server that is not there fails by its deadline, and says that nothing has run and why', async (t) => {
  const gone = await startRedis();
  await gone.stop();
  const error = await failsInTime(
    open(t, gone.url).call('PING', [], { deadlineMs: 300 }),
    'REDIS_UNAVAILABLE',
    300,
  );
  assert.equal(error.details?.['outcomeUnknown'], false);
  assert.equal(error.retryable, true);
  assert.match(error.message, /ECONNREFUSED/);
  assert.equal(defaultDeadlineMs, 10_000);
});

test('a call on a half-open socket fails by its deadline, says that it may have run, and the next one works', async (t) => {
  const link = await openThroughProxy(t);
  const before = await link.call('CLIENT', ['ID']);
  proxy.blackHole(true);
  const error = await failsInTime(link.call('PING', [], { deadlineMs: 400 }), 'REDIS_UNAVAILABLE', 400);
  assert.equal(error.details?.['outcomeUnknown'], true);
  proxy.heal();
  assert.notEqual(await link.call('CLIENT', ['ID']), before, 'the socket was replaced');
});

test('a half-open socket is replaced also when no call waits long for it', async (t) => {
  const link = await openThroughProxy(t);
  const before = await link.call('CLIENT', ['ID']);
  proxy.blackHole(true);
  for (let i = 0; i < 5; i++) await failure(link.call('PING', [], { deadlineMs: 100 }));
  proxy.heal();
  assert.notEqual(await link.call('CLIENT', ['ID']), before);
});

test('a greeting that is lost is not waited for for ever', async (t) => {
  proxy.blackHole(true);
  t.after(() => proxy.heal());
  const link = open(t, proxy.url);
  const answer = link.call('PING', []);
  await sleep(300);
  // The connection that was made in the meantime stays deaf: what it sent is lost.
  proxy.heal();
  assert.equal(String(await answer), 'PONG');
});

test('a call to a frozen server fails by its deadline; when it thaws, calls work again', async (t) => {
  const link = open(t);
  await link.call('PING', []);
  redis.pause();
  await failsInTime(link.call('PING', [], { deadlineMs: 500 }), 'REDIS_UNAVAILABLE', 500);
  const waiting = link.call('PING', []);
  await sleep(500);
  redis.resume();
  assert.equal(String(await waiting), 'PONG');
});

test('many calls that wait for a connection cost no listener each', async (t) => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on('warning', warn);
  t.after(() => process.off('warning', warn));
  const link = open(t);
  await Promise.all(Array.from({ length: 50 }, () => link.call('PING', [])));
  await sleep(10);
  assert.deepEqual(warnings, []);
});

test('calls whose connection is cut are repeated, all of them', async (t) => {
  const link = await openThroughProxy(t);
  const calls: Promise<unknown>[] = [];
  for (let i = 0; i < 300; i++) {
    calls.push(link.call('SET', [`cut:${i}`, i]));
    if (i % 100 === 50) proxy.cut();
    if (i % 25 === 0) await sleep(1);
  }
  for (const reply of await Promise.all(calls)) assert.equal(String(reply), 'OK');
});

test('a call whose reply was lost is repeated once, by the link and by nobody else', async (t) => {
  const link = await openThroughProxy(t);
  const lost = proxy.loseReplies({ when: (request) => request.includes('repeated') });
  assert.equal(await link.call('INCR', ['repeated']), 2);
  await lost;
});

test('a command that is sent once is never repeated, and its lost reply is an unknown outcome', async (t) => {
  const link = await openThroughProxy(t);
  const lost = proxy.loseReplies({ when: (request) => request.includes('only-once') });
  const error = await failsInTime(link.once('INCR', ['only-once'], 2_000), 'REDIS_UNAVAILABLE', 2_000);
  await lost;
  assert.equal(error.details?.['outcomeUnknown'], true);
  await sleep(200);
  assert.equal(await redis.command('GET', 'only-once'), '1');
});

test('a call that was given up is not sent later', async (t) => {
  const link = await openThroughProxy(t);
  proxy.refuse(true);
  await waitUntil('the link has noticed', () => !link.ready);
  const error = await failsInTime(
    link.call('INCR', ['given-up'], { deadlineMs: 200 }),
    'REDIS_UNAVAILABLE',
    200,
  );
  assert.equal(error.details?.['outcomeUnknown'], false);
  await failsInTime(link.once('INCR', ['given-up'], 200), 'REDIS_UNAVAILABLE', 200);
  proxy.heal();
  await link.call('PING', []);
  await sleep(200);
  assert.equal(await redis.command('EXISTS', 'given-up'), 0);
});

test('a blocking command may take its time, and one whose connection hangs ends by its limit', async (t) => {
  const link = await openThroughProxy(t);
  assert.equal(await link.once('BLPOP', ['nothing-comes', 0.3], 2_000), null);
  proxy.blackHole(true);
  await failsInTime(link.once('BLPOP', ['nothing-comes', 0.3], 600), 'REDIS_UNAVAILABLE', 600);
});

test('a server that loads its data is waited for', async (t) => {
  const server = await startRedis({
    // While it loads an RDB, Redis answers every so many bytes.
    config: {
      'loading-process-events-interval-bytes': 1_024,
      rdbcompression: 'no',
      'enable-debug-command': 'yes',
    },
  });
  t.after(() => server.stop());
  const link = open(t, server.url);
  for (let i = 0; i < 500; i++) await link.call('SET', [`key:${i}`, 'x'.repeat(2_000)]);
  // So long that it still loads when the first call gives up, however late that is.
  await server.command('CONFIG', 'SET', 'key-load-delay', 15_000);
  let isLoading = true;
  const loading = server.command('DEBUG', 'RELOAD').finally(() => (isLoading = false));
  await waitUntil('it loads', async () => (await server.info('persistence'))['loading'] === '1');
  const ask = () => failsInTime(link.call('GET', ['key:499'], { deadlineMs: 300 }), 'REDIS_UNAVAILABLE', 300);
  // It answers between two keys only: the last attempt within a deadline may end without an answer.
  await waitUntil('it says that it loads', async () => /LOADING/.test((await ask()).message));
  assert.equal(isLoading, true, 'it still loads');
  await server.command('CONFIG', 'SET', 'key-load-delay', 0);
  assert.equal(String(await link.call('GET', ['key:499'])), 'x'.repeat(2_000));
  await loading;
});

test('a server that has become a replica is waited for, and what it refused has not run', async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const link = open(t, server.url);
  await link.call('SET', ['a', 1]);
  await server.command('REPLICAOF', '127.0.0.1', 1);
  const error = await failsInTime(link.call('SET', ['a', 2], { deadlineMs: 400 }), 'REDIS_UNAVAILABLE', 400);
  assert.match(error.message, /READONLY/);
  assert.equal(error.details?.['outcomeUnknown'], false);
  const waiting = link.call('SET', ['a', 3]);
  await sleep(200);
  await server.command('REPLICAOF', 'NO', 'ONE');
  assert.equal(String(await waiting), 'OK');
});

test('a server that has no room for another client is waited for', async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const first = open(t, server.url);
  await first.call('CONFIG', ['SET', 'maxclients', 1]);
  const second = open(t, server.url);
  await failsInTime(second.call('PING', [], { deadlineMs: 400 }), 'REDIS_UNAVAILABLE', 400);
  await first.call('CONFIG', ['SET', 'maxclients', 100]);
  assert.equal(String(await second.call('PING', [])), 'PONG');
});

test('full memory is its own error, at once', async (t) => {
  const server = await startRedis();
  t.after(() => server.stop());
  const link = open(t, server.url);
  await link.call('CONFIG', ['SET', 'maxmemory', 1]);
  const error = await failsInTime(link.call('SET', ['a', 1]), 'REDIS_FULL', 0);
  assert.equal(error.retryable, true);
  assert.equal(await link.call('GET', ['a']), null);
});

test('after a lost reply, a refusal of the repetition is no answer: the outcome stays unknown', async (t) => {
  const link = await openThroughProxy(t);
  t.after(() => redis.command('CONFIG', 'SET', 'maxmemory', 0));
  const lost = proxy.loseReplies({ when: (request) => request.includes('ran-then-full') });
  // The reply of this very SET is lost, and before it is repeated the memory is full.
  const setting = link.call('SET', ['ran-then-full', 1], { deadlineMs: 1_000 });
  const full = lost.then(() => redis.command('CONFIG', 'SET', 'maxmemory', 1));
  const error = await failsInTime(setting, 'REDIS_UNAVAILABLE', 1_000).catch(
    (e: unknown) => e as SluiceError,
  );
  await full;
  // The repetition may have been quicker than CONFIG SET; then it was answered and nothing is unknown.
  if (error.code === 'REDIS_UNAVAILABLE') assert.equal(error.details?.['outcomeUnknown'], true);
  assert.equal(await redis.command('GET', 'ran-then-full'), '1');
});

test('what Redis refuses is an error at once, whatever words it contains', async (t) => {
  const link = open(t);
  const wrong = await failsInTime(link.call('LPUSH', ['only']), 'REDIS_REFUSED', 0);
  assert.equal(wrong.retryable, false);
  await link.call('SET', ['text', 'x']);
  assert.match(
    (await failsInTime(link.call('INCR', ['text']), 'REDIS_REFUSED', 0)).message,
    /not an integer/,
  );
  // A script's own complaint may look like a trouble of the connection.
  const complaint = "return redis.error_reply('ERR the ECONNRESET of a connection that ended')";
  await failsInTime(link.call('EVAL', [complaint, 0]), 'REDIS_REFUSED', 0);
});

test('wrong credentials and a wrong database are refused at once, with the reason', async (t) => {
  const server = await startRedis({ acl: ['user default off', 'user app on >secret ~* +@all'] });
  t.after(() => server.stop());
  for (const url of [server.url, server.urlAs('app', 'wrong'), server.urlAs('nobody', 'secret')]) {
    const error = await failsInTime(open(t, url).call('PING', []), 'REDIS_REFUSED', 1_000);
    assert.match(error.message, /WRONGPASS|NOAUTH/);
    await failsInTime(open(t, url).once('PING', [], 5_000), 'REDIS_REFUSED', 1_000);
  }
  const wrongDb = open(t, `${server.urlAs('app', 'secret')}/99`);
  const error = await failsInTime(wrongDb.call('SET', ['stray', 1]), 'REDIS_REFUSED', 1_000);
  assert.match(error.message, /DB index/);
  assert.equal(await server.command('EXISTS', 'stray'), 0);
  // A password that is set right later is found out without a new link.
  const early = open(t, server.urlAs('late', 'secret'));
  await failsInTime(early.call('PING', []), 'REDIS_REFUSED', 1_000);
  await server.command('ACL', 'SETUSER', 'late', 'on', '>secret', '~*', '+@all');
  await waitUntil('the new user is let in', async () => String(await early.call('PING', [])) === 'PONG');
});

test('a certificate that nobody vouches for is named as the reason', async (t) => {
  const server = await startRedis({ tls: true });
  t.after(() => server.stop());
  const error = await failure(open(t, server.url).call('PING', [], { deadlineMs: 2_000 }));
  assert.match(error.message, /self-signed|certificate/i);
  const trusting = open(t, `${server.url}?caFile=${server.caFile!}`);
  assert.equal(String(await trusting.call('PING', [])), 'PONG');
});

test('a link that is closed answers REDIS_CLOSED, to what was under way and to what comes later', async (t) => {
  const link = open(t);
  await link.call('PING', []);
  const underWay = [
    failure(link.once('BLPOP', ['never', 0], 5_000)),
    failure(link.call('BLPOP', ['never', 0])),
  ];
  await sleep(50);
  link.close();
  link.close();
  underWay.push(failure(link.call('PING', [])), failure(link.once('PING', [], 100)));
  underWay.push(failure(link.callEverywhere('PING', [])));
  for (const error of await Promise.all(underWay)) assert.equal(error.code, 'REDIS_CLOSED');
});

test('a link tells when it becomes ready and when it is lost', async (t) => {
  proxy.heal();
  const states: string[] = [];
  const link = new RedisLink(proxy.url, { onState: (state) => states.push(state) });
  t.after(() => link.close());
  await link.call('PING', []);
  assert.deepEqual(states, ['ready']);
  assert.equal(link.ready, true);
  proxy.cut();
  await waitUntil('it is back', () => states.length === 3);
  assert.deepEqual(states, ['ready', 'lost', 'ready']);
  const other = link.another({ name: 'other' });
  t.after(() => other.close());
  assert.equal(String(await other.call('CLIENT', ['GETNAME'])), 'other');
});

test('replies are bytes', async (t) => {
  const link = open(t);
  const bytes = Buffer.from([0, 255, 128, 13, 10]);
  await link.call('SET', ['bytes', bytes]);
  assert.deepEqual(await link.call('GET', ['bytes']), bytes);
  assert.deepEqual(await link.callEverywhere('GET', ['bytes']), [bytes]);
});

test('bytes that are sent without a copy arrive as they are, each call in its order', async (t) => {
  const link = open(t);
  const pieces = Array.from({ length: 20 }, (_, i) => Buffer.alloc(i * 100_001, i));
  await Promise.all(
    pieces.flatMap((bytes, i) => [
      link.call('SET', [`large ${i}`, bytes, 'PX', 60_000], { uncopied: true }),
      link.call('COPY', [`large ${i}`, `copy ${i}`]),
      link.call('MSET', [`ä ${i}`, bytes, 'empty', Buffer.alloc(0), 'words', 'größe'], { uncopied: true }),
    ]),
  );
  for (const [i, bytes] of pieces.entries())
    for (const name of ['large', 'copy', 'ä'])
      assert.ok(bytes.equals((await link.call('GET', [`${name} ${i}`])) as Buffer), `${name} ${i}`);
  assert.deepEqual(await link.call('GET', ['empty']), Buffer.alloc(0));
  assert.equal(String(await link.call('GET', ['words'])), 'größe');
  assert.ok(Number(await link.call('PTTL', ['large 1'])) > 0);
});

test('bytes that are sent without a copy are sent again when their connection is cut', async (t) => {
  const link = await openThroughProxy(t);
  const bytes = Buffer.alloc(3_000_000, 7);
  const setting = link.call('SET', ['cut', bytes], { uncopied: true });
  proxy.cut();
  await setting;
  assert.ok(bytes.equals((await link.call('GET', ['cut'])) as Buffer));
});
