// The audit log: a row before every change, how it ended, and nothing in it that should not be there.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { armFailPoints } from '@sluice/base';
import { startApi, stopServers, type Api, type Loose } from './harness.js';

after(stopServers);

const keys = [
  { tenant: '*', key: 'root-key-0123456789' },
  { tenant: 'ada', key: 'ada-key-0123456789' },
  { tenant: 'bob', key: 'bob-key-0123456789' },
];
type Who = Record<string, string>;
const [root, ada, bob] = keys.map(({ key }): Who => ({ Authorization: `Bearer ${key}` })) as [Who, Who, Who];

const options = { tenants: ['default', 'ada', 'bob'], access: { keys } };

async function rows(api: Api, who: Who, query = ''): Promise<Loose[]> {
  const { status, body } = await api.call('GET', `/v1/audit${query}`, undefined, who);
  assert.equal(status, 200, JSON.stringify(body));
  return body.items;
}

test('a change has a row that says what, who, from where and how it ended', async (t) => {
  const api = await startApi(t, options);
  const headers = { ...ada, 'X-Request-Id': 'request-17' };
  assert.equal((await api.call('PUT', '/v1/drives/more', undefined, headers)).status, 200);
  const [row] = await rows(api, ada);
  const { id: _, at, endedAt, ...rest } = row;
  assert.deepEqual(rest, {
    ...{ tenant: 'ada', action: 'drive.create', target: 'more' },
    ...{ actor: 'configured-2', actorName: 'SLUICE_KEYS 2', via: 'key', address: '127.0.0.1' },
    ...{ requestId: 'request-17', outcome: 'done', status: 200, details: {} },
  });
  assert.ok(Date.parse(at) <= Date.parse(endedAt));
});

test('what is refused or fails says so; what is not even allowed, or only read, has no row', async (t) => {
  const api = await startApi(t, options);
  await api.call('DELETE', '/v1/drives/nothing', undefined, ada);
  assert.deepEqual(
    (await rows(api, ada)).map(({ outcome, status }) => [outcome, status]),
    [['refused', 404]],
  );
  await api.call('PUT', '/v1/drives/x');
  await api.call('POST', '/v1/nodes', { nonsense: true }, ada);
  await api.call('GET', '/v1/drives', undefined, ada);
  await api.send('/v1/files/main/a', Buffer.from('bytes are not audited'), ada);
  assert.equal((await rows(api, ada)).length, 1);
});

test('a tenant sees its own rows, the installation all of them, in pages, by action and by actor', async (t) => {
  const api = await startApi(t, options);
  for (const name of ['a', 'b', 'c']) await api.call('PUT', `/v1/drives/${name}`, undefined, ada);
  await api.call('PUT', '/v1/drives/a', undefined, bob);
  await api.call('POST', '/v1/keys', { name: 'k', role: 'viewer', tenant: 'bob' }, root);
  await api.call('POST', '/v1/keys', { name: 'k', role: 'viewer', tenant: '*' }, root);
  const targets = async (who: Who, query = ''): Promise<string[]> =>
    (await rows(api, who, query)).map(({ action, target }) => `${action} ${target}`);
  assert.deepEqual(await targets(ada), ['drive.create c', 'drive.create b', 'drive.create a']);
  assert.deepEqual(
    await targets(bob),
    ['key.create ', 'drive.create a'],
    'what was done to a tenant is its own',
  );
  assert.deepEqual(await targets(ada, '?tenant=bob'), await targets(ada), 'the tenant is not a wish');
  assert.equal((await rows(api, root)).length, 6);
  assert.deepEqual(await targets(root, '?tenant=bob'), await targets(bob));
  assert.equal((await rows(api, root, '?action=key.create')).length, 2);
  assert.equal((await rows(api, root, '?actor=configured-2&action=drive.create')).length, 3);
  const first = (await api.call('GET', '/v1/audit?limit=4', undefined, root)).body;
  const second = (await api.call('GET', `/v1/audit?limit=4&after=${first.next}`, undefined, root)).body;
  assert.deepEqual([first.items.length, second.items.length, second.next], [4, 2, null]);
  assert.equal(new Set([...first.items, ...second.items].map(({ id }) => id)).size, 6);
  for (const query of ['after=x', 'after=-1', 'limit=0', 'action=%00', 'actor=a&actor=b'])
    assert.equal((await api.call('GET', `/v1/audit?${query}`, undefined, root)).status, 400, query);
});

test('rows hold no payload and no secret, and are short whatever a request holds', async (t) => {
  const api = await startApi(t, options);
  const canary = 'CANARY-4711';
  const made = await api.call('POST', '/v1/keys', { name: 'n', role: 'viewer', tenant: 'ada' }, root);
  await api.call('POST', '/v1/tokens', { drive: 'main', path: canary }, ada);
  await api.call('POST', '/v1/nodes', { drive: 'main', path: `${canary}/folder` }, ada);
  await api.call('DELETE', `/v1/drives/${'x'.repeat(5_000)}`, undefined, ada);
  await api.call('DELETE', '/v1/drives/%00%ED%9F%BF%7F', undefined, ada);
  const all = await rows(api, root);
  assert.equal(all.length, 5);
  const text = JSON.stringify(all);
  assert.ok(!text.includes(canary) && !text.includes((made.body.key as string).slice(-43)));
  for (const row of all) assert.ok(JSON.stringify(row).length < 2_000);
});

test('without the row there is no change', async (t) => {
  const api = await startApi(t, options);
  t.mock.method(api.records.audit, 'begin', async () => {
    throw Object.assign(new Error('the audit log is away'), { code: 'AWAY' });
  });
  assert.equal((await api.call('PUT', '/v1/drives/unseen', undefined, ada)).status, 500);
  assert.equal(await api.records.drives.get('ada', 'unseen'), undefined);
});

test('a process that dies between the change and its completion leaves a row without an outcome', async (t) => {
  const api = await startApi(t, options);
  t.after(() => armFailPoints(undefined));
  // As if the process had ended there: nothing after this point happens.
  armFailPoints((name) => (name === 'audit.changed' ? 'throw' : undefined));
  await api.call('PUT', '/v1/drives/orphan', undefined, ada);
  armFailPoints(undefined);
  const [row] = await rows(api, ada);
  assert.deepEqual([row.action, row.target, row.outcome, row.status], ['drive.create', 'orphan', null, null]);
  assert.equal((await api.records.drives.get('ada', 'orphan'))?.name, 'orphan', 'the change has happened');
  // And one that dies before the change leaves the same: nobody can know.
  armFailPoints((name) => (name === 'audit.begun' ? 'throw' : undefined));
  await api.call('PUT', '/v1/drives/never', undefined, ada);
  armFailPoints(undefined);
  const [before] = await rows(api, ada);
  assert.deepEqual([before.target, before.outcome], ['never', null]);
  assert.equal(await api.records.drives.get('ada', 'never'), undefined);
});

test('a row that cannot be completed does not make a change that happened look failed', async (t) => {
  const api = await startApi(t, options);
  t.mock.method(api.records.audit, 'complete', async () => {
    throw new Error('the audit log is away');
  });
  assert.equal((await api.call('PUT', '/v1/drives/there', undefined, ada)).status, 200);
  assert.equal((await rows(api, ada))[0].outcome, null);
});

test('rows end when their time is over', async (t) => {
  const api = await startApi(t, options);
  await api.call('PUT', '/v1/drives/old', undefined, ada);
  assert.equal(await api.records.audit.prune(86_400_000), 0);
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(await api.records.audit.prune(0), 1);
  assert.deepEqual(await rows(api, root), []);
});
