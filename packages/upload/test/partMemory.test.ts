// Memory for parts: bounded, used again, and let go of when nobody needs it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { waitUntil } from '@sluice/testbed';
import { mebibyte } from './harness.js';
import { PartMemory } from '../src/partMemory.js';

test('there is only so much memory for parts, and a place is used again', () => {
  const memory = new PartMemory(64 * mebibyte);
  const [one, two] = [memory.take(32 * mebibyte)!, memory.take(20 * mebibyte)!];
  assert.deepEqual([one.length, two.length], [32 * mebibyte, 32 * mebibyte]);
  assert.equal(memory.take(1), undefined);
  memory.giveBack(one);
  assert.equal(memory.take(32 * mebibyte), one);
  memory.giveBack(one);
  // A free place of another size makes room.
  assert.equal(memory.take(16 * mebibyte)!.length, 16 * mebibyte);
  assert.equal(memory.heldBytes, 48 * mebibyte);
});

test('small parts leave a quarter of the memory to large ones', () => {
  const memory = new PartMemory(64 * mebibyte);
  const small: Buffer[] = [];
  for (let place = memory.take(8 * mebibyte); place; place = memory.take(8 * mebibyte)) small.push(place);
  assert.equal(small.length, 6);
  assert.equal(memory.take(1), undefined);
  const large = memory.take(16 * mebibyte)!;
  assert.equal(memory.take(16 * mebibyte), undefined);
  // What small ones give back is theirs again at once.
  memory.giveBack(small[0]!);
  assert.equal(memory.take(8 * mebibyte), small[0]);
  memory.giveBack(large);
  assert.equal(memory.take(1), undefined);
});

test('places that nobody needs for a while are let go, those in use are not', async () => {
  const memory = new PartMemory(16 * mebibyte, 50);
  const places = [memory.take(mebibyte)!, memory.take(2 * mebibyte)!, memory.take(8 * mebibyte)!];
  for (const place of places.slice(1)) memory.giveBack(place);
  assert.equal(memory.heldBytes, 11 * mebibyte);
  await waitUntil('the free ones are gone', () => memory.heldBytes === mebibyte);
  memory.giveBack(places[0]!);
  await waitUntil('the last one is gone', () => memory.heldBytes === 0);
  assert.equal(memory.take(16 * mebibyte)!.length, 16 * mebibyte);
});
