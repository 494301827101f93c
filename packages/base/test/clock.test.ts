import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { ManualClock, sleep, systemClock } from '../src/index.js';

test('timers of the manual clock fire in order of their time, each at its own moment', async () => {
  const clock = new ManualClock(1_000);
  const seen: string[] = [];
  const note = (name: string) => () => void seen.push(`${name}@${clock.now()}/${clock.monotonicMs()}`);
  clock.setTimer(note('late'), 30);
  clock.setTimer(note('early'), 10);
  clock.setTimer(note('early too'), 10);
  clock.setTimer(note('never'), 20).cancel();
  await clock.advance(29);
  assert.deepEqual(seen, ['early@1010/10', 'early too@1010/10']);
  await clock.advance(1);
  assert.deepEqual(seen.slice(2), ['late@1030/30']);
  assert.equal(clock.pendingTimers, 0);
});

test('a timer set while the manual clock advances fires within the same advance', async () => {
  const clock = new ManualClock(0);
  const seen: number[] = [];
  const loop = (async () => {
    for (let turn = 0; turn < 3; turn++) {
      await sleep(10, undefined, clock);
      seen.push(clock.now());
    }
  })();
  await clock.advance(30);
  await loop;
  assert.deepEqual(seen, [10, 20, 30]);
});

test('a jump of the wall clock moves neither monotonic time nor timers', async () => {
  const clock = new ManualClock(0);
  let fired = false;
  clock.setTimer(() => (fired = true), 10);
  clock.jump(-5_000);
  assert.equal(clock.now(), -5_000);
  assert.equal(clock.monotonicMs(), 0);
  await clock.advance(9);
  assert.equal(fired, false);
  await clock.advance(1);
  assert.equal(fired, true);
});

test('a timer that sets itself again for ever is ended loudly', async () => {
  const clock = new ManualClock();
  // The settling between timers is what takes the time here, so it is made instant.
  mock.method(globalThis, 'setImmediate', (fn: () => void) => queueMicrotask(fn));
  try {
    const again = (): void => void clock.setTimer(again, 0);
    again();
    await assert.rejects(clock.advance(1), /more than 100000 timers/);
  } finally {
    mock.restoreAll();
  }
});

test('the system clock fires a timer once and not after it was cancelled', async () => {
  let fired = 0;
  systemClock.setTimer(() => fired++, 5);
  systemClock.setTimer(() => (fired += 100), 5).cancel();
  const before = systemClock.monotonicMs();
  await sleep(30);
  assert.equal(fired, 1);
  assert.ok(systemClock.monotonicMs() - before >= 25);
  assert.ok(Math.abs(systemClock.now() - Date.now()) < 1_000);
});

test('the system clock waits for delays beyond what one timeout can hold', () => {
  const dayMs = 86_400_000;
  const delays: number[] = [];
  let fire: (() => void) | undefined;
  let nowMs = 0;
  mock.method(performance, 'now', () => nowMs);
  mock.method(globalThis, 'setTimeout', (fn: () => void, ms: number) => {
    delays.push(ms);
    fire = () => {
      nowMs += ms;
      fn();
    };
  });
  try {
    let fired = false;
    systemClock.setTimer(() => (fired = true), 60 * dayMs);
    for (let step = 0; step < 3; step++) {
      assert.equal(fired, false);
      fire?.();
    }
    assert.equal(fired, true);
    assert.equal(
      delays.reduce((a, b) => a + b),
      60 * dayMs,
    );
    assert.ok(delays.every((ms) => ms <= 2 ** 31 - 1));
  } finally {
    mock.restoreAll();
  }
});
