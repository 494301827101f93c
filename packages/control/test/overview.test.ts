// What the overview costs: the questions that read letters and jobs are paid off before they are asked again. And what needs attention: all
// that can lose jobs or keeps a target from being met, and nothing while all is well.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AlertRow } from '@sluice/alerts';
import type { RedisHealth } from '@sluice/inspect';
import { OverviewSource, type OverviewParts } from '../src/overview.js';

const quiet = { done: 0, failed: 0, died: 0 };

/** Queues with letters and jobs in them, whose questions take as long as it is told. */
function slowParts(tookMs: number) {
  const clock = { nowMs: 0 };
  const asked: string[][] = [];
  const trouble: { problem?: { message: string } } = {};
  const counts = { waiting: 0, workers: 1, oldestWaitingMs: 0 };
  const queue = (name: string, dead: number, delayed: number) => ({
    ...{ name, paused: false, lately: quiet },
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
        return { count: 2, complete: true, nextMs: 5, queues: [] };
      },
    },
    alerts: { list: async () => [] },
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

interface State {
  redis?: Partial<RedisHealth>;
  queues?: object[];
  targets?: Partial<AlertRow>[];
  openBreakers?: number;
}

/** What needs attention in an installation that is well but for what the test says. */
async function attentionIn(state: State) {
  return (await sourceIn(() => state).latest()).attention;
}

function sourceIn(stateNow: () => State, nowMs?: () => number): OverviewSource {
  const well = {
    ...{ usedBytes: 10, maxBytes: 100, evicted: 0, policy: 'noeviction' },
    aof: { enabled: true, lastWriteOk: true },
  };
  const counts = { waiting: 0, workers: 1, oldestWaitingMs: 0, dead: 0, delayed: 0 };
  const rowsOf = ({ queues = [{}] }: State) =>
    queues.map((queue, i) => ({ name: `q${i}`, paused: false, counts, lately: quiet, ...queue }));
  const parts = {
    inspect: {
      overview: async () => {
        const { redis = {}, openBreakers = 0 } = stateNow();
        return { problems: [], redis: { ...well, ...redis }, cache: { openBreakers } };
      },
      snapshot: async () => ({ queues: rowsOf(stateNow()) }),
      deadSummaries: async () => [],
      retrySummary: async () => ({ count: 0, complete: true, nextMs: null, queues: [] }),
    },
    alerts: { list: async () => stateNow().targets ?? [] },
    records: {
      uploads: { countOpen: async () => 0 },
      outbox: { state: async () => ({ waiting: 0, oldestMs: 0 }) },
    },
  };
  return new OverviewSource(parts as unknown as OverviewParts, nowMs);
}

const codesIn = async (state: State) => (await attentionIn(state)).map(({ code }) => code);

test('where all is well, or nothing is known yet, nothing needs attention', async () => {
  const unknown = { name: 'hitRate', met: null, value: null, state: 'ok' } as const;
  const met = { name: 'deadLetters', met: true, value: 3, state: 'ok' } as const;
  const calming = { name: 'averageRetries', met: true, value: 1, state: 'clearing' } as const;
  assert.deepEqual(await codesIn({ targets: [unknown, met, calming] }), []);
});

test('a target that is missed needs attention, with what it is, what it should be, and where to look', async () => {
  const target = {
    name: 'retrySuccess',
    about: 'Of the retries, those that helped.',
    keep: 'above',
    limit: 0.9,
    unit: 'share',
    value: 0.412,
    link: '/retries',
  } as const;
  const [missed] = await attentionIn({ targets: [{ ...target, met: false, state: 'pending' }] });
  assert.deepEqual(missed, {
    code: 'TARGET_MISSED',
    message: 'retrySuccess is 41.2%, should be above 90%',
    target,
  });
  // Whoever is called at night has been told: it is no mere warning any more. What is just met is not called missed.
  assert.deepEqual(await codesIn({ targets: [{ ...target, met: false, state: 'raised' }] }), [
    'ALERT_RAISED',
  ]);
  const [close] = await attentionIn({ targets: [{ ...target, value: 0.902, met: true, state: 'raised' }] });
  assert.deepEqual(
    [close!.code, close!.message],
    ['TARGET_CLOSE', 'retrySuccess is 90.2%, only just above 90%'],
  );
});

test('what hovers at its limit is told until it is well again, and does not come and go', async () => {
  const target = { name: 'hitRate', limit: 0.8, unit: 'share', keep: 'above', state: 'pending' } as const;
  let state: State = {};
  let nowMs = 0;
  const source = sourceIn(
    () => state,
    () => nowMs,
  );
  const codesAt = async (value: number, failed: number): Promise<string> => {
    nowMs += 2_001;
    state = {
      targets: [{ ...target, value, met: value > 0.8 }],
      queues: [{ lately: { ...quiet, failed } }],
    };
    return (await source.latest()).attention.map(({ code }) => code).join();
  };
  assert.equal(await codesAt(0.801, 6), '');
  assert.equal(await codesAt(0.799, 12), 'JOBS_FAIL,TARGET_MISSED');
  assert.equal(await codesAt(0.801, 6), 'JOBS_FAIL,TARGET_CLOSE');
  assert.equal(await codesAt(0.799, 12), 'JOBS_FAIL,TARGET_MISSED');
  assert.equal(await codesAt(0.83, 4), '');
  assert.equal(await codesAt(0.801, 6), '');
});

test('a Redis that may lose jobs needs attention before it has', async () => {
  const aof = { enabled: true, lastWriteOk: true };
  const codes = (redis: object) => codesIn({ redis });
  assert.deepEqual(await codes({ policy: 'volatile-lru' }), ['REDIS_MAY_EVICT']);
  assert.deepEqual(await codes({ policy: 'volatile-lru', evicted: 1 }), ['REDIS_EVICTS']);
  assert.deepEqual(await codes({ aof: { ...aof, enabled: false } }), ['REDIS_KEEPS_NO_FILE']);
  assert.deepEqual(await codes({ aof: { ...aof, lastWriteOk: false } }), ['REDIS_CANNOT_WRITE']);
  assert.deepEqual(await codes({ usedBytes: 91 }), ['REDIS_NEARLY_FULL']);
  assert.deepEqual(await codesIn({ openBreakers: 2 }), ['CACHE_WITHOUT_REDIS']);
});

test('what a target says of the memory of Redis is not said twice', async () => {
  const target = {
    ...{ name: 'redisMemory', met: false, value: 0.91, limit: 0.9 },
    ...({ unit: 'share', keep: 'below', state: 'raised' } as const),
  };
  assert.deepEqual(await codesIn({ redis: { usedBytes: 91 }, targets: [target] }), ['ALERT_RAISED']);
});

test('a queue in which nearly all attempts fail needs attention before the first job is dead', async () => {
  const codes = (lately: object, more: object = {}) =>
    codesIn({ queues: [{ lately: { ...quiet, ...lately }, ...more }] });
  assert.deepEqual(await codes({ failed: 10 }), ['JOBS_FAIL']);
  assert.deepEqual(await codes({ failed: 70, died: 20, done: 10 }), ['JOBS_FAIL']);
  // One that is retried twice and then done is well within the target for retries; nine failures may be one job's.
  assert.deepEqual(await codes({ failed: 200, done: 100 }), []);
  assert.deepEqual(await codes({ failed: 9 }), []);
  assert.deepEqual(await codes({ failed: 10 }, { paused: true }), ['QUEUE_PAUSED']);
  const [failing] = await attentionIn({ queues: [{ lately: { done: 0, failed: 1_200, died: 3 } }] });
  assert.deepEqual([failing!.message, failing!.queue], ['1,203 of 1,203 attempts failed just now', 'q0']);
});

test('of very many queues with letters the worst are told, and how many there are', async () => {
  const queues = Array.from({ length: 30 }, (_, i) => ({ counts: { dead: i, delayed: 0 } }));
  const rows = queues.map((queue, i) => ({ name: `q${i}`, paused: false, lately: quiet, ...queue }));
  const { source, queues: known } = slowParts(1);
  known.splice(0, known.length, ...(rows as unknown as typeof known));
  const { dead } = await source.latest();
  assert.deepEqual([dead.queues.length, dead.queueCount, dead.queues[0]!.queue], [20, 29, 'q29']);
});
