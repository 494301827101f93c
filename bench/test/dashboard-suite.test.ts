/*
 * The dashboard suite in miniature: a visit yields its figures. Nothing here judges speed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromiumProblem } from '@sluice/testbed';
import { toJson, toTable } from '../src/dashboard/report.js';
import { TINY } from '../src/dashboard/sizes.js';
import { measureDashboard } from '../src/dashboard/suite.js';

const skip = chromiumProblem() ?? false;

test('a visit of the dashboard is timed until its figures stand there', { skip }, async () => {
  const { visits } = await measureDashboard(TINY, () => {});
  assert.equal(visits.length, TINY.rounds);
  const { firstPaintMs, figuresMs, scriptGzipBytes, requests } = toJson(visits);
  // Not which comes first: when a frame was drawn is known only afterwards, and the script goes on meanwhile.
  assert.ok(firstPaintMs! > 0 && figuresMs! > 0, JSON.stringify(visits));
  assert.ok(scriptGzipBytes! > 10_000 && scriptGzipBytes! <= 150_000, JSON.stringify(visits));
  assert.ok(requests! >= 3, JSON.stringify(visits));
  assert.match(toTable(visits, TINY), /321 waiting, 20 dead, 3 workers/);
});
