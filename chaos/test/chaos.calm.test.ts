// The short form of `npm run chaos`, with fixed seeds: a run of everything, a tour of all fail points, a failover, and one sabotage per
// guard. A run that fails keeps its evidence; the message says where it is and how to repeat it.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { conduct } from '../src/conductor.js';
import type { RunOptions, RunReport } from '../src/conductor.js';
import { guards } from '../src/sabotage.js';
import type { Guard, GuardName } from '../src/sabotage.js';

const timeout = 280_000;

async function run(options: Partial<RunOptions> & { seed: string; seconds: number }): Promise<RunReport> {
  return conduct({ topology: 'single', only: [], ...options });
}

function assertInOrder({ violations, folder, figures }: RunReport, how: string): void {
  const sentences = violations.slice(0, 20).join('\n  ');
  const repeat = `npm run chaos -- ${how}`;
  assert.equal(violations.length, 0, `\n  ${sentences}\n  evidence: ${folder}\n  again: ${repeat}`);
  assert.ok(
    figures['jobs']! > 100 && figures['rescues']! > 0,
    `hardly anything happened: ${JSON.stringify(figures)}`,
  );
}

/** A strike that missed is no failure, but many would be a run without faults: they are to be seen. */
function tell(t: TestContext, { figures, misses }: RunReport): void {
  t.diagnostic(JSON.stringify(figures));
  for (const miss of misses) t.diagnostic(`a strike missed: ${miss}`);
}

test('after chaos every accepted job has ended once, and nothing is left behind', { timeout }, async (t) => {
  const report = await run({ seed: '1', seconds: 25 });
  tell(t, report);
  assertInOrder(report, '--seconds 25 --seed 1');
});

test('a process that is killed at any fail point loses nothing', { timeout }, async (t) => {
  const report = await run({ seed: '2', seconds: 150, tour: true });
  tell(t, report);
  assertInOrder(report, '--tour --seconds 150 --seed 2');
  assert.equal(report.figures['points'], report.figures['ofPoints']);
});

test('jobs that are stored, claimed and ended together survive the same chaos', { timeout }, async (t) => {
  const report = await run({ seed: '5', seconds: 12, swift: true });
  tell(t, report);
  assertInOrder(report, '--swift --seconds 12 --seed 5');
});

test('a failover under load loses no job that replicas confirmed', { timeout }, async (t) => {
  const report = await run({
    seed: '3',
    seconds: 8,
    topology: 'sentinel',
    only: ['failover', 'kill', 'cut'],
  });
  tell(t, report);
  assertInOrder(report, '--seconds 8 --seed 3 --topology sentinel --only failover,kill,cut');
});

for (const [name, guard] of Object.entries(guards) as [GuardName, Guard][]) {
  test(`the checker objects when the ${name} guard is taken out`, { timeout }, async () => {
    const { violations, folder } = await run({ seed: '4', seconds: 5, sabotage: name });
    const noticed = violations.some((violation) => guard.noticed.test(violation));
    assert.ok(
      noticed,
      `it said: ${violations.slice(0, 20).join('\n  ') || 'nothing'}\n  evidence: ${folder}`,
    );
    rmSync(folder, { recursive: true, force: true });
  });
}
