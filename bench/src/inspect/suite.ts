/*
 * The inspect suite: what looking costs.
 *
 * What is measured is what /v1/overview and /v1/live run: the look of the sampler, and the overview that is made of it, with its questions about
 * dead letters and retries. (What it asks PostgreSQL is left out.)
 *
 * The sampler's share: queues full of jobs with sleeping workers are looked at, and the processor time of the main thread of Redis is
 * read before and after; what it spends in an equal span without viewers is taken off. That is the cost of a look. The share is this
 * cost per two seconds, which is how often a look is taken. It is measured without other load, because a load's own ups and downs are
 * many times larger; the cost of a look does not depend on it. What a steady load costs is printed beside it.
 *
 * Ten viewers are compared with one before the workers come, so that nobody else speaks to Redis: then the commands that a look runs
 * are exact, where times are not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Alerts } from '@sluice/alerts';
import { OverviewSource, type OverviewParts } from '@sluice/control';
import { Inspect } from '@sluice/inspect';
import { Queue } from '@sluice/queue';
import { errors } from '../errors.js';
import { buryMany } from '../fill.js';
import { startFreshRedis, type FreshRedis } from '../freshRedis.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { saveResult } from '../results.js';
import { less, RedisTime, type Spent } from './redisTime.js';
import { toJson, toTable, type Findings } from './report.js';
import { fillQueues, startWorkers, steadyLoad } from './scene.js';
import { FULL, QUICK, VIEWERS, type Sizes } from './sizes.js';

export const MEASURES = ['sampler', 'groups'] as const;
type Measure = (typeof MEASURES)[number];

/** The bound of the sampler makes it longer where there are many queues. */
const SHORTEST_PAUSE_MS = 100;
/** A little more than an overview stays fresh. */
const USUAL_PAUSE_MS = 2_001;
const LOOK_DEADLINE_MS = 120_000;
/** Looks are some hundred milliseconds apart. */
const ASK_EVERY_MS = 10;
const GROUP_CALLS = 20;

export async function benchInspect(options: BenchOptions): Promise<void> {
  const measures = choose(options.only);
  const sizes = { ...(options.quick ? QUICK : FULL) };
  sizes.rounds = options.rounds ?? sizes.rounds;
  const redis = await startFreshRedis();
  try {
    const machine = await describeMachine({ redis: redis.version });
    const findings = await measureInspect(redis, sizes, measures, say);
    if (options.save) {
      const result = { machine, sizes, ...toJson(findings), rounds: findings };
      say(`saved ${await saveResult('inspect', new Date(), result)}`);
    }
    const heading = `${machine.cpu}, ${machine.cores} cores; Node ${machine.node}; Redis ${redis.version}`;
    process.stdout.write(
      options.json
        ? `${JSON.stringify(toJson(findings), null, 2)}\n`
        : `${heading}\n\n${toTable(findings, sizes)}\n`,
    );
  } finally {
    await redis.stop();
  }
}

export async function measureInspect(
  redis: FreshRedis,
  sizes: Sizes,
  measures: readonly Measure[],
  tell: (line: string) => void,
): Promise<Findings> {
  const findings: Findings = {};
  if (measures.includes('sampler')) {
    tell(`${sizes.queues} queues of ${sizes.jobsEach} jobs …`);
    await redis.reset();
    Object.assign(findings, await measureSampler(redis.url, sizes, tell));
  }
  if (measures.includes('groups')) {
    tell(`${sizes.deadLetters} dead letters …`);
    await redis.reset();
    Object.assign(findings, await measureGroups(redis.url, sizes));
  }
  return findings;
}

async function measureSampler(url: string, sizes: Sizes, tell: (line: string) => void): Promise<Findings> {
  const queues = await fillQueues(url, sizes);
  const busy = new Queue('busy', { redis: url });
  const time = new RedisTime(url);
  const inspect = new Inspect({ redis: url, queues, everyMs: SHORTEST_PAUSE_MS, history: false });
  // Nobody judges here; what is asked for is how it stands.
  const alerts = new Alerts({ redis: url, inspect, webhooks: { publish: async () => {} } });
  const found = { ...emptyLists(), calls: 0 };
  try {
    await inspect.start();
    found.calls = (await inspect.snapshot()).cost.calls;
    for (let round = 0; round < sizes.rounds; round++) {
      tell(`round ${round + 1} …`);
      const one = await costOfLook({ inspect, alerts }, time, 1, sizes.looks);
      const ten = await costOfLook({ inspect, alerts }, time, VIEWERS, sizes.looks);
      found.commands.push(one.commands);
      found.commandsTen.push(ten.commands);
      found.aloneMs.push(one.busyMs);
      found.aloneTenMs.push(ten.busyMs);
    }
    await startWorkers(queues, sizes);
    for (let round = 0; round < sizes.rounds; round++) {
      found.lookMs.push((await costOfLook({ inspect, alerts }, time, 1, sizes.looks)).busyMs);
    }
    await busy.work(() => {}).start();
    for (let round = 0; round < sizes.rounds; round++) {
      const before = await time.spent();
      await steadyLoad(busy, sizes);
      found.loadShare.push(less(await time.spent(), before).busyMs / sizes.loadMs);
    }
    return found;
  } finally {
    await alerts.close();
    await inspect.close();
    time.close();
    await Promise.all([...queues, busy].map((queue) => queue.close(1_000)));
  }
}

