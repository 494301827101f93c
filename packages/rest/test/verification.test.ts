// Results that services report: who may, what is believed, and that each counts once.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { ServiceKeys } from '../src/index.js';
import { converse, startApi, stopServers, type Answer, type Api, type Loose } from './harness.js';

const address = '/internal/verification/result';
const keys = ['old-service-key-0001', 'new-service-key-0002'];
let api: Api;

before(async () => {
  api = await startApi('file', {
    access: {
      keys: [
        { tenant: 'acme', key: 'acme-key' },
        { tenant: 'beta', key: 'beta-key' },
      ],
    },
    tenants: ['acme', 'beta'],
    rest: { serviceKeys: new ServiceKeys(keys) },
  });
});

after(stopServers);

const acme = { Authorization: 'Bearer acme-key' };
const service = { 'X-Service-Key': keys[0]! };

function report(body: unknown, headers: Record<string, string> = service): Promise<Answer> {
  return api.call('POST', address, body, headers);
}

async function newFile(): Promise<string> {
  const path = `/v1/files/main/${randomUUID()}`;
  const put = await api.send(path, Buffer.from('a passport'), acme);
  assert.equal(put.status, 201);
  return put.body.nodeId as string;
}

async function node(id: string): Promise<Loose> {
  return (await api.call('GET', `/v1/nodes/${id}`, undefined, acme)).body;
}

test('a result is answered as documented, shown with the file, and listed', async () => {
  const documentId = await newFile();
  const body = {
    documentId,
    userId: randomUUID(),
    verificationResult: 'approved',
    score: 85,
    decision: 'a clear picture',
    metadata: { engine: 'ocr-7', pages: [1, 2] },
  };
  const answer = await report(body);
  assert.equal(answer.status, 200);
  assert.deepEqual(Object.keys(answer.body), ['success', 'message', 'timestamp']);
  assert.deepEqual([answer.body.success, answer.body.message], [true, 'Verification result received']);
  assert.equal(new Date(answer.body.timestamp).toISOString(), answer.body.timestamp);
  assert.deepEqual((await node(documentId)).verification, {
    result: 'approved',
    score: 85,
    decision: 'a clear picture',
    receivedAt: answer.body.timestamp,
  });
  const { body: list } = await api.call('GET', `/v1/nodes/${documentId}/verifications`, undefined, acme);
  assert.equal(list.items.length, 1);
  assert.deepEqual(list.items[0].metadata, body.metadata);
  const foreign = await api.call('GET', `/v1/nodes/${documentId}/verifications`, undefined, {
    Authorization: 'Bearer beta-key',
  });
  assert.equal(foreign.status, 404);
});

test('the smallest body is enough, and fields that nobody knows change nothing', async () => {
  const documentId = await newFile();
  const first = await report({ documentId, verificationResult: 'rejected' });
  assert.equal(first.status, 200);
  const again = await report({ documentId, verificationResult: 'rejected', tenant: 'beta', success: true });
  assert.deepEqual(again.body, first.body);
});

test('a result that is delivered again, also twenty times at once, gets the same answer and counts once', async () => {
  const documentId = await newFile();
  const body = { documentId, resultId: randomUUID(), verificationResult: 'approved', score: 1 };
  const answers = await Promise.all(Array.from({ length: 20 }, () => report(body)));
  assert.equal(new Set(answers.map((answer) => JSON.stringify(answer.body))).size, 1);
  const reordered = { score: 1, verificationResult: 'approved', resultId: body.resultId, documentId };
  assert.deepEqual((await report(reordered)).body, answers[0]!.body);
  const { body: list } = await api.call('GET', `/v1/nodes/${documentId}/verifications`, undefined, acme);
  assert.equal(list.items.length, 1);
  const other = await report({ ...body, score: 2 });
  assert.deepEqual([other.status, other.body.error.code], [409, 'RESULT_CONFLICT']);
  assert.equal((await node(documentId)).verification.score, 1);
});

