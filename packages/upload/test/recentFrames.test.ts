// The memory of the newest frames: never more than was promised, and never two owners of one slot.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentFrames } from '../src/recentFrames.js';

const frame = (byte: number, length = 8): Buffer => Buffer.alloc(length, byte);

test('the newest frames are remembered, and the oldest make room', () => {
  const recent = new RecentFrames(2, 8);
  for (const [i, key] of ['a', 'b', 'c'].entries()) recent.remember(key, frame(i));
  assert.equal(recent.take('a'), undefined);
  assert.deepEqual(recent.take('b')!.bytes, frame(1));
  assert.deepEqual(recent.take('c')!.bytes, frame(2));
  assert.equal(recent.take('c'), undefined);
});

test('a frame is remembered as it was, whatever becomes of the buffer that brought it', () => {
  const recent = new RecentFrames(2, 8);
  const bytes = frame(1, 5);
  recent.remember('a', bytes);
  bytes.fill(9);
  assert.deepEqual(recent.take('a')!.bytes, frame(1, 5));
});

test('what somebody has taken is not written to before it is released', () => {
  const recent = new RecentFrames(2, 8);
  recent.remember('a', frame(1));
  const { bytes, ...slot } = recent.take('a')!;
  for (let i = 0; i < 5; i++) recent.remember(`more ${i}`, frame(2));
  assert.deepEqual(bytes, frame(1));
  recent.release({ bytes, ...slot }, true);
  for (let i = 0; i < 5; i++) recent.remember(`again ${i}`, frame(3));
  assert.deepEqual(bytes, frame(3));
});

test('memory that somebody may still read is never used again', () => {
  const recent = new RecentFrames(2, 8);
  recent.remember('a', frame(1));
  const slot = recent.take('a')!;
  recent.release(slot, false);
  for (let i = 0; i < 5; i++) recent.remember(`more ${i}`, frame(2));
  assert.deepEqual(slot.bytes, frame(1));
});

test('what is taken counts: there are never more slots than was promised', () => {
  const recent = new RecentFrames(2, 8);
  for (const key of ['a', 'b']) recent.remember(key, frame(1));
  const taken = ['a', 'b'].map((key) => recent.take(key)!);
  recent.remember('c', frame(2));
  assert.equal(recent.take('c'), undefined);
  for (const slot of taken) recent.release(slot, true);
  recent.remember('c', frame(2));
  const { memory } = recent.take('c')!;
  assert.ok(taken.some((slot) => slot.memory === memory));
});

test('the same frame twice takes one slot, and one that is forgotten makes room', () => {
  const recent = new RecentFrames(2, 8);
  recent.remember('a', frame(1));
  recent.remember('b', frame(2));
  recent.remember('b', frame(3));
  assert.deepEqual(recent.take('a')!.bytes, frame(1));
  recent.forget('b');
  recent.forget('never');
  assert.equal(recent.take('b'), undefined);
});

test('without slots nothing is remembered', () => {
  const recent = new RecentFrames(0, 8);
  recent.remember('a', frame(1));
  assert.equal(recent.take('a'), undefined);
});
