/** A stand-in for the server: the built page with the policy of the real one, and made-up answers. For states that a real server reaches rarely. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Series } from '../src/data/shapes.js';
import {
  alertsOf,
  cacheOf,
  groupsOf,
  hostile,
  jobOf,
  jobsOf,
  lettersOf,
  overviewOf,
  seriesOf,
  workersOf,
  type SceneName,
} from './scenes.js';

const dist = fileURLToPath(new URL('../', import.meta.url));
const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const pager = 'https://example.com/pager';

export interface StandIn {
  url: string;
  /** Everything that was asked for: `POST /v1/queues/mail/resume`. */
  requests: { line: string; body: string; csrf: string | undefined; tenant: string | undefined }[];
  scene: SceneName;
  role: 'viewer' | 'operator' | 'admin';
  installation: boolean;
  signedIn: boolean;
  isDown: boolean;
  /** How long every answer takes. */
  slowMs: number;
  /** Asked first: what a test wants answered otherwise than the scene does. */
  otherwise: Otherwise | undefined;
  /** Changes whatever is answered or told, except who somebody is. What is told has no address. */
  twist: (value: unknown, address?: URL) => unknown;
  /** Something on the live stream, to everybody who listens. */
  tell: (topic: string, data: unknown, id?: string) => void;
  close: () => Promise<void>;
}

export type Otherwise = (method: string, address: URL, body: string) => [number, unknown] | undefined;

export async function startStandIn(scene: SceneName): Promise<StandIn> {
  const streams = new Set<ServerResponse>();
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const standIn: StandIn = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    scene,
    role: 'admin',
    installation: true,
    signedIn: true,
    isDown: false,
    slowMs: 0,
    otherwise: undefined,
    twist: (value) => value,
    tell: (topic, data, id) => {
      for (const stream of streams) send(stream, topic, data, id);
    },
    close: () => close(server, streams),
  };
  const timer = setInterval(() => {
    if (standIn.isDown) for (const stream of streams) stream.destroy();
    else for (const stream of streams) tellOverview(stream);
  }, 1_000);
  server.on('close', () => clearInterval(timer));
  return standIn;

  /** For keys of the installation only, and the same that a request is answered. */
  function tellOverview(stream: ServerResponse): void {
    if (!standIn.installation) return;
    const other = standIn.otherwise?.('GET', new URL('/v1/overview', standIn.url), '');
    send(stream, 'overview', standIn.twist(other?.[1] ?? overviewOf(standIn.scene, Date.now())));
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const address = new URL(request.url!, 'http://stand-in');
    const body = await bodyOf(request);
    if (standIn.slowMs > 0) await sleep(standIn.slowMs);
    if (address.pathname === '/v1/live' && standIn.signedIn) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      streams.add(response);
      response.on('close', () => streams.delete(response));
      tellOverview(response);
      send(response, 'uploads', standIn.twist({ items: uploadsOf(standIn.scene) }));
      return;
    }
    if (!address.pathname.startsWith('/v1/')) return serveFile(address.pathname, response);
    standIn.requests.push({
      line: `${request.method} ${request.url}`,
      body,
      csrf: request.headers['x-sluice-csrf'] as string | undefined,
      tenant: request.headers['x-sluice-tenant'] as string | undefined,
    });
    if (standIn.isDown) return void response.destroy();
    const [status, value] =
      standIn.otherwise?.(request.method!, address, body) ?? reply(standIn, request.method!, address, body);
    const shown = address.pathname === '/v1/session' ? value : standIn.twist(value, address);
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(shown));
  }
}

