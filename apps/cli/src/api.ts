// The one way to the server: fetch with a key, a deadline, and refusals as errors with the server's code. fetch keeps connections
// open, so that a hundred questions in a row cost one handshake.
import { ApiError, cliErrors } from './errors.js';

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
    const response = await this.open(method, path, { ...ask, signal: this.#deadline(ask.signal) });
    const text = await this.#guard(() => response.text());
    if (text === '') return undefined as T;
    try {
      return JSON.parse(text) as T;
    } catch {
      throw cliErrors.NO_SLUICE({ url: this.url });
    }
  }

  /** The answer with its body unread; a refusal is thrown. */
  async open(method: string, path: string, ask: Ask = {}): Promise<Response> {
    const response = await this.#guard(() =>
      fetch(this.address(path, ask.query), {
        method,
        headers: {
          ...this.headers(),
          ...(ask.body !== undefined && { 'Content-Type': 'application/json' }),
          ...ask.headers,
        },
        ...(ask.body !== undefined && { body: JSON.stringify(ask.body) }),
        signal: ask.signal ?? this.#options.signal,
        redirect: 'error',
      }),
    );
    if (!response.ok) throw await refusalOf(response, this.url);
    return response;
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

async function refusalOf(response: Response, url: string): Promise<Error> {
  const { status } = response;
  const text = await response.text().catch(() => '');
  const error = errorIn(text);
  if (!error) {
    if (status === 404 || status < 400) return cliErrors.NO_SLUICE({ url });
    const message = `the server answered ${status} ${response.statusText}`.trim();
    return new ApiError(`HTTP_${status}`, message, { status, retryable: status >= 500 });
  }
  return new ApiError(error.code, error.message, {
    status,
    retryable: error.retryable ?? false,
    ...(error.details && { details: error.details }),
    requestId: error.requestId ?? response.headers.get('x-request-id') ?? undefined,
  });
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

/** fetch says "fetch failed" and hides the reason one level down. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `nothing within ${answerDeadlineMs / 1_000} s`;
  const { cause } = error;
  const inner = cause instanceof AggregateError ? (cause.errors[0] as unknown) : cause;
  return inner instanceof Error && inner.message !== '' ? inner.message : error.message;
}
