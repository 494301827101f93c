// Sends one request and waits for its answer, its end, or the end of patience. Streams of events are left as soon as they begin.
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';

export interface Sendable {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: Buffer;
}

export type Outcome =
  | { kind: 'answer'; status: number; headers: Record<string, unknown>; text: string }
  | { kind: 'stream' }
  /** The connection ended without an answer. */
  | { kind: 'cut'; reason: string }
  | { kind: 'hang' };

const mostReadBytes = 4 * 1_048_576;

export class Sender {
  readonly #agent: Agent;
  readonly #host: string;
  readonly #port: number;
  readonly #patienceMs: number;

  constructor(url: string, { sockets, patienceMs }: { sockets: number; patienceMs: number }) {
    const { hostname, port } = new URL(url);
    [this.#host, this.#port, this.#patienceMs] = [hostname, Number(port), patienceMs];
    this.#agent = new Agent({ keepAlive: true, maxSockets: sockets });
  }

  close(): void {
    this.#agent.destroy();
  }

  async send(sendable: Sendable): Promise<Outcome> {
    const first = await this.#try(sendable);
    // A connection that the server closed while we took it from the shelf: nobody has seen the request.
    return first.kind === 'cut' && first.reason === 'reused' ? this.#try(sendable) : first;
  }

  /** These very bytes; the answer is whatever comes until the connection ends or falls silent. */
  raw(bytes: string | Buffer, quietMs: number): Promise<string> {
    return new Promise((resolve) => {
      const socket = connect(this.#port, this.#host, () => socket.write(bytes));
      let text = '';
      const end = (): void => {
        socket.destroy();
        resolve(text);
      };
      socket.setTimeout(quietMs, end);
      socket.on('data', (piece) => (text += piece.toString('latin1')));
      socket.on('error', end);
      socket.on('close', end);
    });
  }

  #try({ method, path, headers, body }: Sendable): Promise<Outcome> {
    return new Promise((resolve) => {
      const target = { host: this.#host, port: this.#port, agent: this.#agent };
      const sent = { ...sendableHeaders(headers), ...(body && { 'Content-Length': String(body.length) }) };
      const request = httpRequest({ ...target, method, path, headers: sent });
      const finish = (outcome: Outcome): void => {
        clearTimeout(patience);
        resolve(outcome);
      };
      const patience = setTimeout(() => {
        finish({ kind: 'hang' });
        request.destroy();
      }, this.#patienceMs);
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && error.code === 'ECONNRESET';
        finish({ kind: 'cut', reason: isStale ? 'reused' : (error.code ?? error.message) });
      });
      request.on('response', (response) => {
        if (String(response.headers['content-type']).startsWith('text/event-stream')) {
          finish({ kind: 'stream' });
          return void response.destroy();
        }
        const pieces: Buffer[] = [];
        let bytes = 0;
        response.on('data', (piece: Buffer) => {
          bytes += piece.length;
          if (bytes <= mostReadBytes) pieces.push(piece);
        });
        response.on('error', (error) => finish({ kind: 'cut', reason: error.message }));
        response.on('end', () =>
          finish({
            kind: 'answer',
            status: response.statusCode!,
            headers: response.headers,
            text: Buffer.concat(pieces).toString(),
          }),
        );
      });
      request.end(body);
    });
  }
}

/** Node sends no control characters; UTF-8 goes as the bytes it is. */
function sendableHeaders(headers: Record<string, string>): Record<string, string> {
  const clean = ([name, value]: [string, string]): [string, string] => [
    name,
    Buffer.from(value, 'utf8')
      .toString('latin1')
      .replace(/[^\t\x20-\x7e\x80-\xff]/g, '')
      .slice(0, 12_000),
  ];
  return Object.fromEntries(Object.entries(headers).map(clean));
}
