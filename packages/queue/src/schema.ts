/**
 * Payload schemas through Standard Schema (zod, valibot, arktype and others speak it).
 *
 * The same function serves both sides: the producer validates before it adds, the worker before it handles.
 * Most schemas validate synchronously, and then the answer is returned as it is, without a promise, because
 * this lies on the path of every job. Only a schema that answers with a promise makes the caller await one.
 *
 * The error lists the issues, `items[0].price: expected a number`, and never the payload, which may be secret.
 */

import { queueErrors } from './errors.js';
import type { StandardSchemaV1 } from '@standard-schema/spec';

export type { StandardSchemaV1 };
export type InferInput<Schema extends StandardSchemaV1> = StandardSchemaV1.InferInput<Schema>;
export type InferOutput<Schema extends StandardSchemaV1> = StandardSchemaV1.InferOutput<Schema>;

export interface PayloadIssue {
  /** `items[0].price`; empty for the payload as a whole. */
  path: string;
  message: string;
}

/** Issues listed in one error. A payload of a million wrong items has a million issues. */
export const MAX_LISTED_ISSUES = 20;

export function validateWith<Schema extends StandardSchemaV1>(
  schema: Schema,
  value: unknown,
): InferOutput<Schema> | Promise<InferOutput<Schema>> {
  checkSchema(schema);
  const result = schema['~standard'].validate(value);
  return 'then' in result ? result.then(outputOf<Schema>) : outputOf<Schema>(result);
}

/** Throws `SCHEMA_UNSUPPORTED` for anything that does not speak Standard Schema v1. */
export function checkSchema(schema: unknown): asserts schema is StandardSchemaV1 {
  const standard = (schema as StandardSchemaV1 | null | undefined)?.['~standard'];
  if (standard?.version !== 1 || typeof standard.validate !== 'function')
    throw queueErrors.SCHEMA_UNSUPPORTED();
}

function outputOf<Schema extends StandardSchemaV1>(
  result: StandardSchemaV1.Result<unknown>,
): InferOutput<Schema> {
  if (!result.issues) return result.value;
  const issues = result.issues
    .slice(0, MAX_LISTED_ISSUES)
    .map((issue) => ({ path: pathText(issue.path ?? []), message: issue.message }));
  throw queueErrors.PAYLOAD_INVALID({ issues, issueCount: result.issues.length });
}

function pathText(path: ReadonlyArray<PropertyKey | StandardSchemaV1.PathSegment>): string {
  return path
    .map((segment) => (typeof segment === 'object' ? segment.key : segment))
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
}
