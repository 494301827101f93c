// Who may do what: keys, tokens, links, quotas, and pages in browsers.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Access, type Principal } from '@sluice/access';
import { routes } from '../src/index.js';
import {
  bytesOf,
  completed,
  converse,
  mebibyte,
  raw,
  sha256,
  startApi,
  stopServers,
  type Answer,
  type Api,
} from './harness.js';

const adaKey = 'ada-key-0123456789';
const adaNewKey = 'ada-new-key-that-is-longer-0123456789';
const bobKey = 'bob-key-0123456789';
const ada = { Authorization: `Bearer ${adaKey}` };
const bob = { Authorization: `Bearer ${bobKey}` };
const secret = 'the secret of the tests';
const page = 'https://app.example.com';

const maker: Principal = { tenant: 'ada', installation: false, role: 'operator', via: 'key', rules: {} };

let api: Api;

before(async () => {
  api = await startApi('file', {
    settings: { preferredPartBytes: mebibyte, wholeBytes: mebibyte },
    tenants: ['ada', 'bob', 'tight', 'unsure'],
    access: {
      secret,
      keys: [
        { tenant: 'ada', key: adaKey },
        { tenant: 'ada', key: adaNewKey },
        { tenant: 'bob', key: bobKey },
        { tenant: 'tight', key: 'tight-key' },
        { tenant: 'unsure', key: 'unsure-key' },
      ],
      rules: {
        unsure: { maxBytes: 1_000, maxFileBytes: 600 },
        tight: { maxBytes: 1_000, maxOpenUploads: 2, maxFileBytes: 600, types: ['image/*', 'Text/Plain'] },
      },
    },
    rest: { origins: [page] },
  });
});

after(stopServers);

function code({ body }: Answer): string {
  return body.error?.code;
}

/** Everything of ada's that others could be after. */
async function adasWorld() {
  await api.call('PUT', '/v1/drives/private', undefined, ada);
  const file = await api.send('/v1/files/private/docs/a.txt', Buffer.from('secret of ada'), ada);
  const upload = await api.call(
    'POST',
    '/v1/uploads',
    { drive: 'private', path: 'docs/open.bin', size: 10, chunkSize: 5 },
    ada,
  );
  assert.deepEqual([file.status < 300, upload.status], [true, 201]);
  return { node: file.body.nodeId as string, upload: upload.body.id as string };
}

async function pictureOf(world: { node: string; upload: string }): Promise<unknown> {
  const paths = [
    '/v1/drives',
    '/v1/nodes?drive=private',
    `/v1/nodes/${world.node}`,
    '/v1/files/private/docs/a.txt',
    `/v1/uploads/${world.upload}`,
  ];
  const answers = await Promise.all(paths.map((path) => api.call('GET', path, undefined, ada)));
  return answers.map(({ status, body }) => [status, body]);
}

interface Attempt {
  route: string;
  method: string;
  path: string;
  body?: unknown;
  /** Bytes instead of JSON. */
  bytes?: Buffer;
  headers?: Record<string, string>;
}

/** Routes that have to do with somebody's files. */
const ofFiles = /^\/v1\/(uploads|files|nodes|drives|links|tokens)/;

/** One request for each of them, aimed at ada's things. (roles.test.ts tries every route of the table as everybody.) */
function attempts({ node, upload }: { node: string; upload: string }): Attempt[] {
  const bodies: Record<string, unknown> = {
    'POST /v1/uploads': { drive: 'private', path: 'docs/new.bin', size: 1 },
    'POST /v1/uploads/:id/complete': { size: 10 },
    'POST /v1/nodes': { drive: 'private', name: 'folder' },
    'PATCH /v1/nodes/:id': { name: 'stolen.txt' },
    'POST /v1/links': { nodeId: node },
    'POST /v1/tokens': { drive: 'private' },
  };
  const headers: Record<string, Record<string, string>> = {
    'PUT /v1/uploads/:id/bytes': { 'Content-Range': 'bytes 0-4/10' },
  };
  return routes
    .filter(({ url }) => ofFiles.test(url))
    .map((each) => {
      const route = `${each.method} ${each.url}`;
      const path = each.url
        .replace('/v1/uploads/:id', `/v1/uploads/${upload}`)
        .replace('/v1/nodes/:id', `/v1/nodes/${node}`)
        .replace(':number', '0')
        .replace(':name', 'private')
        .replace(':drive/*', 'private/docs/a.txt')
        .replace(/^\/v1\/nodes$/, each.method === 'GET' ? '/v1/nodes?drive=private' : '/v1/nodes');
      assert.ok(!path.includes(':') && !path.includes('*'), `no attempt for ${route}`);
      assert.equal(route in bodies, each.body !== undefined, `no body for ${route}`);
      return {
        route,
        method: each.method,
        path,
        ...(route in bodies && { body: bodies[route] }),
        ...(each.raw && { bytes: Buffer.from('12345') }),
        ...(headers[route] && { headers: headers[route] }),
      };
    });
}

