/** Targets, what is worst first, history of several queues, missing ranges: what the page concludes by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sinceWork, together } from '../src/data/history.js';
import { gapsOf } from '../src/ranges.js';
import { rank } from '../src/severity.js';
import { describeTarget } from '../src/targets.js';

test('a target says in words what it should be and what it is', () => {
  const row = { about: '', state: 'ok', since: null, raisedAt: null, link: '/', met: true };
  const described = (
    name: string,
    keep: 'below' | 'above',
    limit: number,
    unit: string,
    value: number | null,
  ) => {
    const { title, goal, now } = describeTarget({ ...row, name, keep, limit, unit, value });
    return [title, goal, now].join(' | ');
  };
  assert.equal(described('deadLetters', 'below', 50, 'count', 23), 'Dead letters | less than 50 | 23');
  assert.equal(
    described('oldestDeadLetter', 'below', 86_400, 'seconds', 9_000),
    'Oldest dead letter | less than 1 d | 2 h 30 min',
  );
  assert.equal(
    described('permanentFailures', 'below', 0.05, 'share', 0.0021),
    'Permanent failures | less than 5.0 % | 0.2 %',
  );
  assert.equal(
    described('queueWaitTime', 'below', 1.5, 'count', null),
    'Queue wait time | less than 1.5 | –',
  );
});

test('what is broken comes before what is a warning, and what is unknown counts as broken', () => {
  const ranked = rank([
    { code: 'QUEUE_PAUSED', message: '' },
    { code: 'DEAD_LETTERS', message: '' },
    { code: 'SOMETHING_NEW', message: '' },
    { code: 'NO_WORKERS', message: '' },
  ]);
  assert.deepEqual(
    ranked.map(({ code }) => code),
    ['SOMETHING_NEW', 'NO_WORKERS', 'DEAD_LETTERS', 'QUEUE_PAUSED'],
  );
});

test('minutes of several queues are added up; of latencies the worst stays; gaps stay gaps', () => {
  const series = (points: [number, Record<string, number> | null][]) => ({
    step: 'minute' as const,
    stepMs: 60_000,
    complete: true,
    points: points.map(([atMs, figures]) => ({ atMs, figures })),
  });
  const all = together([
    series([
      [0, { done: 1, runP95Ms: 5 }],
      [60_000, null],
    ]),
    series([
      [0, { done: 2, runP95Ms: 9 }],
      [60_000, null],
    ]),
  ]);
  assert.deepEqual(all.times, [0, 60_000]);
  assert.deepEqual(all.done, [3, null]);
  assert.deepEqual(all.runP95Ms, [9, null]);
});

test('history begins shortly before the first work, and is never shorter than twelve minutes', () => {
  const hour = (firstWork: number) => {
    const of = (value: number) => Array.from({ length: 60 }, (_, i) => (i < firstWork ? 0 : value));
    const quiet = of(0);
    const times = quiet.map((_, i) => i * 60_000);
    const rest = { failed: quiet, died: quiet, waiting: quiet, waitP95Ms: quiet, runP95Ms: quiet };
    return sinceWork({ times, done: of(7), ...rest });
  };
  assert.deepEqual(hour(40).done.slice(0, 2), [0, 7]);
  assert.equal(hour(40).times[0], 39 * 60_000);
  assert.equal(hour(58).times.length, 12);
  // A whole hour of work, and a whole hour of none, are shown whole.
  assert.equal(hour(0).times.length, 60);
  assert.equal(hour(60).times.length, 60);
});

test('missing ranges become places on a bar, and nonsense becomes none', () => {
  assert.deepEqual(
    gapsOf(
      [
        [0, 49],
        [80, null],
      ],
      100,
    ),
    [
      { from: 0, to: 0.5 },
      { from: 0.8, to: 1 },
    ],
  );
  for (const nonsense of [null, 'x', [1, 2], [['a', 'b']], {}]) assert.deepEqual(gapsOf(nonsense, 100), []);
  assert.deepEqual(gapsOf([[0, 1]], null), []);
});
