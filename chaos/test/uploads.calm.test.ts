// The short form of `npm run chaos -- uploads`, with fixed seeds: a run of everything, a tour of all fail points, and one sabotage per
// guard. A run that fails keeps its evidence; the message says where it is and how to repeat it.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { versitygwProblem } from '@sluice/testbed';
import { commandFor } from '../src/uploads/command.js';
import { conduct } from '../src/uploads/conductor.js';
import type { RunOptions, RunReport } from '../src/uploads/conductor.js';
import { guards } from '../src/uploads/sabotage.js';
import type { Guard, GuardName } from '../src/uploads/sabotage.js';

const timeout = 500_000;
/** Without an S3 server files go to a folder. */
const store = versitygwProblem() === undefined ? 's3' : 'disk';

function assertInOrder({ violations, folder, figures }: RunReport, options: RunOptions): void {
  const sentences = violations.slice(0, 20).join('\n  ');
  const again = `evidence: ${folder}\n  again: ${commandFor(options)}`;
  assert.equal(violations.length, 0, `\n  ${sentences}\n  ${again}`);
  assert.ok(
    figures['completed']! > 5 && figures['deaths']! > 2,
    `hardly anything happened: ${JSON.stringify(figures)}`,
  );
}

/** A strike that missed is no failure, but many would be a run without faults: they are to be seen. */
function tell(t: TestContext, { figures, misses }: RunReport): void {
  t.diagnostic(JSON.stringify(figures));
  for (const miss of misses) t.diagnostic(`a strike missed: ${miss}`);
}

test(
  'after chaos every completed file has its bytes, once, and nothing is left behind',
  { timeout },
  async (t) => {
    const options: RunOptions = { seed: '1', seconds: 22, store, only: [] };
    const report = await conduct(options);
    tell(t, report);
    assertInOrder(report, options);
  },
);

test('a server that is killed at any fail point of uploads loses nothing', { timeout }, async (t) => {
  const options: RunOptions = { seed: '2', seconds: 200, store, only: [], tour: true };
  const report = await conduct(options);
  tell(t, report);
  assertInOrder(report, options);
  assert.equal(report.figures['points'], report.figures['ofPoints']);
});

for (const [name, guard] of Object.entries(guards) as [GuardName, Guard][]) {
  test(`the checker of uploads objects when the ${name} guard is taken out`, { timeout }, async () => {
    const { violations, folder } = await conduct({
      seed: '3',
      seconds: 5,
      store: 'disk',
      only: [],
      sabotage: name,
    });
    const noticed = violations.some((violation) => guard.noticed.test(violation));
    assert.ok(
      noticed,
      `it said: ${violations.slice(0, 20).join('\n  ') || 'nothing'}\n  evidence: ${folder}`,
    );
    rmSync(folder, { recursive: true, force: true });
  });
}
