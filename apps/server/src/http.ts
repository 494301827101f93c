/**
 * Everything over HTTP: health and metrics for people, probes and Prometheus, and the interface for files.
 *
 *     GET /healthz   the process lives: 200
 *     GET /readyz    every part can do its work: 200, otherwise 503 with the names of those that cannot
 *     GET /metrics   figures in Prometheus' text format; with keys, for keys of the installation
 *     GET /docs      what can be asked, for people; /openapi.json for machines
 *     /v1/…          uploads, files, nodes, drives, queues, jobs
 *     /              the dashboard for browsers, if it was built; a few words for everybody else
 *
 * On the loopback interface unless told otherwise. A stop lets requests under way end, by a deadline.
 */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { withDeadline, type Logger } from '@sluice/base';
import type { Door } from './door.js';
import type { FilesInterface } from './fileService.js';
import { serverErrors } from './errors.js';
import type { Pages } from './pages.js';
import type { Tracing } from './tracing.js';

/** The port people learn by heart; taken by somebody else, any free one does. */
const USUAL_PORT = 7420;
const CHECK_DEADLINE_MS = 2_000;
/** How long the head of a request may take. A body may take as long as it likes, as long as bytes come. */
const HEADERS_TIMEOUT_MS = 20_000;
const KEEP_ALIVE_MS = 72_000;
/**
 * Connections that wait to be accepted. Node accepts one in each turn of its loop; where a thousand clients come at once, those beyond
 * the usual 511 would be cut off. The system may allow fewer.
 */
const BACKLOG = 4_096;
/** How often a server that stops looks for connections that have nothing more to do. */
const LET_GO_MS = 100;

/** Resolves if the part can do its work, otherwise rejects with the reason. */
export type ReadyCheck = () => Promise<void>;
/** Lines in Prometheus' text format. */
export type MetricsSource = () => Promise<string>;

export interface HttpOptions {
  host: string;
  port: number | undefined;
  checks: Record<string, ReadyCheck>;
  metrics: MetricsSource[];
  /** Who may see figures and reasons. */
  door: Door;
  /** The interface for files, if this process serves it. */
  files: FilesInterface | undefined;
  /** The dashboard, if this process serves it. */
  pages?: Pages | undefined;
  /** Puts spans around requests, if there is a collector for them. */
  tracing?: Tracing | undefined;
  logger: Logger;
}

export interface HttpServer {
  readonly url: string;
  stop(deadlineMs: number): Promise<void>;
}

export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const server = Fastify({
    ...options.files?.serverOptions,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: 'idle',
  });
  server.server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.setNotFoundHandler((request, reply) => {
    if (options.pages?.answer(request, reply)) return;
    if (options.files) options.files.notFound(request, reply);
    else void answer(reply, 404, 'text/plain', 'not found\n');
  });
  server.setErrorHandler((error, request, reply) => {
    // Also what no route was found for can be wrong in itself: a body of no known type, a method that needs one.
    return options.door.refuse(options.logger, error, request, reply);
  });
  options.tracing?.follow(server);
  await server.register(async (scope) => {
    options.files?.markAnswers(scope);
    declareHealth(scope, options);
  });
  if (options.files) await server.register(options.files.rest, options.files.options);
  await server.ready();
  const port = await listen(server.server, options);
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return { url: `http://${host}:${port}`, stop: (deadlineMs) => close(server, options, deadlineMs) };
}

function declareHealth(server: FastifyInstance, options: HttpOptions): void {
  const answers: Record<string, (reply: FastifyReply) => Promise<FastifyReply>> = {
    '/healthz': async (reply) => replyJson(reply, 200, { status: 'ok' }),
    // Probes need no key, and learn which part it is; what is wrong with it may name machines and databases.
    '/readyz': async (reply) =>
      answerReady(options.checks, reply, await options.door.isInsider(reply.request)),
    '/metrics': async (reply) => {
      await options.door.check(reply.request);
      const parts = await Promise.all(options.metrics.map((source) => source()));
      return answer(reply, 200, 'text/plain; version=0.0.4; charset=utf-8', parts.join(''));
    },
    '/': async (reply) => frontPage(reply, options.files !== undefined),
  };
  for (const [url, page] of Object.entries(answers)) {
    server.get(url, (request: FastifyRequest, reply) =>
      url === '/' && options.pages?.answer(request, reply) ? reply : page(reply),
    );
    server.route({
      method: ['POST', 'PUT', 'PATCH', 'DELETE'],
      url,
      handler: async (_request, reply) =>
        answer(reply.header('Allow', 'GET, HEAD'), 405, 'text/plain', 'only GET and HEAD\n'),
    });
  }
}

/** Where to go from here: links for browsers, lines for everything else. */
function frontPage(reply: FastifyReply, hasDocs: boolean): FastifyReply {
  const pages = [...(hasDocs ? ['/docs', '/openapi.json'] : []), '/healthz', '/readyz', '/metrics'];
  reply.header('Vary', 'Accept').header('Content-Security-Policy', "default-src 'none'");
  if (!reply.request.headers.accept?.includes('text/html'))
    return answer(reply, 200, 'text/plain', `Sluice\n${pages.join('\n')}\n`);
  const links = pages.map((page) => `<li><a href="${page}">${page}</a></li>`).join('');
  const head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Sluice</title>';
  return answer(reply, 200, 'text/html; charset=utf-8', `${head}<h1>Sluice</h1><ul>${links}</ul></html>\n`);
}

async function answerReady(
  checks: Record<string, ReadyCheck>,
  reply: FastifyReply,
  withReasons: boolean,
): Promise<FastifyReply> {
  const tooLate = (): Error => new Error(`no answer within ${CHECK_DEADLINE_MS} ms`);
  const outcomes = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const failure = await withDeadline(check(), CHECK_DEADLINE_MS, tooLate).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      return [name, failure === undefined ? 'ok' : withReasons ? failure : 'failing'] as const;
    }),
  );
  const ready = outcomes.every(([, outcome]) => outcome === 'ok');
  const status = ready ? 'ok' : 'unready';
  return replyJson(reply, ready ? 200 : 503, { status, ...Object.fromEntries(outcomes) });
}

function replyJson(reply: FastifyReply, status: number, body: object): FastifyReply {
  return answer(reply, status, 'application/json', `${JSON.stringify(body)}\n`);
}

function answer(reply: FastifyReply, status: number, type: string, body: string): FastifyReply {
  return reply
    .code(status)
    .header('Content-Type', type)
    .header('Cache-Control', 'no-store')
    .header('X-Content-Type-Options', 'nosniff')
    .send(body);
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
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

async function close(server: FastifyInstance, { files }: HttpOptions, deadlineMs: number): Promise<void> {
  const impatience = setTimeout(() => server.server.closeAllConnections(), deadlineMs);
  // A connection that is kept alive may bring another request, even another stream, after the first look.
  const letGo = (): void => {
    files?.endStreams(server.server);
    server.server.closeIdleConnections();
  };
  const again = setInterval(letGo, LET_GO_MS);
  await new Promise<void>((resolve) => {
    server.server.close(() => resolve());
    letGo();
  });
  clearInterval(again);
  clearTimeout(impatience);
  await server.close();
}
