/**
 * The routes of a running server, read from its own OpenAPI document, and requests for each of them. Nobody keeps a list of routes by
 * hand, so none can be forgotten: an address that nobody can fill, or a name in a request of which nobody has said what it may
 * name, is an error.
 */
import { sampleOf } from '@sluice/testbed';
import type { ServerProcess } from './serverProcess.js';

export const ROLES = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];
type Schema = Record<string, unknown>;

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into whatever comes back
export type Loose = any;

export interface Described {
  method: string;
  /** As the document has it: `/v1/uploads/{id}/events`. */
  path: string;
  needs: Role | 'nobody';
  of: 'tenant' | 'installation';
  tokens: boolean;
  serviceKey: boolean;
  /** False where a row is not worth it; undefined where nobody said. */
  audit: string | false | undefined;
  queries: string[];
  headers: string[];
  /** Of a body of JSON. */
  schema: Schema | undefined;
  /** The body is bytes. */
  isRaw: boolean;
}

export interface Asked {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body: unknown;
}

/** What requests can be filled with. */
export interface Fillings {
  /** Values for the parameters of an address, in their order, by the address up to its last parameter. */
  places: Record<string, string[][]>;
  /** What parameters of queries, fields of bodies and headers can name. */
  named: Record<string, unknown[]>;
}

/** Of queries, bodies and headers: what names nothing that anybody has. */
const PLAIN = new Set(
  `limit last recursive state step from to size chunkSize contentType sha256 metadata ifExists expiresInS
   disposition maxBytes types role graceS verificationResult score decision maxActive rate perGroup events data delayMs priority attempts
   timeoutMs keepResultMs perSecond dryRun drain when missed startMs endMs url topics active Content-Digest
   Content-Range Repr-Digest If-None-Match If-Modified-Since If-Unmodified-Since Range X-Sluice-Meta-<name> X-Service-Key equals`.split(
    /\s+/,
  ),
);
const BYTES = 'bytes';

export function describedBy(document: Loose): Described[] {
  return Object.entries<Loose>(document.paths).flatMap(([path, item]) =>
    Object.entries<Loose>(item).map(([method, operation]) => {
      const content = operation.requestBody?.content ?? {};
      const named = (place: string): string[] =>
        (operation.parameters ?? [])
          .filter((each: Loose) => each.in === place)
          .map((each: Loose) => each.name as string);
      return {
        ...{ method: method.toUpperCase(), path },
        needs: operation['x-needs'],
        of: operation['x-of'],
        tokens: operation['x-tokens'] === true,
        serviceKey: operation['x-service-key'] === true,
        audit: operation['x-audit'],
        queries: named('query'),
        headers: named('header'),
        schema: content['application/json']?.schema,
        isRaw: content['application/octet-stream'] !== undefined,
      };
    }),
  );
}

export async function routesOf({ url }: ServerProcess): Promise<Described[]> {
  return describedBy(await (await fetch(`${url}/openapi.json`)).json());
}

export function isSafe({ method }: { method: string }): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** The address up to its last parameter: whose values have to be known. */
export function placeOf(path: string): string | undefined {
  return /^.*\}/.exec(path)?.[0];
}

/** The request with every thing of the place in turn, as its schema asks for it and no more. */
export function plainly(route: Described, { places }: Pick<Fillings, 'places'>): Asked[] {
  const place = placeOf(route.path);
  const values = place === undefined ? [[]] : places[place];
  if (!values?.length)
    throw new Error(
      `${route.method} ${route.path}: nobody has said what fills ${place}; see tenantThings.ts`,
    );
  return values.map((each) => filled(route, each));
}

/** The request with each thing that it could name besides, one at a time. */
export function naming(route: Described, fillings: Fillings): Asked[] {
  const properties = Object.keys(route.schema?.['properties'] ?? {});
  const kinds: [names: string[], put: (asked: Asked, name: string, value: unknown) => Asked][] = [
    [route.queries, withQuery],
    [properties, withField],
    [route.headers, withHeader],
  ];
  return kinds.flatMap(([names, put]) =>
    names.flatMap((name) => {
      const values = fillings.named[name] ?? (PLAIN.has(name) ? [] : undefined);
      if (!values)
        throw new Error(
          `${route.method} ${route.path}: nobody has said what "${name}" can name; see tenantThings.ts`,
        );
      return plainly(route, fillings).flatMap((asked) => values.map((value) => put(asked, name, value)));
    }),
  );
}

/** The texts that a request says: they may be said again in the answer. */
export function saidBy({ path, headers, body }: Asked): string[] {
  const [address = '', query = ''] = path.split('?');
  const parts = address.split('/').map(decodeURIComponent);
  return [
    ...parts,
    parts.slice(4).join('/'),
    ...new URLSearchParams(query).values(),
    ...Object.values(headers),
    ...textsIn(body),
  ];
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

function filled(route: Described, values: string[]): Asked {
  const left = [...values];
  return {
    method: route.method,
    path: route.path.replace(/\{\w+\}/g, () => left.shift()!.split('/').map(encodeURIComponent).join('/')),
    headers: route.headers.includes('Content-Range') ? { 'Content-Range': 'bytes 0-4/10' } : {},
    body: route.isRaw ? BYTES : route.schema && sampleOf(route.schema),
  };
}

/** A value that is an object has several parameters, which belong together. */
function withQuery(asked: Asked, name: string, value: unknown): Asked {
  const pairs = typeof value === 'object' && value !== null ? Object.entries(value) : [[name, String(value)]];
  return { ...asked, path: `${asked.path}?${String(new URLSearchParams(pairs as [string, string][]))}` };
}

function withField(asked: Asked, name: string, value: unknown): Asked {
  return { ...asked, body: { ...(asked.body as object), [name]: value } };
}

function withHeader(asked: Asked, name: string, value: unknown): Asked {
  return { ...asked, headers: { ...asked.headers, [name]: String(value) } };
}
