// The body of a request, before anybody reads it and after nobody wants it any more.
//
// - A client that asks first (`Expect: 100-continue`, as curl does with large files) is told to go on only when somebody really
//   reads: whoever is refused for a key, a size or a name has sent nothing but headers.
// - A client that is refused while it sends gets the answer at once. Closing right away would make its system throw the
//   answer away together with the connection; so for a moment we read what comes, and then close.
// - A body that stops coming while it is read ends its request. The engine watches those that it reads; JSON is watched here.
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { uploadErrors } from '@sluice/upload';

/** Without a byte for so long we close. A busy server may need its time to read what has long been sent. */
const lingerMs = 5_000;
const lingerBytes = 16 * 1_048_576;

const asking = new WeakMap<IncomingMessage, ServerResponse>();

/** From now on the server answers `Expect: 100-continue` for our addresses when the body is read; for others at once. */
export function answerExpectations(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.startsWith('/v1/')) asking.set(request, response);
    else response.writeContinue();
    server.emit('request', request, response);
  });
}

/** Tells a client that asked to send its body. */
export function goOn(request: IncomingMessage): void {
  const response = asking.get(request);
  if (!response) return;
  asking.delete(request);
  response.writeContinue();
}

/** The bytes of a request; where the client asked, the first read tells it to send them. */
export function bodyOf({ raw }: FastifyRequest): AsyncIterable<Uint8Array> {
  if (asking.has(raw)) raw.once('resume', () => goOn(raw));
  return raw;
}

/** Whether bytes of the request are still to come. */
export function isUnread({ raw }: FastifyRequest): boolean {
  const hasBody = raw.headers['transfer-encoding'] !== undefined || Number(raw.headers['content-length']) > 0;
  return hasBody && !raw.complete;
}

/** Nobody's limit on whole requests ends one that waits for the rest of its JSON: it would keep its connection for ever. */
export function refuseIfSlow(request: FastifyRequest, idleMs: number): void {
  if (!isUnread(request)) return;
  const { raw } = request;
  // Looked at from outside: whoever listens for bytes before the parser does takes them away from it.
  let [bytes, sinceMs] = [raw.socket.bytesRead, performance.now()];
  const watch = setInterval(() => {
    if (raw.socket.bytesRead !== bytes) [bytes, sinceMs] = [raw.socket.bytesRead, performance.now()];
    if (performance.now() - sinceMs < idleMs) return;
    stop();
    // As if the body itself had failed, to whoever is reading it.
    if (raw.listenerCount('error') > 0) raw.emit('error', uploadErrors.BODY_SLOW({ idleMs }));
  }, idleMs / 10);
  const stop = (): void => clearInterval(watch);
  raw.once('end', stop).once('close', stop);
}

/**
 * Answers while the body is still coming, and drops what comes. A client whose body ends soon keeps its connection: one that was told to
 * come back later would only need another, and a server with too much to do is slow to accept them. Where the end is far or unknown, the
 * connection is closed when the client has had time to read the answer.
 */
export function answerEarly(
  { raw: request }: FastifyRequest,
  reply: FastifyReply,
  status: number,
  body: object,
): void {
  const text = JSON.stringify(body);
  const endsSoon = Number(request.headers['content-length'] ?? Infinity) <= lingerBytes;
  const headers = {
    ...(reply.getHeaders() as OutgoingHttpHeaders),
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    ...((!endsSoon || asking.has(request)) && { connection: 'close' }),
  };
  const { raw: response } = reply.hijack();
  response.writeHead(status, headers);
  // It was never told to send anything.
  if (asking.has(request)) return void response.end(text);
  if (endsSoon) response.end(text);
  else response.write(text);
  dropRest(request, response, endsSoon);
}

/** Until the body has ended, too much of it has come, or nothing comes any more. */
function dropRest(request: IncomingMessage, response: ServerResponse, endsSoon: boolean): void {
  const { socket } = request;
  let dropped = 0;
  const close = (): void => {
    clearTimeout(impatience);
    // The socket may bring many more requests that are refused.
    socket.off('close', close);
    if (!endsSoon) response.end();
    else if (!request.complete) socket.destroySoon();
  };
  const impatience = setTimeout(close, lingerMs);
  socket.once('close', close);
  request.once('end', close);
  // Whoever read it until now waits for "readable", and would keep the bytes from flowing.
  request.removeAllListeners('readable');
  request.on('data', (bytes: Buffer) => {
    dropped += bytes.length;
    if (dropped > lingerBytes) close();
    else impatience.refresh();
  });
  request.resume();
}
