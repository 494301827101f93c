// Browsers: signing in with a key, acting with the cookie, and pages of others that would like to.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { raw, startApi, stopServers, type Answer, type Api } from './harness.js';

const key = 'acme-operator-0123456789';
let api: Api;

before(async () => {
  api = await startApi('file', {
    tenants: ['acme'],
    access: { keys: [{ tenant: 'acme', role: 'operator', key }] },
  });
});

after(stopServers);

interface Browser {
  cookie: string;
  csrf: string;
  /** What a page of ours sends with a change. */
  ours: Record<string, string>;
}

async function signIn(
  on: Api = api,
  headers: Record<string, string> = {},
): Promise<Browser & { answer: Answer }> {
  const answer = await on.call('POST', '/v1/session', { key }, headers);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const cookie = answer.headers.get('set-cookie')!.split(';')[0]!;
  const csrf = answer.body.csrf as string;
  return { answer, cookie, csrf, ours: { cookie, 'X-Sluice-CSRF': csrf, 'Sec-Fetch-Site': 'same-origin' } };
}

function outcome({ status, body }: Answer): unknown[] {
  return [status, body.error?.code];
}

test('a key is exchanged for a cookie that scripts cannot read and other sites cannot send', async () => {
  const { answer, cookie, csrf } = await signIn();
  const set = answer.headers.get('set-cookie')!;
  assert.match(set, /^sluice_session=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/);
  assert.ok(!set.includes(key) && !JSON.stringify(answer.body).includes(key));
  const me = await api.call('GET', '/v1/session', undefined, { cookie });
  assert.deepEqual(
    [me.body.tenant, me.body.role, me.body.via, me.body.installation, me.body.csrf],
    ['acme', 'operator', 'session', false, csrf],
  );
  assert.equal(me.headers.get('cache-control'), 'no-store');
  assert.equal((await api.call('GET', '/v1/drives', undefined, { cookie })).status, 200);
});

test('the cookie is for TLS only where the browser talks TLS', async (t) => {
  const access = { keys: [{ tenant: 'acme', key }] };
  const behind = await startApi(t, { access, rest: { trustProxy: true } });
  const secure = await signIn(behind, { 'X-Forwarded-Proto': 'https' });
  assert.match(secure.answer.headers.get('set-cookie')!, /; Secure$/);
  assert.doesNotMatch((await signIn(behind)).answer.headers.get('set-cookie')!, /Secure/);
  const named = await startApi(t, { access, rest: { publicUrl: 'https://files.example.com' } });
  assert.match((await signIn(named)).answer.headers.get('set-cookie')!, /; Secure$/);
  // Nobody is believed who is not trusted.
  assert.doesNotMatch(
    (await signIn(api, { 'X-Forwarded-Proto': 'https' })).answer.headers.get('set-cookie')!,
    /Secure/,
  );
});

test('a wrong key signs nobody in', async () => {
  for (const wrong of ['x', `${key}x`, key.toUpperCase(), 'slt_e30.AAAA']) {
    const answer = await api.call('POST', '/v1/session', { key: wrong });
    assert.deepEqual(outcome(answer), [401, 'UNAUTHENTICATED'], wrong);
    assert.equal(answer.headers.get('set-cookie'), null);
  }
  for (const body of [{}, { key: '' }, { key: 1 }, { key: 'x'.repeat(2_000) }, { key, more: 1 }, []])
    assert.equal((await api.call('POST', '/v1/session', body)).status, 400, JSON.stringify(body));
});

