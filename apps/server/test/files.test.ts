/** Files as a user of `npm start` meets them: the line that it prints, a restart, a kill, keys, S3. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { readEvents } from '@sluice/events';
import { RedisLink } from '@sluice/redis';
import { startPostgres, startVersitygw, versitygwProblem, waitUntil } from '@sluice/testbed';
import { newDataDir, processesIn, startServer } from './serverProcess.js';

const ALL = { SLUICE_ROLES: 'queues,api,uploads,relay' };
const PATIENCE = { timeoutMs: 60_000 };

test('the line that the server prints uploads a file, and it is served', async () => {
  const server = await startServer(newDataDir(), ALL);
  assert.match(server.output(), /^Sluice runs at \S+ \(dashboard: \/, all routes: \/docs, /m);
  const command = /^Upload a file: (.+)$/m.exec(server.output())![1]!;
  const folder = newDataDir();
  writeFileSync(join(folder, 'README.md'), 'Hello, Sluice!\n');
  const { stdout } = await promisify(execFile)('sh', ['-c', command], { cwd: folder });
  const told = JSON.parse(stdout) as { path: string; sha256: string };
  assert.equal(told.sha256, createHash('sha256').update('Hello, Sluice!\n').digest('hex'));
  const file = await fetch(`${server.url}/v1/files/main/${told.path}`);
  assert.equal(await file.text(), 'Hello, Sluice!\n');
  assert.equal(await server.end('SIGTERM'), 0);
});

test('a drive stays where it is: a server that would keep its files elsewhere is refused in one line, with exit code 2', async () => {
  const dataDir = newDataDir();
  const server = await startServer(dataDir, ALL);
  assert.equal(await server.end('SIGTERM'), 0);
  await assert.rejects(
    startServer(dataDir, { ...ALL, SLUICE_S3_BUCKET: 'files', SLUICE_S3_ENDPOINT: 'http://127.0.0.1:1' }),
    (error: Error & { exitCode: number }) => {
      assert.equal(error.exitCode, 2, error.message);
      assert.match(error.message, /the drive "main" keeps its files in "disk" .* SLUICE_S3_BUCKET/);
      return true;
    },
  );
});

test('what was read often comes from the cache, and a change is seen at once by every server', async () => {
  const dataDir = newDataDir();
  const server = await startServer(dataDir, ALL);
  const said = server.output();
  const redisUrl = /^Redis: (\S+),/m.exec(said)![1]!;
  assert.match(said, /^Cache: redis:\S+, at most 128 MiB$/m);
  const read = async (url: string) => (await fetch(`${url}/v1/files/main/a.txt`)).text();
  await put(server.url, 'a.txt', 'first');
  const reads = async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const count = (from: string) =>
      Number(
        new RegExp(`^sluice_cache_reads_total\\{family="node:at",from="${from}"\\} (\\d+)$`, 'm').exec(
          text,
        )?.[1],
      );
    return { loaded: count('load'), copied: count('process') + count('redis') };
  };
  // A Redis that takes long to answer is not waited for, and on a busy machine everything may take long.
  await waitUntil(
    'a copy was read',
    async () => {
      assert.equal(await read(server.url), 'first');
      return (await reads()).copied > 0;
    },
    PATIENCE,
  );
  assert.ok((await reads()).loaded > 0);
  await put(server.url, 'a.txt', 'second');
  assert.equal(await read(server.url), 'second');
  const drives = async () => {
    const { drives: list } = (await (await fetch(`${server.url}/v1/drives`)).json()) as {
      drives: { name: string }[];
    };
    return list.map(({ name }) => name);
  };
  assert.deepEqual(await drives(), ['main']);
  await fetch(`${server.url}/v1/drives/more`, { method: 'PUT' });
  assert.deepEqual(await drives(), ['main', 'more']);
  await fetch(`${server.url}/v1/files/main/a.txt`, { method: 'DELETE' });
  assert.equal((await fetch(`${server.url}/v1/files/main/a.txt`)).status, 404);

  // The outbox says it again: the follower has come to the last event.
  const link = new RedisLink(redisUrl);
  const newest = async () => (await readEvents({ redis: link, limit: 1_000 })).at(-1)?.topic;
  await waitUntil(
    'the last event is published',
    async () => (await newest()) === 'repository.documents.deleted',
    PATIENCE,
  );
  await waitUntil(
    'the follower has come to the end',
    async () => {
      const cursor = (await link.call('GET', ['sluice:{events}:cursor:cache'])) as Buffer | null;
      const left = await readEvents({ redis: link, after: String(cursor ?? '0') });
      return left.length === 0;
    },
    PATIENCE,
  );
  link.close();
  assert.equal(await server.end('SIGTERM'), 0);
  assert.deepEqual(await processesIn(join(dataDir, 'cache')), []);
});

test('a restart finds the files, and an upload that was under way goes on', async () => {
  const dataDir = newDataDir();
  const first = await startServer(dataDir, ALL);
  await put(first.url, 'kept.txt', 'kept');
  const begun = await fetch(`${first.url}/v1/uploads`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ drive: 'main', path: 'half.bin', size: 200, chunkSize: 100 }),
  });
  const { id } = (await begun.json()) as { id: string };
  await send(first.url, id, 0);
  await first.end('SIGKILL');
  const second = await startServer(dataDir, ALL);
  assert.equal(await (await fetch(`${second.url}/v1/files/main/kept.txt`)).text(), 'kept');
  const { missing } = (await (await fetch(`${second.url}/v1/uploads/${id}`)).json()) as {
    missing: number[][];
  };
  // What was buffered may have been lost with the chunks Redis; then it is asked for again.
  for (const number of [0, 1]) await send(second.url, id, number);
  assert.ok(missing.length > 0);
  await waitUntil(
    'the upload is complete',
    async () => {
      const { state } = (await (await fetch(`${second.url}/v1/uploads/${id}`)).json()) as { state: string };
      if (state === 'UPLOADING') for (const number of [0, 1]) await send(second.url, id, number);
      return state === 'COMPLETED';
    },
    PATIENCE,
  );
  const bytes = Buffer.from(await (await fetch(`${second.url}/v1/files/main/half.bin`)).arrayBuffer());
  assert.deepEqual(bytes, Buffer.concat([Buffer.alloc(100, 0), Buffer.alloc(100, 1)]));
  assert.equal(await second.end('SIGTERM'), 0);
  for (const part of ['redis', 'chunks', 'postgres'])
    assert.deepEqual(await processesIn(join(dataDir, part)), [], part);
});

test('what happens to files is announced in a Redis stream', async () => {
  const server = await startServer(newDataDir(), ALL);
  await put(server.url, 'a.txt', 'one');
  await put(server.url, 'a.txt', 'two');
  await fetch(`${server.url}/v1/files/main/a.txt`, { method: 'DELETE' });
  const link = new RedisLink(server.redisUrl);
  const topics: string[] = [];
  await waitUntil(
    'the events are there',
    async () => {
      topics.length = 0;
      for (const { topic } of await readEvents({ redis: link }))
        topics.push(topic.replace('repository.', ''));
      return topics.length >= 8;
    },
    PATIENCE,
  );
  link.close();
  const upload = ['uploads.initiated', 'uploads.completed'];
  assert.deepEqual(topics, [
    'drives.created',
    ...upload,
    'documents.created',
    ...upload,
    'documents.updated',
    'documents.deleted',
  ]);
  await server.end('SIGTERM');
});

test('metrics and readiness tell of uploads under the names that people know', async () => {
  const server = await startServer(newDataDir(), ALL);
  await put(server.url, 'm', 'm');
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  for (const name of [
    'repository_chunks_processed_total',
    'repository_upload_chunk_latency_seconds_count',
    'repository_s3_upload_latency_seconds_count',
    'repository_upload_completion_latency_seconds_count',
  ])
    assert.match(metrics, new RegExp(`^${name} 1$`, 'm'));
  for (const name of ['repository_chunks_queued', 'sluice_outbox_waiting'])
    assert.match(metrics, new RegExp(`^${name} \\d`, 'm'));
  const ready = (await (await fetch(`${server.url}/readyz`)).json()) as Record<string, string>;
  assert.deepEqual([ready['records'], ready['store'], ready['uploads']], ['ok', 'ok', 'ok']);
  await server.end('SIGTERM');
});

test('hooks from a file say what is accepted, and hear what was completed; a file without any is refused', async () => {
  const folder = newDataDir();
  const hooks = join(folder, 'hooks.mjs');
  writeFileSync(
    hooks,
    `import { appendFileSync } from 'node:fs';
    export async function beforeAccept({ path }) {
      if (path.endsWith('.exe')) throw Object.assign(new Error('no programs'), { statusCode: 403 });
    }
    export async function afterComplete({ path, size }) {
      appendFileSync(${JSON.stringify(join(folder, 'told.txt'))}, path + ' ' + size + '\\n');
    }`,
  );
  const server = await startServer(newDataDir(), { ...ALL, SLUICE_UPLOAD_HOOKS: hooks });
  const refused = await fetch(`${server.url}/v1/files/main/a.exe`, { method: 'PUT', body: 'x' });
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /no programs/);
  assert.equal((await fetch(`${server.url}/v1/files/main/a.exe`)).status, 404);
  await put(server.url, 'a.txt', 'text');
  const told = (): string =>
    existsSync(join(folder, 'told.txt')) ? readFileSync(join(folder, 'told.txt'), 'utf8') : '';
  await waitUntil('the owner was told', () => told() === 'a.txt 4\n', PATIENCE);
  await server.end('SIGTERM');
  writeFileSync(hooks, 'export const other = 1;');
  const failure = await startServer(newDataDir(), { ...ALL, SLUICE_UPLOAD_HOOKS: hooks }).catch(
    (error: unknown) => error,
  );
  assert.match(String(failure), /neither a function beforeAccept nor afterComplete/);
});

test('without keys the server refuses to listen where others can reach it, and leaves nothing running', async () => {
  const dataDir = newDataDir();
  const failure = await startServer(dataDir, { ...ALL, SLUICE_HOST: '0.0.0.0' }).catch(
    (error: unknown) => error,
  );
  assert.match((failure as Error).message, /^sluice: .*SLUICE_KEYS.*\n$/);
  for (const own of ['redis', 'chunks', 'cache', 'postgres/data'])
    assert.deepEqual(await processesIn(join(dataDir, own)), [], own);
});

test('with keys every tenant has its own drive, and nobody gets in without one', async () => {
  const keys = 'acme=acme-key-0123456789,beta=beta-key-0123456789';
  const server = await startServer(newDataDir(), { ...ALL, SLUICE_KEYS: keys });
  const as = (key: string) => ({ headers: { 'X-Sluice-Key': key } });
  assert.equal((await fetch(`${server.url}/v1/drives`)).status, 401);
  const put = await fetch(`${server.url}/v1/files/main/a`, {
    method: 'PUT',
    body: 'secret',
    ...as('acme-key-0123456789'),
  });
  assert.equal(put.status, 201);
  assert.equal((await fetch(`${server.url}/v1/files/main/a`, as('beta-key-0123456789'))).status, 404);
  assert.equal(
    await (await fetch(`${server.url}/v1/files/main/a`, as('acme-key-0123456789'))).text(),
    'secret',
  );
  assert.ok(!server.output().includes('acme-key'));
  await server.end('SIGTERM');
});

test('files go to S3 and records to a PostgreSQL of the user', async (t) => {
  const problem = versitygwProblem();
  if (problem !== undefined) return t.skip(problem);
  const [gateway, postgres] = await Promise.all([startVersitygw(), startPostgres()]);
  const dataDir = newDataDir();
  const server = await startServer(dataDir, {
    ...ALL,
    SLUICE_DATABASE_URL: await postgres.createDatabase(),
    SLUICE_S3_BUCKET: gateway.bucket,
    SLUICE_S3_ENDPOINT: gateway.endpoint,
    SLUICE_S3_ACCESS_KEY_ID: gateway.accessKey,
    SLUICE_S3_SECRET_ACCESS_KEY: gateway.secretKey,
  });
  const bytes = Buffer.alloc(20_000_000, 'sluice');
  const reply = await fetch(`${server.url}/v1/files/main/s3.bin`, { method: 'PUT', body: bytes });
  assert.equal(reply.status, 201, await reply.clone().text());
  const back = Buffer.from(await (await fetch(`${server.url}/v1/files/main/s3.bin`)).arrayBuffer());
  assert.ok(back.equals(bytes));
  assert.ok(
    !readdirSync(dataDir).some((name) => name === 'postgres' && statSync(join(dataDir, name)).isDirectory()),
  );
  await server.end('SIGTERM');
  assert.doesNotMatch(server.output(), /Warning/);
  await Promise.all([gateway.stop(), postgres.stop()]);
});

test('files go to an S3 server that does not know CRC-64/NVME, from the first one on', async (t) => {
  const problem = versitygwProblem();
  if (problem !== undefined) return t.skip(problem);
  const gateway = await startVersitygw();
  t.after(() => gateway.stop());
  const old = createServer((request, response) => {
    const { method, url, headers } = request;
    if (JSON.stringify(headers).toLowerCase().includes('crc64nvme'))
      return void request.resume().once('end', () => response.writeHead(501).end());
    const to = { port: gateway.port, host: '127.0.0.1', method, path: url, headers };
    const onward = forward(to, (reply) => reply.pipe(response.writeHead(reply.statusCode!, reply.headers)));
    request.pipe(onward);
  }).listen(0, '127.0.0.1');
  t.after(() => old.close().closeAllConnections());
  await once(old, 'listening');
  const server = await startServer(newDataDir(), {
    ...ALL,
    SLUICE_S3_BUCKET: gateway.bucket,
    SLUICE_S3_ENDPOINT: `http://127.0.0.1:${(old.address() as AddressInfo).port}`,
    SLUICE_S3_ACCESS_KEY_ID: gateway.accessKey,
    SLUICE_S3_SECRET_ACCESS_KEY: gateway.secretKey,
  });
  t.after(() => server.end('SIGTERM'));
  for (const bytes of [2_000_000, 20_000_000, 5].map((size) => Buffer.alloc(size, 'sluice'))) {
    const file = `${server.url}/v1/files/main/${bytes.length}`;
    const reply = await fetch(file, { method: 'PUT', body: bytes });
    assert.equal(reply.status, 201, await reply.clone().text());
    assert.ok(Buffer.from(await (await fetch(file)).arrayBuffer()).equals(bytes));
  }
});

async function put(url: string, name: string, text: string): Promise<void> {
  const reply = await fetch(`${url}/v1/files/main/${name}`, { method: 'PUT', body: text });
  assert.ok(reply.ok, await reply.text());
}

async function send(url: string, id: string, number: number): Promise<void> {
  const body = Buffer.alloc(100, number);
  await fetch(`${url}/v1/uploads/${id}/chunks/${number}`, { method: 'PUT', body });
}
