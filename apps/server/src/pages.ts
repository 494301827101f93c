/**
 * The dashboard: files that the build of apps/dashboard made, served from memory. Only what was read at the start is served, so no
 * address leads out of the folder; a server whose dashboard was not built has none.
 *
 *     /assets/<name>-<hash>.<ending>   never changes: kept by browsers for a year
 *     /theme.js, /favicon.svg          asked for again, answered with 304
 *     /, and whatever else a browser navigates to     index.html, whose script knows the pages
 *
 * The Content-Security-Policy lets the page run its own files and nothing else: no inline script, no inline style, no text that becomes
 * markup or code (Trusted Types), no frame around it.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "media-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

interface PageFile {
  body: Buffer;
  zipped: Buffer;
  type: string;
  etag: string;
  isHashed: boolean;
}

export class Pages {
  readonly #files: ReadonlyMap<string, PageFile>;

  private constructor(files: ReadonlyMap<string, PageFile>) {
    this.#files = files;
  }

  /** Undefined when the dashboard was not built. */
  static load(folder: string): Pages | undefined {
    if (!existsSync(join(folder, 'index.html'))) return undefined;
    const files = new Map<string, PageFile>();
    const take = (name: string): void => {
      const type = TYPES[extname(name)];
      if (type) files.set(`/${name}`, fileOf(readFileSync(join(folder, name)), type, name.includes('/')));
    };
    // Beside them lies what the compiler made for the tests; that is nobody's business.
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isFile()) take(entry.name);
    const assets = join(folder, 'assets');
    if (existsSync(assets)) for (const name of readdirSync(assets)) take(`assets/${name}`);
    return new Pages(files);
  }

  /** Answers if a browser asks for one of the files or navigates to a page; false for everybody else. */
  answer(request: FastifyRequest, reply: FastifyReply): boolean {
    if (request.method !== 'GET' && request.method !== 'HEAD') return false;
    const path = request.url.replace(/\?.*$/s, '');
    const file = this.#files.get(path);
    if (file && path !== '/index.html') {
      serve(file, request, reply);
      return true;
    }
    if (!isNavigation(request, path)) return false;
    serve(this.#files.get('/index.html')!, request, reply.header('Vary', 'Accept, Accept-Encoding'));
    return true;
  }
}

function fileOf(body: Buffer, type: string, isHashed: boolean): PageFile {
  const digest = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { body, zipped: gzipSync(body), type, etag: `"${digest}"`, isHashed };
}

/** Browsers ask for pages with `Accept: text/html`; programs that ask for JSON or anything keep their plain answers. */
function isNavigation({ headers }: FastifyRequest, path: string): boolean {
  const isForPrograms = /^\/(v1|internal|assets)(\/|$)/.test(path);
  return !isForPrograms && (headers.accept ?? '').includes('text/html');
}

function serve(file: PageFile, { method, headers }: FastifyRequest, reply: FastifyReply): void {
  const takesGzip = /\bgzip\b/.test(headers['accept-encoding'] ?? '');
  const etag = takesGzip ? file.etag.replace(/"$/, '-gzip"') : file.etag;
  reply
    .header('Content-Type', file.type)
    .header('ETag', etag)
    .header('Cache-Control', file.isHashed ? 'public, max-age=31536000, immutable' : 'no-cache')
    .header('Content-Security-Policy', POLICY)
    .header('Cross-Origin-Opener-Policy', 'same-origin')
    .header('Referrer-Policy', 'same-origin')
    .header('X-Content-Type-Options', 'nosniff')
    .header('X-Frame-Options', 'DENY');
  if (!reply.hasHeader('Vary')) reply.header('Vary', 'Accept-Encoding');
  if ((headers['if-none-match'] ?? '').includes(etag)) return void reply.code(304).send();
  const body = takesGzip ? file.zipped : file.body;
  if (takesGzip) reply.header('Content-Encoding', 'gzip');
  void reply
    .code(200)
    .header('Content-Length', body.length)
    .send(method === 'HEAD' ? undefined : body);
}