function reply(standIn: StandIn, method: string, address: URL, body: string): [number, unknown] {
  const { scene } = standIn;
  const nowMs = Date.now();
  const parts = address.pathname.split('/').slice(2).map(decodeURIComponent);
  const [kind, name = '', part, id = ''] = parts;
  const step = (address.searchParams.get('step') ?? 'minute') as Series['step'];
  if (kind === 'session') return sessionReply(standIn, method, body);
  if (!standIn.signedIn) return [401, refusal('UNAUTHENTICATED', 'sign in first')];
  if (method !== 'GET') return changeReply(standIn, parts, body);
  if (kind === 'overview') return [200, overviewOf(scene, nowMs)];
  if (kind === 'cache' && part === 'series') return [200, seriesOf(scene, nowMs, 2, step)];
  if (kind === 'cache') return [200, name === '' ? cacheOf(scene) : { value: hostile }];
  if (kind === 'workers') return [200, page(scene === 'empty' ? [] : workersOf(nowMs, 40))];
  if (kind === 'schedules') return [200, page(scene === 'empty' ? [] : schedules(nowMs))];
  if (kind === 'retries') return [200, page(scene === 'empty' ? [] : retries(nowMs))];
  if (kind === 'dead') return [200, groupsOf(scene, nowMs)];
  if (kind === 'operations') {
    const wanted = address.searchParams.get('state')?.split(',');
    const all = scene === 'empty' ? [] : operations(nowMs);
    return [200, page(all.filter(({ state }) => wanted === undefined || wanted.includes(state)))];
  }
  if (kind === 'redis' && name === 'series') return [200, seriesOf(scene, nowMs, 1, step)];
  if (kind === 'redis') return [200, { redis: overviewOf(scene, nowMs).redis }];
  if (kind === 'uploads') return [200, page(uploadsOf(scene))];
  if (kind === 'drives')
    return [
      200,
      {
        drives: scene === 'empty' ? [] : ['main', hostile].map((of, i) => ({ id: `d${i + 1}`, name: of })),
        next: null,
      },
    ];
  if (kind === 'nodes')
    return [
      200,
      name === '' ? { nodes: scene === 'empty' ? [] : nodes(nowMs), next: null } : nodes(nowMs)[1],
    ];
  if (kind === 'events')
    return [
      200,
      name === 'outbox' ? { waiting: 0, oldestMs: 0 } : page(scene === 'empty' ? [] : events(nowMs)),
    ];
  if (kind === 'audit') return [200, page(scene === 'empty' ? [] : audit(nowMs))];
  if (kind === 'keys') return [200, page(scene === 'empty' ? [] : keys(nowMs))];
  if (kind === 'webhooks' && part === 'deliveries') return [200, page(deliveries(nowMs))];
  if (kind === 'webhooks' && address.searchParams.get('tenant') === '*')
    return [
      200,
      page(scene === 'empty' ? [] : [{ ...webhooks(nowMs)[0], id: 'w5', tenant: '*', url: pager }]),
    ];
  if (kind === 'webhooks') return [200, page(scene === 'empty' ? [] : webhooks(nowMs))];
  if (kind === 'alerts') return [200, alertsOf(scene)];
  if (kind === 'trace') return [200, trace(name, nowMs)];
  if (kind === 'queues' && part === 'series') return [200, seriesOf(scene, nowMs, name.length, step)];
  if (kind === 'queues' && part === 'dead') return [200, page(scene === 'empty' ? [] : lettersOf(nowMs))];
  if (kind === 'queues' && part === 'jobs' && id !== '') return [200, jobOf(name, id, nowMs)];
  if (kind === 'queues' && part === 'jobs' && scene === 'empty') return [200, page([])];
  if (kind === 'queues' && part === 'jobs')
    return [200, { ...page(jobsOf(name, nowMs, 30)), next: 'more', scanned: 5_000, complete: false }];
  if (kind === 'queues' && name === '') return [200, { items: overviewOf(scene, nowMs).queues }];
  const queue = overviewOf(scene, nowMs).queues.find((one) => one.name === name);
  if (kind === 'queues' && queue) {
    const dead = {
      queue: name,
      letters: queue.counts.dead,
      averageAttempts: 3.3,
      sampled: 1,
      topError: null,
    };
    return [200, { ...queue, partitions: 1, rules: { maxActive: 100 }, dead }];
  }
  return [404, refusal('ROUTE_NOT_FOUND', `there is nothing at ${address.pathname}`)];
}

