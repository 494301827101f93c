// A value that a JSON schema accepts, for tests that send something to every route. It knows what our schemas use; where a pattern asks for
// more than it knows, the test that sends the value fails and says so.

type Schema = Readonly<Record<string, unknown>>;

/** Texts that fit the patterns and formats in use. The first that fits is taken. */
const texts = [
  'a',
  'main',
  '0'.repeat(16),
  '0'.repeat(64),
  '00000000-0000-4000-8000-000000000000',
  '* * * * *',
];

export function sampleOf(schema: Schema): unknown {
  if (Array.isArray(schema['enum'])) return (schema['enum'] as unknown[])[0];
  if ('const' in schema) return schema['const'];
  const choices = (schema['anyOf'] ?? schema['oneOf']) as Schema[] | undefined;
  if (choices) return sampleOf(choices[0]!);
  const type = [schema['type']].flat()[0];
  if (type === 'string') return textFor(schema);
  if (type === 'integer' || type === 'number') return numberFor(schema);
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  if (type === 'array')
    return Array.from({ length: Number(schema['minItems'] ?? 0) }, () => sampleOf(schema['items'] as Schema));
  return objectFor(schema);
}

function textFor(schema: Schema): string {
  const pattern = new RegExp(typeof schema['pattern'] === 'string' ? schema['pattern'] : '', 'u');
  const isUuid = schema['format'] === 'uuid';
  const fitting = texts.find((text) => pattern.test(text) && (!isUuid || text.length === 36)) ?? texts[0]!;
  return fitting.padEnd(Number(schema['minLength'] ?? 0), 'a');
}

function numberFor(schema: Schema): number {
  const least = Number(schema['minimum'] ?? schema['exclusiveMinimum'] ?? 0);
  return 'exclusiveMinimum' in schema
    ? least + 1
    : Math.max(least, Math.min(1, Number(schema['maximum'] ?? 1)));
}

/** Only what is required, so that a choice between properties stays one. */
function objectFor(schema: Schema): object {
  const properties = (schema['properties'] ?? {}) as Record<string, Schema>;
  const required = (schema['required'] ?? []) as string[];
  return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {})]));
}
