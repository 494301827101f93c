// The OpenAPI document, made from the same table as the routes: what is served is what is described.
import { sessionCookie } from '@sluice/access';
import { answersOf } from './answers.js';
import { statusesOfCodes } from './errors.js';
import { groupOf, groupsOf } from './groups.js';
import type { JsonSchema, Route } from './route.js';

/** What the page for people reads of it; see docsPage.ts. */
export interface ApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string; license: object };
  tags: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  'x-error-codes': Record<string, number>;
  [field: string]: unknown;
}

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Content };
  responses: Record<string, { description: string; content?: Content }>;
  'x-needs': Route['needs'];
  'x-of': Route['of'];
  'x-tokens'?: true;
  'x-links'?: true;
  'x-service-key'?: true;
  'x-audit'?: string | false;
  [field: string]: unknown;
}

type Content = Record<string, { schema: JsonSchema }>;

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: JsonSchema;
}

const error: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'retryable'],
      properties: {
        code: { type: 'string', description: 'Stable; what programs should look at.' },
        message: { type: 'string', description: 'For people; says what to do.' },
        retryable: { type: 'boolean' },
        details: { type: 'object' },
        requestId: { type: 'string', description: 'What to look for in the log; also in X-Request-Id.' },
      },
    },
  },
};

export function openApi(routes: readonly Route[], version: string): ApiDocument {
  const paths: ApiDocument['paths'] = {};
  for (const route of routes) {
    const path = pathOf(route);
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route, path);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description:
        'Takes files in, keeps them, works on them, serves what came out, and loses nothing on the way.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    tags: groupsOf(routes),
    security: [{ key: [] }, { header: [] }, { session: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'A key or an upload token.' },
        header: { type: 'apiKey', in: 'header', name: 'X-Sluice-Key' },
        session: { type: 'apiKey', in: 'cookie', name: sessionCookie, description: 'See POST /v1/session.' },
        service: { type: 'apiKey', in: 'header', name: 'X-Service-Key' },
      },
      schemas: { Error: error },
    },
    'x-error-codes': Object.fromEntries(statusesOfCodes()),
  };
}

/** `*` takes the rest of the address, which OpenAPI cannot say: it is a parameter like others, with slashes in it. */
function pathOf({ url }: Route): string {
  return url.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
}

function operation(route: Route, path: string): Operation {
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      ...parameter('path', name!, { type: 'string' }, true),
      ...(route.url.endsWith('*') && name === 'path' && { description: 'Names with slashes between them.' }),
    })),
    ...Object.entries(route.query ?? {}).map(([name, schema]) => parameter('query', name, schema, false)),
    ...Object.entries(route.headers ?? {}).map(([name, description]) => ({
      ...parameter('header', name, { type: 'string' }, false),
      description,
    })),
  ];
  const content: Content | undefined = route.raw
    ? { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }
    : route.body && { 'application/json': { schema: route.body } };
  return {
    operationId: operationId(route, path),
    tags: [groupOf(route)],
    summary: route.summary,
    description: whoMay(route),
    'x-needs': route.needs,
    'x-of': route.of,
    ...(route.tokens && { 'x-tokens': true }),
    ...(route.links && { 'x-links': true }),
    ...(route.serviceKey && { 'x-service-key': true }),
    ...(route.audit !== undefined && { 'x-audit': route.audit }),
    // Services, everybody, or whoever has a link, which carries its permission in the address.
    ...(route.serviceKey && { security: [{ service: [] }] }),
    ...((route.links || (route.needs === 'nobody' && !route.serviceKey)) && {
      security: [{ key: [] }, { header: [] }, { session: [] }, {}],
    }),
    ...(parameters.length > 0 && { parameters }),
    ...(content && {
      requestBody: { required: route.raw === true || route.body?.['required'] !== undefined, content },
    }),
    responses: {
      ...answersOf(route),
      ...refusalsOf(route),
    },
  };
}

/** `GET /v1/queues/{queue}/jobs/{id}` is `getQueuesByQueueJobsById`: what generated clients call it. */
function operationId({ method }: Route, path: string): string {
  const words = path
    .replace(/^\/v1\//, '')
    .replace(/\{(\w+)\}/g, 'by-$1')
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean);
  const names = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return method.toLowerCase() + names.join('');
}

function refusalsOf(route: Route): Operation['responses'] {
  const refusal = (description: string): Operation['responses'][string] => ({
    description,
    ...(route.method !== 'HEAD' && {
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    }),
  });
  const isGuarded = route.needs !== 'nobody' || route.serviceKey === true;
  return {
    ...(isGuarded && { 401: refusal('No key, or none that is known here.') }),
    ...(route.needs !== 'nobody' && { 403: refusal('The key may not do this.') }),
    ...(/[:*]/.test(route.url) && { 404: refusal('There is no such thing, or it is somebody else’s.') }),
    default: refusal('A refusal, with what to do about it.'),
  };
}

function whoMay({ needs, of, tokens, links, serviceKey }: Route): string {
  if (serviceKey) return 'For services, with a key of their own.';
  if (needs === 'nobody') return 'For everybody.';
  const whose = of === 'installation' ? 'of the installation' : 'of the tenant';
  return `For the role ${needs} ${whose}${tokens ? ', or with an upload token' : ''}${links ? ', or with a link' : ''}.`;
}

function parameter(place: Parameter['in'], name: string, schema: JsonSchema, required: boolean): Parameter {
  return { name, in: place, required, schema };
}
