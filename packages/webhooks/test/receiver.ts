// A receiver of webhooks on the loopback interface that answers as a test wants it to, and remembers what it got.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { TestContext } from 'node:test';

export interface Got {
  headers: IncomingHttpHeaders;
  path: string;
  body: string;
  /** What the client asked for in its TLS greeting. */
  servername: string | false | null | undefined;
}

export interface Receiver {
  port: number;
  url: string;
  got: Got[];
  /** A status, headers beside it, or anything else that can be done to an answer. */
  answer: (got: Got, response: ServerResponse) => number | void;
}

export async function startReceiver(t: TestContext, tls?: { key: string; cert: string }): Promise<Receiver> {
  const receiver: Receiver = { port: 0, url: '', got: [], answer: () => 204 };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const pieces: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { servername } = request.socket as TLSSocket;
      const body = Buffer.concat(pieces).toString();
      const got: Got = { headers: request.headers, path: request.url!, body, servername };
      receiver.got.push(got);
      const status = receiver.answer(got, response);
      if (status !== undefined) response.writeHead(status).end();
    });
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  receiver.port = (server.address() as AddressInfo).port;
  receiver.url = `${tls ? 'https' : 'http'}://127.0.0.1:${receiver.port}/hook`;
  return receiver;
}