function emptyLists() {
  const none = (): number[] => [];
  const viewers = { commands: none(), commandsTen: none(), aloneMs: none(), aloneTenMs: none() };
  return { ...viewers, lookMs: none(), loadShare: none() };
}

type Looked = Pick<OverviewParts, 'inspect' | 'alerts'>;

/** What one look costs with so many viewers, less what Redis does anyway. */
async function costOfLook(
  { inspect, alerts }: Looked,
  time: RedisTime,
  viewers: number,
  wanted: number,
): Promise<Spent> {
  let looks = 0;
  const overview = overviewOf({ inspect, alerts });
  const ends = Array.from({ length: viewers }, () =>
    inspect.watch(({ cost }) => {
      void overview.after(cost.looks).then(() => (looks = cost.looks));
    }),
  );
  const reached = async (count: number): Promise<void> => {
    const deadline = performance.now() + LOOK_DEADLINE_MS;
    while (looks < count) {
      if (performance.now() > deadline)
        throw errors.TIMED_OUT({ what: 'looks', deadlineMs: LOOK_DEADLINE_MS });
      await sleep(ASK_EVERY_MS);
    }
  };
  await reached(1);
  // Between two looks, so that none is counted by half.
  await reached(looks + 1);
  const [firstLook, startMs, before] = [looks, performance.now(), await time.spent()];
  await reached(firstLook + wanted);
  const [taken, spanMs, after] = [looks - firstLook, performance.now() - startMs, await time.spent()];
  for (const end of ends) end();
  const quietBefore = await time.spent();
  await sleep(spanMs);
  const quiet = less(await time.spent(), quietBefore);
  const spent = less(less(after, before), quiet);
  return { busyMs: spent.busyMs / taken, commands: spent.commands / taken };
}

/**
 * The overview after each look. Here looks are some hundred milliseconds apart, in a server two seconds; by its own clock the overview lives
 * in the server, so that it is made for every look and pays off its questions as it does there.
 */
function overviewOf(looked: Looked): { after: (look: number) => Promise<unknown> } {
  const records = {
    uploads: { countOpen: async () => 0 },
    outbox: { state: async () => ({ waiting: 0, oldestMs: 0 }) },
  };
  let [look, lookedAtMs] = [0, 0];
  const nowMs = (): number => look * USUAL_PAUSE_MS + (performance.now() - lookedAtMs);
  const source = new OverviewSource({ ...looked, records } as unknown as OverviewParts, nowMs);
  return {
    after: (next) => {
      if (next > look) [look, lookedAtMs] = [next, performance.now()];
      return source.latest();
    },
  };
}

async function measureGroups(url: string, sizes: Sizes): Promise<Findings> {
  const queue = new Queue<{ n: number }>('dying', { redis: url, attempts: 1 });
  const inspect = new Inspect({ redis: url, queues: [queue], history: false });
  try {
    await buryMany(queue, sizes.deadLetters);
    const groupsMs: number[] = [];
    let causes = 0;
    for (let call = 0; call < GROUP_CALLS; call++) {
      const startMs = performance.now();
      const groups = await inspect.deadGroups();
      groupsMs.push(performance.now() - startMs);
      causes = groups.items.length;
      if (groups.letters !== sizes.deadLetters) throw new Error('letters were lost, or counted twice');
    }
    return { groupsMs, causes };
  } finally {
    await inspect.close();
    await queue.close(1_000);
  }
}

function choose(only: readonly string[]): readonly Measure[] {
  const unknown = only.filter((name) => !MEASURES.some((known) => known === name));
  if (unknown.length > 0) {
    const why = `--only does not know ${unknown.join(', ')}; it knows ${MEASURES.join(', ')}`;
    throw errors.BAD_COMMAND_LINE({ why });
  }
  return only.length > 0 ? MEASURES.filter((name) => only.includes(name)) : MEASURES;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