async function attempt(each: Attempt, who: Record<string, string>): Promise<Answer> {
  const headers = { ...each.headers, ...who };
  return each.bytes
    ? api.send(each.path, each.bytes, headers)
    : api.call(each.method, each.path, each.body, headers);
}

test('every route refuses whoever has no key, or a wrong one of any length, and nothing changes', async () => {
  const world = await adasWorld();
  const picture = await pictureOf(world);
  const strangers: Record<string, string>[] = [
    {},
    { Authorization: `Bearer ${adaKey.slice(0, -1)}x` },
    { Authorization: 'Bearer x' },
    { Authorization: `Bearer ${adaKey}${adaKey}` },
    { Authorization: `Basic ${Buffer.from(`ada:${adaKey}`).toString('base64')}` },
    { 'X-Sluice-Key': adaKey.toUpperCase() },
    { 'X-Sluice-Key': '' },
    { Authorization: 'Bearer slt_e30.AAAA' },
  ];
  for (const each of attempts(world))
    for (const who of strangers) {
      const answer = await attempt(each, who);
      assert.equal(answer.status, 401, `${each.route} as ${JSON.stringify(who)}`);
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    }
  assert.deepEqual(await pictureOf(world), picture);
});

test("no route lets a tenant see, guess, read, move, cancel or list another tenant's things", async () => {
  const world = await adasWorld();
  const picture = await pictureOf(world);
  // In these, the name means the asker's own drive.
  const own = new Set([
    'GET /v1/drives',
    'PUT /v1/drives/:name',
    'POST /v1/tokens',
    'GET /v1/drives/:name',
    'DELETE /v1/drives/:name',
  ]);
  for (const each of attempts(world)) {
    if (own.has(each.route)) continue;
    const answer = await attempt(each, bob);
    assert.equal(answer.status, 404, `${each.route}: ${JSON.stringify(answer.body)}`);
  }
  assert.equal((await api.call('GET', '/v1/drives/private', undefined, bob)).status, 404);
  assert.equal((await api.call('DELETE', '/v1/drives/private', undefined, bob)).status, 404);
  const { body } = await api.call('GET', '/v1/drives', undefined, bob);
  assert.deepEqual(
    body.drives.map(({ name }: { name: string }) => name),
    ['main'],
  );
  assert.deepEqual(await pictureOf(world), picture);
  // A drive of the same name is another drive.
  await api.call('PUT', '/v1/drives/private', undefined, bob);
  assert.deepEqual((await api.call('GET', '/v1/nodes?drive=private', undefined, bob)).body.nodes, []);
  assert.equal((await api.call('GET', '/v1/files/private/docs/a.txt', undefined, bob)).status, 404);
  const mine = await api.call('POST', '/v1/nodes', { drive: 'private', name: 'f' }, bob);
  const into = { parentId: mine.body.id };
  assert.equal((await api.call('PATCH', `/v1/nodes/${world.node}`, into, bob)).status, 404);
  const theirs = (await api.call('GET', '/v1/nodes?drive=private', undefined, ada)).body.nodes[0].id;
  assert.equal((await api.call('PATCH', `/v1/nodes/${mine.body.id}`, { parentId: theirs }, bob)).status, 404);
  assert.equal(
    (await api.call('GET', `/v1/nodes?drive=private&parent=${theirs}`, undefined, bob)).status,
    404,
  );
  const place = { drive: 'private', parentId: theirs, name: 'x' };
  assert.equal((await api.call('POST', '/v1/nodes', place, bob)).status, 404);
  assert.deepEqual(await pictureOf(world), picture);
});

