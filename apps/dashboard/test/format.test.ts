/** Figures as people read them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bytes,
  compact,
  countdown,
  latency,
  number,
  percent,
  rate,
  relative,
  span,
  tick,
} from '../src/format.js';

test('a span of time has its two largest units', () => {
  const cases: [number, string][] = [
    [0, '0 ms'],
    [250, '250 ms'],
    [1_000, '1 sec'],
    [1_499, '1.4 sec'],
    [59_999, '59 sec'],
    [150_000, '2 min 30 sec'],
    [315_000, '5 min 15 sec'],
    [120_000, '2 min'],
    [3_900_000, '1 h 5 min'],
    [86_400_000, '1 d'],
    [100_000_000, '1 d 3 h'],
    [-5, '0 ms'],
  ];
  for (const [ms, text] of cases) assert.equal(span(ms), text);
});

test('what is due says so, and what is not says for how long', () => {
  assert.equal(countdown(151_999, 1_000), '2 min 30 sec');
  assert.equal(countdown(1_500, 1_000), 'due now');
  assert.equal(countdown(0, 1_000), 'due now');
  assert.equal(relative(0, 200_000), '3 min ago');
  assert.equal(relative(200_000, 0), 'in 3 min 20 sec');
  assert.equal(relative(100, 0), 'now');
});

test('nearly all is never shown as all', () => {
  assert.equal(percent(0.9996), '99 %');
  assert.equal(percent(0.99996, 2), '99.99 %');
  assert.equal(percent(1), '100 %');
  assert.equal(percent(0.245), '25 %');
  assert.equal(percent(undefined), '–');
});

test('large numbers are short, small ones are exact', () => {
  assert.equal(compact(9_999), '9,999');
  assert.equal(compact(12_345), '12.3 k');
  assert.equal(compact(1_204_331), '1.2 M');
  assert.equal(compact(123_456_789), '123 M');
  assert.equal(compact(4_200_000_000_000), '4.2 T');
  assert.equal(compact(1e15), '1.0 P');
  assert.equal(number(1_204_331), '1,204,331');
  assert.equal(rate(0.04), '< 0.1');
  assert.equal(rate(2.34), '2.3');
  assert.equal(rate(0), '0');
  assert.equal(latency(1.25), '1.3 ms');
});

test('bytes have units that divide by 1,024', () => {
  assert.equal(bytes(0), '0 B');
  assert.equal(bytes(131_072_000), '125 MiB');
  assert.equal(bytes(1_536), '1.5 KiB');
  assert.equal(bytes(Number.NaN), '–');
});

test('an axis of time has hours, and the date where a day begins', () => {
  assert.equal(tick(new Date(2026, 10, 16, 9, 5).getTime()), '09:05');
  assert.equal(tick(new Date(2026, 10, 16).getTime()), '11-16');
});
