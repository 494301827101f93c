// Values that hold to a schema, or nearly. Names that the server has told us before are used again, so that requests reach things that
// exist.
import type { Random } from '@sluice/testbed/random';
import type { Knowledge } from './knowledge.js';
import type { Schema } from './operations.js';

/** Deeper schemas end with nothing. */
const deepest = 6;

export function valueOf(schema: Schema, name: string, random: Random, known: Knowledge, depth = 0): unknown {
  if (depth > deepest) return null;
  const {
    enum: values,
    anyOf,
    oneOf,
    type,
  } = schema as {
    enum?: unknown[];
    anyOf?: Schema[];
    oneOf?: Schema[];
    type?: string | string[];
  };
  if (values) return random.pick(values);
  if ('const' in schema) return schema['const'];
  const cases = anyOf ?? oneOf;
  if (cases) return valueOf(random.pick(cases), name, random, known, depth + 1);
  switch (Array.isArray(type) ? random.pick(type) : type) {
    case 'string':
      return textOf(schema, name, random, known);
    case 'integer':
      return Math.floor(numberOf(schema, random));
    case 'number':
      return numberOf(schema, random);
    case 'boolean':
      return random.chance(0.5);
    case 'null':
      return null;
    case 'array':
      return listOf(schema, name, random, known, depth);
    case 'object':
      return objectOf(schema, random, known, depth);
    default:
      return random.pick<unknown>([{ to: 'ada' }, 'text', 1, true, null, [1, 2]]);
  }
}

function textOf(schema: Schema, name: string, random: Random, known: Knowledge): string {
  const {
    minLength = 0,
    maxLength = 60,
    pattern,
    format,
  } = schema as {
    minLength?: number;
    maxLength?: number;
    pattern?: string;
    format?: string;
  };
  if (format === 'uuid' || pattern?.includes('{8}(-') === true)
    return known.pick('id', random) ?? someUuid(random);
  if (pattern?.includes('{64}') === true) return 'ab'.repeat(32);
  const told = random.chance(0.8) ? known.pick(name, random) : undefined;
  if (told !== undefined) return told;
  const text = random.chance(0.1)
    ? 'y'.repeat(Math.min(maxLength, 5_000))
    : `${name}-${random.between(0, 30)}`;
  return text.slice(0, maxLength).padEnd(minLength, 'z');
}

function numberOf(schema: Schema, random: Random): number {
  const least = Number(schema['minimum'] ?? 0);
  const most = Number(schema['maximum'] ?? 1_000_000);
  // Small numbers are the ones that are usual; the bounds are where mistakes are.
  return random.pick([
    least,
    most,
    Math.min(most, least + random.between(0, 20)),
    Math.min(most, least + 1_000),
  ]);
}

function listOf(schema: Schema, name: string, random: Random, known: Knowledge, depth: number): unknown[] {
  const least = Number(schema['minItems'] ?? 0);
  const length = Math.min(Number(schema['maxItems'] ?? 3), least + random.between(0, 2));
  const items = (schema['items'] ?? {}) as Schema;
  return Array.from({ length }, () => valueOf(items, name, random, known, depth + 1));
}

function objectOf(schema: Schema, random: Random, known: Knowledge, depth: number): Record<string, unknown> {
  const fields = Object.entries((schema['properties'] ?? {}) as Record<string, Schema>);
  const required = (schema['required'] ?? []) as string[];
  const chosen = fields.filter(([name]) => required.includes(name) || random.chance(0.3));
  return Object.fromEntries(
    chosen.map(([name, field]) => [name, valueOf(field, name, random, known, depth + 1)]),
  );
}

function someUuid(random: Random): string {
  const digits = Array.from({ length: 32 }, () => random.between(0, 15).toString(16)).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
