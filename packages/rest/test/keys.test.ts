// Keys over HTTP: the first one, those of tenants, rotation, revocation, and what nobody may do with them.
import assert from 'node:assert/strict';
import { after, test, type TestContext } from 'node:test';
import { Access, KeyRing, type Role } from '@sluice/access';
import { startApi, stopServers, type Answer, type Api } from './harness.js';

after(stopServers);

type Who = Record<string, string>;

function as(key: string): Who {
  return { Authorization: `Bearer ${key}` };
}

function outcome({ status, body }: Answer): unknown[] {
  return [status, body.error?.code];
}

/** A server whose first key has just been made. */
async function closedApi(t: TestContext): Promise<{ api: Api; root: Who; rootId: string }> {
  const api = await startApi(t);
  const first = await api.call('POST', '/v1/keys', { name: 'root', tenant: '*', role: 'admin' });
  assert.equal(first.status, 201, JSON.stringify(first.body));
  return { api, root: as(first.body.key as string), rootId: first.body.id as string };
}

async function made(api: Api, who: Who, tenant: string, role: Role): Promise<{ id: string; who: Who }> {
  const { status, body } = await api.call(
    'POST',
    '/v1/keys',
    { name: `${tenant} ${role}`, tenant, role },
    who,
  );
  assert.equal(status, 201, JSON.stringify(body));
  return { id: body.id as string, who: as(body.key as string) };
}

test('the first key must be an admin of the installation; from then on nobody gets in without a key', async (t) => {
  const api = await startApi(t);
  for (const key of [
    { tenant: 'acme', role: 'admin' },
    { tenant: '*', role: 'operator' },
  ]) {
    const refused = await api.call('POST', '/v1/keys', { name: 'first', ...key });
    assert.deepEqual(outcome(refused), [400, 'FIRST_KEY']);
  }
  assert.equal((await api.call('GET', '/v1/drives')).status, 200);
  const first = await api.call('POST', '/v1/keys', { name: 'root', tenant: '*', role: 'admin' });
  assert.match(first.body.key as string, /^slk_[0-9a-f]{16}_[\w-]{43}$/);
  assert.equal(first.headers.get('cache-control'), 'no-store');
  assert.equal((await api.call('GET', '/v1/drives')).status, 401);
  assert.equal((await api.call('GET', '/v1/drives', undefined, as(first.body.key))).status, 200);
});

test('the text of a key is nowhere but in the answer that made it', async (t) => {
  const { api, root } = await closedApi(t);
  const { who } = await made(api, root, 'acme', 'operator');
  const text = who['Authorization']!.slice('Bearer '.length);
  const secret = text.split('_').slice(2).join('_');
  for (const path of ['/v1/keys', '/v1/audit']) {
    const { status, body } = await api.call('GET', path, undefined, root);
    assert.equal(status, 200);
    const shown = JSON.stringify(body);
    assert.ok(!shown.includes(secret) && !/digest/i.test(shown), path);
  }
});

test('a key does what its role and its tenant allow, and a new tenant has its first drive', async (t) => {
  const { api, root } = await closedApi(t);
  const viewer = await made(api, root, 'acme', 'viewer');
  const operator = await made(api, root, 'acme', 'operator');
  const put = (who: Who) => api.send('/v1/files/main/a.txt', Buffer.from('a'), who);
  assert.equal((await put(viewer.who)).status, 403);
  assert.equal((await put(operator.who)).status, 201);
  assert.equal((await api.call('GET', '/v1/files/main/a.txt', undefined, viewer.who)).status, 200);
  assert.equal((await api.call('PUT', '/v1/drives/more', undefined, operator.who)).status, 403);
  // A key of the installation reaches it by naming the tenant.
  assert.equal((await api.call('GET', '/v1/files/main/a.txt', undefined, root)).status, 404);
  const there = { ...root, 'X-Sluice-Tenant': 'acme' };
  assert.equal((await api.call('GET', '/v1/files/main/a.txt', undefined, there)).status, 200);
});

