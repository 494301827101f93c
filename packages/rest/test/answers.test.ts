// What surrounds an answer: when to come back, where things are, and progress that nobody has to poll.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SluiceError } from '@sluice/base';
import { completed, converse, mebibyte, raw, startApi, stopServers, type Api } from './harness.js';

let api: Api;
let failure: Error | undefined;
const page = 'http://localhost:3000';

before(async () => {
  api = await startApi('file', {
    settings: { preferredPartBytes: mebibyte, wholeBytes: mebibyte },
    storeOf: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name) as unknown;
          if (name === 'get' && failure) return () => Promise.reject(failure!);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }),
  });
});

after(stopServers);

test('429 and 503 say when to come back, to pages too, and nothing of what is behind', async (t) => {
  const settings = { preferredPartBytes: mebibyte, budgetBytes: mebibyte, uploadBudgetBytes: mebibyte };
  const narrow = await startApi(t, { settings });
  const upload = { drive: 'main', path: 'budget', size: 5_000_000, chunkSize: 500_000 };
  const { body } = await narrow.call('POST', '/v1/uploads', upload);
  const send = (n: number) =>
    narrow.send(`/v1/uploads/${body.id}/chunks/${n}`, Buffer.alloc(500_000), { Origin: page });
  // None of them fills a part, so all have to wait in Redis, and there is no room for all.
  const answers = await Promise.all([2, 4, 6, 8].map(send));
  const full = answers.find(({ status }) => status !== 200)!;
  assert.deepEqual([full.status, full.body.error.code], [429, 'BUDGET_EXHAUSTED']);
  assert.ok(Number(full.headers.get('retry-after')) >= 1);
  assert.equal(full.body.error.retryable, true);
  assert.equal(full.headers.get('access-control-allow-origin'), page);
  await api.send('/v1/files/main/stored', Buffer.from('stored'));
  const cases: [string, boolean, number, boolean][] = [
    ['STORE_UNAVAILABLE', true, 503, true],
    ['STORE_FULL', true, 507, true],
    ['STORE_REFUSED', false, 500, false],
    ['OBJECT_NOT_FOUND', false, 404, false],
  ];
  for (const [code, retryable, status, isTold] of cases) {
    failure = new SluiceError(code, 'connect ECONNREFUSED 10.1.2.3:9000 bucket-of-ours', { retryable });
    const answer = await api.call('GET', '/v1/files/main/stored', undefined, { Origin: page });
    assert.deepEqual([answer.status, answer.body.error.code], [status, code]);
    assert.equal(answer.headers.has('retry-after'), isTold, code);
    if (status >= 500) assert.doesNotMatch(JSON.stringify(answer.body), /10\.1\.2\.3|bucket/);
    assert.equal(answer.headers.get('access-control-allow-origin'), page);
    assert.equal(answer.headers.get('etag'), null, 'an error is not the file');
  }
  failure = undefined;
});

test('addresses have no host unless a public URL or a trusted proxy says so', async (t) => {
  const forwarded = {
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'files.example.com, inner',
    'X-Forwarded-Prefix': '/api',
  };
  // Behind a proxy there are keys.
  const key = 'k'.repeat(32);
  const access = { keys: [{ tenant: 'default', key }] };
  const locations = async (each: Api, more: Record<string, string>): Promise<string[]> => {
    const headers = { ...more, 'X-Sluice-Key': key };
    const upload = await each.call('POST', '/v1/uploads', { drive: 'main', path: 'l', size: 5 }, headers);
    const file = await each.send('/v1/files/main/proxy/a%20b', Buffer.from('x'), headers);
    const link = await each.call('POST', '/v1/links', { nodeId: file.body.nodeId }, headers);
    const [uploadAt, fileAt] = [upload, file].map((answer) => answer.headers.get('location')!);
    return [
      uploadAt!.replace(upload.body.id, 'ID'),
      fileAt!,
      (link.body.url as string).replace(file.body.nodeId, 'ID').replace(/\?.*/, ''),
    ];
  };
  const paths = ['/v1/uploads/ID', '/v1/files/main/proxy/a%20b', '/v1/nodes/ID/content'];
  const plain = await startApi(t, { access });
  assert.deepEqual(await locations(plain, {}), paths);
  assert.deepEqual(await locations(plain, forwarded), paths, 'nobody said that proxies are to be trusted');
  const trusting = await startApi(t, { access, rest: { trustProxy: true } });
  assert.deepEqual(await locations(trusting, {}), paths);
  assert.deepEqual(
    await locations(trusting, forwarded),
    paths.map((path) => `https://files.example.com/api${path}`),
  );
  const hostile: Record<string, string>[] = [
    { ...forwarded, 'X-Forwarded-Host': 'evil.example/x?' },
    { ...forwarded, 'X-Forwarded-Proto': 'javascript' },
  ];
  for (const headers of hostile)
    assert.deepEqual(
      await locations(trusting, headers),
      paths.map((path) => `/api${path}`),
    );
  const prefixed = { ...forwarded, 'X-Forwarded-Prefix': '//evil.example' };
  assert.deepEqual(
    await locations(trusting, prefixed),
    paths.map((path) => `https://files.example.com${path}`),
  );
  const settled = await startApi(t, {
    access,
    rest: { publicUrl: 'https://cdn.example.com/files/', trustProxy: true },
  });
  assert.deepEqual(
    await locations(settled, forwarded),
    paths.map((path) => `https://cdn.example.com/files${path}`),
  );
});

