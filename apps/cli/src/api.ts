// The one way to the server: a request with a key, a deadline, and refusals as errors with the server's code.
import { ApiError, cliErrors } from './errors.js';
import { request, type Reply } from './request.js';

/** For an answer that is not a stream. Questions that search may take their time on a large queue. */
const answerDeadlineMs = 60_000;
/** Pages that `--all` follows, so that a server which always has a next page cannot keep us for ever. */
const mostPages = 1_000_000;

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface ApiOptions {
  url: string;
  key: string | undefined;
  /** For whom a key of the whole installation acts. */
  tenant: string | undefined;
  version: string;
  signal: AbortSignal;
}

export interface Ask {
  query?: Query;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export interface Page<Item> {
  items: Item[];
  next: string | null;
  scanned?: number;
  complete?: boolean;
}

export interface PageWish {
  /** In all. */
  limit: number;
  /** Every one, whatever the limit says. */
  all: boolean;
}

export class Api {
  readonly url: string;
  readonly key: string | undefined;
  readonly tenant: string | undefined;
  readonly #options: ApiOptions;

  constructor(options: ApiOptions) {
    this.#options = options;
    this.url = options.url.replace(/\/+$/, '');
    this.key = options.key;
    this.tenant = options.tenant;
  }

  get<T>(path: string, query?: Query): Promise<T> {
    return this.ask<T>('GET', path, query ? { query } : {});
  }

  post<T>(path: string, body: unknown = {}, query?: Query): Promise<T> {
    return this.ask<T>('POST', path, { body, ...(query && { query }) });
  }

  async ask<T>(method: string, path: string, ask: Ask = {}): Promise<T> {
    const reply = await this.open(method, path, { ...ask, signal: this.#deadline(ask.signal) });
    const text = await this.#guard(() => reply.text());
    if (text === '') return undefined as T;
    try {
      return JSON.parse(text) as T;
    } catch {
      throw cliErrors.NO_SLUICE({ url: this.url });
    }
  }

  /** The answer with its body unread; a refusal is thrown. */
  async open(method: string, path: string, ask: Ask = {}): Promise<Reply> {
    const reply = await this.openAny(method, path, ask);
    if (!reply.ok) throw await this.#guard(() => refusalOf(reply, this.#options));
    return reply;
  }

  /** The answer, whatever it is. */
  openAny(method: string, path: string, { query, body, headers, signal }: Ask = {}): Promise<Reply> {
    return this.#guard(() =>
      request(this.address(path, query), {
        method,
        headers: {
          ...this.headers(),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: signal ?? this.#options.signal,
      }),
    );
  }

  /** The bytes of an answer as they come. A line that is cut is a server that is away, also in the middle. */
  async *bytesOf(reply: Reply): AsyncGenerator<Buffer> {
    const bytes = reply.body();
    for (;;) {
      const step = await this.#guard(() => bytes.next());
      if (step.done) return;
      yield step.value;
    }
  }

  address(path: string, query: Query = {}): string {
    const known = Object.entries(query).filter(
      (entry): entry is [string, string | number | boolean] => entry[1] !== undefined && entry[1] !== null,
    );
    const search = new URLSearchParams(
      known.map(([name, value]): [string, string] => [name, String(value)]),
    ).toString();
    return `${this.url}${path}${search === '' ? '' : `?${search}`}`;
  }

  headers(): Record<string, string> {
    const { key, tenant, version } = this.#options;
    return {
      'User-Agent': `sluice-cli/${version}`,
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
      ...(tenant !== undefined && { 'X-Sluice-Tenant': tenant }),
    };
  }

  /** The items of a list, page by page, up to what was wished for. Some pages may be empty: a search is bounded, not ended. */
  async *list<Item>(
    path: string,
    query: Query,
    wish: PageWish,
    names: { items?: string; cursor?: string; largestPage?: number } = {},
  ): AsyncGenerator<Item, PageEnd> {
    const { items: itemsName = 'items', cursor: cursorName = 'cursor', largestPage = 500 } = names;
    let [seen, scanned] = [0, 0];
    let next: string | null = null;
    for (let page = 0; page < mostPages; page++) {
      const left = wish.all ? largestPage : Math.min(largestPage, wish.limit - seen);
      const answer: Record<string, unknown> = await this.get(path, {
        ...query,
        limit: left,
        ...(next !== null && { [cursorName]: next }),
      });
      const items = (answer[itemsName] ?? []) as Item[];
      scanned += Number(answer['scanned'] ?? items.length);
      for (const item of items) {
        seen += 1;
        yield item;
        if (!wish.all && seen >= wish.limit) break;
      }
      next = nextOf(answer);
      if (next === null || (!wish.all && seen >= wish.limit)) break;
    }
    return { seen, scanned, more: next !== null };
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#options.signal.throwIfAborted();
      if (error instanceof ApiError) throw error;
      throw cliErrors.SERVER_AWAY({ url: this.url, reason: reasonOf(error) }, { cause: error });
    }
  }

  #deadline(signal: AbortSignal | undefined): AbortSignal {
    return AbortSignal.any([AbortSignal.timeout(answerDeadlineMs), signal ?? this.#options.signal]);
  }
}

export interface PageEnd {
  seen: number;
  /** How many were looked at to find these. */
  scanned: number;
  /** There are, or may be, others. */
  more: boolean;
}

/** A path with what it is about filled in: ids may hold anything. */
export function pathOf(strings: TemplateStringsArray, ...values: string[]): string {
  return strings.map((part, i) => part + (i < values.length ? encodeURIComponent(values[i]!) : '')).join('');
}

function nextOf(answer: Record<string, unknown>): string | null {
  const next = answer['next'] ?? answer['cursor'] ?? null;
  return next === null || next === '' ? null : typeof next === 'number' ? String(next) : (next as string);
}

async function refusalOf(reply: Reply, { url, key }: ApiOptions): Promise<Error> {
  const { status } = reply;
  const error = errorIn(await reply.text());
  if (!error) {
    if (status === 404 || status < 400) return cliErrors.NO_SLUICE({ url });
    const message = `the server answered ${status} ${reply.statusText}`.trim();
    return new ApiError(`HTTP_${status}`, message, { status, retryable: status >= 500 });
  }
  return new ApiError(error.code, status === 401 ? keyProblem(url, key) : error.message, {
    status,
    retryable: error.retryable ?? false,
    ...(error.details && { details: error.details }),
    requestId: error.requestId ?? reply.header('x-request-id'),
  });
}

/** What the server says is about headers, which nobody types here. */
function keyProblem(url: string, key: string | undefined): string {
  return key === undefined ? `${url} wants a key` : `${url} does not accept this key`;
}

interface Refusal {
  code: string;
  message: string;
  retryable?: boolean;
  details?: Record<string, unknown>;
  requestId?: string;
}

function errorIn(text: string): Refusal | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: Partial<Refusal> };
    return typeof error?.code === 'string' && typeof error.message === 'string'
      ? (error as Refusal)
      : undefined;
  } catch {
    return undefined;
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `nothing within ${answerDeadlineMs / 1_000} s`;
  // Of several addresses of one name, the first tells enough.
  const inner = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  return reasons[(inner as NodeJS.ErrnoException).code ?? ''] ?? inner.message;
}

const reasons: Record<string, string> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was cut',
  ENOTFOUND: 'there is no host of this name',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  EHOSTUNREACH: 'there is no way to this host',
  ENETUNREACH: 'there is no way to this network',
  ETIMEDOUT: 'the host does not answer',
};
