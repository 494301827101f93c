// Files by their path: one request stores, serves or deletes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import type { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { waitUntil } from '@sluice/testbed';
import { bytesOf, converse, mebibyte, raw, sha256, startApi, stopServers, type Api } from './harness.js';

let api: Api;
/** Every stream that the store has opened for a download. */
const opened: Readable[] = [];

before(async () => {
  api = await startApi('file', {
    settings: { preferredPartBytes: mebibyte, wholeBytes: 2 * mebibyte, maxFileBytes: 8 * mebibyte },
    storeOf: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          if (name !== 'get') {
            const value = Reflect.get(target, name) as unknown;
            return typeof value === 'function' ? (value.bind(target) as unknown) : value;
          }
          return async (...args: Parameters<typeof store.get>) => {
            const read = await target.get(...args);
            opened.push(read.stream);
            return read;
          };
        },
      }),
  });
});

after(stopServers);

const digestOf = (bytes: Buffer): string =>
  `sha-256=:${Buffer.from(sha256(bytes), 'hex').toString('base64')}:`;

async function download(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(`${api.url}/v1/files/main/${path}`, { method, headers });
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

/** PUT with the address exactly as written. */
async function put(address: string, body = 'x', headers: Record<string, string> = {}) {
  const bytes = Buffer.from(body);
  const answer = await raw(api.url, address, {
    method: 'PUT',
    body: bytes,
    headers: { 'Content-Length': String(bytes.length), ...headers },
  });
  return { ...answer, body: JSON.parse(answer.text) };
}

test('a new file is 201, a replaced one 200, each with the ETag that a download has', async () => {
  const first = await api.send('/v1/files/main/new/a.bin', bytesOf(100));
  assert.equal(first.status, 201);
  assert.equal(first.headers.get('location'), '/v1/files/main/new/a.bin');
  const second = await api.send('/v1/files/main/new/a.bin', bytesOf(200, 2));
  assert.equal(second.status, 200);
  assert.equal(second.body.nodeId, first.body.nodeId);
  assert.deepEqual([second.body.size, second.body.sha256], [200, sha256(bytesOf(200, 2))]);
  assert.notEqual(second.headers.get('etag'), first.headers.get('etag'));
  const { headers, bytes } = await download('new/a.bin');
  assert.equal(headers.get('etag'), second.headers.get('etag'));
  assert.match(headers.get('etag')!, /^".+"$/);
  assert.equal(headers.get('repr-digest'), digestOf(bytesOf(200, 2)));
  assert.deepEqual(bytes, bytesOf(200, 2));
});

test('files of every way in come out as they were: empty, small, streamed, in parts, of unknown length', async () => {
  for (const size of [0, 1, mebibyte - 1, mebibyte, 2 * mebibyte, 3 * mebibyte + 7])
    for (const isPiped of [false, true]) {
      const bytes = bytesOf(size, size + 1);
      const path = `/v1/files/main/sizes/${size}-${isPiped}`;
      const headers: Record<string, string> = isPiped
        ? { 'Transfer-Encoding': 'chunked' }
        : { 'Content-Length': String(size) };
      const answer = await raw(api.url, path, { method: 'PUT', body: bytes, headers });
      assert.equal(answer.status, 201, answer.text);
      const file = await download(`sizes/${size}-${isPiped}`);
      assert.equal(file.headers.get('content-length'), String(size));
      assert.equal(sha256(file.bytes), sha256(bytes));
    }
});

test('the same request under the same Idempotency-Key is answered the same and stored once', async () => {
  const send = (size: number, seed = 1) =>
    api.send('/v1/files/main/once.bin', bytesOf(size, seed), { 'Idempotency-Key': 'put-once' });
  const first = await send(300);
  const again = await send(300);
  assert.deepEqual([first.status, again.status], [201, 201]);
  assert.deepEqual(again.body, first.body);
  for (const other of [await send(301), await send(300, 2)])
    assert.deepEqual([other.status, other.body.error.code], [422, 'IDEMPOTENCY_CONFLICT']);
  assert.equal((await api.call('GET', `/v1/nodes/${first.body.nodeId}`)).body.version, 1);
});

test('the same Idempotency-Key with other bytes is a conflict for large and for piped files, too', async () => {
  const size = 3 * mebibyte;
  for (const [name, headers] of [
    ['large', { 'Content-Length': String(size) }],
    ['piped', { 'Transfer-Encoding': 'chunked' }],
  ] as [string, Record<string, string>][]) {
    const send = async (seed: number, more: Record<string, string> = {}) => {
      const request = { method: 'PUT', body: bytesOf(size, seed) };
      const all = { ...headers, 'Idempotency-Key': `put-${name}`, ...more };
      return raw(api.url, `/v1/files/main/again-${name}`, { ...request, headers: all });
    };
    const first = await send(1);
    const again = await send(1);
    assert.deepEqual([first.status, again.status], [201, 201], again.text);
    assert.equal(again.text, first.text);
    const other = await send(2);
    assert.deepEqual([other.status, JSON.parse(other.text).error.code], [422, 'IDEMPOTENCY_CONFLICT']);
    assert.equal(sha256((await download(`again-${name}`)).bytes), sha256(bytesOf(size, 1)));
  }
});

test('a piece of a file, or an encoded one, is never taken for the file', async () => {
  const path = '/v1/files/main/whole.bin';
  assert.equal((await api.send(path, bytesOf(100))).status, 201);
  for (const headers of [{ 'Content-Range': 'bytes 50-99/100' }, { 'Content-Encoding': 'gzip' }] as Record<
    string,
    string
  >[]) {
    const answer = await api.send(path, bytesOf(50), headers);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'REQUEST_INVALID']);
  }
  assert.equal((await api.send(path, bytesOf(100), { 'Content-Encoding': 'identity' })).status, 200);
  assert.equal(sha256((await download('whole.bin')).bytes), sha256(bytesOf(100)));
});

