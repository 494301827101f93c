/** Uploads that ended are known as long as the records know them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { completed, servers, startApi, stopServers } from './harness.js';

after(stopServers);

test('how an upload ended is answered by the records when Redis has forgotten it', async (t) => {
  const api = await startApi(t);
  const begin = async (path: string) =>
    (await api.call('POST', '/v1/uploads', { drive: 'main', path, size: 3 })).body as { id: string };
  const done = await begin('a.txt');
  await api.send(`/v1/uploads/${done.id}/chunks/0`, Buffer.from('abc'));
  const cancelled = await begin('b.txt');
  await api.call('DELETE', `/v1/uploads/${cancelled.id}`);
  await completed(api, done.id);
  // An hour passes.
  const { redis } = await servers();
  for (const { id } of [done, cancelled]) {
    const keys = (await redis.command('KEYS', `*${id}*`)) as string[];
    assert.ok(keys.length > 0);
    await redis.command('DEL', ...keys);
  }

  const answer = await api.call('GET', `/v1/uploads/${done.id}`);
  assert.equal(answer.status, 200);
  assert.deepEqual(
    [answer.body.state, answer.body.path, answer.body.size, answer.body.missing],
    ['COMPLETED', 'a.txt', 3, []],
  );
  assert.equal(answer.body.result.sha256.length, 64);
  assert.equal(answer.body.result.objectKey, undefined);
  assert.deepEqual((await api.call('GET', `/v1/uploads/${done.id}`)).body, answer.body);

  const other = await api.call('GET', `/v1/uploads/${cancelled.id}`);
  assert.deepEqual([other.status, other.body.state, other.body.error.code], [200, 'CANCELLED', 'CANCELLED']);
  assert.equal((await api.call('GET', '/v1/uploads/0-00000000000000000000000000000000')).status, 404);
});

test('an upload of a higher partition is found in the records as well: its id is no decimal number', async (t) => {
  const api = await startApi(t);
  const id = `a-${'0'.repeat(32)}`;
  const what = {
    tenant: 'default',
    drive: 'main',
    path: 'c.txt',
    objectKey: 'o',
    ifExists: 'replace',
  } as const;
  await api.records.uploads.begin({ id, ...what });
  await api.records.uploads.end({ id, status: 'CANCELLED', reason: 'enough' });
  const { status, body } = await api.call('GET', `/v1/uploads/${id}`);
  assert.deepEqual([status, body.state, body.path], [200, 'CANCELLED', 'c.txt']);
});
