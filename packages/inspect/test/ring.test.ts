// Numbers in two bytes, and records in a ring.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { combine, queueFigures, toFigures, toNamed } from '../src/figures.js';
import { decodeRecords, encodeRecord, minuteRing, offsetOf, recordBytes, stretchesOf } from '../src/ring.js';
import { decodeSmall, encodeSmall } from '../src/smallNumber.js';

test('a number in two bytes is exact up to 4,095 and within 0.025 % above', () => {
  for (let value = 0; value <= 4_095; value++) assert.equal(decodeSmall(encodeSmall(value)), value);
  for (let value = 4_096; value < 4e12; value = Math.floor(value * 1.0007) + 1) {
    const kept = decodeSmall(encodeSmall(value))!;
    assert.ok(Math.abs(kept - value) <= value * 0.000_25, `${value} became ${kept}`);
  }
});

test('what is unknown stays unknown; what does not fit becomes the nearest that does', () => {
  assert.equal(decodeSmall(encodeSmall(undefined)), undefined);
  assert.equal(decodeSmall(encodeSmall(Number.NaN)), undefined);
  assert.equal(decodeSmall(encodeSmall(-5)), 0);
  assert.ok(decodeSmall(encodeSmall(1e30))! > 4e12);
  for (let power = 0; power < 42; power++) {
    for (const value of [2 ** power - 1, 2 ** power, 2 ** power + 1]) {
      const kept = decodeSmall(encodeSmall(value))!;
      assert.ok(Math.abs(kept - value) <= value * 0.000_25, `${value} became ${kept}`);
    }
  }
});

test('a record is recognised by its minute: an old one and an empty place are nothing', () => {
  const minute = 29_000_000;
  const bytes = Buffer.concat([
    encodeRecord(minute, [1, undefined, 70_000]),
    encodeRecord(minute + 1 - minuteRing.places, [9]),
    Buffer.alloc(recordBytes),
  ]);
  const [first, old, empty, beyond] = decodeRecords(bytes, minute, 4);
  assert.ok(first);
  assert.deepEqual(first.slice(0, 2), [1, undefined]);
  assert.ok(Math.abs(first[2]! - 70_000) < 20);
  assert.deepEqual([old, empty, beyond], [null, null, null]);
});

test('a span over the end of the ring is read in two pieces, an hour always in one', () => {
  const turn = 20_000 * minuteRing.places;
  assert.deepEqual(stretchesOf(minuteRing, turn - 2, 5), [
    { first: turn - 2, count: 2 },
    { first: turn, count: 3 },
  ]);
  assert.equal(offsetOf(minuteRing, turn), 0);
  for (let hour = 0; hour < 48; hour++) {
    assert.equal(stretchesOf(minuteRing, turn + hour * 60, 60).length, 1);
  }
});

test('an hour is the sum of what happened and the largest of what was', () => {
  const minutes = [
    toFigures(queueFigures, { waiting: 10, done: 5, waitP99Ms: 100 }),
    null,
    toFigures(queueFigures, { waiting: 4, done: 7 }),
  ];
  assert.deepEqual(toNamed(queueFigures, combine(queueFigures, minutes)), {
    waiting: 10,
    done: 12,
    waitP99Ms: 100,
  });
});
