// Uploads as a client over HTTP meets them.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import {
  bytesOf,
  completed,
  mebibyte,
  raw,
  sha256,
  startApi,
  stopServers,
  type Api,
  type Loose,
} from './harness.js';

after(stopServers);

const small = { settings: { preferredPartBytes: mebibyte, wholeBytes: mebibyte } };

test('a file is PENDING, UPLOADING and ACTIVE, or FAILED; one that is replaced stays ACTIVE', async (t) => {
  const api = await startApi(t);
  const size = 3_000;
  const begin = async (more: object = {}): Promise<{ id: string; nodeId: string }> =>
    (
      await api.call('POST', '/v1/uploads', {
        drive: 'main',
        path: 'states',
        size,
        chunkSize: 1_000,
        ...more,
      })
    ).body;
  const statusOf = async (nodeId: string): Promise<string> =>
    (await api.call('GET', `/v1/nodes/${nodeId}`)).body.status;
  const chunk = (id: string, n: number) => api.send(`/v1/uploads/${id}/chunks/${n}`, bytesOf(1_000, n));
  const wrong = await begin({ sha256: sha256(bytesOf(1)) });
  assert.equal(await statusOf(wrong.nodeId), 'PENDING');
  for (const n of [0, 1]) {
    assert.equal((await chunk(wrong.id, n)).status, 200);
    await waitUntil('it is UPLOADING', async () => (await statusOf(wrong.nodeId)) === 'UPLOADING');
  }
  await chunk(wrong.id, 2);
  await completed(api, wrong.id);
  assert.equal(await statusOf(wrong.nodeId), 'FAILED');
  const right = await begin();
  assert.equal(right.nodeId, wrong.nodeId);
  assert.equal(await statusOf(right.nodeId), 'PENDING');
  for (const n of [2, 0, 1]) await chunk(right.id, n);
  await completed(api, right.id);
  assert.equal(await statusOf(right.nodeId), 'ACTIVE');
  const replacement = await begin();
  await chunk(replacement.id, 0);
  assert.equal(await statusOf(right.nodeId), 'ACTIVE');
});

test('an upload begins, takes its chunks in any order, and ends with the digest of the file', async (t) => {
  const api = await startApi(t, small);
  const bytes = bytesOf(3 * mebibyte + 5);
  const chunkSize = 400_000;
  const begun = await api.call('POST', '/v1/uploads', {
    drive: 'main',
    path: 'a/b.bin',
    size: bytes.length,
    chunkSize,
  });
  assert.equal(begun.status, 201);
  const { id } = begun.body;
  assert.equal(begun.headers.get('location'), `/v1/uploads/${id}`);
  assert.deepEqual(begun.body.missing, [[0, bytes.length - 1]]);
  const numbers = Array.from({ length: Math.ceil(bytes.length / chunkSize) }, (_, n) => n);
  await Promise.all(
    numbers.toReversed().map(async (n) => {
      const chunk = bytes.subarray(n * chunkSize, (n + 1) * chunkSize);
      const digest = `sha-256=:${Buffer.from(sha256(chunk), 'hex').toString('base64')}:`;
      const answer = await api.send(`/v1/uploads/${id}/chunks/${n}`, chunk, { 'Content-Digest': digest });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      assert.equal(answer.body.ack, 'buffered');
    }),
  );
  const { state, result } = await completed(api, id);
  assert.equal(state, 'COMPLETED');
  assert.equal(result.sha256, sha256(bytes));
  const file = await fetch(`${api.url}/v1/files/main/a/b.bin`);
  assert.deepEqual(Buffer.from(await file.arrayBuffer()), bytes);
  // A chunk after the end replays the result.
  const late = await api.send(`/v1/uploads/${id}/chunks/0`, bytes.subarray(0, chunkSize));
  assert.deepEqual(
    [late.status, late.body.state, late.body.result.sha256],
    [200, 'COMPLETED', sha256(bytes)],
  );
});

test('ranges of bytes make a file whose length is told at the end', async (t) => {
  const api = await startApi(t, small);
  const bytes = bytesOf(2_500_000);
  const { body } = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'r.bin' });
  const range = (from: number, to: number, total = '*') =>
    api.send(`/v1/uploads/${body.id}/bytes`, bytes.subarray(from, to), {
      'Content-Range': `bytes ${from}-${to - 1}/${total}`,
    });
  assert.equal((await range(1_000_000, 2_000_000)).status, 200);
  assert.equal((await range(0, 600_000)).status, 200);
  const { body: view } = await api.call('GET', `/v1/uploads/${body.id}`);
  assert.deepEqual(view.missing, [
    [600_000, 999_999],
    [2_000_000, null],
  ]);
  assert.equal((await range(600_000, 1_000_000)).status, 200);
  assert.equal((await range(2_000_000, 2_500_000, '2500000')).status, 200);
  assert.equal((await completed(api, body.id)).result.sha256, sha256(bytes));
});

