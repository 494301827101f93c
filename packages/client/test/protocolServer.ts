/**
 * A server that speaks the protocol of uploads faithfully, keeps everything in memory, and fails on demand: the client's
 * sparring partner. A test hands it a `fault` function, which sees each request and may spoil it:
 *
 *     server.fault = ({ kind, count }) => (kind === 'chunk' && count === 2 ? { drop: 'after' } : undefined);
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';

export type RequestKind = 'initiate' | 'status' | 'chunk' | 'bytes' | 'complete' | 'events' | 'cancel';

export interface Seen {
  kind: RequestKind;
  /** Which request of its kind this is, from 1. */
  count: number;
  chunk: number | null;
  firstByte: number | null;
  bodyBytes: number;
  headers: IncomingMessage['headers'];
}

export type Fault =
  /** The connection is cut, before or after the request was carried out. */
  | { drop: 'before' | 'after' }
  | { status: number; code?: string; retryAfterS?: number; text?: string }
  /** A bit flips between the client and the server. */
  | { corrupt: true }
  | { slowMs: number }
  /** Nothing is carried out until then. */
  | { heldUntil: Promise<void> };

interface Piece {
  first: number;
  bytes: Buffer;
}

type State = 'PENDING' | 'UPLOADING' | 'COMPLETING' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';

export interface Held {
  id: string;
  drive: string;
  path: string;
  state: State;
  size: number | null;
  chunkSize: number | null;
  sha256: string | null;
  contentType: string | null;
  metadata: Record<string, string>;
  /** By first byte; they never overlap. */
  pieces: Map<number, Piece>;
  error: { code: string; message: string } | null;
  result: object | null;
}

export interface ServerOptions {
  partSize?: number;
  /** How long the upload stays COMPLETING. */
  completeMs?: number;
  /** How long an upload that has all its bytes stays UPLOADING, because they are only buffered. */
  flushMs?: number;
  /** How far ahead of the first missing byte a chunk may be. */
  windowBytes?: number;
  /** Whether server-sent events are offered. */
  events?: boolean;
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly details: object = {},
  ) {
    super(`refused: ${code}`);
  }
}

export class ProtocolServer {
  fault: (seen: Seen) => Fault | undefined = () => undefined;
  /** Called when an upload is about to complete; a test may take something away here. False keeps it from completing. */
  beforeComplete: (upload: Held) => boolean = () => true;
  validToken: string | undefined;
  readonly seen: Seen[] = [];
  readonly uploads = new Map<string, Held>();
  /** Chunks that are being received now, and the most there ever were. */
  busy = 0;
  mostBusy = 0;
  readonly #flushing = new Set<string>();
  readonly #keys = new Map<string, string>();
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #options: ServerOptions;

  constructor(options: ServerOptions = {}) {
    this.#options = options;
  }

