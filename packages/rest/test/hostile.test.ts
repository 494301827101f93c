// Requests that nobody sends by accident: never a crash, never a stack or a secret in an answer or a log, never a change.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { consoleLogger, SluiceError } from '@sluice/base';
import { bytesOf, converse, mebibyte, raw, startApi, stopServers, type Api, type Loose } from './harness.js';

const key = 'canary-key-81c2b7';
const secret = 'canary-secret-55aa10';
const passwordOfTheHook = 'canary-password-77fe21';
const who = { Authorization: `Bearer ${key}` };

let api: Api;
const lines: string[] = [];

before(async () => {
  api = await startApi('file', {
    settings: { preferredPartBytes: mebibyte, wholeBytes: mebibyte },
    tenants: ['ada'],
    access: { keys: [{ tenant: 'ada', key }], secret },
    rest: { logger: consoleLogger({ level: 'debug', write: (line) => void lines.push(line) }) },
    hooks: { beforeAccept: ({ path }) => refuseInHook(path) },
    storeOf: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name) as unknown;
          if (name === 'get')
            return async (objectKey: string, ...rest: []) => {
              if (broken) throw new Error('the disk is on fire');
              return target.get(objectKey, ...rest);
            };
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }),
  });
});

let broken = false;

after(stopServers);

function refuseInHook(path: string): void {
  const name = path.split('/').at(-1);
  if (name === 'plain') throw new Error(`cannot log in with ${passwordOfTheHook}`);
  if (name === 'status') throw Object.assign(new Error('the scanner says no'), { statusCode: 403 });
  if (name === 'coded') throw new SluiceError('SCAN_REFUSED', 'the scanner found a virus; clean the file');
  if (name === 'later') throw new SluiceError('SCANNER_BUSY', 'try again soon', { retryable: true });
  // oxlint-disable-next-line typescript/only-throw-error -- a hook may throw anything
  if (name === 'nothing') throw undefined;
}

async function json(text: string, type = 'application/json', path = '/v1/uploads', method = 'POST') {
  const body = Buffer.from(text);
  const headers = { ...who, 'Content-Type': type, 'Content-Length': String(body.length) };
  const answer = await raw(api.url, path, { method, body, headers });
  return { status: answer.status, body: JSON.parse(answer.text) };
}

async function nothingIsThere(): Promise<void> {
  const { body } = await api.call('GET', '/v1/nodes?drive=main', undefined, who);
  assert.deepEqual(body.nodes, []);
}

