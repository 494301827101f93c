// How often a key may ask, over HTTP, and whose what it makes is.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Access, nobody } from '@sluice/access';
import { completed, startApi, stopServers } from './harness.js';

after(stopServers);

const key = 'acme-operator-0123456789';
const who = { Authorization: `Bearer ${key}` };

test('a key that asks too often is answered 429 with Retry-After; bytes of uploads are not counted', async (t) => {
  const api = await startApi(t, {
    tenants: ['acme'],
    access: { keys: [{ tenant: 'acme', role: 'admin', key }] },
    rest: { rates: { keyPerSecond: 0.1, failuresPerMinute: 0 } },
  });
  // So slow that not even the first one has room, on any machine.
  assert.equal((await api.call('GET', '/v1/drives', undefined, who)).status, 429);
  const begin = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'a', size: 1 }, who);
  assert.deepEqual([begin.status, begin.body.error.code], [429, 'TOO_MANY_REQUESTS']);
  const seconds = Number(begin.headers.get('retry-after'));
  assert.ok(seconds >= 1 && seconds <= 10, String(seconds));
  for (const [method, path] of [
    ['GET', '/v1/uploads/0-1'],
    ['DELETE', '/v1/uploads/0-1'],
    ['POST', '/v1/uploads/0-1/complete'],
    ['GET', '/v1/uploads/0-1/events'],
  ] as const)
    assert.equal((await api.call(method, path, undefined, who)).status, 429, `${method} ${path}`);
  for (let n = 0; n < 5; n++)
    assert.equal((await api.send(`/v1/files/main/f${n}`, Buffer.from('bytes'), who)).status, 201);
});

test('tokens that have expired are no wrong ones: however many come, each is told so', async (t) => {
  const secret = 'only for this test';
  const api = await startApi(t, {
    tenants: ['acme'],
    access: { keys: [{ tenant: 'acme', role: 'admin', key }], secret },
    rest: { rates: { keyPerSecond: 0, failuresPerMinute: 5 } },
  });
  const expired = new Access({ keys: [], secret }).makeToken(
    { ...nobody, tenant: 'acme' },
    { drive: 'main' },
    new Date(Date.now() - 1_000),
  );
  const begin = async (token: string): Promise<[number, string]> => {
    const headers = { Authorization: `Bearer ${token}` };
    const { status, body } = await api.call(
      'POST',
      '/v1/uploads',
      { drive: 'main', path: 'a', size: 1 },
      headers,
    );
    return [status, body.error.code];
  };
  for (let n = 0; n < 30; n++) assert.deepEqual(await begin(expired), [401, 'TOKEN_EXPIRED']);
  const wrong = await Promise.all(Array.from({ length: 30 }, () => begin(`${expired.slice(0, -2)}AA`)));
  assert.ok(wrong.some(([status]) => status === 429));
});

test('a key gets its burst, then 429 until there is room again', async (t) => {
  const api = await startApi(t, {
    tenants: ['acme'],
    access: { keys: [{ tenant: 'acme', role: 'admin', key }] },
    rest: { rates: { keyPerSecond: 5, failuresPerMinute: 0 } },
  });
  const ask = async (): Promise<number> => (await api.call('GET', '/v1/drives', undefined, who)).status;
  const answers = await Promise.all(Array.from({ length: 100 }, ask));
  const admitted = answers.filter((status) => status === 200).length;
  assert.ok(admitted >= 10 && admitted < 100, String(admitted));
  assert.ok(answers.every((status) => status === 200 || status === 429));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  assert.equal(await ask(), 200);
});

test('files, folders and uploads belong to the key that made them, also through its tokens', async (t) => {
  const api = await startApi(t, {
    tenants: ['acme'],
    access: { keys: [{ tenant: '*', role: 'admin', key: 'root-0123456789-root' }] },
  });
  const root = { Authorization: 'Bearer root-0123456789-root' };
  const asked = { name: 'nightly import', tenant: 'acme', role: 'operator' };
  const made = await api.call('POST', '/v1/keys', asked, root);
  const mine = { Authorization: `Bearer ${made.body.key}` };
  const token = await api.call('POST', '/v1/tokens', { drive: 'main' }, mine);
  const whole = await api.send('/v1/files/main/whole.txt', Buffer.from('whole'), mine);
  const byToken = await api.send('/v1/files/main/token.txt', Buffer.from('token'), {
    Authorization: `Bearer ${token.body.token}`,
  });
  const begun = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'parts.txt', size: 5 }, mine);
  await api.send(`/v1/uploads/${begun.body.id}/chunks/0`, Buffer.from('parts'), mine);
  const ended = await completed(api, begun.body.id as string, mine);
  const folder = await api.call('POST', '/v1/nodes', { drive: 'main', path: 'folder' }, mine);
  for (const id of [whole.body.nodeId, byToken.body.nodeId, ended.nodeId, folder.body.id] as string[])
    assert.equal((await api.records.nodes.get('acme', id))?.owner, 'nightly import', id);
});