test('progress that is over is told once and ends, wherever the client wants to go on', async () => {
  const { body } = await api.call('POST', '/v1/uploads', {
    drive: 'main',
    path: 'over',
    size: 5,
    chunkSize: 5,
  });
  await api.send(`/v1/uploads/${body.id}/chunks/0`, Buffer.from('abcde'));
  await completed(api, body.id as string);
  const asked = ['', '0', '1', '999999', 'x', '-1', '9'.repeat(30)];
  const texts = await Promise.all(
    Array.from({ length: 21 }, async (_, i) => {
      const id = asked[i % asked.length]!;
      const headers: Record<string, string> = id === '' ? {} : { 'Last-Event-ID': id };
      return (await fetch(`${api.url}/v1/uploads/${body.id}/events`, { headers })).text();
    }),
  );
  for (const text of texts) {
    const events = text.split('\n\n').filter((event) => event.startsWith('event: '));
    assert.match(events[0]!, /^event: snapshot\nid: \d+\ndata: .*"state":"COMPLETED".*"sha256"/);
    assert.equal(events.filter((event) => event.includes('COMPLETED')).length, 1);
  }
  assert.equal((await fetch(`${api.url}/v1/uploads/none/events`)).status, 404);
  assert.equal((await api.call('GET', `/v1/uploads/${body.id}`)).status, 200);
});

test('HEAD of an upload answers as GET does, without a body', async () => {
  const { body } = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'head', size: 5 });
  const [get, head] = await Promise.all(
    ['GET', 'HEAD'].map((method) => raw(api.url, `/v1/uploads/${body.id}`, { method })),
  );
  assert.deepEqual([get!.status, head!.status, head!.text], [200, 200, '']);
  assert.equal(head!.headers['content-length'], get!.headers['content-length']);
  assert.equal((await raw(api.url, '/v1/uploads/none', { method: 'HEAD' })).status, 404);
});

test('an upload of unknown length is completed with or without a body, and not when it has ended', async () => {
  for (const [i, init] of [
    {},
    { headers: { 'Content-Type': 'application/json' } },
    { body: '{}' },
  ].entries()) {
    const { body } = await api.call('POST', '/v1/uploads', { drive: 'main', path: `c${i}` });
    assert.equal((await api.send(`/v1/uploads/${body.id}/chunks/0`, Buffer.from('abc'))).status, 200);
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${api.url}/v1/uploads/${body.id}/complete`, {
      method: 'POST',
      ...('body' in init && { headers }),
      ...init,
    });
    assert.equal(answer.status, 200);
    assert.equal((await completed(api, body.id as string)).result.size, 3);
    // Again is the same answer.
    assert.equal((await api.call('POST', `/v1/uploads/${body.id}/complete`)).body.state, 'COMPLETED');
  }
  const { body } = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'gap' });
  await api.send(`/v1/uploads/${body.id}/bytes`, Buffer.from('abc'), { 'Content-Range': 'bytes 5-7/*' });
  const gap = await api.call('POST', `/v1/uploads/${body.id}/complete`);
  assert.deepEqual([gap.status, gap.body.error.code], [400, 'REQUEST_INVALID']);
  const { body: numbered } = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'waiting' });
  for (const chunk of ['chunks/0', 'chunks/2?last=true'])
    assert.equal((await api.send(`/v1/uploads/${numbered.id}/${chunk}`, Buffer.from('abc'))).status, 200);
  const waiting = await api.call('POST', `/v1/uploads/${numbered.id}/complete`);
  assert.deepEqual([waiting.status, waiting.body.error.code], [400, 'REQUEST_INVALID']);
  const short = await api.call('POST', `/v1/uploads/${body.id}/complete`, { size: 2 });
  assert.deepEqual([short.status, short.body.error.code], [409, 'SIZE_CONFLICT']);
  await api.call('DELETE', `/v1/uploads/${body.id}`);
  const ended = await api.call('POST', `/v1/uploads/${body.id}/complete`);
  assert.deepEqual([ended.status, ended.body.error.code], [409, 'UPLOAD_ENDED']);
});

test('a connection is used again after a refusal whose body was read', async () => {
  const request = 'POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const bad = `${request}Content-Length: 2\r\n\r\n{}`;
  const text = await converse(api.url, [bad, bad, bad], 10_000, /(HTTP\/1\.1 400 [^]*){3}/);
  assert.equal(text.match(/HTTP\/1\.1 400 /g)?.length, 3);
});

test('the clocks of the server and of PostgreSQL are told side by side', async () => {
  const { status, body } = await api.call('GET', '/v1/clocks');
  assert.equal(status, 200);
  assert.ok(Math.abs(Number(body.serverMs) - Date.now()) < 60_000);
  // Both run on this machine.
  assert.ok(Math.abs(Number(body.sqlMs) - Number(body.serverMs)) <= Number(body.tookMs) + 1_000);
  assert.match(String(body.sqlVersion), /^\d+\./);
});