test('an idempotency key belongs to its tenant', async () => {
  const once = { 'Idempotency-Key': 'shared-by-chance' };
  const upload = { drive: 'main', path: 'idem', size: 3 };
  const first = await api.call('POST', '/v1/uploads', upload, { ...ada, ...once });
  const second = await api.call('POST', '/v1/uploads', upload, { ...bob, ...once });
  assert.deepEqual([first.status, second.status], [201, 201]);
  assert.notEqual(first.body.id, second.body.id);
});

test('two keys of a tenant are both valid, in either header, so that they can be changed without an outage', async () => {
  const { body } = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'rotate', size: 3 }, ada);
  const ways: Record<string, string>[] = [
    { Authorization: `Bearer ${adaNewKey}` },
    { Authorization: `bearer ${adaKey}` },
    { 'X-Sluice-Key': adaNewKey },
  ];
  for (const headers of ways)
    assert.equal((await api.call('GET', `/v1/uploads/${body.id}`, undefined, headers)).status, 200);
});

async function tokenFor(scope: object, who = ada): Promise<Record<string, string>> {
  const { status, body } = await api.call('POST', '/v1/tokens', scope, who);
  assert.equal(status, 201, JSON.stringify(body));
  assert.ok(Date.parse(body.expiresAt) > Date.now());
  return { Authorization: `Bearer ${body.token}` };
}

test('a token uploads below its folder and nowhere else', async () => {
  const token = await tokenFor({ drive: 'main', pathPrefix: 'docs' });
  const begin = async (path: string, drive = 'main'): Promise<number> =>
    (await api.call('POST', '/v1/uploads', { drive, path, size: 3 }, token)).status;
  assert.equal(await begin('docs/a'), 201);
  assert.equal(await begin('docs/deep/er/a'), 201);
  for (const path of ['docs2/a', 'docs', 'doc/a', 'a', 'Docs/a', 'other/docs/a'])
    assert.equal(await begin(path), 403, path);
  for (const path of ['docs/../a', 'docs/./a', 'docs//a', '/docs/a', 'docs/'])
    assert.equal(await begin(path), 400, path);
  assert.equal(await begin('docs/a', 'private'), 403);
  const put = (path: string) =>
    raw(api.url, path, {
      method: 'PUT',
      body: Buffer.from('abc'),
      headers: { ...token, 'Content-Length': '3' },
    });
  assert.equal((await put('/v1/files/main/docs/whole')).status, 201);
  assert.equal((await put('/v1/files/main/docs2/whole')).status, 403);
  assert.equal((await put('/v1/files/main/%64ocs/spelt')).status, 201);
  for (const path of ['docs/../x', 'docs/%2e%2e/x', 'docs%2Fx', 'docs/..%2Fx', 'docs//x'])
    assert.equal((await put(`/v1/files/main/${path}`)).status, 400, path);
});

test('a prefix with and without a slash, and in either spelling of Unicode, means the same folder', async () => {
  for (const pathPrefix of ['folder', 'folder/']) {
    const token = await tokenFor({ drive: 'main', pathPrefix });
    const begin = (path: string) => api.call('POST', '/v1/uploads', { drive: 'main', path, size: 1 }, token);
    assert.equal((await begin('folder/x')).status, 201);
    assert.equal((await begin('folder2/x')).status, 403);
  }
  const token = await tokenFor({ drive: 'main', path: 'cafe\u0301.txt' });
  for (const path of ['cafe\u0301.txt', 'caf\u00e9.txt']) {
    const { status, body } = await api.call('POST', '/v1/uploads', { drive: 'main', path, size: 1 }, token);
    assert.equal(status, 201);
    assert.equal((await api.call('GET', `/v1/uploads/${body.id}`, undefined, token)).status, 200);
  }
});

