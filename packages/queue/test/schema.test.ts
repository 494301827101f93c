import { isSluiceError, type SluiceError } from '@sluice/base';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as v from 'valibot';
import { z } from 'zod';
import { type InferInput, type InferOutput, type StandardSchemaV1, validateWith } from '../src/schema.js';

const zodInvoice = z.object({
  id: z.string(),
  items: z.array(z.object({ price: z.number() })),
  currency: z.string().default('EUR'),
});
const valibotInvoice = v.object({
  id: v.string(),
  items: v.array(v.object({ price: v.number() })),
  currency: v.optional(v.string(), 'EUR'),
});

function refusal(schema: StandardSchemaV1, value: unknown): SluiceError {
  try {
    void validateWith(schema, value);
  } catch (error) {
    assert.ok(isSluiceError(error, 'PAYLOAD_INVALID'));
    return error;
  }
  return assert.fail('the payload was accepted');
}

for (const [vendor, schema] of [
  ['zod', zodInvoice],
  ['valibot', valibotInvoice],
] as const) {
  test(`a ${vendor} schema validates without a promise and its output is returned`, () => {
    const output = validateWith<StandardSchemaV1>(schema, { id: 'a', items: [{ price: 2 }] });
    assert.deepEqual(output, { id: 'a', items: [{ price: 2 }], currency: 'EUR' });
  });

  test(`a payload that does not fit its ${vendor} schema is refused with a readable list of issues`, () => {
    const error = refusal(schema, { id: 7, items: [{ price: 1 }, { price: 'secret' }] });
    assert.equal(error.retryable, false);
    assert.match(error.message, /^the payload does not fit its schema: id: .+; items\[1\]\.price: .+$/);
    const { issues } = error.details as { issues: { path: string }[] };
    assert.deepEqual(
      issues.map((issue) => issue.path),
      ['id', 'items[1].price'],
    );
  });

  test(`a payload of the wrong kind is refused as a whole by a ${vendor} schema`, () => {
    assert.match(refusal(schema, 'text').message, /: payload: /);
  });
}

test('an asynchronous schema is awaited, and refuses by rejecting', async () => {
  const zodEven = z.number().refine(async (n) => n % 2 === 0, 'must be even');
  const valibotEven = v.pipeAsync(
    v.number(),
    v.checkAsync(async (n) => n % 2 === 0, 'must be even'),
  );
  for (const schema of [zodEven, valibotEven]) {
    assert.equal(await validateWith<StandardSchemaV1>(schema, 4), 4);
    await assert.rejects(
      async () => validateWith<StandardSchemaV1>(schema, 5),
      (error) => isSluiceError(error, 'PAYLOAD_INVALID') && error.message.endsWith('payload: must be even'),
    );
  }
});

test('the list of issues is bounded and says how many are not shown', () => {
  const error = refusal(
    z.array(z.number()),
    Array.from({ length: 1_000 }, () => 'x'),
  );
  assert.equal((error.details as { issues: unknown[] }).issues.length, 20);
  assert.match(error.message, /; and 980 more$/);
});

test('something that is no Standard Schema is refused as such', () => {
  for (const schema of [undefined, null, {}, { '~standard': { version: 2 } }, () => true]) {
    assert.throws(
      () => validateWith(schema as unknown as StandardSchemaV1, 1),
      (error) => isSluiceError(error, 'SCHEMA_UNSUPPORTED'),
    );
  }
});

test('the types of input and output come from the schema', () => {
  const input: InferInput<typeof zodInvoice> = { id: 'a', items: [] };
  const output: InferOutput<typeof valibotInvoice> = { id: 'a', items: [], currency: 'EUR' };
  // @ts-expect-error the output of the schema always has a currency
  const incomplete: InferOutput<typeof zodInvoice> = { id: 'a', items: [] };
  assert.ok(input && output && incomplete);
});