test('a download that nobody reads lets go of its connection to the store', async (t) => {
  let closed = false;
  const watched = await startApi(t, {
    rest: { unreadMs: 500 },
    storeOf: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          const value = Reflect.get(target, name) as unknown;
          if (name !== 'get') return typeof value === 'function' ? (value.bind(target) as unknown) : value;
          return async (key: string) => {
            const read = await target.get(key);
            read.stream.once('close', () => (closed = true));
            return read;
          };
        },
      }),
  });
  // More than sockets hold.
  assert.equal((await watched.send('/v1/files/main/unread.bin', Buffer.alloc(48 * mebibyte))).status, 201);
  closed = false;
  const socket = connect(Number(new URL(watched.url).port), '127.0.0.1');
  t.after(() => socket.destroy());
  socket.pause().write('GET /v1/files/main/unread.bin HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await waitUntil('the store is let go', () => closed);
  // Who reads, however slowly, gets all of it.
  const slow = await fetch(`${watched.url}/v1/files/main/unread.bin`);
  let bytes = 0;
  for await (const piece of slow.body as unknown as AsyncIterable<Uint8Array>) {
    if (bytes === 0) await sleep(300);
    bytes += piece.length;
  }
  assert.equal(bytes, 48 * mebibyte);
});

test('If-None-Match: * never replaces, If-Match replaces only what it names', async () => {
  const path = '/v1/files/main/conditional';
  const only = { 'If-None-Match': '*' };
  assert.equal((await api.send(path, Buffer.from('1'), only)).status, 201);
  for (const size of [1, 3 * mebibyte]) {
    const refused = await api.send(path, bytesOf(size), only);
    assert.deepEqual([refused.status, refused.body.error.code], [412, 'PRECONDITION_FAILED']);
  }
  const etag = (await download('conditional')).headers.get('etag')!;
  assert.equal((await api.send(path, Buffer.from('2'), { 'If-Match': '"other"' })).status, 412);
  assert.equal((await download('conditional')).bytes.toString(), '1');
  assert.equal((await api.send(path, Buffer.from('2'), { 'If-Match': etag })).status, 200);
  assert.equal((await api.send(path, Buffer.from('3'), { 'If-Match': etag })).status, 412);
  assert.equal((await api.send(`${path}-none`, Buffer.from('3'), { 'If-Match': '*' })).status, 412);
  assert.equal((await api.send(path, Buffer.from('3'), { 'If-None-Match': etag })).status, 400);
  assert.equal((await api.call('DELETE', path, undefined, { 'If-Match': etag })).status, 412);
  assert.equal((await download('conditional')).bytes.toString(), '2');
  const now = (await download('conditional')).headers.get('etag')!;
  assert.equal((await api.call('DELETE', path, undefined, { 'If-Match': `"x", ${now}` })).status, 200);
  assert.equal((await download('conditional')).status, 404);
  assert.equal((await api.call('DELETE', path)).status, 404);
});