test('a token for one path, a size and a type holds its holder to them', async () => {
  const token = await tokenFor({
    drive: 'main',
    path: 'photo.png',
    maxBytes: 100,
    types: ['image/png', 'audio/*'],
  });
  const begin = (more: object) =>
    api.call(
      'POST',
      '/v1/uploads',
      { drive: 'main', path: 'photo.png', size: 100, contentType: 'image/png', ...more },
      token,
    );
  assert.equal((await begin({})).status, 201);
  assert.equal((await begin({ contentType: 'audio/ogg; codecs=opus' })).status, 201);
  assert.equal((await begin({ contentType: 'IMAGE/PNG' })).status, 201);
  assert.deepEqual(await begin({ size: 101 }).then((a) => [a.status, code(a)]), [413, 'FILE_TOO_LARGE']);
  for (const contentType of ['image/pngx', 'text/html', 'audio', 'image/jpeg'])
    assert.deepEqual(
      await begin({ contentType }).then((a) => [a.status, code(a)]),
      [415, 'TYPE_REFUSED'],
      contentType,
    );
  const untyped = { drive: 'main', path: 'photo.png', size: 1 };
  assert.equal((await api.call('POST', '/v1/uploads', untyped, token)).status, 415);
  assert.equal((await begin({ path: 'photo.png.exe' })).status, 403);
  const typed = { ...token, 'Content-Type': 'image/png' };
  assert.equal((await api.send('/v1/files/main/photo.png', bytesOf(101), typed)).status, 413);
  assert.equal((await api.send('/v1/files/main/photo.png', bytesOf(100), token)).status, 415);
  assert.ok((await api.send('/v1/files/main/photo.png', bytesOf(100), typed)).status < 300);
});

test('the holder of a token follows its own upload to the end, and no other', async () => {
  const token = await tokenFor({ drive: 'main', pathPrefix: 'mine' });
  const begun = await api.call(
    'POST',
    '/v1/uploads',
    { drive: 'main', path: 'mine/a.bin', chunkSize: 4 },
    token,
  );
  const id = begun.body.id as string;
  assert.equal((await api.send(`/v1/uploads/${id}/chunks/0`, Buffer.from('abcd'), token)).status, 200);
  const range = { ...token, 'Content-Range': 'bytes 4-6/*' };
  assert.equal((await api.send(`/v1/uploads/${id}/bytes`, Buffer.from('efg'), range)).status, 200);
  assert.equal((await api.call('HEAD', `/v1/uploads/${id}`, undefined, token)).status, 200);
  const events = await fetch(`${api.url}/v1/uploads/${id}/events`, { headers: token });
  assert.equal(events.status, 200);
  const complete = await api.call('POST', `/v1/uploads/${id}/complete`, undefined, token);
  assert.equal(complete.status, 200, JSON.stringify(complete.body));
  assert.equal((await completed(api, id, token)).result.sha256, sha256(Buffer.from('abcdefg')));
  assert.match(await events.text(), /"state":"COMPLETED"/);
  const second = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'mine/b', size: 9 }, token);
  assert.equal(
    (await api.call('DELETE', `/v1/uploads/${second.body.id}`, undefined, token)).body.state,
    'CANCELLED',
  );
  // Another upload of the same tenant, outside of what the token covers.
  const world = await adasWorld();
  const picture = await pictureOf(world);
  for (const each of attempts(world)) {
    const answer = await attempt(each, token);
    assert.equal(answer.status, 403, `${each.route}: ${JSON.stringify(answer.body)}`);
  }
  assert.deepEqual(await pictureOf(world), picture);
});

test('a token neither reads, lists, deletes nor makes anything but uploads, also inside of its folder', async () => {
  const token = await tokenFor({ drive: 'private' });
  const world = await adasWorld();
  const picture = await pictureOf(world);
  const uploading = /^(POST|PUT|GET|HEAD|DELETE) \/v1\/uploads|^PUT \/v1\/files/;
  const others = attempts(world).filter(({ route }) => !uploading.test(route));
  assert.ok(others.length >= 15);
  for (const each of others) {
    const answer = await attempt(each, token);
    assert.equal(answer.status, 403, `${each.route}: ${JSON.stringify(answer.body)}`);
  }
  const conditional = { ...token, 'If-Match': '"x"' };
  const asked = await api.send('/v1/files/private/docs/a.txt', Buffer.from('x'), conditional);
  assert.equal(asked.status, 403, 'a condition would tell what is there');
  assert.deepEqual(await pictureOf(world), picture);
});