test('every configured service key works; any other, and a key of a tenant, is answered 401', async () => {
  const documentId = await newFile();
  const body = { documentId, verificationResult: 'approved' };
  for (const key of keys) assert.equal((await report(body, { 'X-Service-Key': key })).status, 200);
  const wrong = ['', 'x', keys[0]!.slice(0, -1), `${keys[0]}x`, 'acme-key', keys.join(',')];
  for (const key of wrong) {
    const { status, body: refusal } = await report(body, { 'X-Service-Key': key });
    assert.deepEqual([status, refusal.error.code], [401, 'SERVICE_KEY_INVALID']);
  }
  assert.equal((await report(body, acme)).status, 401);
  assert.equal((await report(body, {})).status, 401);
});

test('without a key nothing of the body is read', async () => {
  const head = [`POST ${address} HTTP/1.1`, 'Host: localhost', 'Content-Type: application/json'];
  const said = await converse(
    api.url,
    [`${head.join('\r\n')}\r\nContent-Length: 1000000\r\n\r\n{"documentId"`],
    10_000,
    /SERVICE_KEY_INVALID/,
  );
  assert.match(said, /^HTTP\/1\.1 401 /);
});

test('a server without service keys lets no service in', async (t) => {
  const closed = await startApi(t);
  for (const key of ['', 'undefined', 'x']) {
    const body = { documentId: randomUUID(), verificationResult: 'approved' };
    assert.equal((await closed.call('POST', address, body, { 'X-Service-Key': key })).status, 401);
  }
});

test('a body that is wrong is answered 400 with the name of the field, and changes nothing', async () => {
  const documentId = await newFile();
  const right = { documentId, verificationResult: 'approved' };
  const wrong: [field: string, body: object][] = [
    ['documentId', { verificationResult: 'approved' }],
    ['verificationResult', { documentId }],
    ['documentId', { ...right, documentId: 'test-uuid' }],
    ['documentId', { ...right, documentId: 7 }],
    ['documentId', { ...right, documentId: `${documentId}\n` }],
    ['verificationResult', { ...right, verificationResult: 'maybe' }],
    ['verificationResult', { ...right, verificationResult: ['approved'] }],
    ['score', { ...right, score: '85' }],
    ['score', { ...right, score: -0.1 }],
    ['score', { ...right, score: 101 }],
    ['userId', { ...right, userId: '' }],
    ['userId', { ...right, userId: { $ne: null } }],
    ['userId', { ...right, userId: 'a\u0000b' }],
    ['resultId', { ...right, resultId: 'x'.repeat(201) }],
    ['resultId', { ...right, resultId: 'a\r\nb' }],
    ['decision', { ...right, decision: null }],
    ['decision', { ...right, decision: '\u0000' }],
    ['metadata', { ...right, metadata: [] }],
    ['metadata', { ...right, metadata: 'x' }],
    ['metadata', { ...right, metadata: { deep: deep(100) } }],
    ['metadata', { ...right, metadata: { '\ud800': 1 } }],
    ['metadata', { ...right, metadata: { long: 'x'.repeat(70_000) } }],
  ];
  for (const [field, body] of wrong) {
    const answer = await report(body);
    const shown = JSON.stringify(body).slice(0, 100);
    assert.deepEqual([answer.status, answer.body.error.details?.field], [400, field], shown);
    assert.match(answer.body.error.message, new RegExp(field), shown);
  }
  assert.equal((await node(documentId)).verification, undefined);
});

function deep(levels: number): object {
  return levels === 0 ? {} : { inside: deep(levels - 1) };
}