test('of many that replace or delete the same file under If-Match at once, one succeeds', async () => {
  const path = '/v1/files/main/raced';
  for (const size of [10, 3 * mebibyte]) {
    await api.send(path, Buffer.from(`first ${size}`));
    const headers = { 'If-Match': (await download('raced')).headers.get('etag')! };
    const answers = await Promise.all([
      ...Array.from({ length: 5 }, (_, i) => api.send(path, bytesOf(size + i, i), headers)),
      api.call('DELETE', path, undefined, headers),
    ]);
    const count = (wanted: number) => answers.filter(({ status }) => status === wanted).length;
    assert.equal(count(200), 1);
    // Whoever looks for the file that it deletes may find none.
    assert.equal(count(412) + count(404), 5);
  }
});

test('a replacement under If-Match that comes again with its key is answered as before', async () => {
  const path = '/v1/files/main/repeated';
  await api.send(path, Buffer.from('first'));
  const etag = (await download('repeated')).headers.get('etag')!;
  const headers = { 'If-Match': etag, 'Idempotency-Key': 'replace-once' };
  const first = await api.send(path, Buffer.from('second'), headers);
  const again = await api.send(path, Buffer.from('second'), headers);
  assert.deepEqual([first.status, again.status], [200, 200]);
  assert.deepEqual(again.body, first.body);
});

test('a declared digest is kept to: the wrong one stores nothing, one that is not checked is refused', async () => {
  const bytes = bytesOf(500);
  const path = '/v1/files/main/digest.bin';
  const wrong = digestOf(Buffer.from('other'));
  for (const name of ['Repr-Digest', 'Content-Digest']) {
    const refused = await api.send(path, bytes, { [name]: wrong });
    assert.deepEqual([refused.status, refused.body.error.code], [422, 'SHA256_MISMATCH'], name);
  }
  const large = await api.send(path, bytesOf(3 * mebibyte), { 'Repr-Digest': wrong });
  assert.deepEqual([large.status, large.body.error.details.code], [422, 'SHA256_MISMATCH']);
  for (const field of ['crc32c=:AAAAAA==:', 'md5=:AAAA:', 'nonsense', 'sha-256=:AAAA:', 'sha-256=abc'])
    assert.equal((await api.send(path, bytes, { 'Repr-Digest': field })).status, 400, field);
  assert.equal((await download('digest.bin')).status, 404);
  const right = `md5=:AAAA:, ${digestOf(bytes)}`;
  assert.equal((await api.send(path, bytes, { 'Repr-Digest': right })).status, 201);
});

test('metadata and content types come with the file', async () => {
  const { body } = await put('/v1/files/main/meta.txt', 'text', {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Sluice-Meta-Author': Buffer.from('Zoë Ünïcode').toString('latin1'),
    'x-sluice-meta-year': '2024',
  });
  const { body: node } = await api.call('GET', `/v1/nodes/${body.nodeId}`);
  assert.deepEqual(node.metadata, { author: 'Zoë Ünïcode', year: '2024' });
  assert.equal(node.contentType, 'text/plain; charset=utf-8');
  assert.equal('objectKey' in node || 'tenant' in node, false);
  assert.equal((await download('meta.txt')).headers.get('content-type'), 'text/plain; charset=utf-8');
  await put('/v1/files/main/untyped', 'x');
  assert.equal((await download('untyped')).headers.get('content-type'), 'application/octet-stream');
  for (const type of ['nonsense', 'a/b; c', 'text/html; charset="x'])
    assert.ok(
      [400, 415].includes((await put('/v1/files/main/bad', 'x', { 'Content-Type': type })).status),
      type,
    );
  for (const name of ['__proto__', 'constructor', 'x'.repeat(129)])
    assert.equal(
      (await put('/v1/files/main/bad', 'x', { [`X-Sluice-Meta-${name}`]: 'x' })).status,
      400,
      name,
    );
  assert.equal((await put('/v1/files/main/bad', 'x', { 'X-Sluice-Meta-A': 'x'.repeat(2_049) })).status, 400);
  assert.equal((await download('bad')).status, 404);
});

