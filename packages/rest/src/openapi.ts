// The OpenAPI document, made from the same table as the routes: what is served is what is described.
import { sessionCookie } from '@sluice/access';
import type { JsonSchema, Route } from './route.js';

const error: JsonSchema = {
  type: 'object',
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

export function openApi(routes: readonly Route[], version: string): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.url.replace(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}');
    paths[path] ??= {};
    paths[path][route.method.toLowerCase()] = operation(route, path);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description: 'Takes files in, keeps them, serves them, and loses nothing on the way.',
      license: { name: 'Apache-2.0' },
    },
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
  };
}

function operation(route: Route, path: string): object {
  const [status = '200'] = /\d{3}/.exec(route.answers) ?? [];
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => parameter('path', name!, { type: 'string' }, true)),
    ...Object.entries(route.query ?? {}).map(([name, schema]) => parameter('query', name, schema, false)),
    ...Object.entries(route.headers ?? {}).map(([name, description]) => ({
      ...parameter('header', name, { type: 'string' }, false),
      description,
    })),
  ];
  const content = route.raw
    ? { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }
    : route.body && { 'application/json': { schema: route.body } };
  return {
    summary: route.summary,
    description: whoMay(route),
    'x-sluice-access': declarationOf(route),
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
      [status]: { description: route.answers },
      default: {
        description: 'A refusal, with what to do about it.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

/** The same for programs: who may use it, and what the audit log calls it. */
function declarationOf({
  needs,
  of,
  tokens = false,
  links = false,
  serviceKey = false,
  audit,
}: Route): object {
  return { needs, of, tokens, links, serviceKey, audit: audit || null };
}

function whoMay({ needs, of, tokens, links, serviceKey }: Route): string {
  if (serviceKey) return 'For services, with a key of their own.';
  if (needs === 'nobody') return 'For everybody.';
  const whose = of === 'installation' ? 'of the installation' : 'of the tenant';
  return `For the role ${needs} ${whose}${tokens ? ', or with an upload token' : ''}${links ? ', or with a link' : ''}.`;
}

function parameter(place: string, name: string, schema: JsonSchema, required: boolean): object {
  return { name, in: place, required, schema };
}
