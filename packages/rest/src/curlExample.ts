// For each route a command that can be pasted into a shell, after `SLUICE_URL` and `SLUICE_KEY` were set there.
import type { Operation } from './openapi.js';
import type { JsonSchema } from './route.js';

/** What stands in addresses and bodies by name; other names become variables of the shell. */
const usual: Record<string, string> = {
  drive: 'main',
  path: 'reports/2024.pdf',
  pathPrefix: 'reports/',
  number: '0',
  queue: 'mail',
  name: 'archive',
  tenant: 'acme',
  role: 'viewer',
  url: 'https://example.com/hook',
  topics: 'jobs.dead',
};

export function curlExample(method: string, path: string, operation: Operation): string {
  const address = path.replace(/\{(\w+)\}/g, (_, name: string) => usual[name] ?? `$${name.toUpperCase()}`);
  const [type = '', content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const isRaw = content !== undefined && type !== 'application/json';
  const isStream = Object.values(operation.responses).some((answer) => answer.content?.['text/event-stream']);
  const how = isRaw ? '-T file ' : verb(method, isStream);
  const lines = [`curl ${how}"$SLUICE_URL${address}"`, ...credentials(operation)];
  if (content && !isRaw && operation.requestBody?.required) {
    const body = JSON.stringify(exampleOf(content.schema, '')).replace(/'/g, `'\\''`);
    lines.push(`-H 'Content-Type: application/json'`, `-d '${body}'`);
  }
  return lines.join(' \\\n  ');
}

function verb(method: string, isStream: boolean): string {
  if (isStream) return '-N ';
  if (method === 'GET') return '';
  return method === 'HEAD' ? '-I ' : `-X ${method} `;
}

function credentials(operation: Operation): string[] {
  if (operation['x-service-key']) return ['-H "X-Service-Key: $SERVICE_KEY"'];
  return operation['x-needs'] === 'nobody' ? [] : ['-H "Authorization: Bearer $SLUICE_KEY"'];
}

function exampleOf(schema: JsonSchema, name: string): unknown {
  const {
    type,
    enum: values,
    items,
    anyOf,
  } = schema as {
    type?: string | string[];
    enum?: unknown[];
    items?: JsonSchema;
    anyOf?: JsonSchema[];
  };
  if (values) return values[0];
  if ('const' in schema) return schema['const'];
  if (anyOf) return exampleOf(anyOf[0]!, name);
  switch (Array.isArray(type) ? type[0] : type) {
    case 'string':
      return isUuid(schema) ? '01890a5d-ac96-774b-bcce-b302099a8057' : (usual[name] ?? 'text');
    case 'integer':
    case 'number':
      return Math.max(1, Number(schema['minimum'] ?? 1));
    case 'boolean':
      return true;
    case 'array':
      return items ? [exampleOf(items, name)] : [];
    case 'object':
      return objectExample(schema);
    default:
      return { hello: 'world' };
  }
}

/** What is required; where nothing is, the first field. */
function objectExample(schema: JsonSchema): object {
  const fields = (schema['properties'] ?? {}) as Record<string, JsonSchema>;
  const required = (schema['required'] ?? Object.keys(fields).slice(0, 1)) as string[];
  return Object.fromEntries(required.map((name) => [name, exampleOf(fields[name] ?? {}, name)]));
}

function isUuid({ format, pattern }: JsonSchema): boolean {
  return format === 'uuid' || String(pattern).includes('{8}(-');
}
