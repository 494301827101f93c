// Alerts on a real Redis: one process judges, each change is told once, and a crash or a restart neither repeats nor forgets.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test, type TestContext } from 'node:test';
import { Inspect, type Snapshot } from '@sluice/inspect';
import { GiveUp, Queue } from '@sluice/queue';
import { startRedis, waitUntil, type RedisServer } from '@sluice/testbed';
import type { WebhookEvent } from '@sluice/webhooks';
import { Alerts, measure, type AlertsOptions, type Questions } from '../src/index.js';

let redis: RedisServer;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

interface World {
  prefix: string;
  letters: number;
  nowMs: number;
  told: WebhookEvent[];
  refuses: boolean;
  open(more?: Partial<AlertsOptions>): Alerts;
}

/** A world in which the figures and the time are what the test says. */
function world(t: TestContext): World {
  const prefix = `a${randomBytes(4).toString('hex')}`;
  const here: World = {
    prefix,
    letters: 0,
    nowMs: 1_700_000_000_000,
    told: [],
    refuses: false,
    open: (more = {}) => {
      const alerts = new Alerts({
        ...{ inspect: questions(here), webhooks, redis: redis.url, prefix, forMs: 60_000, everyMs: 1_000 },
        publicUrl: 'https://sluice.example/',
        ...more,
      });
      t.after(() => alerts.close());
      return alerts;
    },
  };
  const webhooks = {
    publish: async (events: readonly WebhookEvent[]) => {
      if (here.refuses) throw new Error('the process dies here');
      here.told.push(...events);
    },
  };
  return here;
}

function questions(here: Pick<World, 'letters' | 'nowMs'>): Questions {
  const queue = () => ({
    name: 'q',
    counts: { dead: here.letters },
    minute: { done: 0, failed: 0, dead: 0 },
  });
  const snapshot = () => ({ atMs: here.nowMs, queues: [queue()], redis: null, cache: null });
  return {
    snapshot: async () => snapshot() as unknown as Snapshot,
    series: async () => ({ step: 'minute', stepMs: 60_000, points: [], complete: true }),
    deadSummaries: async () => [],
    deadGroups: async () => ({ items: [], letters: here.letters, complete: true }),
  };
}

const ids = ({ told }: World) => told.map(({ id }) => id);

test('a crossed threshold is told once, with a link, and once more when it is kept again', async (t) => {
  const here = world(t);
  const alerts = here.open();
  const passes = async (letters: number, ms: number) => {
    here.letters = letters;
    here.nowMs += ms;
    assert.equal(await alerts.look(), true);
  };
  await passes(10, 0);
  await passes(60, 1_000);
  await passes(60, 59_000);
  assert.equal(here.told.length, 0);
  assert.equal((await alerts.list())[0]!.state, 'pending');
  await passes(70, 1_000);
  for (let look = 0; look < 5; look++) await passes(80, 60_000);
  const raisedMs = 1_700_000_061_000;
  assert.deepEqual(ids(here), [`alert:deadLetters:${raisedMs}:raised`]);
  const [raised] = here.told;
  assert.deepEqual([raised!.topic, raised!.tenant], ['sluice.alerts.raised', undefined]);
  assert.equal(raised!.data['link'], 'https://sluice.example/dead');
  assert.deepEqual([raised!.data['value'], raised!.data['limit']], [70, 50]);
  const [row] = await alerts.list();
  assert.deepEqual(
    [row!.name, row!.value, row!.met, row!.state, row!.raisedAt],
    ['deadLetters', 80, false, 'raised', new Date(raisedMs).toISOString()],
  );
  await passes(0, 1_000);
  await passes(0, 60_000);
  assert.deepEqual(ids(here).slice(1), [`alert:deadLetters:${raisedMs}:cleared`]);
  assert.deepEqual([(await alerts.list())[0]!.state, (await alerts.list())[0]!.raisedAt], ['ok', null]);
});