function sessionReply(standIn: StandIn, method: string, body: string): [number, unknown] {
  const { role, installation } = standIn;
  const session = {
    ...{ role, installation, tenant: 'acme', key: { id: 'k1', name: 'Ada' }, via: 'session' },
    csrf: 'proof',
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  };
  if (method === 'POST') {
    const isRight = (JSON.parse(body) as { key: string }).key === 'right';
    standIn.signedIn = isRight;
    return isRight ? [201, session] : [401, refusal('KEY_INVALID', 'this key opens nothing')];
  }
  if (method === 'DELETE') standIn.signedIn = false;
  return standIn.signedIn || method === 'DELETE'
    ? [200, session]
    : [401, refusal('UNAUTHENTICATED', 'sign in first')];
}

function changeReply(standIn: StandIn, parts: string[], body: string): [number, unknown] {
  if (standIn.role === 'viewer') return [403, refusal('FORBIDDEN', 'this takes the role operator')];
  const isDryRun = body.includes('"dryRun":true');
  if (isDryRun)
    return [
      200,
      { dryRun: true, total: 12, sample: [{ id: 'a', title: hostile, lastFailureMs: Date.now() }] },
    ];
  if (parts[0] === 'keys') return [201, { key: 'slk_0123_secret', id: '0123' }];
  if (parts[0] === 'webhooks') return [200, { id: 'w9', secret: 'whsec_0123', delivery: 'd9' }];
  return [200, { id: parts[3] ?? 'x', was: 'dead', operation: 'o1' }];
}

function page<T>(items: T[]): { items: T[]; next: null; scanned: number; complete: boolean } {
  return { items, next: null, scanned: items.length, complete: true };
}

function refusal(code: string, message: string): object {
  return { error: { code, message, retryable: false, details: {}, requestId: 'r-1' } };
}

function schedules(nowMs: number): object[] {
  return ['nightly', hostile].map((name, i) => ({
    ...{
      queue: 'mail',
      name,
      when: i === 0 ? { cron: '0 2 * * *', timeZone: 'Europe/Berlin' } : { everyMs: 900_000 },
    },
    ...{ data: { text: hostile }, missed: 'once', nextMs: nowMs + 3_000_000 * (i + 1) },
  }));
}

function retries(nowMs: number): object[] {
  return Array.from({ length: 9 }, (_, i) => ({
    ...{ queue: ['document', 'audio', 'graph'][i % 3], id: `01JCX7RETRY${i}`, attempt: 2 },
    dueMs: nowMs + 35_000 * (i + 1) + 115_000,
    error: i === 2 ? hostile : 'StorageTimeout: no answer from storage within 5000 ms',
  }));
}

function operations(nowMs: number): { state: string; [field: string]: unknown }[] {
  return [
    {
      id: 'o1',
      kind: 'dead.replay',
      queue: 'document',
      state: 'running',
      progress: { moved: 410, total: 1_200 },
      by: 'Ada',
      createdMs: nowMs - 20_000,
    },
    {
      id: 'o0',
      kind: 'dead.discard',
      queue: 'audio',
      state: 'failed',
      progress: { moved: 20, total: 30 },
      by: hostile,
      error: { name: 'Error', message: hostile },
      createdMs: nowMs - 920_000,
    },
  ];
}

function uploadsOf(scene: SceneName): object[] {
  if (scene === 'empty') return [];
  const mebibyte = 1_048_576;
  const missing = [
    [
      [40 * mebibyte, 48 * mebibyte - 1],
      [60 * mebibyte, null],
    ],
    [[900 * mebibyte, null]],
    [],
  ];
  return ['reports/2026/annual.pdf', 'films/interview.mp4', hostile].map((path, i) => ({
    ...{
      id: `u${i}`,
      tenant: 'acme',
      owner: 'ada',
      nodeId: `n${i}`,
      drive: 'main',
      path,
      state: 'UPLOADING',
    },
    ...{ size: [100, 2_400, 12][i]! * mebibyte, receivedBytes: [52, 900, 12][i]! * mebibyte },
    ...{ storedBytes: [40, 880, 5][i]! * mebibyte, missing: missing[i] },
    ...{
      createdAt: new Date(Date.now() - 200_000).toISOString(),
      updatedAt: new Date(Date.now() - 2_000).toISOString(),
    },
  }));
}

