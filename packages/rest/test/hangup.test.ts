// Clients that hang up in the middle are an ordinary event: no error is logged for them, whatever they were doing.
import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger } from '@sluice/base';
import { S3Store, storeErrors } from '@sluice/store';
import { startVersitygw, versitygwProblem, waitUntil } from '@sluice/testbed';
import { uploadErrors } from '@sluice/upload';
import { refuse } from '../src/rest.js';
import { bytesOf, mebibyte, startApi, stopServers } from './harness.js';

after(stopServers);
const size = 6 * mebibyte;

interface Told {
  message: string;
  err: unknown;
}

for (const kind of ['disk', 'S3'] as const)
  test(
    `${kind}: a client that hangs up is no error, wherever it was`,
    { skip: kind === 'S3' && versitygwProblem() },
    async (t) => {
      const errors: Told[] = [];
      let gone = 0;
      const gateway = kind === 'S3' ? await startVersitygw() : undefined;
      const s3 =
        gateway &&
        new S3Store({
          ...{ bucket: gateway.bucket, region: gateway.region, endpoint: gateway.endpoint },
          forcePathStyle: true,
          credentials: { accessKeyId: gateway.accessKey, secretAccessKey: gateway.secretKey },
        });
      t.after(async () => {
        s3?.close();
        await gateway?.stop();
      });
      const api = await startApi(t, {
        settings: { wholeBytes: 2 * mebibyte, maxFileBytes: 2 * size },
        // Some are gone before anybody reads from them.
        hooks: { beforeAccept: ({ path }) => (path.startsWith('late') ? pause(400) : undefined) },
        ...(s3 && { store: s3 }),
        rest: {
          logger: {
            ...silentLogger,
            debug: (_fields, message) => void (message === 'a client went away' && gone++),
            error: (fields, message) => void errors.push({ message, err: (fields as { err: unknown }).err }),
          },
        },
      });
      await api.send('/v1/files/main/there', bytesOf(size));
      const { hostname, port } = new URL(api.url);
      /** Sends some bytes of a body that was announced as longer, then nothing more; or reads a little of an answer. */
      const hangUp = (method: string, path: string, headers: Record<string, string>, bytes: number) =>
        new Promise<void>((resolve) => {
          const request = httpRequest({ hostname, port, path, method, headers });
          request.on('error', () => {});
          request.once('close', () => resolve());
          request.on('response', (response) => response.once('data', () => request.destroy()));
          if (method === 'GET') return void request.end();
          request.write(bytesOf(bytes), () => void pause(150).then(() => request.destroy()));
        });
      /** Says that nothing more comes, and still listens. */
      const fallSilent = (path: string, headers: Record<string, string>, bytes: number) =>
        new Promise<void>((resolve) => {
          const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
          const lines = Object.entries({ Host: hostname, ...headers }).map((line) => line.join(': '));
          socket.write(`PUT ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
          socket.write(bytesOf(bytes));
          socket.on('error', () => {});
          socket.once('close', () => resolve());
          socket.once('end', () => socket.destroy());
          socket.resume();
          void pause(150).then(() => socket.end());
        });
      const begin = async (more: object): Promise<string> =>
        `/v1/uploads/${(await api.call('POST', '/v1/uploads', { drive: 'main', path: 'f', ...more })).body.id}`;
      const length = { 'Content-Length': String(size) };
      const digest = { 'Content-Digest': `sha-256=:${Buffer.alloc(32).toString('base64')}:` };
      for (const bytes of [1, 300_000]) {
        await hangUp('PUT', '/v1/files/main/small', { 'Content-Length': String(bytes + 1) }, bytes);
        await hangUp('PUT', '/v1/files/main/large', length, bytes);
        await fallSilent('/v1/files/main/half', { 'Content-Length': String(bytes + 1) }, bytes);
        await fallSilent('/v1/files/main/late-half', { 'Content-Length': String(bytes + 1) }, bytes);
        await fallSilent('/v1/files/main/half-large', length, bytes);
        await fallSilent(`${await begin({ size, chunkSize: size })}/chunks/0`, length, bytes);
        await hangUp('PUT', '/v1/files/main/late', { 'Content-Length': String(bytes + 1) }, bytes);
        await hangUp('PUT', '/v1/files/main/late-large', length, bytes);
        await hangUp('PUT', '/v1/files/main/late-piped', { 'Transfer-Encoding': 'chunked' }, bytes);
        await hangUp('PUT', '/v1/files/main/piped', { 'Transfer-Encoding': 'chunked' }, bytes);
        await hangUp('PUT', `${await begin({ size, chunkSize: size })}/chunks/0`, length, bytes);
        await hangUp(
          'PUT',
          `${await begin({ size, chunkSize: size })}/chunks/0`,
          { ...length, ...digest },
          bytes,
        );
        const range = { ...length, 'Content-Range': `bytes 0-${size - 1}/${size}` };
        await hangUp('PUT', `${await begin({ size })}/bytes`, range, bytes);
        await hangUp(
          'PUT',
          `${await begin({})}/bytes`,
          { ...range, 'Content-Range': `bytes 0-${size - 1}/*` },
          bytes,
        );
      }
      await hangUp('GET', '/v1/files/main/there', {}, 0);
      await hangUp('GET', `${await begin({ size })}/events`, {}, 0);
      await waitUntil('the server has noticed', () => gone >= 28, { timeoutMs: 20_000 }).catch(() => {});
      assert.deepEqual(errors, []);
      assert.ok(gone > 0);
    },
  );

test('whatever says that the body of a client that is gone ended is no error; what else fails is one', () => {
  const lines: string[] = [];
  const logger = {
    ...silentLogger,
    debug: () => void lines.push('debug'),
    error: () => void lines.push('error'),
  };
  const reply = { raw: { destroyed: true }, header: () => reply, code: () => reply, type: () => reply };
  Object.assign(reply, { removeHeader: () => reply, send: () => {} });
  const request = { raw: { socket: {}, headers: {}, url: '/v1/x', complete: false }, method: 'PUT' };
  const cut = (code: string) => Object.assign(new Error(code), { code });
  const key = 'k';
  for (const error of [
    cut('ECONNRESET'),
    cut('ERR_STREAM_PREMATURE_CLOSE'),
    uploadErrors.BODY_TRUNCATED({ wanted: 2, got: 1 }),
    storeErrors.BODY_FAILED({ key, reason: 'it was closed before its end' }),
    storeErrors.BODY_FAILED({ key, reason: 'aborted' }, { cause: cut('ECONNRESET') }),
    storeErrors.STORE_UNAVAILABLE({ operation: 'put', key, reason: 'gone', outcomeUnknown: true }),
    new Error('a mistake of ours'),
  ])
    refuse(logger, error, request as never, reply as never);
  assert.deepEqual(lines, ['debug', 'debug', 'debug', 'debug', 'debug', 'error', 'error']);
});