test('numbered chunks without a size wait for their predecessors, within a window', async (t) => {
  const api = await startApi(t, { settings: { ...small.settings, windowChunks: 4 } });
  const pieces = [100, 200_000, 3, 70_000].map((size, i) => bytesOf(size, i));
  const { body } = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'w.bin' });
  const send = (n: number, query = '') =>
    api.send(`/v1/uploads/${body.id}/chunks/${n}${query}`, pieces[n] ?? Buffer.from('x'));
  const tooFar = await send(4);
  assert.deepEqual(
    [tooFar.status, tooFar.body.error.code, tooFar.body.error.details.sendFirst],
    [409, 'WINDOW_EXCEEDED', 0],
  );
  for (const [n, query] of [
    [3, '?last=true'],
    [1, ''],
    [2, ''],
    [0, ''],
  ] as const)
    assert.equal((await send(n, query)).status, 200);
  assert.equal((await completed(api, body.id)).result.sha256, sha256(Buffer.concat(pieces)));
});

test('an idempotency key returns the same upload, and refuses another one', async (t) => {
  const api = await startApi(t);
  const headers = { 'Idempotency-Key': 'once' };
  const first = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'i', size: 5 }, headers);
  const again = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'i', size: 5 }, headers);
  assert.equal(again.body.id, first.body.id);
  const other = await api.call('POST', '/v1/uploads', { drive: 'main', path: 'other', size: 5 }, headers);
  assert.deepEqual([other.status, other.body.error.code], [422, 'IDEMPOTENCY_CONFLICT']);
});

test('bad chunks are refused with a code, and change nothing', async (t) => {
  const api = await startApi(t, small);
  const { body } = await api.call('POST', '/v1/uploads', {
    drive: 'main',
    path: 'bad',
    size: 250,
    chunkSize: 100,
  });
  const chunk = (n: string, size = 100, headers = {}) =>
    raw(api.url, `/v1/uploads/${body.id}/chunks/${n}`, {
      method: 'PUT',
      body: Buffer.alloc(size, 1),
      headers: { 'Content-Length': String(size), ...headers },
    });
  const code = (answer: { text: string }): string => JSON.parse(answer.text).error.code;
  for (const n of ['-1', '1.5', '1e3', '9007199254740993', '0x1', '01', '%20', 'NaN']) {
    const answer = await chunk(n);
    assert.deepEqual([answer.status, code(answer)], [400, 'CHUNK_NUMBER'], n);
  }
  const cases: [string, number, string][] = [
    ['3', 100, 'BEYOND_END'],
    ['0', 99, 'CHUNK_LENGTH'],
    ['0', 101, 'CHUNK_LENGTH'],
    ['2', 100, 'CHUNK_LENGTH'],
    ['0?last=true', 100, 'LAST_CONFLICT'],
    ['0?last=1', 100, 'REQUEST_INVALID'],
  ];
  for (const [n, size, expected] of cases) assert.equal(code(await chunk(n, size)), expected, `${n} ${size}`);
  const wrong = { 'Content-Digest': `sha-256=:${Buffer.alloc(32).toString('base64')}:` };
  assert.equal(code(await chunk('0', 100, wrong)), 'DIGEST_MISMATCH');
  assert.equal(code(await chunk('0', 100, { 'Content-Digest': 'md5=nonsense' })), 'DIGEST_INVALID');
  const { body: view } = await api.call('GET', `/v1/uploads/${body.id}`);
  assert.deepEqual([view.receivedBytes, view.state], [0, 'PENDING']);
});

test('hostile names and metadata are refused, and leave no node', async (t) => {
  const api = await startApi(t);
  const paths = [
    '../x',
    'a/../../x',
    'a//b',
    '/x',
    'x/',
    'nul\u0000',
    'cr\r\nlf',
    'rtl\u202etxt.exe',
    'x'.repeat(1_025),
    '.',
    '',
  ];
  for (const path of paths) {
    const { status, body } = await api.call('POST', '/v1/uploads', { drive: 'main', path, size: 1 });
    assert.equal(status, 400, `${JSON.stringify(path)}: ${JSON.stringify(body)}`);
  }
  const polluted = '{"drive":"main","path":"m","size":1,"metadata":{"__proto__":{"x":"y"}}}';
  const answer = await raw(api.url, '/v1/uploads', {
    method: 'POST',
    body: Buffer.from(polluted),
    headers: { 'Content-Type': 'application/json', 'Content-Length': String(polluted.length) },
  });
  assert.equal(answer.status, 400, answer.text);
  const { body } = await api.call('GET', '/v1/nodes?drive=main');
  assert.deepEqual(body.nodes, []);
});