test('a token that was changed, has expired, or whose tenant has no key is refused', async () => {
  const scope = { drive: 'main', pathPrefix: 'docs' };
  const { Authorization } = await tokenFor(scope);
  const token = Authorization!.slice('Bearer '.length);
  const begin = async (text: string): Promise<unknown[]> => {
    const upload = { drive: 'main', path: 'docs/a', size: 1 };
    const answer = await api.call('POST', '/v1/uploads', upload, { Authorization: `Bearer ${text}` });
    return [answer.status, code(answer)];
  };
  const [text, signature] = token.slice(4).split('.') as [string, string];
  const claims = JSON.parse(Buffer.from(text, 'base64url').toString()) as object;
  const forged = (change: object): string =>
    `slt_${Buffer.from(JSON.stringify({ ...claims, ...change })).toString('base64url')}.${signature}`;
  for (const bad of [
    forged({ tenant: 'bob' }),
    forged({ expires: 9_999_999_999 }),
    forged({ drive: 'private' }),
    forged({ pathPrefix: '' }),
    `slt_${text}.`,
    `slt_${text}`,
    'slt_',
    'slt_.',
    `slt_${text}.${signature}.more`,
    `slt_${text}.${signature.slice(0, -2)}AA`,
  ])
    assert.deepEqual(await begin(bad), [401, 'TOKEN_INVALID'], bad);
  const signedBy = (options: object) => new Access({ keys: [], secret, ...options });
  const principal = maker;
  const later = new Date(Date.now() + 60_000);
  assert.deepEqual(await begin(signedBy({}).makeToken(principal, scope, new Date(Date.now() - 1_000))), [
    401,
    'TOKEN_EXPIRED',
  ]);
  assert.deepEqual(await begin(signedBy({ secret: 'another' }).makeToken(principal, scope, later)), [
    401,
    'TOKEN_INVALID',
  ]);
  assert.deepEqual(await begin(signedBy({}).makeToken({ ...principal, tenant: 'gone' }, scope, later)), [
    401,
    'TOKEN_INVALID',
  ]);
  assert.deepEqual(await begin(signedBy({}).makeToken(principal, scope, later)), [201, undefined]);
});

test('a token that makes no sense is not made', async () => {
  for (const scope of [
    {},
    { drive: 'main', path: 'a', pathPrefix: 'b' },
    { drive: 'main', path: '../a' },
    { drive: 'main', pathPrefix: 'a/..' },
    { drive: 'main', path: '' },
    { drive: 'ma\u0000in' },
    { drive: 'main', maxBytes: -1 },
    { drive: 'main', expiresInS: 0 },
    { drive: 'main', expiresInS: 86_401 },
    { drive: 'main', types: [] },
    { drive: 'main', tenant: 'bob' },
    { drive: 'main', expires: 9_999_999_999 },
  ])
    assert.equal((await api.call('POST', '/v1/tokens', scope, ada)).status, 400, JSON.stringify(scope));
});

