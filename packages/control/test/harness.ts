// The whole HTTP interface on a free port over real servers, with the routes of this package: a Redis, a PostgreSQL database, a store
// on disk, queues and their workers, all the test's own.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import Fastify from 'fastify';
import { Access, KeyRing, type ConfiguredKey } from '@sluice/access';
import type { AlertRow } from '@sluice/alerts';
import { silentLogger } from '@sluice/base';
import { applyEvent, Cache } from '@sluice/cache';
import { RedisStreamSink, Relay } from '@sluice/events';
import { Inspect } from '@sluice/inspect';
import { Operations } from '@sluice/operations';
import { Queue } from '@sluice/queue';
import { CachedReads, eventsOfChange } from '@sluice/reads';
import { openRecords, type Change, type Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { notFound, rest, serverOptions } from '@sluice/rest';
import { DiskStore } from '@sluice/store';
import { startPostgres, startRedis, type PostgresServer, type RedisServer } from '@sluice/testbed';
import { Uploads } from '@sluice/upload';
import { Control } from '../src/index.js';

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever comes back
export type Loose = any;

let postgres: Promise<PostgresServer> | undefined;

export async function stopServers(): Promise<void> {
  await (await postgres)?.stop();
}

export interface Answer {
  status: number;
  headers: Headers;
  body: Loose;
}

export interface Room {
  url: string;
  redis: RedisServer;
  records: Records;
  uploads: Uploads;
  operations: Operations;
  /** A queue of this room; ended with it. */
  queue<Data = Loose>(name?: string): Queue<Data>;
  /** As the holder of a key, or as anybody. */
  call(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
    headers?: Record<string, string>,
  ): Promise<Answer>;
}

export const keys = {
  admin: 'key-of-the-installation',
  acme: 'key-of-acme-operators',
  viewer: 'key-of-acme-viewers',
  beta: 'key-of-beta-operators',
};

const configured: ConfiguredKey[] = [
  { tenant: '*', role: 'admin', key: keys.admin },
  { tenant: 'acme', role: 'operator', key: keys.acme },
  { tenant: 'acme', role: 'viewer', key: keys.viewer },
  { tenant: 'beta', role: 'operator', key: keys.beta },
];

export async function openRoom(
  t: TestContext,
  options: { withKeys?: boolean; targets?: AlertRow[] } = {},
): Promise<Room> {
  postgres ??= startPostgres();
  const redis = await startRedis();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-control-'));
  const cache = new Cache({ redis: redis.url, patienceMs: 10_000 });
  const onChange = async (change: Change) => void (await applyEvent(cache, ...eventsOfChange(change)));
  const records = await openRecords({ url: await (await postgres).createDatabase(), onChange });
  for (const tenant of ['default', 'acme', 'beta'])
    await records.drives.create({ tenant, name: 'main', bucket: 'disk', prefix: `${tenant}/main/` });
  const store = new DiskStore({ folder, fsync: false });
  const uploads = new Uploads({ redis: redis.url, records, storeOf: store });
  await uploads.start();
  const relayLink = new RedisLink(redis.url);
  const relay = new Relay({ records, sink: new RedisStreamSink({ redis: relayLink }) });
  await relay.start();
  const inspect = new Inspect({
    redis: redis.url,
    queues: 'all',
    cache: { redis: redis.url },
    history: false,
  });
  await inspect.start();
  const operations = new Operations({ redis: redis.url, queueNamed: (name) => inspect.find(name) });
  await operations.work().start();
  const events = new RedisLink(redis.url);
  const alerts = { list: async () => options.targets ?? [] };
  const control = new Control({ inspect, alerts, operations, cache, records, uploads, events });
  const ring = new KeyRing({ keys: records.keys });
  await ring.start();
  const secret = randomBytes(8).toString('hex');
  const server = Fastify(serverOptions);
  server.setNotFoundHandler((request, reply) => notFound(request, reply));
  await server.register(rest, {
    uploads,
    records,
    reads: new CachedReads(cache, records),
    storeOf: () => store,
    access: new Access({ keys: options.withKeys ? configured : [], ring, secret }),
    ring,
    defaultBucket: 'disk',
    more: control.routes,
    logger: silentLogger,
    version: '0.0.0',
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`;
  const queues: Queue<Loose>[] = [];
  t.after(async () => {
    server.server.closeAllConnections();
    await server.close();
    control.close();
    await Promise.all(queues.map((queue) => queue.close(0)));
    await operations.close();
    await inspect.close();
    await relay.stop();
    await uploads.stop();
    await ring.stop();
    await records.close();
    events.close();
    relayLink.close();
    cache.close();
    await redis.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    ...{ url, redis, records, uploads, operations },
    queue: <Data>(name = `q${randomBytes(3).toString('hex')}`) => {
      const queue = new Queue<Data>(name, { redis: redis.url, backoff: { type: 'fixed', delayMs: 1 } });
      queues.push(queue);
      return queue;
    },
    call: async (method, path, body, key, headers = {}) => {
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...(key !== undefined && { Authorization: `Bearer ${key}` }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('/json') === true && text !== '';
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
    },
  };
}

export async function until<T>(what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  for (const end = performance.now() + 20_000; ;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`it did not come to pass: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