test('a cancelled upload takes nothing more and leaves nothing', async (t) => {
  const api = await startApi(t, small);
  const { body } = await api.call('POST', '/v1/uploads', {
    drive: 'main',
    path: 'c',
    size: 250,
    chunkSize: 100,
  });
  await api.send(`/v1/uploads/${body.id}/chunks/0`, Buffer.alloc(100));
  const cancelled = await api.call('DELETE', `/v1/uploads/${body.id}`);
  assert.deepEqual([cancelled.status, cancelled.body.state], [200, 'CANCELLED']);
  const late = await api.send(`/v1/uploads/${body.id}/chunks/1`, Buffer.alloc(100));
  assert.deepEqual([late.status, late.body.error.code], [409, 'UPLOAD_ENDED']);
  assert.deepEqual((await api.call('GET', '/v1/nodes?drive=main')).body.nodes, []);
});

test('a file with another SHA-256 than declared fails with the reason', async (t) => {
  const api = await startApi(t, small);
  const bytes = bytesOf(300);
  const sha = '0'.repeat(64);
  const { body } = await api.call('POST', '/v1/uploads', {
    drive: 'main',
    path: 's',
    size: 300,
    chunkSize: 300,
    sha256: sha,
  });
  await api.send(`/v1/uploads/${body.id}/chunks/0`, bytes);
  const { state, error } = await completed(api, body.id);
  assert.deepEqual([state, error.code], ['FAILED', 'SHA256_MISMATCH']);
  assert.equal((await fetch(`${api.url}/v1/files/main/s`)).status, 404);
});

test('progress comes as a snapshot and numbered updates, and goes on after a reconnection', async (t) => {
  const api = await startApi(t, small);
  const { body } = await api.call('POST', '/v1/uploads', {
    drive: 'main',
    path: 'p',
    size: 400,
    chunkSize: 100,
  });
  const first = await eventsOf(api, body.id, 2, async () => {
    await api.send(`/v1/uploads/${body.id}/chunks/0`, Buffer.alloc(100));
  });
  assert.deepEqual(
    first.map(({ event }) => event),
    ['snapshot', 'progress'],
  );
  assert.equal(first[1]!.data.receivedBytes, 100);
  for (const n of [1, 2]) await api.send(`/v1/uploads/${body.id}/chunks/${n}`, Buffer.alloc(100));
  const sendLast = async (): Promise<void> => {
    await api.send(`/v1/uploads/${body.id}/chunks/3`, Buffer.alloc(100));
  };
  const rest = await eventsOf(api, body.id, Infinity, sendLast, first[1]!.id);
  assert.equal(rest.at(-1)!.data.state, 'COMPLETED');
  // What was missed, and what follows: nothing is left out, told twice or taken back.
  assert.deepEqual(
    rest.map(({ event, id }) => [event, Number(id)]),
    rest.map((_, i) => ['progress', Number(first[1]!.id) + 1 + i]),
  );
  const received = rest.map(({ data }) => data.receivedBytes);
  assert.deepEqual(received.slice(0, 3), [200, 300, 400]);
  assert.deepEqual(
    received,
    [...received].sort((a, b) => a - b),
  );
});

test('progress is told to its end also to who has seen more than the server remembers, or less', async (t) => {
  const api = await startApi(t, small);
  const chunks = 250;
  for (const after of ['0', '999999']) {
    const { body } = await api.call('POST', '/v1/uploads', {
      drive: 'main',
      path: `seen-${after}`,
      size: chunks,
      chunkSize: 1,
    });
    const sendChunk = (n: number) => api.send(`/v1/uploads/${body.id}/chunks/${n}`, Buffer.alloc(1));
    for (let n = 1; n < chunks; n++) await sendChunk(n);
    const events = await eventsOf(api, body.id, Infinity, async () => void (await sendChunk(0)), after);
    assert.equal(events[0]!.event, 'snapshot');
    assert.equal(events[0]!.data.receivedBytes, chunks - 1);
    assert.equal(events.at(-1)!.data.state, 'COMPLETED');
    const ids = events.map(({ id }) => Number(id));
    assert.deepEqual(
      ids,
      ids.map((_, i) => ids[0]! + i),
    );
  }
});

interface SentEvent {
  event: string;
  id: string;
  data: Loose;
}

async function eventsOf(
  api: Api,
  id: string,
  most: number,
  then?: () => Promise<void>,
  after?: string,
): Promise<SentEvent[]> {
  const abort = new AbortController();
  const headers: Record<string, string> = after === undefined ? {} : { 'Last-Event-ID': after };
  const response = await fetch(`${api.url}/v1/uploads/${id}/events`, { headers, signal: abort.signal });
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const events: SentEvent[] = [];
  let text = '';
  let acted = false;
  const decoder = new TextDecoder();
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(piece, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => line.split(': ', 2) as [string, string]),
      );
      if (fields.has('data'))
        events.push({
          event: fields.get('event')!,
          id: fields.get('id')!,
          data: JSON.parse(fields.get('data')!),
        });
      text = text.slice(end + 2);
    }
    if (!acted && events.length > 0) {
      acted = true;
      await then?.();
    }
    if (events.length >= most) break;
  }
  abort.abort();
  return events;
}
