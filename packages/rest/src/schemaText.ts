// JSON Schema for people: a row for each field, with its type and its bounds in words.
import type { JsonSchema } from './route.js';

export interface FieldRow {
  /** With a dot for each level, `[]` for what is in a list and `<name>` for names that are free. */
  name: string;
  type: string;
  bounds: string;
  required: boolean;
  description: string;
}

/** Deeper than this nobody reads. */
const deepest = 4;

export function fieldRows(schema: JsonSchema, before = '', depth = 0): FieldRow[] {
  const names = (schema['required'] ?? []) as string[];
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, JsonSchema>);
  return fields.flatMap(([name, field]) => {
    const row = rowOf(`${before}${name}`, field, names.includes(name));
    return depth >= deepest ? [row] : [row, ...rowsInside(field, row.name, depth + 1)];
  });
}

function rowsInside(schema: JsonSchema, name: string, depth: number): FieldRow[] {
  const { items, additionalProperties: free, properties } = schema;
  if (properties) return fieldRows(schema, `${name}.`, depth);
  if (isSchema(items) && items['properties']) return fieldRows(items, `${name}[].`, depth);
  if (isSchema(free) && Object.keys(free).length > 0) return [rowOf(`${name}.<name>`, free, false)];
  const cases = alternatives(schema).filter((each) => each['properties']);
  return cases.flatMap((each) => fieldRows(each, `${name}.`, depth));
}

function rowOf(name: string, schema: JsonSchema, required: boolean): FieldRow {
  const [type, bounds, description] = [typeText(schema), boundsText(schema), descriptionOf(schema)];
  return { name, type, bounds, required, description };
}

export function descriptionOf({ description }: JsonSchema): string {
  return typeof description === 'string' ? description : '';
}

export function typeText(schema: JsonSchema): string {
  const { type, enum: values, items } = schema;
  if (Array.isArray(values)) return values.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in schema) return JSON.stringify(schema['const']);
  const cases = alternatives(schema);
  if (cases.length > 0) return [...new Set(cases.map(typeText))].join(' | ');
  if (type === 'array') return isSchema(items) ? `list of ${typeText(items)}` : 'list';
  if (Array.isArray(type)) return type.join(' | ');
  if (typeof type !== 'string') return 'any';
  return schema['format'] === 'uuid' ? 'uuid' : type;
}

/** `1–1,024 characters`, `at least 0`. */
export function boundsText(schema: JsonSchema): string {
  const pattern = typeof schema['pattern'] === 'string' ? [`matches ${schema['pattern']}`] : [];
  const kinds = [
    ['minimum', 'maximum', ''],
    ['minLength', 'maxLength', ' characters'],
    ['minItems', 'maxItems', ' items'],
    ['minProperties', 'maxProperties', ' fields'],
  ] as const;
  const ranges = kinds.map(([least, most, unit]) => rangeText(schema[least], schema[most], unit));
  return [...ranges.filter(Boolean), ...pattern].join('; ');
}

function rangeText(least: unknown, most: unknown, unit: string): string {
  const isBounded = typeof most === 'number' && most < Number.MAX_SAFE_INTEGER;
  if (typeof least === 'number' && isBounded) return `${figure(least)}–${figure(most)}${unit}`;
  if (isBounded) return `at most ${figure(most)}${unit}`;
  return typeof least === 'number' ? `at least ${figure(least)}${unit}` : '';
}

function figure(value: number): string {
  return value.toLocaleString('en-US');
}

function alternatives(schema: JsonSchema): JsonSchema[] {
  return ((schema['anyOf'] ?? schema['oneOf'] ?? []) as unknown[]).filter(isSchema);
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