test('what is no JSON, or poisons objects, is refused', async () => {
  const documentId = await newFile();
  const texts = [
    '',
    'null',
    '[]',
    '"approved"',
    '{"documentId"',
    `{"documentId":"${documentId}","verificationResult":"approved","metadata":{"__proto__":{"x":1}}}`,
    `{"documentId":"${documentId}","verificationResult":"approved","metadata":{"a":1e999}}`,
    '['.repeat(100_000),
  ];
  for (const text of texts) {
    const headers = { ...service, 'Content-Type': 'application/json' };
    const answer = await fetch(api.url + address, { method: 'POST', headers, body: text });
    assert.equal(answer.status, 400, `${text.slice(0, 60)}: ${await answer.text()}`);
  }
  const form = await fetch(api.url + address, { method: 'POST', headers: service, body: 'a=b' });
  assert.equal(form.status, 400);
  const large = JSON.stringify({ documentId, metadata: { long: 'x'.repeat(2_000_000) } });
  const headers = { ...service, 'Content-Type': 'application/json' };
  const refused = await fetch(api.url + address, { method: 'POST', headers, body: large });
  assert.equal(refused.status, 413);
  assert.equal((await node(documentId)).verification, undefined);
});

test('a document that is not there, and a folder, are answered 404', async () => {
  const folder = await api.call('POST', '/v1/nodes', { drive: 'main', path: randomUUID() }, acme);
  for (const documentId of [randomUUID(), folder.body.id as string]) {
    const { status, body } = await report({ documentId, verificationResult: 'approved' });
    assert.deepEqual([status, body.error.code], [404, 'NODE_NOT_FOUND']);
  }
});

test('a replaced file has no result until it is verified itself', async () => {
  const path = `/v1/files/main/${randomUUID()}`;
  const { body } = await api.send(path, Buffer.from('one'), acme);
  await report({ documentId: body.nodeId, verificationResult: 'approved' });
  assert.equal((await node(body.nodeId)).verification.result, 'approved');
  await api.send(path, Buffer.from('two'), acme);
  assert.equal((await node(body.nodeId)).verification, undefined);
});

test('the results of a file are listed page by page, the latest first, and none is left out', async () => {
  const documentId = await newFile();
  for (let n = 0; n < 7; n++)
    await report({
      documentId,
      resultId: `page-${documentId}-${n}`,
      verificationResult: 'approved',
      score: n,
    });
  const scores: number[] = [];
  const pages: number[] = [];
  for (let next: string | null = ''; next !== null;) {
    const from = next === '' ? '' : `&cursor=${next}`;
    const path = `/v1/nodes/${documentId}/verifications?limit=3${from}`;
    const { body } = await api.call('GET', path, undefined, acme);
    scores.push(...body.items.map((item: Loose) => item.score as number));
    pages.push(body.items.length);
    next = body.next;
  }
  assert.deepEqual(pages, [3, 3, 1]);
  assert.deepEqual(scores, [6, 5, 4, 3, 2, 1, 0]);
  for (const cursor of ['x', '3', Buffer.from('result:\0').toString('base64url')]) {
    const path = `/v1/nodes/${documentId}/verifications?cursor=${cursor}`;
    assert.equal((await api.call('GET', path, undefined, acme)).status, 400, cursor);
  }
});

test('a file with thousands of results shows all of them, also while more come', async () => {
  const documentId = await newFile();
  const many = 2_300;
  // Written as the records write them: to report each over HTTP would take a minute.
  await api.query(
    `INSERT INTO verifications (id, digest, node_id, object_key, version, result, score, metadata, received_at)
     SELECT 'result:' || $1::text || n, 'd', $1::text::uuid, 'k', 1, 'approved', n % 100, '{}', now() - (n / 2) * interval '1 second'
       FROM generate_series(1, ${many}) n`,
    [documentId],
  );
  const seen: string[] = [];
  for (let next: string | null = ''; next !== null;) {
    const from: string = next === '' ? '' : `&cursor=${next}`;
    const path = `/v1/nodes/${documentId}/verifications?limit=1000${from}`;
    const { status, body } = await api.call('GET', path, undefined, acme);
    assert.equal(status, 200);
    seen.push(...body.items.map((item: Loose) => item.resultId as string));
    next = body.next;
    await report({
      documentId,
      resultId: `late-${documentId}-${seen.length}`,
      verificationResult: 'rejected',
    });
  }
  assert.equal(seen.length, many);
  assert.equal(new Set(seen).size, many);
});