test('a name is what was written, decoded once', async () => {
  const cases: [string, string][] = [
    ['with%20space.txt', 'with space.txt'],
    ['100%25.txt', '100%.txt'],
    ['%2541.txt', '%41.txt'],
    ['%252Fslash', '%2Fslash'],
    ['%E2%82%AC.txt', '€.txt'],
    ['%F0%9F%98%80.png', '😀.png'],
    ['cafe%CC%81', 'café'],
    ['a+b&c=d;e,f@g:h', 'a+b&c=d;e,f@g:h'],
    ['%3Fquery%23hash', '?query#hash'],
    ['back%5Cslash', 'back\\slash'],
    ['quote\'"%22', 'quote\'""'],
    ['%7B%7D.txt?ignored=/x/y', '{}.txt'],
    ['...', '...'],
    ['__proto__', '__proto__'],
  ];
  for (const [written, name] of cases) {
    const { status, body, headers } = await put(`/v1/files/main/names/${written}`, name);
    assert.equal(status, 201, `${written}: ${JSON.stringify(body)}`);
    assert.equal(body.path, `names/${name.normalize('NFC')}`);
    const there = await raw(api.url, String(headers['location']));
    assert.deepEqual([there.status, there.text], [200, name], written);
    const encoded = encodeURIComponent(name.normalize('NFC')).replace(
      /['()*]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
    const disposition = String(there.headers['content-disposition']);
    assert.ok(disposition.endsWith(`filename*=UTF-8''${encoded}`), disposition);
    assert.match(disposition, /^(inline|attachment); filename="[\x20\x21\x23-\x24\x26-\x5b\x5d-\x7e]*"; /);
  }
  const { body } = await api.call('GET', '/v1/nodes?drive=main&limit=1000');
  const folder = body.nodes.find((node: { name: string }) => node.name === 'names').id;
  const listed = await api.call('GET', `/v1/nodes?drive=main&parent=${folder}`);
  assert.equal(listed.body.nodes.length, cases.length);
  assert.ok(listed.body.nodes.every((node: { type: string }) => node.type === 'FILE'));
});

test('names that lead elsewhere, or cannot be names, are refused and leave nothing', async () => {
  const before = (await api.call('GET', '/v1/nodes?drive=main&limit=1000')).body.nodes.length;
  const bad = [
    'refused%2Fb',
    'refused/%2F',
    '..',
    'refused/..',
    'refused/../../b',
    'refused/%2e%2e/b',
    'refused/%2E./b',
    '%2e',
    'refused//b',
    '/refused',
    'refused/',
    'nul%00',
    'crlf%0D%0ASet-Cookie:x',
    'tab%09',
    'rtl%E2%80%AEtxt.exe',
    'bad%FFutf8',
    'bad%',
    'bad%zz',
    'lone%ED%A0%80surrogate',
    'x'.repeat(256),
    `${'x'.repeat(205)}/`.repeat(5),
    `${'%C3%A9'.repeat(100)}/`.repeat(6),
  ];
  for (const path of bad) {
    const { status, body } = await put(`/v1/files/main/${path}`);
    assert.equal(status, 400, `${path.slice(0, 40)}: ${JSON.stringify(body)}`);
    assert.ok(body.error.code && body.error.message);
    assert.equal((await raw(api.url, `/v1/files/main/${path}`)).status, 400);
  }
  for (const drive of ['ma%00in', 'ma%2Fin', '..', '%2e%2e'])
    assert.equal((await put(`/v1/files/${drive}/x`)).status, 400, drive);
  assert.equal((await put('/v1/files/nosuchdrive/x')).status, 404);
  assert.equal((await put('/v1/files/main')).status, 404);
  assert.equal((await api.call('GET', '/v1/nodes?drive=main&limit=1000')).body.nodes.length, before);
});

test('a path of 1,024 bytes is taken, one of 1,025 is not', async () => {
  const longest = [255, 255, 255, 254, 1].map((length) => 'x'.repeat(length)).join('/');
  assert.equal(longest.length, 1_024);
  assert.equal((await put(`/v1/files/main/${longest}`)).status, 201);
  const tooLong = await put(`/v1/files/main/${longest}b`);
  assert.deepEqual([tooLong.status, tooLong.body.error.code], [400, 'PATH_TOO_LONG']);
});

test('ranges: the first, the last, a suffix and beyond the end', async () => {
  const bytes = bytesOf(1_000);
  await api.send('/v1/files/main/ranges', bytes);
  const cases: [string, number, number, number][] = [
    ['bytes=0-0', 206, 0, 1],
    ['bytes=0-499', 206, 0, 500],
    ['bytes=999-', 206, 999, 1_000],
    ['bytes=500-99999999999999999999', 206, 500, 1_000],
    ['bytes=-1', 206, 999, 1_000],
    ['bytes=-5000', 206, 0, 1_000],
    // Several, other units and nonsense are answered with the whole file.
    ['bytes=0-1,5-6', 200, 0, 1_000],
    ['bytes=5-2', 200, 0, 1_000],
    ['bytes=-', 200, 0, 1_000],
    ['bytes=a-b', 200, 0, 1_000],
    ['bytes=--1', 200, 0, 1_000],
    ['lines=1-2', 200, 0, 1_000],
  ];
  for (const [range, status, from, to] of cases) {
    const answer = await download('ranges', { Range: range });
    assert.equal(answer.status, status, range);
    assert.deepEqual(answer.bytes, bytes.subarray(from, to), range);
    const expected = status === 206 ? `bytes ${from}-${to - 1}/1000` : null;
    assert.equal(answer.headers.get('content-range'), expected);
    assert.equal(answer.headers.get('content-length'), String(to - from));
    assert.equal(answer.headers.get('accept-ranges'), 'bytes');
  }
  for (const range of ['bytes=1000-', 'bytes=1000-2000', 'bytes=99999999999999999999-', 'bytes=-0']) {
    const answer = await download('ranges', { Range: range });
    assert.deepEqual([answer.status, answer.headers.get('content-range')], [416, 'bytes */1000'], range);
    assert.equal(JSON.parse(answer.bytes.toString()).error.code, 'RANGE_NOT_SATISFIABLE');
    assert.equal(answer.headers.get('etag'), null);
  }
});

test('conditions of a download are evaluated as RFC 9110 says', async () => {
  await api.send('/v1/files/main/cond', bytesOf(100));
  const { headers } = await download('cond');
  const etag = headers.get('etag')!;
  const modified = headers.get('last-modified')!;
  const earlier = new Date(Date.parse(modified) - 10_000).toUTCString();
  const later = new Date(Date.parse(modified) + 10_000).toUTCString();
  const cases: [Record<string, string>, number, number][] = [
    [{ 'If-None-Match': etag }, 304, 0],
    [{ 'If-None-Match': `W/${etag}` }, 304, 0],
    [{ 'If-None-Match': `"x", ${etag}` }, 304, 0],
    [{ 'If-None-Match': '*' }, 304, 0],
    [{ 'If-None-Match': '"x"' }, 200, 100],
    [{ 'If-None-Match': '"x"', 'If-Modified-Since': later }, 200, 100],
    [{ 'If-Modified-Since': modified }, 304, 0],
    [{ 'If-Modified-Since': later }, 304, 0],
    [{ 'If-Modified-Since': earlier }, 200, 100],
    [{ 'If-Modified-Since': 'yesterday' }, 200, 100],
    [{ 'If-Match': etag }, 200, 100],
    [{ 'If-Match': '*' }, 200, 100],
    [{ 'If-Match': '"x"' }, 412, -1],
    [{ 'If-Match': `W/${etag}` }, 412, -1],
    [{ 'If-Unmodified-Since': earlier }, 412, -1],
    [{ 'If-Unmodified-Since': modified }, 200, 100],
    [{ Range: 'bytes=0-9', 'If-Range': etag }, 206, 10],
    [{ Range: 'bytes=0-9', 'If-Range': '"x"' }, 200, 100],
    [{ Range: 'bytes=0-9', 'If-Range': `W/${etag}` }, 200, 100],
    [{ Range: 'bytes=0-9', 'If-Range': modified }, 206, 10],
    [{ Range: 'bytes=0-9', 'If-Range': earlier }, 200, 100],
    [{ Range: 'bytes=0-9', 'If-None-Match': etag }, 304, 0],
    [{ Range: 'bytes=500-', 'If-Match': '"x"' }, 412, -1],
  ];
  for (const [conditions, status, length] of cases) {
    const answer = await download('cond', conditions);
    assert.equal(answer.status, status, JSON.stringify(conditions));
    if (length >= 0) assert.equal(answer.bytes.length, length, JSON.stringify(conditions));
    if (status === 304) assert.equal(answer.headers.get('etag'), etag);
    if (status === 412) assert.equal(answer.headers.get('content-disposition'), null);
  }
});

test('HEAD has the headers of GET and no body, of full and of empty files', async () => {
  for (const size of [0, 77]) {
    await api.send(`/v1/files/main/head-${size}`, bytesOf(size), { 'Content-Type': 'image/png' });
    const [get, head] = [await download(`head-${size}`), await download(`head-${size}`, {}, 'HEAD')];
    const hop = new Set(['date', 'connection', 'keep-alive', 'x-request-id']);
    const plain = (headers: Headers) => Object.fromEntries([...headers].filter(([name]) => !hop.has(name)));
    assert.deepEqual(plain(head.headers), plain(get.headers));
    assert.deepEqual([head.status, head.bytes.length, get.bytes.length], [200, 0, size]);
    assert.equal(head.headers.get('content-length'), String(size));
  }
  // Ranges are a matter of GET.
  assert.equal((await download('head-77', { Range: 'bytes=0-1' }, 'HEAD')).status, 200);
  assert.equal((await download('head-none', {}, 'HEAD')).status, 404);
  const range = await download('head-0', { Range: 'bytes=0-0' });
  assert.deepEqual([range.status, range.headers.get('content-range')], [416, 'bytes */0']);
});

test('whatever a browser could run is a download, and nothing is sniffed or scripted', async () => {
  const types: [string, string][] = [
    ['text/html', 'attachment'],
    ['image/svg+xml', 'attachment'],
    ['application/xhtml+xml', 'attachment'],
    ['text/xml', 'attachment'],
    ['application/javascript', 'attachment'],
    ['text/plain-html', 'attachment'],
    ['application/octet-stream', 'attachment'],
    ['image/png', 'inline'],
    ['text/plain; charset=utf-8', 'inline'],
    ['application/pdf', 'inline'],
    ['video/mp4', 'inline'],
  ];
  for (const [type, kind] of types) {
    await put('/v1/files/main/active', '<script>alert(1)</script>', { 'Content-Type': type });
    for (const query of ['', '?disposition=inline']) {
      const { headers } = await download(`active${query}`);
      assert.ok(headers.get('content-disposition')!.startsWith(`${kind};`), type);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.match(headers.get('content-security-policy')!, /default-src 'none'; sandbox/);
      assert.equal(headers.get('content-type'), type);
    }
    const forced = await download('active?disposition=attachment');
    assert.ok(forced.headers.get('content-disposition')!.startsWith('attachment;'));
  }
});

test('folders, unfinished files and things that are not there are 404', async () => {
  await api.send('/v1/files/main/folder/file', Buffer.from('x'));
  await api.call('POST', '/v1/uploads', { drive: 'main', path: 'unfinished', size: 5 });
  for (const path of ['folder', 'unfinished', 'nothing', 'folder/file/deeper']) {
    for (const method of ['GET', 'HEAD', 'DELETE'])
      assert.equal((await download(path, {}, method)).status, 404, `${method} ${path}`);
  }
  const folder = await api.call('GET', '/v1/files/main/folder');
  assert.match(folder.body.error.message, /"folder" is a folder.* as nodes/);
  const below = await api.send('/v1/files/main/folder/file/deeper', Buffer.from('x'));
  assert.deepEqual([below.status, below.body.error.code], [409, 'NOT_A_FOLDER']);
  const over = await api.send('/v1/files/main/folder', Buffer.from('x'));
  assert.deepEqual([over.status, over.body.error.code], [409, 'NODE_EXISTS']);
});

test('a client that goes away during a download leaves no stream of the store open', async () => {
  await api.send('/v1/files/main/leak', bytesOf(6 * mebibyte));
  opened.length = 0;
  const { hostname, port } = new URL(api.url);
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      const request = httpRequest({ hostname, port, path: '/v1/files/main/leak' });
      request.on('error', () => {});
      request.on('response', (response) => response.once('data', () => request.destroy()));
      request.end();
      await new Promise((resolve) => request.once('close', resolve));
    }),
  );
  const areClosed = (): boolean => opened.length === 10 && opened.every((stream) => stream.closed);
  await waitUntil('all streams are closed', areClosed, { timeoutMs: 30_000 });
});