test('JSON that is malformed, deep, huge or of another type is refused with a code', async () => {
  const cases: [string, number, string][] = [
    ['{"drive":', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"a",}', 400, 'REQUEST_INVALID'],
    ['\u0000', 400, 'REQUEST_INVALID'],
    ['null', 400, 'REQUEST_INVALID'],
    ['"text"', 400, 'REQUEST_INVALID'],
    ['[]', 400, 'REQUEST_INVALID'],
    ['', 400, 'REQUEST_INVALID'],
    ['['.repeat(100_000), 400, 'REQUEST_INVALID'],
    ['['.repeat(100_000) + ']'.repeat(100_000), 400, 'REQUEST_INVALID'],
    [`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, 400, 'REQUEST_INVALID'],
    [`{"drive":"main","path":"${'x'.repeat(2 * mebibyte)}"}`, 413, 'REQUEST_TOO_LARGE'],
    ['{"drive":"main","path":"a","size":1e400}', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"a","size":-1}', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"a","size":"1"}', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"a","size":9007199254740993}', 400, 'REQUEST_INVALID'],
    ['{"drive":["main"],"path":"a"}', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"\\ud800"}', 400, 'NAME_INVALID'],
    ['{"drive":"ma\\u0000in","path":"a"}', 400, 'NAME_INVALID'],
    ['{"drive":"main","path":"a","tenant":"bob"}', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"a","limits":{}}', 400, 'REQUEST_INVALID'],
    ['{"drive":"main","path":"a","contentType":"a/b\\r\\nX: y"}', 400, 'UPLOAD_INVALID'],
    ['{"drive":"main","path":"a","contentType":"a/b; name=\\"\u00e9\\""}', 400, 'UPLOAD_INVALID'],
    ['{"drive":"main","path":"a","metadata":{"a":"b\\r\\nc"}}', 400, 'METADATA_INVALID'],
  ];
  for (const [text, status, code] of cases) {
    const answer = await json(text);
    assert.deepEqual([answer.status, answer.body.error.code], [status, code], text.slice(0, 60));
    assert.ok(answer.body.error.message.length < 600);
  }
  for (const type of ['text/xml', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded'])
    assert.deepEqual(
      await json('{"drive":"main","path":"a"}', type).then(({ status, body }) => [status, body.error.code]),
      [415, 'BODY_NOT_JSON'],
    );
  assert.equal((await json('{"drive":"main","path":"a"}', 'text/plain')).status, 400);
  await nothingIsThere();
});

test('prototypes are not reachable through JSON, metadata, queries or headers', async () => {
  const bodies = [
    '{"drive":"main","path":"a","__proto__":{"polluted":1}}',
    '{"drive":"main","path":"a","constructor":{"prototype":{"polluted":1}}}',
    '{"drive":"main","path":"a","metadata":{"__proto__":{"polluted":"1"}}}',
    '{"drive":"main","path":"a","metadata":{"__proto__":"1"}}',
    '{"drive":"main","path":"a","metadata":{"constructor":"1"}}',
    '{"drive":"main","path":"a","metadata":{"prototype":"1"}}',
    '{"__proto__":null}',
  ];
  for (const body of bodies) assert.equal((await json(body)).status, 400, body);
  for (const query of ['__proto__[polluted]=1', 'constructor=1', '__proto__=1&__proto__=2'])
    assert.ok((await api.call('GET', `/v1/nodes?drive=main&${query}`, undefined, who)).status <= 400);
  const headers = { ...who, 'X-Sluice-Meta-__proto__': '1', 'Content-Length': '1' };
  const put = await raw(api.url, '/v1/files/main/a', { method: 'PUT', body: Buffer.from('a'), headers });
  assert.equal(put.status, 400);
  assert.equal(({} as Loose).polluted, undefined);
  await nothingIsThere();
});

test('methods and versions that do not exist are refused', async () => {
  const first = async (text: string): Promise<string> => (await converse(api.url, [text])).split('\r\n')[0]!;
  const head = `Host: localhost\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`;
  assert.match(await first(`FOO /v1/uploads HTTP/1.1\r\n${head}`), / 400 /);
  assert.match(await first(`GET /v1/uploads HTTP/9.9\r\n${head}`), / 400 /);
  assert.match(await first('\u0016\u0003\u0001 hello TLS\r\n\r\n'), / 400 /);
  for (const method of ['PROPFIND', 'TRACE', 'MKCOL', 'LOCK'])
    assert.match(await first(`${method} /v1/uploads HTTP/1.1\r\n${head}`), / (404|405) /, method);
  for (const [method, path, allow] of [
    ['GET', '/v1/uploads', 'POST'],
    ['POST', '/v1/files/main/a', 'DELETE, GET, HEAD, PUT'],
    ['PUT', '/v1/tokens', 'POST'],
    ['DELETE', '/v1/drives', 'GET'],
  ] as const) {
    const answer = await api.call(method, path, undefined, who);
    assert.deepEqual([answer.status, answer.headers.get('allow')], [405, allow]);
    assert.equal(answer.body.error.code, 'METHOD_NOT_ALLOWED');
  }
  for (const path of ['/v1', '/v1/', '/v2/uploads', '/v1/uploads/a/b/c/d', '/V1/uploads'])
    assert.equal((await api.call('GET', path, undefined, who)).body.error.code, 'ROUTE_NOT_FOUND', path);
});

test('headers that are huge, doubled or contradict each other are refused', async () => {
  const talk = (lines: string[], body = ''): Promise<string> =>
    converse(api.url, [
      [...lines, 'Host: localhost', `Authorization: Bearer ${key}`, 'Connection: close', '', body].join(
        '\r\n',
      ),
    ]);
  const huge = await talk(['GET /v1/drives HTTP/1.1', `X-Huge: ${'x'.repeat(20_000)}`]);
  assert.match(huge, /^HTTP\/1.1 431 [^]*"code":"REQUEST_INVALID"/);
  const put = 'PUT /v1/files/main/h HTTP/1.1';
  for (const lines of [
    ['Content-Length: 1', 'Content-Length: 2'],
    ['Content-Length: 1', 'Transfer-Encoding: chunked'],
    ['Content-Length: -1'],
    ['Content-Length: 1e3'],
    ['Content-Length: 99999999999999999999999'],
    ['Transfer-Encoding: chunked, identity'],
    ['Transfer-Encoding: gzip'],
    ['X-Bad\u0000: 1', 'Content-Length: 1'],
  ])
    assert.match(await talk([put, ...lines], 'a'), /^HTTP\/1.1 (400|411|501) /, lines.join());
  const twice = await talk([put, 'Content-Length: 1', 'Idempotency-Key: a', 'Idempotency-Key: b'], 'a');
  assert.match(twice, /^HTTP\/1.1 400 [^]*Idempotency-Key/);
  await nothingIsThere();
});

async function begin(path: string, more: object = { size: 10, chunkSize: 5 }): Promise<string> {
  const { status, body } = await api.call('POST', '/v1/uploads', { drive: 'main', path, ...more }, who);
  assert.equal(status, 201, JSON.stringify(body));
  return body.id as string;
}

async function receivedBytes(id: string): Promise<number> {
  return (await api.call('GET', `/v1/uploads/${id}`, undefined, who)).body.receivedBytes as number;
}

test('a chunk without a length is 411, a length that lies counts for nothing', async () => {
  const id = await begin('lies/a');
  const head = (length: string, n = 0): string =>
    `PUT /v1/uploads/${id}/chunks/${n} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${length}\r\n\r\n`;
  const chunked = await converse(api.url, [head('Transfer-Encoding: chunked'), '5\r\nabcde\r\n0\r\n\r\n']);
  assert.match(chunked, /^HTTP\/1.1 411 [^]*LENGTH_REQUIRED/);
  // Announces five and sends three, then goes away.
  await converse(api.url, [head('Content-Length: 5'), 'abc'], 200);
  assert.equal(await receivedBytes(id), 0);
  // Announces five and sends more: the rest is no request, and the chunk counts whole or not at all.
  const more = await converse(api.url, [head('Content-Length: 5'), 'abcdeFGHIJ\r\n\r\n']);
  assert.match(more, /HTTP\/1.1 400 /);
  assert.ok([0, 5].includes(await receivedBytes(id)));
  // A range that does not fit the length of its body.
  const before = await receivedBytes(id);
  for (const range of ['bytes 5-9/10', 'bytes 5-8/11', 'bytes 0-0/0', 'bytes */10', '5-8', '']) {
    const headers = { ...who, 'Content-Range': range };
    const { status } = await api.send(`/v1/uploads/${id}/bytes`, Buffer.from('wxyz'), headers);
    assert.ok(status === 400 || status === 409, `${range}: ${status}`);
  }
  assert.equal(await receivedBytes(id), before);
  await api.call('DELETE', `/v1/uploads/${id}`, undefined, who);
});

test('a client that goes away while it sends is no failure of the server', async () => {
  lines.length = 0;
  const id = await begin('away/a', { size: 2 * mebibyte });
  const head = (path: string, length: number): string =>
    `PUT ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Range: bytes 0-${length - 1}/*\r\nContent-Length: ${length}\r\n\r\n`;
  for (const path of [`/v1/uploads/${id}/bytes`, '/v1/files/main/away/small', '/v1/files/main/away/large'])
    await converse(api.url, [head(path, path.endsWith('small') ? 1_000 : 2 * mebibyte), bytesOf(500)], 150);
  await pause(200);
  assert.deepEqual(
    lines.filter((line) => line.includes('"level":"error"')),
    [],
  );
  const { body } = await api.call('GET', '/v1/files/main/away/small', undefined, who);
  assert.equal(body.error.code, 'NODE_NOT_FOUND');
});

test('headers that come too slowly are cut, a body that stops coming is 408', async (t) => {
  const slow = await startApi(t, {
    headersTimeoutMs: 2_000,
    settings: { slowMs: 400 },
    rest: { slowMs: 400 },
  });
  const began = performance.now();
  const drip = converse(slow.url, ['GET /v1/drives HTTP/1.1\r\nHost: loc'], 30_000);
  const stuck = converse(
    slow.url,
    ['PUT /v1/files/main/s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n', 'abc'],
    30_000,
  );
  const json = 'POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const halves = [
    'Content-Length: 100\r\n\r\n{"drive":',
    'Transfer-Encoding: chunked\r\n\r\n9\r\n{"drive":',
  ].map((half) => converse(slow.url, [json + half], 30_000));
  assert.match(await drip, /^HTTP\/1.1 408 [^]*too slowly/);
  for (const half of halves) assert.match(await half, /^HTTP\/1.1 408 [^]*BODY_SLOW/);
  assert.match(await stuck, /^HTTP\/1.1 408 [^]*BODY_SLOW/);
  assert.ok(performance.now() - began < 25_000);
  assert.equal((await slow.call('GET', '/v1/files/main/s')).status, 404);
});

test('what a hook throws refuses the upload: with its own words if it has a code or status, without them otherwise', async () => {
  const cases: [string, number, string, RegExp][] = [
    ['plain', 500, 'INTERNAL', /the log of the server/],
    ['nothing', 500, 'INTERNAL', /the log of the server/],
    ['status', 403, 'REQUEST_INVALID', /the scanner says no/],
    ['coded', 400, 'SCAN_REFUSED', /found a virus/],
    ['later', 503, 'SCANNER_BUSY', /try again soon/],
  ];
  for (const [name, status, code, message] of cases) {
    const path = `hook/${name}`;
    const answers = [
      await api.call('POST', '/v1/uploads', { drive: 'main', path, size: 5 }, who),
      await api.send(`/v1/files/main/${path}`, Buffer.from('small'), who),
      await api.send(`/v1/files/main/${path}`, bytesOf(2 * mebibyte), who),
    ];
    for (const answer of answers) {
      assert.deepEqual([answer.status, answer.body.error.code], [status, code], name);
      assert.match(answer.body.error.message, message);
      assert.doesNotMatch(JSON.stringify(answer.body), /node:|\.js|canary|stack/);
      assert.equal(answer.headers.has('retry-after'), status === 503);
    }
  }
  const { body } = await api.call('GET', '/v1/nodes?drive=main', undefined, who);
  assert.ok(!body.nodes.some(({ name }: { name: string }) => name === 'hook'));
});

test('no key, token, signature or secret is in a log or an answer', async () => {
  lines.length = 0;
  const answers: string[] = [];
  const note = (answer: { body: Loose; headers: Headers }): Loose => {
    answers.push(JSON.stringify([answer.body, [...answer.headers]]));
    return answer.body;
  };
  const { body: made } = await api.call('POST', '/v1/tokens', { drive: 'main', pathPrefix: 'log' }, who);
  const token = { Authorization: `Bearer ${made.token}` };
  const file = note(await api.send('/v1/files/main/log/a', Buffer.from('a'), token));
  const { body: link } = await api.call('POST', '/v1/links', { nodeId: file.nodeId }, who);
  const signature = new URL(link.url as string, api.url).searchParams.get('signature')!;
  broken = true;
  assert.equal(note(await api.call('GET', link.url as string)).error.code, 'INTERNAL');
  note(await api.call('GET', '/v1/files/main/log/a', undefined, who));
  broken = false;
  note(await api.send('/v1/files/main/log/plain', Buffer.from('a'), token));
  note(await api.call('GET', `${link.url as string}x`));
  note(await api.call('GET', `/v1/nodes?drive=main&key=${key}`, undefined, who));
  note(await api.call('GET', '/v1/drives', undefined, { ...token, 'X-Sluice-Key': `${key}x` }));
  note(await api.call('GET', '/v1/drives', undefined, { 'X-Sluice-Key': `${key}x` }));
  note(await api.call('GET', `/v1/nowhere?token=${made.token}`, undefined, who));
  note(await api.call('POST', '/v1/uploads', { drive: 'main', path: 'log/plain', size: 1 }, token));
  const log = lines.join('');
  assert.match(log, /the disk is on fire/);
  assert.match(log, /cannot log in/);
  for (const canary of [key, secret, made.token as string, signature])
    for (const [where, text] of [
      ['the log', log],
      ['an answer', answers.join('\n')],
    ] as const)
      assert.ok(!text.includes(canary), `${canary} is in ${where}`);
  // What a hook says is for the log only.
  assert.ok(!answers.join('').includes(passwordOfTheHook));
});

/** The same numbers in every run. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('a thousand damaged requests never make it fail, and afterwards it works as before', async () => {
  const id = await begin('fuzz/open');
  const { body: node } = await api.send('/v1/files/main/fuzz/file', bytesOf(100), who);
  lines.length = 0;
  const post = '{"drive":"main","path":"fuzz/new","size":10,"chunkSize":5,"metadata":{"a":"b"}}';
  const seeds: [string, string][] = [
    [`GET /v1/nodes?drive=main&limit=10&after=a`, ''],
    [`POST /v1/uploads`, post],
    [`PUT /v1/uploads/${id}/chunks/0?last=false`, 'abcde'],
    [`PUT /v1/uploads/${id}/bytes`, 'abcde'],
    [`GET /v1/uploads/${id}`, ''],
    [`POST /v1/uploads/${id}/complete`, '{"size":10}'],
    [`PUT /v1/files/main/fuzz/put%20it`, 'abcde'],
    [`GET /v1/files/main/fuzz/file?disposition=inline`, ''],
    [`GET /v1/nodes/${node.nodeId}/content?tenant=ada&expires=1&disposition=inline&signature=x`, ''],
    [`PATCH /v1/nodes/${node.nodeId}`, '{"name":"file","parentId":null}'],
    [`POST /v1/nodes`, '{"drive":"main","path":"fuzz/folder"}'],
    [`POST /v1/tokens`, '{"drive":"main","pathPrefix":"fuzz","maxBytes":5,"expiresInS":60}'],
    [`POST /v1/links`, `{"nodeId":"${node.nodeId}","disposition":"inline"}`],
    [`PUT /v1/drives/fuzz`, ''],
    [`OPTIONS /v1/uploads`, ''],
  ];
  const headers = [
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    'Connection: close',
    'Range: bytes=0-10',
    'Content-Range: bytes 0-4/10',
    'If-None-Match: "x"',
    'Idempotency-Key: fuzz',
    'Content-Digest: sha-256=:AAAA:',
    'X-Sluice-Meta-A: b',
    'Origin: http://localhost',
  ];
  const roll = dice(20_240_601);
  const spices = [
    '\u0000',
    '\r\n',
    '%00',
    '%',
    '..',
    '/',
    '"',
    '\\',
    '{',
    '[',
    '9'.repeat(30),
    '\u00ff',
    '-1',
    ' ',
    '*',
    '__proto__',
    'null',
  ];
  const damaged = (text: string): string => {
    let out = text;
    for (let hits = 1 + roll(4); hits > 0; hits--) {
      const at = roll(out.length + 1);
      const spice = spices[roll(spices.length)]!;
      const cut = [0, 0, 1, 1, 5][roll(5)]!;
      out = out.slice(0, at) + (roll(3) === 0 ? '' : spice) + out.slice(at + cut);
    }
    return out;
  };
  const one = (): string => {
    const [line, body] = seeds[roll(seeds.length)]!;
    const kept = headers.filter((_, i) => i < 3 || roll(3) === 0);
    // The length is told of the damaged body, so that what is damaged gets inside.
    const sent = roll(2) === 0 ? damaged(body) : body;
    const length = Buffer.byteLength(sent, 'latin1');
    const typed = body.startsWith('{') ? ['Content-Type: application/json'] : [];
    const head = [
      `${line} HTTP/1.1`,
      ...kept,
      ...typed,
      ...(length > 0 ? [`Content-Length: ${length}`] : []),
      '',
      '',
    ];
    const where = roll(3);
    if (where === 0) head[0] = `${damaged(line)} HTTP/1.1`;
    if (where === 1) head[1 + roll(head.length - 3)] = damaged(head[1 + roll(head.length - 3)]!);
    return head.join('\r\n') + sent;
  };
  const seen = new Map<string, number>();
  const sent = Array.from({ length: 1_000 }, one);
  const worker = async (): Promise<void> => {
    for (let request = sent.pop(); request !== undefined; request = sent.pop()) {
      const answer = await converse(api.url, [Buffer.from(request, 'latin1')], 2_000);
      const status = /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 'none';
      seen.set(status, (seen.get(status) ?? 0) + 1);
      assert.ok(!status.startsWith('5') || status === '503', `${JSON.stringify(request)}\n${answer}`);
      assert.doesNotMatch(answer, /node:internal|\.js:\d/);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  assert.ok((seen.get('400') ?? 0) > 100 && (seen.get('200') ?? 0) > 50, JSON.stringify([...seen]));
  assert.ok((seen.get('none') ?? 0) < 100, JSON.stringify([...seen]));
  assert.deepEqual(
    lines.filter((line) => line.includes('"level":"error"')),
    [],
  );
  const fresh = await begin('fuzz/afterwards');
  for (const n of [0, 1])
    assert.equal((await api.send(`/v1/uploads/${fresh}/chunks/${n}`, Buffer.from('abcde'), who)).status, 200);
});