  static async start(options: ServerOptions = {}): Promise<ProtocolServer> {
    const server = new ProtocolServer(options);
    await new Promise<void>((ready) => server.#server.listen(0, '127.0.0.1', ready));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The only upload there is. */
  get only(): Held {
    const [first, ...others] = this.uploads.values();
    if (!first || others.length > 0) throw new Error(`there are ${this.uploads.size} uploads`);
    return first;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  /** Whether nobody is connected and nothing is being carried out. */
  async isDeserted(): Promise<boolean> {
    const connections = await promisify(this.#server.getConnections.bind(this.#server))();
    return connections === 0 && this.busy === 0;
  }

  count(kind: RequestKind): number {
    return this.seen.filter((seen) => seen.kind === kind).length;
  }

  /** The numbers of the chunks that were sent, in the order of their arrival. */
  chunksSeen(): number[] {
    return this.seen.flatMap(({ chunk }) => (chunk === null ? [] : [chunk]));
  }

  content(upload = this.only): Buffer {
    return Buffer.concat(
      [...upload.pieces.values()].sort((a, b) => a.first - b.first).map(({ bytes }) => bytes),
    );
  }

  /** What was acknowledged as buffered and then lost. */
  lose(upload: Held, firstByte: number): void {
    upload.pieces.delete(firstByte);
  }

  view(upload: Held): object {
    return {
      id: upload.id,
      nodeId: `node-${upload.id}`,
      drive: upload.drive,
      path: upload.path,
      state: upload.state,
      size: upload.size,
      chunkSize: upload.chunkSize,
      partSize: this.#options.partSize ?? 1024,
      receivedBytes: receivedBytes(upload),
      storedBytes: 0,
      missing: missingOf(upload).slice(0, 100),
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      isUpdate: false,
      error: upload.error,
      result: upload.result,
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { kind, upload, chunk } = this.#route(request);
      const seen = this.#note(kind, chunk, request);
      this.busy += kind === 'chunk' || kind === 'bytes' ? 1 : 0;
      this.mostBusy = Math.max(this.mostBusy, this.busy);
      try {
        await this.#answer(seen, upload, request, response);
      } finally {
        this.busy -= kind === 'chunk' || kind === 'bytes' ? 1 : 0;
      }
    } catch (failure) {
      if (failure instanceof Refusal) refuse(response, failure);
      else response.destroy();
    }
  }

  async #answer(
    seen: Seen,
    upload: Held | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const fault = this.fault(seen);
    if (fault && 'drop' in fault && fault.drop === 'before') return void request.socket.destroy();
    const body = await bodyOf(request);
    seen.bodyBytes = body.length;
    if (fault && 'slowMs' in fault) await sleep(fault.slowMs);
    if (fault && 'heldUntil' in fault) await fault.heldUntil;
    if (fault && 'status' in fault) return answerWith(response, fault);
    if (fault && 'corrupt' in fault) body[0]! ^= 1;
    if (this.validToken !== undefined && request.headers.authorization !== `Bearer ${this.validToken}`) {
      throw new Refusal(401, 'TOKEN_INVALID');
    }
    const { status, reply } = this.#carryOut(seen, upload, body, request, response);
    if (fault && 'drop' in fault) return void request.socket.destroy();
    if (reply) respond(response, status, reply);
  }

  #route(request: IncomingMessage): { kind: RequestKind; upload?: Held; chunk: number | null } {
    const { pathname } = new URL(request.url!, 'http://host');
    if (request.method === 'POST' && pathname === '/v1/uploads') return { kind: 'initiate', chunk: null };
    const match = /^\/v1\/uploads\/([^/]+)(?:\/(chunks\/(\d+)|bytes|complete|events))?$/.exec(pathname);
    const upload = this.uploads.get(match?.[1] ?? '');
    const route = `${request.method} ${match?.[2]?.split('/')[0] ?? ''}`;
    const kinds: Record<string, RequestKind> = {
      'GET ': 'status',
      'DELETE ': 'cancel',
      'PUT chunks': 'chunk',
      'PUT bytes': 'bytes',
      'POST complete': 'complete',
      'GET events': 'events',
    };
    const kind = kinds[route];
    if (!kind) throw new Refusal(404, 'NO_SUCH_ROUTE');
    const chunk = kind === 'chunk' ? Number(match?.[3]) : null;
    return upload ? { kind, upload, chunk } : { kind, chunk };
  }

  #note(kind: RequestKind, chunk: number | null, { headers }: IncomingMessage): Seen {
    const firstByte = /^bytes (\d+)-/.exec(headers['content-range'] ?? '')?.[1];
    const count = this.count(kind) + 1;
    const seen = {
      kind,
      count,
      chunk,
      firstByte: firstByte === undefined ? null : Number(firstByte),
      bodyBytes: 0,
      headers,
    };
    this.seen.push(seen);
    return seen;
  }

  #carryOut(
    seen: Seen,
    upload: Held | undefined,
    body: Buffer,
    request: IncomingMessage,
    response: ServerResponse,
  ): { status: number; reply?: object } {
    if (seen.kind === 'initiate') return { status: 201, reply: this.view(this.#initiate(body, seen)) };
    if (!upload) throw new Refusal(404, 'UPLOAD_NOT_FOUND');
    switch (seen.kind) {
      case 'status':
        return { status: 200, reply: this.view(upload) };
      case 'chunk':
      case 'bytes':
        return { status: 200, reply: this.#receive(upload, seen, body, request.url!.includes('last=true')) };
      case 'complete':
        this.#complete(upload, JSON.parse(body.toString()) as { size?: number; sha256?: string });
        return { status: 200, reply: this.view(upload) };
      case 'cancel':
        if (upload.state === 'COMPLETED') throw new Refusal(409, 'ALREADY_COMPLETED');
        upload.state = 'CANCELLED';
        return { status: 200, reply: this.view(upload) };
      case 'events':
        if (this.#options.events === false) throw new Refusal(404, 'NO_EVENTS');
        void this.#tell(upload, response);
        return { status: 200 };
    }
  }

  #initiate(body: Buffer, { headers }: Seen): Held {
    const key = headers['idempotency-key'] as string | undefined;
    const known = key === undefined ? undefined : this.#keys.get(key);
    if (known !== undefined) return this.uploads.get(known)!;
    const asked = JSON.parse(body.toString()) as Partial<Held>;
    const id = `u${this.uploads.size + 1}`;
    const upload: Held = {
      id,
      drive: asked.drive!,
      path: asked.path!,
      state: 'PENDING',
      size: asked.size ?? null,
      chunkSize: asked.chunkSize ?? null,
      sha256: asked.sha256 ?? null,
      contentType: asked.contentType ?? null,
      metadata: asked.metadata ?? {},
      pieces: new Map(),
      error: null,
      result: null,
    };
    this.uploads.set(id, upload);
    if (key !== undefined) this.#keys.set(key, id);
    return upload;
  }

  #receive(upload: Held, seen: Seen, body: Buffer, last: boolean): object {
    if (upload.state === 'COMPLETED') return this.#ack(upload, true);
    if (!['PENDING', 'UPLOADING'].includes(upload.state)) throw new Refusal(409, 'UPLOAD_ENDED');
    checkDigest(body, seen.headers['content-digest'] as string | undefined);
    const first = seen.firstByte ?? seen.chunk! * upload.chunkSize!;
    this.#checkPlace(upload, seen, first, body.length, last);
    const before = upload.pieces.get(first);
    if (before && !before.bytes.equals(body)) throw new Refusal(409, 'CHUNK_CONFLICT');
    upload.state = 'UPLOADING';
    if (body.length > 0) upload.pieces.set(first, { first, bytes: body });
    if (last) upload.size = first + body.length;
    this.#completeIfWhole(upload);
    return this.#ack(upload, before !== undefined);
  }

  #checkPlace(upload: Held, seen: Seen, first: number, length: number, last: boolean): void {
    const end = first + length;
    if (upload.size !== null && end > upload.size) throw new Refusal(400, 'BEYOND_END');
    const isLast = last || end === upload.size;
    if (seen.chunk !== null && length !== upload.chunkSize && !isLast) throw new Refusal(400, 'CHUNK_SIZE');
    const lacking = missingOf(upload)[0]?.[0] ?? 0;
    if (first > lacking + (this.#options.windowBytes ?? Number.MAX_SAFE_INTEGER)) {
      const sendFirst = seen.chunk === null ? lacking : Math.floor(lacking / upload.chunkSize!);
      throw new Refusal(409, 'WINDOW_EXCEEDED', { sendFirst });
    }
  }

  #ack(upload: Held, duplicate: boolean): object {
    const { state, result } = upload;
    return {
      ack: 'buffered',
      duplicate,
      state,
      receivedBytes: receivedBytes(upload),
      storedBytes: 0,
      ...(result && { result }),
    };
  }

  #complete(upload: Held, facts: { size?: number; sha256?: string }): void {
    if (upload.state === 'COMPLETING' || upload.state === 'COMPLETED') return;
    if (facts.size !== undefined) upload.size ??= facts.size;
    upload.sha256 = facts.sha256 ?? upload.sha256;
    this.#completeIfWhole(upload);
    if (missingOf(upload).length > 0) throw new Refusal(409, 'BYTES_MISSING');
  }