test('a signed link downloads its file, in ranges too, and nothing else', async () => {
  const stored = await api.send('/v1/files/main/linked.txt', Buffer.from('linked'), {
    ...ada,
    'Content-Type': 'text/plain',
  });
  const other = await api.send('/v1/files/main/other.txt', Buffer.from('other'), ada);
  const { status, body } = await api.call('POST', '/v1/links', { drive: 'main', path: 'linked.txt' }, ada);
  assert.equal(status, 201);
  const link = new URL(body.url as string, api.url);
  assert.equal(await (await fetch(link)).text(), 'linked');
  assert.equal((await fetch(link, { method: 'HEAD' })).headers.get('content-length'), '6');
  const part = await fetch(link, { headers: { Range: 'bytes=2-3' } });
  assert.deepEqual([part.status, await part.text()], [206, 'nk']);
  // Changed in any field.
  const changes: Record<string, string> = {
    tenant: 'bob',
    expires: String(Math.floor(Date.now() / 1_000) + 999_999),
    disposition: 'attachment',
    signature: 'x'.repeat(43),
  };
  for (const [name, value] of Object.entries(changes)) {
    const changed = new URL(link);
    changed.searchParams.set(name, value);
    assert.equal((await fetch(changed)).status, 401, name);
    changed.searchParams.delete(name);
    assert.equal((await fetch(changed)).status, 401, `without ${name}`);
    const twice = new URL(link);
    twice.searchParams.append(name, value);
    assert.equal((await fetch(twice)).status, 400, `twice ${name}`);
  }
  const elsewhere = new URL(link.href.replace(stored.body.nodeId, other.body.nodeId));
  assert.equal((await fetch(elsewhere)).status, 401);
  // A link is no key.
  assert.equal((await fetch(link.href.replace('/content', ''))).status, 401);
  assert.equal((await fetch(link, { method: 'DELETE' })).status, 405);
  const asAttachment = await api.call(
    'POST',
    '/v1/links',
    { nodeId: stored.body.nodeId, disposition: 'attachment' },
    ada,
  );
  const answer = await fetch(new URL(asAttachment.body.url as string, api.url));
  assert.match(answer.headers.get('content-disposition')!, /^attachment/);
});

test('a link that has expired, or whose file or tenant is gone, opens nothing', async () => {
  const { body: file } = await api.send('/v1/files/main/short.txt', Buffer.from('short'), ada);
  const signed = (access: Access, tenant: string, expiresAt: Date): string =>
    `/v1/nodes/${file.nodeId}/content?${access.signLink({ ...maker, tenant }, file.nodeId, expiresAt, 'inline').toString()}`;
  const same = new Access({ keys: [], secret });
  const later = new Date(Date.now() + 60_000);
  assert.equal((await api.call('GET', signed(same, 'ada', later))).status, 200);
  assert.equal((await api.call('GET', signed(same, 'ada', new Date(Date.now() - 2_000)))).status, 401);
  assert.equal((await api.call('GET', signed(same, 'gone', later))).status, 401);
  assert.equal((await api.call('GET', signed(same, 'bob', later))).status, 404);
  const { body: link } = await api.call('POST', '/v1/links', { nodeId: file.nodeId }, ada);
  assert.equal((await api.call('DELETE', '/v1/files/main/short.txt', undefined, ada)).status, 200);
  assert.equal((await api.call('GET', link.url as string)).status, 404);
  assert.equal((await api.call('POST', '/v1/links', { nodeId: file.nodeId }, ada)).status, 404);
  for (const body of [{}, { nodeId: file.nodeId, drive: 'main', path: 'x' }, { drive: 'main' }])
    assert.equal((await api.call('POST', '/v1/links', body, ada)).status, 400);
});

test('quotas of bytes, of one file, of open uploads and of types hold', async () => {
  const tight = { Authorization: 'Bearer tight-key' };
  const typed = { ...tight, 'Content-Type': 'image/png' };
  const begin = (size: number, path: string) =>
    api.call('POST', '/v1/uploads', { drive: 'main', path, size, contentType: 'image/png' }, tight);
  const put = (size: number, path: string) => api.send(`/v1/files/main/${path}`, bytesOf(size), typed);
  const outcome = ({ status, body }: Answer): unknown[] => [status, body.error?.code];
  const html = await api.send('/v1/files/main/x.html', Buffer.from('x'), {
    ...tight,
    'Content-Type': 'text/html',
  });
  assert.deepEqual(outcome(html), [415, 'TYPE_REFUSED']);
  const text = await api.send('/v1/files/main/x.txt', Buffer.from('x'), {
    ...tight,
    'Content-Type': 'text/plain; charset=utf-8',
  });
  assert.equal(text.status, 201);
  assert.deepEqual(outcome(await put(601, 'large')), [413, 'FILE_TOO_LARGE']);
  assert.deepEqual(outcome(await begin(601, 'large')), [413, 'FILE_TOO_LARGE']);
  assert.deepEqual(outcome(await put(600, 'a')), [201, undefined]);
  assert.deepEqual(outcome(await put(500, 'b')), [403, 'QUOTA_EXCEEDED']);
  const open = await begin(300, 'c');
  assert.equal(open.status, 201);
  // What is announced counts, too.
  assert.deepEqual(outcome(await begin(101, 'd')), [403, 'QUOTA_EXCEEDED']);
  assert.equal((await begin(50, 'd')).status, 201);
  const third = await begin(10, 'e');
  assert.deepEqual(outcome(third), [429, 'TOO_MANY_UPLOADS']);
  assert.ok(Number(third.headers.get('retry-after')) > 0);
  // What is given up makes room again.
  assert.equal((await api.call('DELETE', `/v1/uploads/${open.body.id}`, undefined, tight)).status, 200);
  assert.equal((await begin(10, 'e')).status, 201);
  const { body } = await api.call('GET', '/v1/nodes?drive=main', undefined, tight);
  assert.deepEqual(
    body.nodes.map(({ name, status }: { name: string; status: string }) => [name, status]),
    [
      ['a', 'ACTIVE'],
      ['d', 'PENDING'],
      ['e', 'PENDING'],
      ['x.txt', 'ACTIVE'],
    ],
  );
});