test('a change with a cookie needs the token of the page and an origin that is ours', async () => {
  const { cookie, csrf, ours } = await signIn();
  const other = await signIn();
  const make = async (headers: Record<string, string>): Promise<unknown[]> =>
    outcome(await api.call('POST', '/v1/nodes', { drive: 'main', name: `folder-${Math.random()}` }, headers));
  const host = new URL(api.url).host;
  assert.deepEqual(await make(ours), [201, undefined]);
  // Without Sec-Fetch-Site, which browsers leave away on plain HTTP.
  assert.deepEqual(await make({ cookie, 'X-Sluice-CSRF': csrf, Origin: `http://${host}` }), [201, undefined]);
  const refused: Record<string, string>[] = [
    { cookie },
    { cookie, 'Sec-Fetch-Site': 'same-origin' },
    { cookie, 'X-Sluice-CSRF': csrf },
    { ...ours, 'X-Sluice-CSRF': '' },
    { ...ours, 'X-Sluice-CSRF': other.csrf },
    { ...ours, 'X-Sluice-CSRF': `${csrf}x` },
    ...['cross-site', 'same-site', 'none', ''].map((site) => ({ ...ours, 'Sec-Fetch-Site': site })),
    ...[
      'https://evil.example',
      'null',
      `http://evil.${host}`,
      `http://${host}.evil.example`,
      'http://127.0.0.1:1',
    ].map((Origin) => ({ cookie, 'X-Sluice-CSRF': csrf, Origin })),
  ];
  for (const headers of refused)
    assert.deepEqual(await make(headers), [403, 'CSRF_REFUSED'], JSON.stringify(headers));
  // A key is no cookie: nobody but its holder sends it.
  assert.deepEqual(await make({ Authorization: `Bearer ${key}`, 'Sec-Fetch-Site': 'cross-site' }), [
    201,
    undefined,
  ]);
});

test('bytes that a page of somebody else sends with the cookie are refused before they are read', async () => {
  const { cookie } = await signIn();
  const { status, text } = await raw(api.url, '/v1/files/main/forged.txt', {
    method: 'PUT',
    headers: {
      cookie,
      'Content-Length': '5',
      Origin: 'https://evil.example',
      'Sec-Fetch-Site': 'cross-site',
    },
    body: Buffer.from('12345'),
  });
  assert.deepEqual([status, JSON.parse(text).error.code], [403, 'CSRF_REFUSED']);
  assert.equal((await api.call('GET', '/v1/files/main/forged.txt', undefined, { cookie })).status, 404);
});

test('a page of somebody else cannot sign a visitor in', async () => {
  const answer = await api.call('POST', '/v1/session', { key }, { 'Sec-Fetch-Site': 'cross-site' });
  assert.deepEqual(outcome(answer), [403, 'CSRF_REFUSED']);
});

test('whoever signs out is out, with every copy of the cookie; the other sessions of the key go on', async () => {
  const [mine, other] = [await signIn(), await signIn()];
  assert.equal((await api.call('DELETE', '/v1/session', undefined, { cookie: mine.cookie })).status, 403);
  const out = await api.call('DELETE', '/v1/session', undefined, mine.ours);
  assert.deepEqual([out.status, out.body.ended], [200, true]);
  assert.match(out.headers.get('set-cookie')!, /^sluice_session=; .*Max-Age=0/);
  const again = await api.call('GET', '/v1/session', undefined, { cookie: mine.cookie });
  assert.deepEqual(outcome(again), [401, 'SESSION_ENDED']);
  assert.match(again.headers.get('set-cookie')!, /Max-Age=0/, 'the browser forgets it');
  assert.equal((await api.call('GET', '/v1/session', undefined, { cookie: other.cookie })).status, 200);
});

test('a cookie that was changed, or that another server signed, is nobody', async (t) => {
  const { cookie } = await signIn();
  const [name, text] = cookie.split('=') as [string, string];
  const [body, signature] = text.split('.') as [string, string];
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
  const forged = (change: object): string =>
    `${Buffer.from(JSON.stringify({ ...claims, ...change })).toString('base64url')}.${signature}`;
  const stranger = await startApi(t, {
    access: { keys: [{ tenant: 'acme', role: 'admin', key }], secret: 'another secret' },
  });
  const foreign = (await signIn(stranger)).cookie.split('=')[1]!;
  for (const bad of [
    forged({ expires: 9_999_999_999 }),
    forged({ key: 'configured-2' }),
    `${body}.`,
    body,
    `${text}x`,
    '.',
    '',
    foreign,
  ]) {
    const answer = await api.call('GET', '/v1/session', undefined, { cookie: `${name}=${bad}` });
    assert.equal(answer.status, 401, bad);
  }
  const beside = await api.call('GET', '/v1/session', undefined, { cookie: `a=1; ${cookie}; b=2` });
  assert.equal(beside.status, 200);
  // A key that is shown counts, not the cookie beside it.
  const both = await api.call('GET', '/v1/session', undefined, { cookie, 'X-Sluice-Key': 'wrong' });
  assert.equal(both.status, 401);
});