test('a client that asks first is refused before it sends a byte, and told to go on otherwise', async () => {
  const ask = (path: string, length: number, headers = '') =>
    converse(
      api.url,
      [
        `PUT ${path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: ${length}\r\n${headers}\r\n`,
      ],
      10_000,
      / 100 Continue\r\n\r\n/,
    );
  const refusals: [string, RegExp][] = [
    [await ask('/v1/files/main/asks', 9 * mebibyte), /^HTTP\/1.1 413 [^]*FILE_TOO_LARGE/],
    [await ask('/v1/files/main/asks', 9, 'X-Sluice-Key: wrong\r\n'), /^HTTP\/1.1 401 /],
    [await ask('/v1/files/none/asks', 9), /^HTTP\/1.1 404 /],
    [await ask('/v1/files/main/a%2Fb', 9), /^HTTP\/1.1 400 /],
    [await ask('/v1/uploads/none/chunks/0', 9), /^HTTP\/1.1 404 /],
    [await ask('/v1/nowhere', 9), /^HTTP\/1.1 404 /],
  ];
  for (const [text, expected] of refusals) assert.match(text, expected);
  assert.match(await ask('/v1/files/main/asks', 9), /^HTTP\/1.1 100 Continue\r\n\r\n$/);
  const json = '{"drive":"main","path":"asks.json","size":1}';
  const head = `POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n`;
  assert.match(
    await converse(api.url, [head, json], 10_000, /HTTP\/1.1 201 /),
    /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 201 /,
  );
});

