// Memory for parts: bounded, used again, and let go of when nobody needs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import { mebibyte } from './harness.js';
import { PartMemory } from '../src/partMemory.js';

test('there is only so much memory for parts, and a place is used again', () => {
  const memory = new PartMemory(4 * mebibyte);
  const [one, two] = [memory.take(2 * mebibyte)!, memory.take(1_500_000)!];
  assert.deepEqual([one.length, two.length], [2 * mebibyte, 2 * mebibyte]);
  assert.equal(memory.take(1), undefined);
  memory.giveBack(one);
  assert.equal(memory.take(2 * mebibyte), one);
  memory.giveBack(one);
  // A free place of another size makes room.
  assert.equal(memory.take(10)!.length, mebibyte);
  assert.equal(memory.heldBytes, 3 * mebibyte);
});

test('places that nobody needs for a while are let go, those in use are not', async () => {
  const memory = new PartMemory(8 * mebibyte, 50);
  const places = [memory.take(mebibyte)!, memory.take(2 * mebibyte)!, memory.take(4 * mebibyte)!];
  for (const place of places.slice(1)) memory.giveBack(place);
  assert.equal(memory.heldBytes, 7 * mebibyte);
  await waitUntil('the free ones are gone', () => memory.heldBytes === mebibyte);
  memory.giveBack(places[0]!);
  await waitUntil('the last one is gone', () => memory.heldBytes === 0);
  assert.equal(memory.take(8 * mebibyte)!.length, 8 * mebibyte);
});
