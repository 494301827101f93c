// A value against the schema of its family (Standard Schema: zod, valibot, arktype and others speak it).
import type { StandardSchemaV1 } from '@standard-schema/spec';

export type Validated = { value: unknown } | { issues: readonly string[] };

const maxListed = 20;

/** Most schemas answer at once; only one that answers with a promise makes the caller wait. */
export function validate(schema: StandardSchemaV1, value: unknown): Validated | Promise<Validated> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise ? result.then(toValidated) : toValidated(result);
}

function toValidated(result: StandardSchemaV1.Result<unknown>): Validated {
  if (!result.issues) return { value: result.value };
  const listed = result.issues.slice(0, maxListed).map(({ message, path }) => {
    const keys = (path ?? []).map((segment) => String(typeof segment === 'object' ? segment.key : segment));
    return keys.length > 0 ? `${keys.join('.')}: ${message}` : message;
  });
  return { issues: listed };
}