test('a restart, and a process that takes over, raise nothing again', async (t) => {
  const here = world(t);
  here.letters = 60;
  const first = here.open();
  await first.look();
  here.nowMs += 60_000;
  await first.look();
  assert.equal(here.told.length, 1);
  await first.close();
  const second = here.open();
  await waitUntil('it takes over', () => second.look(), { timeoutMs: 20_000, everyMs: 100 });
  here.nowMs += 600_000;
  await second.look();
  assert.equal(here.told.length, 1);
  assert.equal((await second.list())[0]!.state, 'raised');
});

test('of several processes one judges, and one that lost the lease changes nothing', async (t) => {
  const here = world(t);
  const all = Array.from({ length: 5 }, () => here.open());
  const leads = await Promise.all(all.map((alerts) => alerts.look()));
  assert.equal(leads.filter(Boolean).length, 1);
  const judging = all[leads.indexOf(true)]!;
  here.letters = 60;
  const key = `${here.prefix}:{alerts}:judge`;
  // It measures while it loses its lease.
  const frozen = here.open({
    inspect: {
      ...questions(here),
      snapshot: async () => {
        await redis.command('SET', key, 'somebody else');
        return questions(here).snapshot();
      },
    },
  });
  await redis.command('DEL', key);
  assert.equal(await frozen.look(), false);
  assert.equal((await judging.list())[0]!.state, 'ok');
});

test('what could not be told before a crash is told afterwards, with the same id', async (t) => {
  const here = world(t);
  here.letters = 60;
  const first = here.open({ forMs: 0 });
  here.refuses = true;
  await assert.rejects(first.look());
  assert.equal((await first.list())[0]!.state, 'raised');
  here.refuses = false;
  here.nowMs += 5_000;
  await first.look();
  await first.look();
  assert.deepEqual(ids(here), ['alert:deadLetters:1700000000000:raised']);
});

test('while Redis is away nothing is judged', async (t) => {
  const here = world(t);
  const problem = { code: 'REDIS_UNAVAILABLE', message: 'away', sinceMs: 0 };
  const away = {
    ...questions(here),
    snapshot: async () => ({ ...(await questions(here).snapshot()), problem }),
  };
  await assert.rejects(here.open({ inspect: away }).look(), /away/);
});

test('the figures of real queues are those of the last hour, and of next to nothing nothing is said', async (t) => {
  const prefix = `a${randomBytes(4).toString('hex')}`;
  const queue = new Queue('mail', {
    redis: redis.url,
    prefix,
    attempts: 2,
    backoff: { type: 'fixed', delayMs: 1 },
  });
  const inspect = new Inspect({ redis: redis.url, prefix, queues: [queue] });
  t.after(async () => {
    await inspect.close();
    await queue.close(500);
  });
  await queue.ready();
  await inspect.start();
  assert.deepEqual((await measure(inspect)).figures, {
    ...{ deadLetters: 0, oldestDeadLetter: 0, retrySuccess: undefined, averageRetries: undefined },
    ...{ permanentFailures: undefined, hitRate: undefined, redisMemory: undefined },
    ...{ queriesSaved: undefined, storageCallsSaved: undefined, timeSaved: undefined },
  });
  await queue
    .work((job) => {
      if (job.data === 'bad') throw new GiveUp('no use');
      if (job.data === 'shaky' && job.attempt === 1) throw new Error('not yet');
    })
    .start();
  const jobs = [
    ...Array<string>(60).fill('good'),
    ...Array<string>(30).fill('shaky'),
    ...Array<string>(10).fill('bad'),
  ];
  await queue.addMany(jobs.map((data) => ({ data })));
  await waitUntil(
    'all ended',
    async () => {
      const { waiting, active, delayed, dead } = await queue.counts();
      return waiting + active + delayed === 0 && dead === 10;
    },
    { timeoutMs: 30_000 },
  );
  let { figures } = await measure(inspect);
  await waitUntil(
    'all was counted',
    async () => {
      ({ figures } = await measure(inspect));
      return figures.permanentFailures === 0.1 && figures.averageRetries === 30 / 90;
    },
    { timeoutMs: 90_000, everyMs: 500 },
  );
  assert.equal(figures.deadLetters, 10);
  // Those that died gave up at once: no retry was spent on them.
  assert.equal(figures.retrySuccess, 1);
  assert.ok(figures.oldestDeadLetter! >= 0 && figures.oldestDeadLetter! < 3_600);
});

