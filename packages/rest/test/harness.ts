// The HTTP interface on a free port, over a whole upload service: a Redis, a PostgreSQL database and a store on disk, all real and
// all the test's own.
import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import Fastify from 'fastify';
import { Access, KeyRing, type AccessOptions } from '@sluice/access';
import { silentLogger } from '@sluice/base';
import { applyEvent, Cache } from '@sluice/cache';
import { CachedReads, eventsOfChange } from '@sluice/reads';
import { openRecords, type Change, type Records } from '@sluice/records';
import { DiskStore, type ObjectStore } from '@sluice/store';
import { startPostgres, startRedis, type PostgresServer, type RedisServer } from '@sluice/testbed';
import { Uploads, type Hooks, type Settings } from '@sluice/upload';
import { notFound, rest, serverOptions, type RestOptions } from '../src/index.js';

export const mebibyte = 1_048_576;

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever comes back
export type Loose = any;

let shared: Promise<{ redis: RedisServer; postgres: PostgresServer }> | undefined;

export function servers(): Promise<{ redis: RedisServer; postgres: PostgresServer }> {
  shared ??= Promise.all([startRedis(), startPostgres()]).then(([redis, postgres]) => ({ redis, postgres }));
  return shared;
}

/** What a whole file of tests shares. */
const closings: (() => Promise<void>)[] = [];

export async function stopServers(): Promise<void> {
  for (const close of closings) await close();
  if (!shared) return;
  const { redis, postgres } = await shared;
  await Promise.all([redis.stop(), postgres.stop()]);
}

export interface Api {
  url: string;
  records: Records;
  uploads: Uploads;
  access: Access;
  store: DiskStore;
  /** Fastify's own list of what it answers. */
  registered: { method: string; url: string }[];
  /** JSON in, JSON out. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Straight to its database. */
  query(sql: string, values?: unknown[]): Promise<unknown>;
  /** Bytes in, JSON out. */
  send(path: string, bytes: Buffer, headers?: Record<string, string>): Promise<Answer>;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: Loose;
}

export interface ApiOptions {
  settings?: Partial<Settings>;
  access?: Partial<AccessOptions>;
  rest?: Partial<RestOptions>;
  tenants?: string[];
  hooks?: Hooks;
  /** Instead of the one on disk. */
  store?: ObjectStore;
  /** Instead of the store itself, for what is downloaded. */
  storeOf?: (store: DiskStore) => ObjectStore;
  headersTimeoutMs?: number;
}

/** For one test, or for all tests of a file. */
export async function startApi(t: TestContext | 'file', options: ApiOptions = {}): Promise<Api> {
  const { redis, postgres } = await servers();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-rest-'));
  const disk = new DiskStore({ folder, fsync: false });
  const prefix = `rest-${randomBytes(4).toString('hex')}`;
  // Every test reads through the cache, as the server does: what a test has written it must see.
  const cache = new Cache({ redis: redis.url, prefix, patienceMs: 10_000 });
  const onChange = async (change: Change) => void (await applyEvent(cache, ...eventsOfChange(change)));
  const database = await postgres.createDatabase();
  const records = await openRecords({ url: database, onChange });
  for (const tenant of options.tenants ?? ['default'])
    await records.drives.create({ tenant, name: 'main', bucket: 'disk', prefix: `${tenant}/main/` });
  const uploads = new Uploads({
    redis: redis.url,
    records,
    storeOf: options.store ?? disk,
    settings: { prefix, ...options.settings },
    ...(options.hooks && { hooks: options.hooks }),
  });
  await uploads.start();
  const ring = new KeyRing({ keys: records.keys });
  await ring.start();
  const access = new Access({ keys: [], ring, secret: 'only for this test', ...options.access });
  const { headersTimeoutMs } = options;
  const http = headersTimeoutMs !== undefined && {
    http: { headersTimeout: headersTimeoutMs, connectionsCheckingInterval: 50 },
  };
  const server = Fastify({ ...serverOptions, ...http });
  const registered: Api['registered'] = [];
  server.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) registered.push({ method: each, url });
  });
  server.setNotFoundHandler((request, reply) => notFound(request, reply));
  await server.register(rest, {
    uploads,
    records,
    reads: new CachedReads(cache, records),
    storeOf: () => options.store ?? options.storeOf?.(disk) ?? disk,
    access,
    ring,
    defaultBucket: 'disk',
    // Tests ask often, and wrongly; those about limits say so.
    rates: { keyPerSecond: 0, failuresPerMinute: 0 },
    logger: silentLogger,
    version: '0.0.0',
    ...options.rest,
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.server.closeAllConnections();
    await server.close();
    await uploads.stop();
    await ring.stop();
    await records.close();
    cache.close();
    rmSync(folder, { recursive: true, force: true });
  };
  if (t === 'file') closings.push(close);
  else t.after(close);
  const ask = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(url + path, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') === true && text !== '';
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    url,
    records,
    uploads,
    access,
    store: disk,
    registered,
    call: (method, path, body, headers = {}) =>
      ask(path, {
        method,
        headers: { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    query: (sql, values) => postgres.query(sql, values, database),
    send: (path, bytes, headers = {}) => ask(path, { method: 'PUT', body: bytes, headers }),
  };
}

/** A request exactly as written: no encoding, no normalisation, any Host. */
export function raw(
  url: string,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: Buffer } = {},
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options;
    const request = httpRequest({ hostname, port, path, method, headers }, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          text: Buffer.concat(pieces).toString(),
        }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

/** What a server answers to exactly these bytes, until it, what we wait for, or `untilMs` ends the conversation. */
export function converse(
  url: string,
  pieces: (string | Buffer)[],
  untilMs = 10_000,
  awaited?: RegExp,
): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    const end = (): void => {
      clearTimeout(impatience);
      socket.destroy();
      resolve(text);
    };
    const impatience = setTimeout(end, untilMs);
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      if (awaited?.test(text)) end();
    });
    socket.on('error', () => {});
    socket.on('close', end);
    for (const piece of pieces) socket.write(piece);
  });
}

export function bytesOf(size: number, seed = 1): Buffer {
  const key = createHash('sha256').update(`seed ${seed}`).digest();
  return createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(size));
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export async function completed(
  api: Api,
  id: string,
  headers: Record<string, string> = {},
  withinMs = 20_000,
): Promise<Loose> {
  for (const until = performance.now() + withinMs; ;) {
    const { body } = await api.call('GET', `/v1/uploads/${id}`, undefined, headers);
    if (['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'].includes(body.state)) return body;
    if (performance.now() > until) throw new Error(JSON.stringify(body));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
