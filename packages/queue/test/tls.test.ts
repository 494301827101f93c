// Everything that a queue does, over TLS.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { TestContext } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { startRedis } from '@sluice/testbed';
import type { RedisServer } from '@sluice/testbed';
import { Queue } from '../src/index.js';
import { runCycle } from './cycle.js';

let redis: RedisServer;
before(async () => {
  redis = await startRedis({ tls: true, acl: ['user default off', 'user app on >secret ~* +@all'] });
});
after(() => redis.stop());

function open(t: TestContext, url: string, addDeadlineMs = 10_000): Queue<string, string> {
  const queue = new Queue<string, string>('tls', { redis: url, addDeadlineMs });
  t.after(() => queue.close(500));
  return queue;
}

test('all that a queue does can be done over TLS, with a user and a password', async (t) => {
  const url = `${redis.urlAs('app', 'secret')}?caFile=${redis.caFile!}`;
  await runCycle({ producer: open(t, url), worker: open(t, url), operator: open(t, url) });
});

test('a server that nobody vouches for gets neither jobs nor the password', async (t) => {
  const queue = open(t, redis.urlAs('app', 'secret'), 2_000);
  await assert.rejects(queue.add('x'), (error) => {
    return isSluiceError(error, 'REDIS_UNAVAILABLE') && /self-signed|certificate/i.test(error.message);
  });
  const names = async () => String(await redis.command('CLIENT', 'LIST'));
  assert.ok(!(await names()).includes('sluice-tls'), 'it never got as far as a greeting');
});

test('a plain connection to a TLS port fails in time', async (t) => {
  const queue = open(t, redis.urlAs('app', 'secret').replace('rediss://', 'redis://'), 500);
  const began = performance.now();
  await assert.rejects(queue.add('x'), (error) => isSluiceError(error, 'REDIS_UNAVAILABLE'));
  assert.ok(performance.now() - began < 1_500);
});