test('what the cache saves is held against an hour in which every read would have been a load', async () => {
  const ofHour = async (figures: Record<string, number>) => {
    const asked = {
      snapshot: async () => ({ atMs: 1, queues: [], redis: null, cache: { families: [] } }),
      series: async () => ({ points: [{ figures }] }),
    };
    const { figures: all } = await measure(asked as unknown as Parameters<typeof measure>[0]);
    return [all.queriesSaved, all.timeSaved];
  };
  // A thousand readers, a hundred of whom waited for fifty loads of 10 ms: the others waited a millisecond each.
  assert.deepEqual(await ofHour({ reads: 1_000, hits: 900, loads: 50, loadMs: 500, waitedMs: 1_900 }), [
    0.95,
    1 - 1_900 / 10_000,
  ]);
  // A cache that is slower than what it stands before saves nothing.
  assert.deepEqual(
    await ofHour({ reads: 1_000, hits: 0, loads: 1_000, loadMs: 1_000, waitedMs: 2_500 }),
    [0, 0],
  );
  assert.deepEqual(await ofHour({ reads: 999, loads: 1, loadMs: 1, waitedMs: 1 }), [undefined, undefined]);
  const few = await ofHour({ reads: 1_000, hits: 999, loads: 1, loadMs: 9_000, waitedMs: 10 });
  assert.deepEqual(few, [0.999, undefined], 'one load is no measure');
});

test('calls of the storage are counted of the families that are loaded from there', async () => {
  const reads: Record<string, number> = {
    '*': 10_000,
    'doc:summary': 900,
    'doc:translation': 600,
    user: 8_500,
  };
  const asked = (families: object[]) => ({
    snapshot: async () => ({ atMs: 1, queues: [], redis: null, cache: { families } }),
    series: async ({ cache }: { cache: string }) => ({
      points: [{ figures: { reads: reads[cache], loads: 150 } }],
    }),
  });
  const saved = async (families: object[]) =>
    (await measure(asked(families) as unknown as Parameters<typeof measure>[0])).figures.storageCallsSaved;
  const user = { family: 'user', from: null };
  const summaries = { family: 'doc:summary', from: 'storage' };
  const translations = { family: 'doc:translation', from: 'storage' };
  assert.equal(await saved([user, summaries, translations]), 0.8);
  assert.equal(await saved([user, summaries]), undefined, 'too few reads to say');
  assert.equal(await saved([user]), undefined);
});

test('retries that were spent on jobs which died in the end did not help', async () => {
  const ofHour = async (
    figures: { failed: number; died: number; done: number },
    averageAttempts: number | null,
  ): Promise<number | undefined> => {
    const minute = { done: 0, failed: 0, dead: 0 };
    const asked = {
      snapshot: async () => ({
        atMs: 1,
        queues: [{ name: 'mail', counts: { dead: 0 }, minute }],
        redis: null,
      }),
      series: async () => ({ points: [{ figures }] }),
      deadGroups: async () => ({ items: [] }),
      deadSummaries: async () => [{ queue: 'mail', averageAttempts }],
    };
    return (await measure(asked as unknown as Parameters<typeof measure>[0])).figures.retrySuccess;
  };
  // Every job runs twenty times and dies.
  assert.equal(await ofHour({ failed: 190, died: 10, done: 0 }, 20), 0);
  // Half of the retries are those of ten jobs that die at their third run.
  assert.equal(await ofHour({ failed: 40, died: 10, done: 20 }, 3), 0.5);
  assert.equal(await ofHour({ failed: 40, died: 0, done: 40 }, null), 1);
  assert.equal(await ofHour({ failed: 40, died: 1, done: 40 }, null), undefined, 'the letters are gone');
  assert.equal(await ofHour({ failed: 19, died: 0, done: 40 }, null), undefined, 'too few to say');
});
