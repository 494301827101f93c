// From figures to alerts: limits, margins, durations.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { judge, type Standing } from '../src/judge.js';
import { isKept, isKeptWell, thresholds, type ThresholdName } from '../src/threshold.js';

const named = (name: ThresholdName, limits = {}) =>
  thresholds(limits).find((threshold) => threshold.name === name)!;

test('the usual limits are the targets of the operation', () => {
  const limits = Object.fromEntries(thresholds().map(({ name, keep, limit }) => [name, `${keep} ${limit}`]));
  assert.deepEqual(limits, {
    deadLetters: 'below 50',
    oldestDeadLetter: 'below 86400',
    retrySuccess: 'above 0.9',
    averageRetries: 'below 2',
    permanentFailures: 'below 0.05',
    hitRate: 'above 0.8',
    queriesSaved: 'above 0.8',
    storageCallsSaved: 'above 0.8',
    timeSaved: 'above 0.7',
    redisMemory: 'below 0.9',
  });
});

test('a limit is changed or taken away by name; what is none is refused', () => {
  assert.equal(named('deadLetters', { deadLetters: 5 }).limit, 5);
  assert.equal(named('hitRate', { hitRate: null }), undefined);
  for (const wrong of [{ letters: 5 }, { deadLetters: '5' }, { deadLetters: 0 }, { deadLetters: Infinity }])
    assert.throws(
      () => thresholds(wrong),
      (error) => isSluiceError(error, 'THRESHOLD_INVALID'),
    );
});

test('a limit is crossed when it is reached, and well kept a tenth away from it', () => {
  const letters = named('deadLetters');
  assert.deepEqual(
    [44, 45, 49, 50].map((value) => [isKept(letters, value), isKeptWell(letters, value)]),
    [
      [true, true],
      [true, false],
      [true, false],
      [false, false],
    ],
  );
  const hits = named('hitRate');
  assert.deepEqual(
    [0.8, 0.81, 0.83].map((value) => [isKept(hits, value), isKeptWell(hits, value)]),
    [
      [false, false],
      [true, false],
      [true, true],
    ],
  );
  assert.equal(isKept(hits, undefined), undefined);
});

/** Walks through figures, a second apart. */
function walk(figures: (number | undefined)[], forMs: number): Standing[] {
  let last: Standing | undefined;
  return figures.map(
    (value, second) => (last = judge(named('deadLetters'), last, value, second * 1_000, forMs)),
  );
}

test('a limit must be crossed for a while, and kept well for as long, before anything is told', () => {
  const standings = walk([10, 60, 60, 60, 60, 48, 40, 40, 40, 40], 3_000);
  assert.deepEqual(
    standings.map(({ state }) => state),
    ['ok', 'pending', 'pending', 'pending', 'raised', 'raised', 'clearing', 'clearing', 'clearing', 'ok'],
  );
  assert.deepEqual([standings[4]!.untold, standings[4]!.raisedMs], ['raised', 4_000]);
  assert.deepEqual(
    [standings[9]!.untold, standings[9]!.raisedMs, standings[9]!.value],
    ['cleared', 4_000, 40],
  );
});

test('a figure that hovers at the limit raises once', () => {
  const standings = walk([50, 50, 49, 50, 46, 51, 49, 50, 47], 1_000);
  assert.deepEqual(
    standings.map(({ state }) => state),
    ['pending', 'raised', 'raised', 'raised', 'raised', 'raised', 'raised', 'raised', 'raised'],
  );
});

test('a short excursion tells nothing, in either direction', () => {
  assert.ok(walk([60, 10, 60, 10, 60, 10], 2_000).every(({ untold }) => untold === undefined));
  const back = walk([60, 60, 60, 10, 60, 10, 60], 2_000).slice(3);
  assert.ok(back.every(({ state }) => state === 'raised' || state === 'clearing'));
});

test('what is not known keeps the limit: nothing happens any more', () => {
  const standings = walk([60, 60, undefined, undefined, undefined], 1_000);
  assert.deepEqual(
    standings.map(({ state }) => state),
    ['pending', 'raised', 'clearing', 'ok', 'ok'],
  );
  assert.equal(standings.at(-1)!.value, undefined);
});