test('curl stores and fetches a file as the documentation says', async (t) => {
  const run = promisify(execFile);
  const curl = async (...args: string[]): Promise<string> =>
    (await run('curl', ['-sS', '--max-time', '20', ...args], { maxBuffer: 32 * mebibyte })).stdout;
  if (!(await run('curl', ['--version']).catch(() => undefined))) return t.skip('there is no curl here');
  const url = `${api.url}/v1/files/main/curl.txt`;
  const file = new URL(import.meta.url).pathname;
  const expected = ['-w', '%{http_code}', '-o', '/dev/null'];
  assert.equal(await curl('-T', file, ...expected, url), '201');
  assert.equal(await curl('-T', file, '-H', 'Expect: 100-continue', ...expected, url), '200');
  assert.equal(await curl('-T', file, '-H', 'Transfer-Encoding: chunked', ...expected, url), '200');
  assert.match(await curl(url), /curl stores and fetches a file/);
  assert.equal(await curl('-X', 'DELETE', ...expected, url), '200');
});

test('a client that is refused while it sends, and reads only afterwards, hears why', async () => {
  // An end that is near: the connection serves the next request, however often it was refused.
  const near = await connectTo(api.url);
  for (let i = 0; i < 12; i++) {
    await near.send(
      `PUT /v1/files/main/refused HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${9 * mebibyte}`,
      9,
    );
    const text = await near.answer(/FILE_TOO_LARGE.*\}$/);
    assert.match(text, /^HTTP\/1.1 413 /);
    assert.doesNotMatch(text, /^connection: close/im);
    // A file that is small enough to be stored at once, but not in this drive.
    await near.send(
      `PUT /v1/files/none/refused HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 * mebibyte}`,
      2,
    );
    assert.match(await near.answer(/DRIVE_NOT_FOUND.*\}$/), /^HTTP\/1.1 404 /);
  }
  await near.send('GET /v1/drives HTTP/1.1\r\nHost: localhost', 0);
  assert.match(await near.answer(/"main"/), /^HTTP\/1.1 200 /);
  near.socket.destroy();
  // One that is far: it is closed, but not before the answer was heard.
  for (const length of [`Content-Length: ${900 * mebibyte}`, 'Transfer-Encoding: chunked']) {
    const far = await connectTo(api.url);
    await far.send(`PUT /v1/files/main/refused%00 HTTP/1.1\r\nHost: localhost\r\n${length}`, 0);
    const text = await far.answer(/\}$/);
    assert.match(text, /^HTTP\/1.1 4\d\d [^]*^connection: close/im);
    far.socket.destroy();
  }
});

/** A connection that writes all of a request before it reads. */
async function connectTo(url: string) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  await once(socket, 'connect');
  return {
    socket,
    send: async (head: string, mebibytes: number): Promise<void> => {
      socket.pause();
      socket.write(`${head}\r\n\r\n`);
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.write(Buffer.alloc(mebibytes * mebibyte), () => resolve());
      });
    },
    answer: async (end: RegExp): Promise<string> => {
      let text = '';
      socket.resume();
      while (!end.test(text)) text += String((await once(socket, 'data'))[0]);
      return text;
    },
  };
}