  #completeIfWhole(upload: Held): void {
    if (upload.size === null || missingOf(upload).length > 0) return;
    if (!this.beforeComplete(upload)) return;
    const { completeMs = 0, flushMs = 0 } = this.#options;
    if (flushMs > 0) {
      if (!this.#flushing.has(upload.id)) setTimeout(() => this.#flushed(upload), flushMs);
      this.#flushing.add(upload.id);
      return;
    }
    upload.state = 'COMPLETING';
    if (completeMs === 0) finish(upload, this.content(upload));
    else setTimeout(() => finish(upload, this.content(upload)), completeMs);
  }

  /** Without waiting for its time. */
  finish(upload: Held): void {
    finish(upload, this.content(upload));
  }

  #flushed(upload: Held): void {
    upload.state = 'COMPLETING';
    finish(upload, this.content(upload));
  }

  async #tell(upload: Held, response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const facts = (): string => {
      const { state, size, result } = upload;
      const ended = ['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'].includes(state);
      return JSON.stringify({ state, size, receivedBytes: receivedBytes(upload), ...(ended && { result }) });
    };
    let told = '';
    for (let event = 'snapshot'; !response.destroyed; event = 'progress') {
      const now = facts();
      if (now !== told) response.write(`event: ${event}\ndata: ${now}\n\n`);
      told = now;
      if (now.includes('"result"')) break;
      await sleep(5);
    }
    response.end();
  }
}

