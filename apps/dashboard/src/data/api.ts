// The one way to the server: fetch with the session's proof against forged requests, and refusals as errors that carry the server's
// own words.
import { signal } from '@preact/signals';
import type { Role, Session } from './shapes.js';

/** Who we are; undefined until the server was asked, null when somebody has to sign in. */
export const session = signal<Session | null | undefined>(undefined);

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly retryable: boolean;
  readonly requestId: string | undefined;

  constructor(status: number, code: string, message: string, retryable = false, requestId?: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.retryable = retryable;
    this.requestId = requestId;
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

export interface CallOptions {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  /** Whose things are meant, where a key of the installation has to say so. */
  tenant?: string;
}

/** While the first key is made and used, others of our requests are refused for a moment; that is no reason to leave the page. */
let isEntering = false;

const roles: readonly Role[] = ['viewer', 'operator', 'admin'];

export function get<T>(path: string, options: CallOptions = {}): Promise<T> {
  return call<T>('GET', path, options);
}

export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
  const { query, body, signal: abort } = options;
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const csrf = session.value?.csrf;
  if (method !== 'GET' && csrf) headers['X-Sluice-CSRF'] = csrf;
  Object.assign(headers, tenantHeader(options.tenant));
  let response: Response;
  try {
    response = await fetch(path + queryText(query), {
      method,
      headers,
      credentials: 'same-origin',
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(abort && { signal: abort }),
    });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new ApiError(0, 'UNREACHABLE', 'The server does not answer. It may be restarting.', true);
  }
  const answer = await readJson(response);
  if (response.ok) return answer as T;
  const refusal = refusalOf(response, answer);
  // The session ended, or its key did: back to the door, from wherever we are.
  if (response.status === 401 && path !== '/v1/session' && !isEntering) session.value = null;
  throw refusal;
}

/** Keys of a tenant mean their own without saying so, and would be refused another; without keys there is only one. */
export function mayChooseTenant(): boolean {
  return session.value?.installation === true && session.value.via !== 'open';
}

export function tenantHeader(tenant: string | undefined): Record<string, string> {
  return tenant && mayChooseTenant() ? { 'X-Sluice-Tenant': tenant } : {};
}

async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  try {
    return text === '' ? null : (JSON.parse(text) as unknown);
  } catch {
    return null;
  }
}

function refusalOf(response: Response, answer: unknown): ApiError {
  const { error } = (answer ?? {}) as {
    error?: { code?: string; message?: string; retryable?: boolean; requestId?: string };
  };
  const requestId = error?.requestId ?? response.headers.get('X-Request-Id') ?? undefined;
  return new ApiError(
    response.status,
    error?.code ?? `HTTP_${response.status}`,
    error?.message ?? `The server answered ${response.status}.`,
    error?.retryable ?? response.status >= 500,
    requestId,
  );
}

/** `?a=1&b=x`, without what is not given. */
export function queryText(query: Query = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') given.set(name, String(value));
  }
  const text = given.toString();
  return text === '' ? '' : `?${text}`;
}

/** A path whose parts may hold anything: `at('v1', 'queues', name)`. */
export function at(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join('/')}`;
}

export async function whoAmI(): Promise<void> {
  try {
    session.value = await get<Session>('/v1/session');
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) session.value = null;
    else throw error;
  }
}

export async function signIn(key: string): Promise<void> {
  session.value = await call<Session>('POST', '/v1/session', { body: { key } });
}

/**
 * Makes the first key of a server that had none, and signs in with it at once: whoever made it would otherwise stand before the door, with the
 * only text of the key on the page behind it.
 */
export async function enterWithFirstKey(make: () => Promise<string>): Promise<string> {
  isEntering = true;
  try {
    const key = await make();
    await signIn(key);
    return key;
  } finally {
    isEntering = false;
  }
}

export async function signOut(): Promise<void> {
  await call('DELETE', '/v1/session');
  session.value = null;
}

/** Whether our role is enough; the server decides, the page only does not offer what it would refuse. */
export function may(role: Role): boolean {
  const own = session.value?.role;
  return own !== undefined && roles.indexOf(own) >= roles.indexOf(role);
}

export function messageOf(error: unknown): string {
  if (error instanceof ApiError)
    return error.requestId ? `${error.message} (${error.requestId})` : error.message;
  return error instanceof Error ? error.message : String(error);
}
