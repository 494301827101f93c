/**
 * Health and metrics over HTTP, for people, probes and Prometheus.
 *
 *     GET /healthz   the process lives: 200
 *     GET /readyz    every part can do its work: 200, otherwise 503 with the names of those that cannot
 *     GET /metrics   figures in Prometheus' text format
 *
 * Only reading, on the loopback interface unless told otherwise. A stop lets requests under way end, by a deadline.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withDeadline, type Logger } from '@sluice/base';
import { serverErrors } from './errors.js';

/** The port people learn by heart; taken by somebody else, any free one does. */
const USUAL_PORT = 7420;
const CHECK_DEADLINE_MS = 2_000;
const REQUEST_TIMEOUT_MS = 10_000;

/** Resolves if the part can do its work, otherwise rejects with the reason. */
export type ReadyCheck = () => Promise<void>;
/** Lines in Prometheus' text format. */
export type MetricsSource = () => Promise<string>;

export interface HttpOptions {
  host: string;
  port: number | undefined;
  checks: Record<string, ReadyCheck>;
  metrics: MetricsSource[];
  logger: Logger;
}

export interface HttpServer {
  readonly url: string;
  stop(deadlineMs: number): Promise<void>;
}

export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const server = createServer((request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      options.logger.error({ err: error, url: request.url }, 'a request failed');
      if (!response.headersSent) reply(response, 500, 'text/plain', 'internal error\n');
      else response.destroy();
    });
  });
  server.requestTimeout = server.headersTimeout = REQUEST_TIMEOUT_MS;
  const port = await listen(server, options);
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return { url: `http://${host}:${port}`, stop: (deadlineMs) => close(server, deadlineMs) };
}

async function answer(
  options: HttpOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    return reply(response, 405, 'text/plain', 'only GET and HEAD\n');
  }
  switch (request.url?.split('?')[0]) {
    case '/healthz':
      return replyJson(response, 200, { status: 'ok' });
    case '/readyz':
      return answerReady(options.checks, response);
    case '/metrics': {
      const parts = await Promise.all(options.metrics.map((source) => source()));
      return reply(response, 200, 'text/plain; version=0.0.4; charset=utf-8', parts.join(''));
    }
    case '/':
      return reply(response, 200, 'text/plain', 'Sluice\n/healthz\n/readyz\n/metrics\n');
    default:
      return reply(response, 404, 'text/plain', 'not found\n');
  }
}

async function answerReady(checks: Record<string, ReadyCheck>, response: ServerResponse): Promise<void> {
  const tooLate = (): Error => new Error(`no answer within ${CHECK_DEADLINE_MS} ms`);
  const outcomes = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const failure = await withDeadline(check(), CHECK_DEADLINE_MS, tooLate).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      return [name, failure ?? 'ok'] as const;
    }),
  );
  const ready = outcomes.every(([, outcome]) => outcome === 'ok');
  replyJson(response, ready ? 200 : 503, {
    status: ready ? 'ok' : 'unready',
    ...Object.fromEntries(outcomes),
  });
}

function replyJson(response: ServerResponse, status: number, body: object): void {
  reply(response, status, 'application/json', `${JSON.stringify(body)}\n`);
}

function reply(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

async function listen(server: Server, { host, port }: HttpOptions): Promise<number> {
  try {
    return await listenOn(server, host, port ?? USUAL_PORT);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      if (port !== undefined) throw serverErrors.PORT_TAKEN({ host, port }, { cause: error });
      return listenOn(server, host, 0);
    }
    const [name, value] = code === 'EACCES' ? ['SLUICE_PORT', String(port)] : ['SLUICE_HOST', host];
    const wanted = `an address and a port that this machine may listen on (${code})`;
    throw serverErrors.BAD_CONFIG({ name, value, wanted }, { cause: error });
  }
}

function listenOn(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function close(server: Server, deadlineMs: number): Promise<void> {
  return new Promise((resolve) => {
    const impatience = setTimeout(() => server.closeAllConnections(), deadlineMs);
    server.close(() => {
      clearTimeout(impatience);
      resolve();
    });
    server.closeIdleConnections();
  });
}