test('an admin of a tenant manages the keys of that tenant, and those of others do not exist', async (t) => {
  const { api, root, rootId } = await closedApi(t);
  const acme = await made(api, root, 'acme', 'admin');
  const beta = await made(api, root, 'beta', 'admin');
  const own = await made(api, acme.who, 'acme', 'operator');
  const implied = await api.call('POST', '/v1/keys', { name: 'no tenant', role: 'viewer' }, acme.who);
  assert.deepEqual([implied.status, implied.body.tenant], [201, 'acme']);
  for (const tenant of ['beta', '*', 'default', '']) {
    const refused = await api.call('POST', '/v1/keys', { name: 'x', role: 'viewer', tenant }, acme.who);
    assert.deepEqual(outcome(refused), [403, 'FORBIDDEN'], tenant);
  }
  for (const id of [beta.id, rootId, '0'.repeat(16), 'configured-1', '%00', "';--"]) {
    const revoked = await api.call('DELETE', `/v1/keys/${id}`, undefined, acme.who);
    assert.deepEqual(outcome(revoked), [404, 'KEY_NOT_FOUND'], id);
    const rotated = await api.call('POST', `/v1/keys/${id}/rotate`, {}, acme.who);
    assert.deepEqual(outcome(rotated), [404, 'KEY_NOT_FOUND'], id);
  }
  const list = async (who: Who, query = ''): Promise<string[]> =>
    (await api.call('GET', `/v1/keys${query}`, undefined, who)).body.items.map(
      (key: { id: string }) => key.id,
    );
  assert.deepEqual(new Set(await list(acme.who)), new Set([acme.id, own.id, implied.body.id]));
  assert.deepEqual(await list(acme.who, '?tenant=beta'), await list(acme.who));
  assert.deepEqual(await list(root, '?tenant=beta'), [beta.id]);
  assert.equal((await list(root)).length, 5);
  const [page] = [await api.call('GET', '/v1/keys?limit=2', undefined, root)];
  const rest = await api.call('GET', `/v1/keys?limit=1000&cursor=${page.body.next}`, undefined, root);
  assert.deepEqual([page.body.items.length, rest.body.items.length, rest.body.next], [2, 3, null]);
  for (const { who } of [own]) assert.equal((await api.call('GET', '/v1/keys', undefined, who)).status, 403);
  // Nobody says by chance that a key is for everything.
  const unsaid = await api.call('POST', '/v1/keys', { name: 'x', role: 'viewer' }, root);
  assert.deepEqual(outcome(unsaid), [400, 'REQUEST_INVALID']);
});

test('a revoked key is refused at once where it was revoked, and elsewhere when that process looks again', async (t) => {
  const { api, root } = await closedApi(t);
  const elsewhere = new KeyRing({ keys: api.records.keys });
  await elsewhere.start();
  t.after(() => elsewhere.stop());
  const access = new Access({ keys: [], ring: elsewhere, secret: 'another process' });
  const { id, who } = await made(api, root, 'acme', 'operator');
  const headers = { authorization: who['Authorization']! };
  await elsewhere.changed();
  assert.equal((await access.identify(headers)).key!.id, id);
  const token = await api.call('POST', '/v1/tokens', { drive: 'main' }, who);
  const file = await api.send('/v1/files/main/linked.txt', Buffer.from('linked'), who);
  const link = await api.call('POST', '/v1/links', { nodeId: file.body.nodeId }, who);
  assert.equal((await api.call('GET', link.body.url as string)).status, 200);
  const upload = (): Promise<Answer> =>
    api.send('/v1/files/main/by-token', Buffer.from('x'), as(token.body.token as string));
  assert.equal((await upload()).status, 201);
  const revoked = await api.call('DELETE', `/v1/keys/${id}`, undefined, root);
  assert.ok(Date.parse(revoked.body.revokedAt as string) <= Date.now() + 60_000);
  assert.equal((await api.call('GET', '/v1/drives', undefined, who)).status, 401);
  // What it had made ends with it.
  assert.deepEqual(outcome(await upload()), [401, 'TOKEN_INVALID']);
  assert.equal((await api.call('GET', link.body.url as string)).status, 401);
  await elsewhere.changed();
  await assert.rejects(async () => access.identify(headers));
  assert.equal((await api.call('DELETE', `/v1/keys/${id}`, undefined, root)).status, 200, 'again');
  assert.deepEqual(outcome(await api.call('POST', `/v1/keys/${id}/rotate`, {}, root)), [409, 'KEY_ENDED']);
});

