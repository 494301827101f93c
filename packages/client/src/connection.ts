/**
 * One request and its answer: credentials, patience, and the translation of everything that can go wrong into an error that
 * says whether trying again helps. Nothing is repeated here, with one exception: a token that the server calls stale is
 * renewed, if the user gave a function for it.
 *
 * A request that ended without an answer may have been carried out. Its error is NETWORK, and callers who care ask for the
 * status before they repeat themselves.
 */
import { reasonOf, SluiceUploadError, uploadError } from './errors.js';
import type { UploadOptions } from './options.js';
import type { Bytes } from './platform.js';
import { unlessAborted } from './retry.js';

/** A request may take this long, and longer by its body's time on a slow line. */
const REQUEST_PATIENCE_MS = 60_000;
const SLOWEST_BYTES_PER_MS = 8;
/** Longer than this nobody is sent away; a larger Retry-After is taken for a mistake. */
const MAX_RETRY_AFTER_MS = 3_600_000;

const TOO_SLOW = 'it took too long';

export interface Request {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  json?: unknown;
  body?: Bytes;
  signal: AbortSignal;
}

export class Connection {
  readonly #options: UploadOptions;
  readonly #base: string;
  #token: string | undefined;
  #asking: Promise<string> | undefined;

  constructor(options: UploadOptions) {
    this.#options = options;
    this.#base = options.url.replace(/\/+$/, '');
  }

  /** The answer's JSON; throws SluiceUploadError, or the signal's reason. */
  async call(request: Request): Promise<unknown> {
    const leash = new Leash(request.signal, request.body?.length ?? 0);
    try {
      const response = await this.open(request, leash.signal);
      const text = await response.text();
      return parse(text);
    } catch (failure) {
      request.signal.throwIfAborted();
      throw asNetworkError(leash.signal.aborted ? TOO_SLOW : failure);
    } finally {
      leash.release();
    }
  }

  /** The answer itself, for those who read it as it comes. */
  async open(request: Request, signal: AbortSignal): Promise<Response> {
    const token = await this.#currentToken(signal);
    const response = await this.#send(request, token, signal);
    if (response.ok) return response;
    const refused = errorFrom(response, await response.text());
    if (response.status !== 401 || typeof this.#options.token !== 'function') throw refused;
    // Another request may have renewed it meanwhile.
    if (this.#token === token) this.#token = undefined;
    const again = await this.#send(request, await this.#currentToken(signal), signal);
    if (again.ok) return again;
    throw errorFrom(again, await again.text());
  }

  #send(request: Request, token: string | undefined, signal: AbortSignal): Promise<Response> {
    const { key, fetch } = this.#options;
    const headers = new Headers(request.headers);
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    if (key !== undefined) headers.set('x-sluice-key', key);
    if (request.json !== undefined) headers.set('content-type', 'application/json');
    // Not in the types of Node, whose fetch keeps no cache.
    const uncached: object = { cache: 'no-store' };
    const init: RequestInit = { ...uncached, method: request.method, headers, signal };
    const body = request.json === undefined ? request.body : JSON.stringify(request.json);
    if (body !== undefined) init.body = body;
    // Called as a bare function: browsers refuse a fetch whose `this` is another object.
    return (fetch ?? globalThis.fetch)(this.#base + request.path, init);
  }

  async #currentToken(signal: AbortSignal): Promise<string | undefined> {
    const { token } = this.#options;
    if (typeof token !== 'function') return token;
    if (this.#token !== undefined) return this.#token;
    // One question for all requests; whoever stops waiting leaves it to those who come after.
    this.#asking ??= Promise.resolve()
      .then(token)
      .then((text) => (this.#token = text))
      .finally(() => (this.#asking = undefined));
    this.#asking.catch(() => {});
    try {
      return await unlessAborted(this.#asking, signal);
    } catch (cause) {
      throw uploadError('TOKEN_UNAVAILABLE', reasonOf(cause), { cause });
    }
  }
}

/** A signal that also ends when a request has taken longer than its size explains. */
export class Leash {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #pull = (): void => this.#controller.abort(this.#outer.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal, bytes: number, patienceMs = REQUEST_PATIENCE_MS) {
    this.#outer = outer;
    if (outer.aborted) this.#pull();
    outer.addEventListener('abort', this.#pull);
    this.extend(patienceMs + bytes / SLOWEST_BYTES_PER_MS);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  extend(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(), ms);
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener('abort', this.#pull);
    // Whatever is still being read under this leash has nobody left who wants it.
    this.#controller.abort();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw uploadError('BAD_REPLY', `no JSON: ${JSON.stringify(text.slice(0, 60))}`);
  }
}

function asNetworkError(failure: unknown): SluiceUploadError {
  if (failure instanceof SluiceUploadError) return failure;
  return uploadError('NETWORK', typeof failure === 'string' ? failure : reasonOf(failure), {
    cause: failure,
  });
}

/** A refusal of Sluice has a code; one of a proxy in between is named after its status. */
function errorFrom(response: Response, text: string): SluiceUploadError {
  const { status } = response;
  const told = toldError(text);
  const passing = status === 408 || status === 429 || status === 503;
  return new SluiceUploadError(
    typeof told.code === 'string' ? told.code : `HTTP_${status}`,
    typeof told.message === 'string' ? told.message : `The server answered ${status}.`,
    {
      status,
      retryable: passing || (typeof told.retryable === 'boolean' ? told.retryable : status >= 500),
      details: isObject(told.details) ? told.details : {},
      retryAfterMs: retryAfterMs(response.headers.get('retry-after')),
    },
  );
}

function toldError(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && isObject(body['error']) ? body['error'] : {};
  } catch {
    return {};
  }
}

/** Seconds, or a date. */
function retryAfterMs(header: string | null): number {
  if (header === null) return 0;
  const ms = /^\d+(\.\d+)?$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.min(MAX_RETRY_AFTER_MS, Math.max(0, ms)) : 0;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
