// Requests of one file's client. Any server will do: each request goes to one of them, and the next attempt to another. Every
// answer is written down, silence too.
import type { Journal } from '../evidence.js';
import type { Random } from '@sluice/testbed/random';
import type { ClientLine } from './evidence.js';

const patienceMs = 20_000;
/** The first line of a stack, as no answer may contain it. */
const stackShape = /\\n\s+at |\n\s+at .*:\d+/;

export interface Answer {
  /** Undefined when nobody answered. */
  status: number | undefined;
  /** Of the error, if it is one. */
  code: string | undefined;
  body: Record<string, unknown>;
}

export interface Request {
  what: string;
  method: string;
  path: string;
  headers?: Record<string, string>;
  json?: object;
  bytes?: Buffer | AsyncIterable<Buffer>;
}

export class Http {
  readonly #servers: string[];
  readonly #key: string;
  readonly #log: Journal<ClientLine>;
  readonly #random: Random;

  constructor(servers: string[], key: string, log: Journal<ClientLine>, random: Random) {
    this.#servers = servers;
    this.#key = key;
    this.#log = log;
    this.#random = random;
  }

  async ask(request: Request): Promise<Answer> {
    const answer = await this.#ask(request).catch((): Answer => ({
      status: undefined,
      code: undefined,
      body: {},
    }));
    const { status, code } = answer;
    const stack = stackShape.test(JSON.stringify(answer.body));
    this.#log.write({
      e: 'answer',
      at: Date.now(),
      key: this.#key,
      what: request.what,
      ...(status !== undefined && { status }),
      ...(code !== undefined && { code }),
      ...(stack && { stack }),
    });
    return answer;
  }

  /** The bytes of a file, or undefined if they did not all come. */
  async download(path: string): Promise<Buffer | undefined> {
    try {
      const reply = await fetch(this.#random.pick(this.#servers) + path, {
        signal: AbortSignal.timeout(patienceMs),
      });
      const { status } = reply;
      this.#log.write({ e: 'answer', at: Date.now(), key: this.#key, what: 'download', status });
      const bytes = Buffer.from(await reply.arrayBuffer());
      return status === 200 ? bytes : undefined;
    } catch {
      return undefined;
    }
  }

  async #ask({ method, path, headers, json, bytes }: Request): Promise<Answer> {
    const body = json ? JSON.stringify(json) : bytes;
    const isStream = body !== undefined && typeof body !== 'string' && !Buffer.isBuffer(body);
    const reply = await fetch(this.#random.pick(this.#servers) + path, {
      method,
      headers: { ...(json && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: body as RequestInit['body'] & object }),
      ...(isStream && { duplex: 'half' as const }),
      signal: AbortSignal.timeout(patienceMs),
    });
    const text = await reply.text();
    const parsed = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text };
    const { code } = (parsed['error'] ?? {}) as { code?: string };
    return { status: reply.status, code: reply.status >= 400 ? code : undefined, body: parsed };
  }
}