test('during a rotation both texts are good, then only the new one', async (t) => {
  const { api, root } = await closedApi(t);
  const { id, who } = await made(api, root, 'acme', 'viewer');
  const see = async (each: Who): Promise<number> =>
    (await api.call('GET', '/v1/drives', undefined, each)).status;
  const first = await api.call('POST', `/v1/keys/${id}/rotate`, { graceS: 3_600 }, root);
  const second = as(first.body.key as string);
  assert.ok(Date.parse(first.body.oldUntil as string) > Date.now() + 3_000_000);
  assert.deepEqual([await see(who), await see(second)], [200, 200]);
  // There are two at most: the next rotation ends the first text.
  const third = as((await api.call('POST', `/v1/keys/${id}/rotate`, undefined, root)).body.key as string);
  assert.deepEqual([await see(who), await see(second), await see(third)], [401, 200, 200]);
  const last = as((await api.call('POST', `/v1/keys/${id}/rotate`, { graceS: 0 }, root)).body.key as string);
  assert.deepEqual([await see(second), await see(third), await see(last)], [401, 401, 200]);
});

test('the last admin of the installation stays, also when two are revoked at once', async (t) => {
  const { api, root, rootId } = await closedApi(t);
  assert.deepEqual(outcome(await api.call('DELETE', `/v1/keys/${rootId}`, undefined, root)), [
    409,
    'LAST_ADMIN',
  ]);
  const other = await made(api, root, '*', 'admin');
  const both = await Promise.all(
    [rootId, other.id].map((id) =>
      api.records.keys.revoke({ id, configuredAdmin: false }).then(
        () => 'revoked',
        (error: { code: string }) => error.code,
      ),
    ),
  );
  assert.deepEqual(both.sort(), ['LAST_ADMIN', 'revoked']);
});

test('when all keys have ended the door stays shut', async (t) => {
  const api = await startApi(t);
  const body = { name: 'short', tenant: '*', role: 'admin', expiresInS: 1 };
  const { key } = (await api.call('POST', '/v1/keys', body)).body as { key: string };
  const until = Date.now() + 20_000;
  while ((await api.call('GET', '/v1/drives', undefined, as(key))).status !== 401) {
    assert.ok(Date.now() < until, 'it has expired');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal((await api.call('GET', '/v1/drives')).status, 401);
  const anew = await api.call('POST', '/v1/keys', { name: 'again', tenant: '*', role: 'admin' });
  assert.equal(anew.status, 401);
});

test('bad bodies of keys are refused, and no key is made', async (t) => {
  const { api, root } = await closedApi(t);
  const right = { name: 'a', role: 'viewer', tenant: 'acme' };
  for (const wrong of [
    { name: '' },
    { name: 'x'.repeat(101) },
    { name: 'nul\u0000' },
    { role: 'root' },
    { role: ['admin'] },
    { tenant: 'a b' },
    { tenant: '../x' },
    { tenant: '**' },
    { expiresInS: 0 },
    { expiresInS: -1 },
    { expiresInS: 1e12 },
    { id: '0'.repeat(16) },
    { digest: 'x' },
    { installation: true },
    { createdBy: 'somebody' },
  ]) {
    const { status } = await api.call('POST', '/v1/keys', { ...right, ...wrong }, root);
    assert.equal(status, 400, JSON.stringify(wrong));
  }
  for (const query of ['limit=0', 'limit=x', 'limit=1001', 'cursor=x', 'tenant=%00', 'limit=1&limit=2'])
    assert.equal((await api.call('GET', `/v1/keys?${query}`, undefined, root)).status, 400, query);
  assert.equal((await api.call('GET', '/v1/keys', undefined, root)).body.items.length, 1);
});
