// Writing many jobs' data with one call gives what writing each of them gives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { toJson, writeEach } from '../src/json.js';

const odd = fc.constantFrom<unknown>(
  undefined,
  null,
  '',
  '","',
  '],[',
  Number.NaN,
  new Date(0),
  new Uint8Array([1, 2]),
  { toJSON: () => undefined, why: 'no form' },
  { toJSON: () => ({ own: 'form' }) },
  { a: undefined, b: () => {}, c: [undefined] },
);

test('each text is what JSON.stringify makes of its data, and bytes stay bytes', () => {
  const data = fc.array(fc.oneof({ weight: 6, arbitrary: fc.jsonValue() }, odd), { maxLength: 60 });
  fc.assert(
    fc.property(data, (list) => {
      const hasForm = (item: unknown) => {
        try {
          return (item instanceof Uint8Array ? '' : toJson(item)) !== undefined;
        } catch {
          return false;
        }
      };
      const good = list.filter(hasForm);
      const written = [...writeEach(good)].flatMap((part) => part.cut());
      assert.deepEqual(
        written,
        good.map((item) => (item instanceof Uint8Array ? item : toJson(item))),
      );
      const lengths = [...writeEach(good)].flatMap((part) =>
        part.cut().map(({ length }) => length <= part.longest),
      );
      assert.ok(lengths.every(Boolean));
      for (const part of writeEach(good)) {
        const lines = part.lines();
        if (lines !== undefined) assert.deepEqual(lines.split(',\n'), part.cut());
      }
    }),
    { numRuns: 2_000 },
  );
});

test('data of any size is written, also among small data', () => {
  const large = 'x'.repeat(300_000);
  const data = Array.from({ length: 500 }, (_, i) => (i % 97 === 0 ? { large, i } : { i }));
  const written = [...writeEach(data)].flatMap((part) => part.cut());
  assert.deepEqual(
    written.map((text) => JSON.parse(String(text)) as unknown),
    data,
  );
});

test('data without a JSON form is refused with the reason', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  for (const [bad, reason] of [
    [circle, /circular/i],
    [10n, /BigInt/],
    [() => {}, /a function has no JSON form/],
  ] as const) {
    const data = [...Array.from({ length: 300 }, (_, i) => ({ i })), bad];
    assert.throws(() => [...writeEach(data)], reason);
  }
});
