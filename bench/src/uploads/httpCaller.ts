/*
 * Plain HTTP for the clients of `tus` and `sluice`: Node's own, over connections that stay open. A body is handed to the
 * socket as one buffer, which the kernel drains without a copy in JavaScript; nothing a client could do is cheaper.
 */
import { once } from 'node:events';
import { Agent, request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { errors } from '../errors.js';

export interface Reply {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

export interface Call {
  method: string;
  /** A path of the server, or a whole address that it gave us. */
  path: string;
  headers?: OutgoingHttpHeaders;
  body?: Buffer;
}

export class HttpCaller {
  readonly #agent = new Agent({ keepAlive: true });

  constructor(private readonly url: string) {}

  async call({ method, path, headers = {}, body }: Call): Promise<Reply> {
    const outgoing = request(new URL(path, this.url), {
      method,
      agent: this.#agent,
      headers: { ...headers, 'Content-Length': body?.length ?? 0 },
    });
    outgoing.end(body);
    const [incoming] = (await once(outgoing, 'response').catch((cause: Error) => {
      throw errors.REQUEST_CUT(
        { method, path, why: cause.message, reused: outgoing.reusedSocket },
        { cause },
      );
    })) as [IncomingMessage];
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(pieces) };
  }
}

export function expectStatus(reply: Reply, wanted: readonly number[], what: string): void {
  if (wanted.includes(reply.status)) return;
  throw errors.REPLY_UNEXPECTED({ what, status: reply.status, text: reply.body.toString().slice(0, 500) });
}
