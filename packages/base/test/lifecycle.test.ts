import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError, ManualClock, sleep, startStop, withDeadline } from '../src/index.js';

const late = () => new Error('late');

function counted(clock: ManualClock, timing: { startMs?: number; stopMs?: number } = {}) {
  const calls: string[] = [];
  const service = startStop(
    {
      name: 'pump',
      start: async () => {
        calls.push('start');
        await sleep(timing.startMs ?? 0, undefined, clock);
      },
      stop: async (deadlineMs) => {
        calls.push(`stop ${deadlineMs}`);
        await sleep(timing.stopMs ?? 0, undefined, clock);
      },
    },
    clock,
  );
  return { service, calls };
}

test('a service starts once and stops once however often it is asked', async () => {
  const clock = new ManualClock();
  const { service, calls } = counted(clock);
  await service.stop();
  const starts = Promise.all([service.start(), service.start()]);
  await clock.advance(0);
  await starts;
  await service.start();
  const stops = Promise.all([service.stop(50), service.stop(70)]);
  await clock.advance(0);
  await stops;
  await service.stop();
  assert.deepEqual(calls, ['start', 'stop 50']);
});

test('a stop during the start waits for it, and a start during the stop waits for that', async () => {
  const clock = new ManualClock();
  const { service, calls } = counted(clock, { startMs: 10, stopMs: 10 });
  const all = Promise.all([service.start(), service.stop(1_000), service.start()]);
  await clock.advance(9);
  assert.deepEqual(calls, ['start']);
  await clock.advance(1);
  assert.deepEqual(calls, ['start', 'stop 1000']);
  await clock.advance(20);
  await all;
  assert.deepEqual(calls, ['start', 'stop 1000', 'start']);
});

test('a stop that misses its deadline is reported with its name, and can be awaited again', async () => {
  const clock = new ManualClock();
  const { service } = counted(clock, { stopMs: 100 });
  void service.start();
  await clock.advance(0);
  const first = assert.rejects(
    service.stop(50),
    (error) => isSluiceError(error, 'STOP_TIMEOUT') && error.message === 'pump did not stop within 50 ms',
  );
  await clock.advance(50);
  await first;
  const second = service.stop(60);
  await clock.advance(50);
  await second;
  assert.equal(clock.pendingTimers, 0);
});

test('a start that fails leaves the service stopped and it may be started again', async () => {
  let broken = true;
  const service = startStop({
    name: 'pump',
    start: () => {
      if (broken) throw new Error('no water');
    },
    stop: () => {},
  });
  const failed = service.start();
  const stopped = service.stop();
  await assert.rejects(failed, /no water/);
  await stopped;
  broken = false;
  await service.start();
  await service.stop();
});

test('an error of the stop reaches every caller and the service may be started again', async () => {
  let starts = 0;
  const service = startStop({
    name: 'pump',
    start: () => void starts++,
    stop: () => Promise.reject(new Error('valve broke')),
  });
  await service.start();
  await Promise.all([
    assert.rejects(service.stop(), /valve broke/),
    assert.rejects(service.stop(), /valve broke/),
  ]);
  await service.start();
  assert.equal(starts, 2);
});

test('a deadline passes on what happened in time and leaves no timer behind', async () => {
  const clock = new ManualClock();
  assert.equal(await withDeadline(Promise.resolve(7), 10, late, clock), 7);
  await assert.rejects(withDeadline(Promise.reject(new Error('own')), 10, late, clock), /own/);
  assert.equal(await withDeadline(Promise.resolve(8), Infinity, late, clock), 8);
  assert.equal(clock.pendingTimers, 0);
});

test('a deadline that passes rejects once and swallows a late rejection', async () => {
  const clock = new ManualClock();
  const work = sleep(20, undefined, clock).then(() => Promise.reject(new Error('too late to matter')));
  const result = assert.rejects(withDeadline(work, 10, late, clock), /^Error: late$/);
  await clock.advance(30);
  await result;
});

test('a sleep that is aborted rejects at once with the reason and leaves no timer behind', async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const slept = assert.rejects(sleep(1_000, abort.signal, clock), /enough/);
  abort.abort(new Error('enough'));
  await slept;
  assert.equal(clock.pendingTimers, 0);
  await assert.rejects(sleep(1_000, abort.signal, clock), /enough/);
  assert.equal(clock.pendingTimers, 0);
});
