/** Targets, what is worst first, history of several queues, missing ranges: what the page concludes by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { together } from '../src/data/history.js';
import { gapsOf } from '../src/ranges.js';
import { rank } from '../src/severity.js';
import { judge } from '../src/targets.js';

const nothing = { letters: 0, hour: null, groups: [], cache: null, nowMs: 0 };

test('without any figures no target is missed and most are not judged', () => {
  const judged = judge(nothing);
  assert.deepEqual(
    judged.filter(({ met }) => met === false),
    [],
  );
  assert.equal(judged.find(({ title }) => title === 'Cache hits')!.met, null);
});

test('targets are judged by the figures of the last hour', () => {
  const met = (hour: { done: number; failed: number; died: number }, title: string): boolean | null =>
    judge({ ...nothing, hour }).find((target) => target.title === title)!.met;
  assert.equal(met({ done: 95, failed: 0, died: 5 }, 'Permanent failures'), false);
  assert.equal(met({ done: 96, failed: 0, died: 4 }, 'Permanent failures'), true);
  assert.equal(met({ done: 10, failed: 20, died: 0 }, 'Retries per job'), false);
  assert.equal(met({ done: 10, failed: 90, died: 11 }, 'Retries that help'), false);
  assert.equal(judge({ ...nothing, letters: 50 })[0]!.met, false);
  assert.equal(judge({ ...nothing, letters: 49 })[0]!.met, true);
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