function nodes(nowMs: number): object[] {
  const at = new Date(nowMs - 5_000_000).toISOString();
  const node = (id: string, name: string, type: string, contentType: string | null, size: number | null) => ({
    ...{ id, driveId: 'd1', parentId: null, name, path: name, type, status: 'ACTIVE', contentType, size },
    ...{ sha256: 'ab'.repeat(32), createdAt: at, updatedAt: at },
  });
  return [
    node('n0', 'reports', 'FOLDER', null, null),
    node('n1', 'annual.pdf', 'FILE', 'application/pdf', 8_200_311),
    node('n2', `${hostile}.txt`, 'FILE', 'text/plain', 412),
    node('n3', 'odd', 'FILE', hostile, 12),
  ];
}

function events(nowMs: number): object[] {
  return Array.from({ length: 8 }, (_, i) => ({
    ...{
      cursor: `${nowMs - i * 7_000}-0`,
      eventId: i === 3 ? hostile : `e${i}`,
      topic: i === 2 ? hostile : 'repository.documents.created',
      key: 'n1',
    },
    data: { tenant: 'acme', path: i === 1 ? hostile : 'reports/annual.pdf', size: 8_200_311 },
  }));
}

function audit(nowMs: number): object[] {
  return ['queue.pause', 'dead.replay', 'key.create'].map((action, i) => ({
    ...{ id: `a${i}`, at: new Date(nowMs - i * 100_000).toISOString(), endedAt: null, action, actor: 'k1' },
    ...{
      actorName: hostile,
      tenant: 'acme',
      outcome: ['done', 'refused', null][i],
      target: hostile,
      details: { queue: 'mail' },
    },
  }));
}

function keys(nowMs: number): object[] {
  const at = new Date(nowMs - 9_000_000).toISOString();
  return ['Ada', hostile].map((name, i) => ({
    ...{ id: `0123456789abcde${i}`, tenant: '*', role: 'admin', name, createdAt: at, expiresAt: null },
    ...{ revokedAt: null, usedAt: at, oldUntil: null },
  }));
}

function webhooks(nowMs: number): object[] {
  const at = new Date(nowMs - 9_000_000).toISOString();
  return ['https://example.com/hooks', `https://example.com/?${hostile}`].map((url, i) => ({
    ...{ id: `w${i}`, tenant: 'acme', url, topics: ['jobs.dead', hostile], active: i === 0 },
    ...{ secrets: 1, createdAt: at, updatedAt: at },
  }));
}

function deliveries(nowMs: number): object[] {
  return ['delivered', 'retrying', 'dead'].map((state, i) => ({
    ...{ id: `d${i}`, eventId: `e${i}`, topic: 'jobs.dead', state, attempt: i + 1, tookMs: 12 },
    ...(i === 0 ? { status: 200 } : { error: hostile }),
    at: new Date(nowMs - 60_000 * (i + 1)).toISOString(),
  }));
}

function trace(id: string, nowMs: number): object {
  return {
    ...{ id, kind: 'node', waitingEvents: 0, node: nodes(nowMs)[1], events: events(nowMs).slice(0, 2) },
    upload: {
      live: null,
      record: {
        ...{ id: 'u0', nodeId: 'n1', path: hostile, status: 'COMPLETED', reason: null },
        ...{ createdAt: new Date(nowMs - 90_000).toISOString(), endedAt: new Date(nowMs).toISOString() },
      },
    },
    jobs: [
      { queue: 'document', id: 'j1', state: 'done', result: { text: hostile } },
      { queue: 'audio', id: 'j2', state: 'dead', progress: 40, error: hostile },
      { queue: 'video', id: 'j3', state: 'dead', progress: { page: hostile } },
    ],
    bounds: { events: { scanned: 812, complete: true }, jobs: { scanned: 5_000, complete: false } },
  };
}

function serveFile(path: string, response: ServerResponse): void {
  const isFile = /^\/(assets\/)?[\w.-]+\.\w+$/.test(path) && existsSync(join(dist, path));
  const file = join(dist, isFile ? path : 'index.html');
  response.writeHead(200, { 'Content-Type': types[extname(file)]!, 'Content-Security-Policy': policy });
  response.end(readFileSync(file));
}

function send(stream: ServerResponse, event: string, data: unknown, id?: string): void {
  stream.write(`${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

async function close(server: Server, streams: ReadonlySet<ServerResponse>): Promise<void> {
  for (const stream of streams) stream.destroy();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