test('a file of unknown length is held to the limits as its bytes come and when it is complete', async () => {
  const unsure = { Authorization: 'Bearer unsure-key' };
  const begin = async (path: string, more: object = {}): Promise<string> =>
    (await api.call('POST', '/v1/uploads', { drive: 'main', path, ...more }, unsure)).body.id as string;
  const outcome = ({ status, body }: Answer): unknown[] => [status, body.error?.code];
  const range = (id: string, from: number, length: number) =>
    api.send(`/v1/uploads/${id}/bytes`, bytesOf(length), {
      ...unsure,
      'Content-Range': `bytes ${from}-${from + length - 1}/*`,
    });
  const ranged = await begin('ranged');
  assert.equal((await range(ranged, 0, 600)).status, 200);
  assert.deepEqual(outcome(await range(ranged, 600, 1)), [413, 'FILE_TOO_LARGE']);
  const numbered = await begin('numbered');
  const chunk = (n: number, length: number) =>
    api.send(`/v1/uploads/${numbered}/chunks/${n}`, bytesOf(length), unsure);
  assert.equal((await chunk(0, 200)).status, 200);
  assert.deepEqual(outcome(await chunk(1, 401)), [413, 'FILE_TOO_LARGE']);
  // Each of the two fits; together they do not, and that is said before the bytes are taken.
  const half = 1_000 - 600 - 200;
  assert.deepEqual(outcome(await chunk(1, half + 1)), [403, 'QUOTA_EXCEEDED']);
  assert.equal((await chunk(1, half)).status, 200);
  const piped = await raw(api.url, '/v1/files/main/piped', {
    method: 'PUT',
    body: bytesOf(601),
    headers: { ...unsure, 'Transfer-Encoding': 'chunked' },
  });
  assert.deepEqual([piped.status, JSON.parse(piped.text).error.code], [413, 'FILE_TOO_LARGE']);
  for (const id of [ranged, numbered]) {
    assert.equal((await api.call('POST', `/v1/uploads/${id}/complete`, {}, unsure)).status, 200);
    assert.equal((await completed(api, id, unsure)).state, 'COMPLETED');
  }
  const token = await tokenFor({ drive: 'main', path: 'stream', maxBytes: 1_500_000 });
  const streamed = await raw(api.url, '/v1/files/main/stream', {
    method: 'PUT',
    body: bytesOf(3 * mebibyte),
    headers: { ...token, 'Transfer-Encoding': 'chunked' },
  });
  assert.deepEqual([streamed.status, JSON.parse(streamed.text).error.code], [413, 'FILE_TOO_LARGE']);
});