function finish(upload: Held, content: Buffer): void {
  const sha256 = createHash('sha256').update(content).digest('hex');
  if (upload.state !== 'COMPLETING') return;
  if (upload.sha256 !== null && upload.sha256 !== sha256) {
    upload.state = 'FAILED';
    upload.error = {
      code: 'DIGEST_MISMATCH',
      message: 'The file is not the one that was declared. Upload it again.',
    };
    return;
  }
  upload.state = 'COMPLETED';
  upload.result = {
    nodeId: `node-${upload.id}`,
    size: content.length,
    etag: `"${sha256.slice(0, 16)}"`,
    sha256,
    crc64: null,
    version: 1,
  };
}

function receivedBytes(upload: Held): number {
  return [...upload.pieces.values()].reduce((sum, { bytes }) => sum + bytes.length, 0);
}

function missingOf(upload: Held): [number, number | null][] {
  const missing: [number, number | null][] = [];
  let at = 0;
  for (const { first, bytes } of [...upload.pieces.values()].sort((a, b) => a.first - b.first)) {
    if (first > at) missing.push([at, first - 1]);
    at = first + bytes.length;
  }
  if (upload.size === null) missing.push([at, null]);
  else if (at < upload.size) missing.push([at, upload.size - 1]);
  return missing;
}

function checkDigest(body: Buffer, header: string | undefined): void {
  const [, algorithm, value] = /^([\w-]+)=:([^:]*):$/.exec(header ?? '') ?? [];
  const crc = Buffer.alloc(4);
  crc.writeUInt32BE(crc32(body));
  const actual = algorithm === 'crc32' ? crc : createHash('sha256').update(body).digest();
  if (value !== actual.toString('base64')) throw new Refusal(400, 'DIGEST_MISMATCH');
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

function respond(response: ServerResponse, status: number, reply: object, retryAfterS?: number): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(retryAfterS !== undefined && { 'retry-after': String(retryAfterS) }),
  });
  response.end(JSON.stringify(reply));
}

function answerWith(response: ServerResponse, fault: Extract<Fault, { status: number }>): void {
  const { status, code = 'FAULT', retryAfterS, text } = fault;
  if (text !== undefined) {
    response.writeHead(status, { 'content-type': 'text/html' });
    response.end(text);
    return;
  }
  respond(response, status, { error: { code, message: 'a fault of the test' } }, retryAfterS);
}

function refuse(response: ServerResponse, { status, code, details, message }: Refusal): void {
  respond(response, status, { error: { code, message, retryable: false, details } });
}
