/** The S3 server can be hurt as promised, and each fault of the proxy is what a plain HTTP client sees. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createServer, request, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import {
  startS3Faults,
  startVersitygw,
  versitygwProblem,
  type S3Faults,
  type S3FaultRule,
} from '../src/index.js';

interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

let target: Server;
let carriedOut: string[];
let faults: S3Faults;

before(async () => {
  target = createServer((asked, reply) => {
    asked.resume().on('end', () => {
      carriedOut.push(`${asked.method} ${asked.url} at ${asked.headers.host}`);
      reply.writeHead(200, { etag: '"right"', 'content-length': 10 }).end('0123456789');
    });
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
});
after(() => new Promise((resolve) => target.close(resolve)));

beforeEach(async () => {
  carriedOut = [];
  faults = await startS3Faults(`http://127.0.0.1:${(target.address() as AddressInfo).port}`);
});
afterEach(() => faults.stop());

test('S3 proxy: without faults everything passes, with the host that was signed', async () => {
  assert.equal((await send('PUT', '/bucket/a%20b?partNumber=3&uploadId=u')).body, '0123456789');
  assert.deepEqual(faults.requests, [
    { operation: 'UploadPart', key: 'a b', hasCrc64: false, partNumber: 3 },
  ]);
  assert.deepEqual(carriedOut, ['PUT /bucket/a%20b?partNumber=3&uploadId=u at signed.example']);
});

test('S3 proxy: operations are told apart', async () => {
  const requests = {
    'GET /b?list-type=2': 'ListObjects',
    'GET /b?uploads': 'ListMultipartUploads',
    'GET /b/k?uploadId=u': 'ListParts',
    'GET /b/k': 'GetObject',
    'POST /b/k?uploads': 'CreateMultipartUpload',
    'POST /b/k?uploadId=u': 'CompleteMultipartUpload',
    'DELETE /b/k?uploadId=u': 'AbortMultipartUpload',
    'DELETE /b/k': 'DeleteObject',
    'HEAD /b/k': 'HeadObject',
    'PUT /b/k': 'PutObject',
  };
  for (const line of Object.keys(requests)) await send(...(line.split(' ') as [string, string]));
  await send('PUT', '/b/k', { 'x-amz-copy-source': 'b/other' });
  await send('PUT', '/b/k?uploadId=u&partNumber=1', { 'x-amz-copy-source': 'b/other' });
  const seen = faults.requests.map(({ operation }) => operation);
  assert.deepEqual(seen, [...Object.values(requests), 'CopyObject', 'UploadPartCopy']);
});

test('S3 proxy: a rule is for the requests it names, as often as it says', async () => {
  const answer = { do: 'answer', status: 503, code: 'SlowDown' } as const;
  const rule = faults.inject({ operation: 'UploadPart', key: 'k', partNumber: 2, fault: answer, times: 2 });
  const statuses: number[] = [];
  for (const path of ['/b/k?partNumber=1&uploadId=u', '/b/other?partNumber=2&uploadId=u', '/b/k']) {
    statuses.push((await send('PUT', path)).status);
  }
  for (let i = 0; i < 3; i++) statuses.push((await send('PUT', '/b/k?partNumber=2&uploadId=u')).status);
  assert.deepEqual(statuses, [200, 200, 200, 503, 503, 200]);
  assert.equal(rule.applied, 2);
  assert.equal(carriedOut.length, 4);
});

test('S3 proxy: a connection is cut before the server or after it', async () => {
  faults.inject({ fault: { do: 'cut', when: 'before' } });
  await assert.rejects(send('PUT', '/b/k'), { code: 'ECONNRESET' });
  assert.equal(carriedOut.length, 0);
  faults.inject({ fault: { do: 'cut', when: 'after' } });
  await assert.rejects(send('PUT', '/b/k'), { code: 'ECONNRESET' });
  assert.equal(carriedOut.length, 1);
});

test('S3 proxy: replies are delayed, altered, truncated, or success that failed', async () => {
  const did = async (fault: S3FaultRule['fault']): Promise<Reply> => {
    faults.inject({ fault });
    return send('GET', '/b/k');
  };
  const began = performance.now();
  assert.equal((await did({ do: 'delay', ms: 60 })).status, 200);
  assert.ok(performance.now() - began >= 55);
  const altered = await did({ do: 'alter', headers: { etag: '"wrong"' } });
  assert.deepEqual([altered.headers.etag, altered.body], ['"wrong"', '0123456789']);
  assert.equal((await did({ do: 'alter', headers: { etag: undefined } })).headers.etag, undefined);
  await assert.rejects(did({ do: 'truncate', afterBytes: 4 }), /aborted/);
  const before = carriedOut.length;
  const failed = await did({ do: 'error in 200', code: 'InternalError', carriedOut: false });
  assert.deepEqual([failed.status, carriedOut.length], [200, before]);
  assert.match(failed.body, /<Code>InternalError<\/Code>.*<\/Error>$/);
  await did({ do: 'error in 200', code: 'InternalError', carriedOut: true });
  assert.equal(carriedOut.length, before + 1);
});

test('S3 proxy: a request that hangs stays open until it is given up', async () => {
  faults.inject({ fault: { do: 'hang' } });
  await assert.rejects(send('PUT', '/b/k', {}, 80), { message: 'silence' });
  assert.equal(carriedOut.length, 0);
  faults.inject({ fault: { do: 'hang' } });
  faults.heal();
  assert.equal((await send('PUT', '/b/k')).status, 200);
});

test('versitygw answers, keeps its port over kill -9, freezes, and leaves nothing behind', async (t) => {
  const problem = versitygwProblem();
  if (problem !== undefined) return t.skip(problem);
  const server = await startVersitygw({ bucket: 'own-bucket' });
  const ask = (patienceMs = 5_000): Promise<Reply> =>
    send('GET', '/own-bucket', {}, patienceMs, Number(new URL(server.endpoint).port));
  assert.equal((await ask()).status, 403);
  const { pid, endpoint, folder } = server;
  await server.kill9();
  await assert.rejects(ask());
  await server.restart();
  assert.deepEqual([server.endpoint, server.pid === pid], [endpoint, false]);
  server.pause();
  await assert.rejects(ask(200), { message: 'silence' });
  server.resume();
  assert.equal((await ask()).status, 403);
  assert.ok(existsSync(join(folder, 'own-bucket')));
  await server.stop();
  assert.ok(!existsSync(folder));
});

function send(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  patienceMs = 5_000,
  port = Number(new URL(faults.endpoint).port),
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, method, path, agent: false, timeout: patienceMs };
    const asked = request({ ...options, headers: { host: 'signed.example', ...headers } }, (reply) => {
      let body = '';
      reply.on('data', (chunk: Buffer) => (body += chunk.toString()));
      reply.on('end', () => resolve({ status: reply.statusCode!, headers: reply.headers, body }));
      reply.on('error', reject);
    });
    asked.on('timeout', () => asked.destroy(new Error('silence')));
    asked.on('error', reject);
    asked.end(method === 'PUT' ? 'body' : undefined);
  });
}