test('pages of allowed origins read successes, refusals and missing routes; other pages read nothing', async () => {
  const paths = ['/v1/drives', '/v1/files/main/none', '/v1/nowhere', '/v1/uploads/none', '/openapi.json'];
  for (const path of paths)
    for (const who of [ada, {}]) {
      const allowed = await raw(api.url, path, { headers: { ...who, Origin: page } });
      assert.equal(allowed.headers['access-control-allow-origin'], page, path);
      assert.match(String(allowed.headers['access-control-expose-headers']), /Retry-After/);
      assert.match(String(allowed.headers['access-control-expose-headers']), /Location/);
      assert.equal(allowed.headers['vary'], 'Origin');
      const other = await raw(api.url, path, { headers: { ...who, Origin: 'https://evil.example.com' } });
      assert.equal(other.headers['access-control-allow-origin'], undefined);
    }
  const post = await raw(api.url, '/v1/uploads', { method: 'POST', headers: { ...ada, Origin: page } });
  assert.deepEqual([post.status, post.headers['access-control-allow-origin']], [400, page]);
  const patch = await raw(api.url, '/v1/uploads', { method: 'PATCH', headers: { ...ada, Origin: page } });
  assert.deepEqual([patch.status, patch.headers['allow']], [405, 'POST']);
  assert.equal(patch.headers['access-control-allow-origin'], page);
});

test('a preflight allows what the interface needs, and only to pages that may be here', async () => {
  const preflight = (origin: string, path = '/v1/uploads/x/chunks/0') =>
    raw(api.url, path, {
      method: 'OPTIONS',
      headers: {
        Origin: origin,
        'Access-Control-Request-Method': 'PUT',
        'Access-Control-Request-Headers': 'authorization, content-digest,x-sluice-meta-a',
      },
    });
  const yes = await preflight(page);
  assert.equal(yes.status, 204);
  assert.equal(yes.headers['access-control-allow-origin'], page);
  assert.match(String(yes.headers['access-control-allow-methods']), /PUT.*DELETE/);
  assert.equal(yes.headers['access-control-allow-headers'], 'authorization, content-digest,x-sluice-meta-a');
  assert.equal(yes.headers['access-control-allow-credentials'], undefined);
  const no = await preflight('https://app.example.com.evil.example');
  assert.equal(no.status, 403);
  assert.equal(no.headers['access-control-allow-origin'], undefined);
});

test('without keys only loopback names are answered, and only pages of this machine may act', async (t) => {
  const open = await startApi(t, { rest: { origins: [page] } });
  const port = new URL(open.url).port;
  const ask = async (headers: Record<string, string>, method = 'GET', path = '/v1/drives') =>
    (await raw(open.url, path, { method, headers })).status;
  for (const host of ['localhost', `localhost:${port}`, `127.0.0.1:${port}`, '127.8.9.1', `[::1]:${port}`])
    assert.equal(await ask({ Host: host }), 200, host);
  for (const host of [
    'evil.example.com',
    `evil.example.com:${port}`,
    '10.0.0.1',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil@localhost',
  ])
    for (const path of ['/v1/drives', '/openapi.json', '/v1/nowhere'])
      assert.equal(await ask({ Host: host }, 'GET', path), 403, `${host} ${path}`);
  assert.match(await converse(open.url, ['GET /v1/drives HTTP/1.0\r\n\r\n']), /^HTTP\/1.1 403 /);
  // A proxy on this machine speaks for anybody.
  for (const header of [
    'Forwarded',
    'Via',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Real-IP',
  ])
    for (const path of ['/v1/drives', '/openapi.json'])
      assert.equal(await ask({ [header]: 'for=192.0.2.1' }, 'GET', path), 403, `${header} ${path}`);
  for (const origin of ['http://localhost:3000', 'http://127.0.0.1:5173', 'http://[::1]:1', page])
    assert.equal(await ask({ Origin: origin }), 200, origin);
  for (const origin of ['https://evil.example.com', 'null', 'http://localhost.evil.example', 'file://'])
    for (const method of ['GET', 'POST', 'OPTIONS'])
      assert.equal(await ask({ Origin: origin }, method), 403, `${method} ${origin}`);
  // A key that nobody knows is a mistake to be told of, not to be overlooked.
  assert.equal(await ask({ 'X-Sluice-Key': 'old' }), 401);
  const token = (await open.call('POST', '/v1/tokens', { drive: 'main', path: 'a' })).body.token as string;
  const authorized = { Authorization: `Bearer ${token}` };
  assert.equal((await open.send('/v1/files/main/a', Buffer.from('a'), authorized)).status, 201);
  assert.equal((await open.send('/v1/files/main/b', Buffer.from('b'), authorized)).status, 403);
});
