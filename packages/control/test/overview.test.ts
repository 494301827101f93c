// What the overview costs: the questions that read letters and jobs are paid off before they are asked again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OverviewSource, type OverviewParts } from '../src/overview.js';

/** Queues with letters and jobs in them, whose questions take as long as it is told. */
function slowParts(tookMs: number) {
  const clock = { nowMs: 0 };
  const asked: string[][] = [];
  const trouble: { problem?: { message: string } } = {};
  const counts = { waiting: 0, workers: 1, oldestWaitingMs: 0 };
  const queue = (name: string, dead: number, delayed: number) => ({
    ...{ name, paused: false },
    counts: { ...counts, dead, delayed },
  });
  const queues = [queue('mail', 3, 0), queue('later', 0, 2), queue('idle', 0, 0)];
  const parts = {
    inspect: {
      overview: async () => ({ problems: [], redis: null }),
      snapshot: async () => ({ queues, ...(trouble.problem && { problem: trouble.problem }) }),
      deadSummaries: async ({ queues: names }: { queues?: string[] }) => {
        if (trouble.problem) throw new Error(trouble.problem.message);
        asked.push(names!);
        clock.nowMs += tookMs;
        return [{ queue: 'mail', letters: 1, averageAttempts: 2, sampled: 1, topError: null }];
      },
      retrySummary: async ({ queues: names }: { queues: string[] }) => {
        asked.push(names);
        return { count: 2, complete: true, nextMs: 5 };
      },
    },
    records: {
      uploads: { countOpen: async () => 0 },
      outbox: { state: async () => ({ waiting: 0, oldestMs: 0 }) },
    },
  };
  const source = new OverviewSource(parts as unknown as OverviewParts, () => clock.nowMs);
  return { source, asked, clock, queues, trouble };
}

test('only queues that have letters or jobs for later are asked about them', async () => {
  const { source, asked } = slowParts(1);
  const { dead, retries } = await source.latest();
  assert.deepEqual(asked, [['mail'], ['later']]);
  assert.deepEqual([dead.letters, dead.averageAttempts, retries.count], [3, 2, 2]);
});

test('questions that take long are asked more rarely, while counts stay fresh', async () => {
  const { source, asked, clock, queues } = slowParts(200);
  await source.latest();
  assert.equal(asked.length, 2);
  queues[0]!.counts.dead = 4;
  // Two hundred milliseconds are paid off in ten seconds.
  for (let look = 0; look < 4; look++) {
    clock.nowMs += 2_001;
    assert.equal((await source.latest()).dead.letters, 4);
  }
  assert.equal(asked.length, 2);
  clock.nowMs += 2_001;
  await source.latest();
  assert.equal(asked.length, 4);
});

test('while Redis is away the overview says so, whatever was found before', async () => {
  const { source, clock, trouble } = slowParts(200);
  await source.latest();
  trouble.problem = { message: 'Redis does not answer' };
  clock.nowMs += 2_001;
  await assert.rejects(source.latest(), /Redis does not answer/);
});
