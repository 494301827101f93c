// One HTTP request and its answer, by Node's own client. fetch would read better, but loading it costs a process 0.2 s of computing, more than
// all the rest of a command: a person waits for it at every line, and with every Tab. Connections are kept open between requests.
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent, request as httpsRequest } from 'node:https';
import { text as textOf } from 'node:stream/consumers';

export interface Sent {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

const agents = { 'http:': new Agent({ keepAlive: true }), 'https:': new SecureAgent({ keepAlive: true }) };

export class Reply {
  readonly #message: IncomingMessage;
  readonly #signal: AbortSignal;

  constructor(message: IncomingMessage, signal: AbortSignal) {
    this.#message = message;
    this.#signal = signal;
  }

  get status(): number {
    return this.#message.statusCode!;
  }

  get statusText(): string {
    return this.#message.statusMessage ?? '';
  }

  /** A redirection is not: keys are sent where they were meant for, and nowhere else. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  header(name: string): string | undefined {
    const value = this.#message.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  /** The bytes as they come; throws where the line was cut before the last one. */
  async *body(): AsyncGenerator<Buffer> {
    try {
      yield* this.#message as AsyncIterable<Buffer>;
    } catch (error) {
      this.#signal.throwIfAborted();
      throw error;
    }
  }

  async text(): Promise<string> {
    return textOf(this.body());
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text()) as unknown;
  }
}

/** Rejects with the reason of the signal, or with what the network says. */
export async function request(address: string, sent: Sent): Promise<Reply> {
  try {
    return await attempt(address, sent);
  } catch (error) {
    // The server may close an idle connection at the very moment in which we use it again. A question can be asked twice.
    const wasIdle = (error as { reused?: boolean }).reused === true;
    if (!wasIdle || sent.method !== 'GET' || sent.signal.aborted) throw error;
    return attempt(address, sent);
  }
}

function attempt(address: string, { method, headers, body, signal }: Sent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const url = new URL(address);
    const isSecure = url.protocol === 'https:';
    const asked = (isSecure ? httpsRequest : httpRequest)(url, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'Content-Length': Buffer.byteLength(body) }) },
      agent: agents[isSecure ? 'https:' : 'http:'],
      signal,
    });
    asked.once('response', (message) => resolve(new Reply(message, signal)));
    asked.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        signal.aborted
          ? (signal.reason as Error)
          : Object.assign(error, { reused: asked.reusedSocket && error.code === 'ECONNRESET' }),
      ),
    );
    asked.end(body);
  });
}
