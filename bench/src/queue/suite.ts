/*
 * The queue suite: which measures there are, in which order they run, and on which systems.
 *
 * Each measure runs in rounds. Within a round the systems take turns, each in a process of its own, in an order that
 * rotates from round to round; each turn starts on an emptied Redis with a contender that has just connected. The first
 * turns of each system are not counted: they warm up the compiled code of all of them alike.
 */
import { QueueBooth } from './booth.js';
import { openContender, SYSTEMS, type Contender, type PerSystem, type SystemName } from './contender.js';
import { BACKLOGS, type Backlog } from './growth.js';
import { besideIdleWorkers, idleCommands, type Crowd } from './idle.js';
import { bytesPerWaitingJob } from './memory.js';
import { toJson, toSpreads, toTable, type Findings } from './report.js';
import { BATCH_JOBS, FULL, QUICK, type Sizes } from './sizes.js';
import type { Taken, Turn } from './turns.js';
import { errors } from '../errors.js';
import { startFreshRedis, type FreshRedis } from '../freshRedis.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { saveResult } from '../results.js';
import { rotate } from '../rotate.js';

/** Of so many jobs one more is done before the clock runs. */
const WARM_UP_SHARE = 4;

export async function benchQueue(options: BenchOptions): Promise<void> {
  const { measures, systems } = choose(options.only);
  const sizes = { ...(options.quick ? QUICK : FULL) };
  sizes.rounds = options.rounds ?? sizes.rounds;
  sizes.growth = { ...sizes.growth, rounds: Math.min(sizes.growth.rounds, sizes.rounds) };

  const redis = await startFreshRedis();
  try {
    const machine = await describeMachine({ redis: redis.version });
    const findings = await measureQueue({ redis, sizes, measures, systems, say });
    if (options.save) {
      const figures = { ...toJson(findings), spreads: toSpreads(findings) };
      say(`saved ${await saveResult('queue', new Date(), { machine, sizes, ...figures })}`);
    }
    const { cpu, cores, node } = machine;
    const size = options.quick ? '; QUICK: smaller than the labels say' : '';
    const heading = `${cpu}, ${cores} cores; Node ${node}; Redis ${redis.version}, AOF everysec${size}`;
    process.stdout.write(
      options.json
        ? `${JSON.stringify(toJson(findings), null, 2)}\n`
        : `${heading}\n\n${toTable(findings)}\n`,
    );
  } finally {
    await redis.stop();
  }
}

export const MEASURES = [
  'enqueueBulk',
  'enqueueBatches',
  'enqueueSingle',
  'process',
  'idleLatencyMs',
  'bytesPerJob',
  'growth',
  'idleCommands',
  'idleWorkers',
] as const;
export type Measure = (typeof MEASURES)[number];

interface Run {
  redis: FreshRedis;
  sizes: Sizes;
  measures: readonly Measure[];
  systems: readonly SystemName[];
  say: (line: string) => void;
}

export async function measureQueue(run: Run): Promise<Findings> {
  const { redis, systems } = run;
  const booths = Object.fromEntries(systems.map((system) => [system, new QueueBooth(system, redis.url)]));
  try {
    return await measureIn(booths, run);
  } finally {
    await Promise.all(Object.values(booths).map((booth) => booth.close()));
  }
}

async function measureIn(booths: Booths, run: Run): Promise<Findings> {
  const { redis, sizes, say } = run;
  const findings: Findings = { rates: {} };
  for (const measure of run.measures) {
    say(`${measure} …`);
    switch (measure) {
      case 'enqueueBulk':
        findings.rates.enqueueBulk = await rates(booths, run, turn(measure, sizes.bulkJobs));
        break;
      case 'enqueueBatches':
        findings.rates.enqueueBatches = await rates(booths, run, turn(measure, sizes.batchesJobs));
        break;
      case 'enqueueSingle':
        findings.rates.enqueueSingle = await rates(booths, run, turn(measure, sizes.singleJobs));
        break;
      case 'process': {
        const taken = await takeTurns(booths, run, turn(measure, sizes.processJobs));
        findings.rates.process = eachSystem(taken, (turns) => turns.map((turn) => turn.figures[0]!));
        findings.redisCpuMicrosPerJob = eachSystem(taken, (turns) =>
          turns.map((turn) => turn.redisCpuMicros / sizes.processJobs),
        );
        break;
      }
      case 'idleLatencyMs': {
        const samples = Math.ceil(sizes.latencySamples / sizes.rounds);
        const pickUp: Turn = { kind: 'pickUp', samples, pauseMs: sizes.latencyPauseMs };
        const taken = await takeTurns(booths, run, pickUp);
        findings.idleLatencyMs = eachSystem(taken, (turns) => turns.flatMap(({ figures }) => figures));
        break;
      }
      case 'bytesPerJob': {
        const jobs = (system: SystemName): number =>
          system === 'sluice' ? sizes.memoryJobs : sizes.memoryJobsOfPeers;
        findings.bytesPerJob = await onceEach(run, (c, system) => bytesPerWaitingJob(redis, c, jobs(system)));
        break;
      }
      case 'growth':
        if (booths.sluice) findings.growth = await measureGrowth(booths.sluice, run);
        break;
      case 'idleCommands':
        findings.idleCommands = await onceEach(run, (c) => idleCommands(redis, c, sizes.idleWatchMs));
        break;
      case 'idleWorkers':
        if (booths.sluice) findings.idleWorkers = await measureCrowd(booths.sluice, 'sluice', run);
        break;
    }
  }
  return findings;
}

type Booths = PerSystem<QueueBooth>;
type RateTurn = Extract<Turn, { jobs: number }>;

function turn(kind: RateTurn['kind'], jobs: number): Turn {
  return { kind, jobs, warmUpJobs: Math.ceil(jobs / WARM_UP_SHARE / BATCH_JOBS) * BATCH_JOBS };
}

async function rates(booths: Booths, run: Run, asked: Turn): Promise<PerSystem<number[]>> {
  return eachSystem(await takeTurns(booths, run, asked), (turns) => turns.map(({ figures }) => figures[0]!));
}

/** Rounds in which the systems take turns; the first are a warm-up and do not count. */
async function takeTurns(
  booths: Booths,
  { redis, sizes, systems, say }: Run,
  asked: Turn,
): Promise<PerSystem<Taken[]>> {
  const results: PerSystem<Taken[]> = {};
  for (let round = 1 - sizes.warmUps; round <= sizes.rounds; round++) {
    for (const system of rotate(systems, round + sizes.warmUps)) {
      await redis.reset();
      const taken = await booths[system]!.take(asked);
      if (round > 0) (results[system] ??= []).push(taken);
    }
    say(round > 0 ? `  round ${round} of ${sizes.rounds}` : '  warm-up');
  }
  return results;
}

async function onceEach<T>(
  { redis, systems }: Run,
  measure: (contender: Contender, system: SystemName) => Promise<T>,
): Promise<PerSystem<T>> {
  const results: PerSystem<T> = {};
  for (const system of systems) {
    await redis.reset();
    const contender = await openContender(system, redis.url);
    try {
      results[system] = await measure(contender, system);
    } finally {
      await contender.close();
    }
  }
  return results;
}

/** The four backlogs take turns as systems do elsewhere. */
export async function measureGrowth(
  booth: QueueBooth,
  { redis, sizes, say }: Pick<Run, 'redis' | 'sizes' | 'say'>,
): Promise<Record<Backlog, number[]>> {
  const results: Record<Backlog, number[]> = {
    waiting10k: [],
    waiting1m: [],
    active50k: [],
    delayed100k: [],
  };
  await warmUp(booth, redis, sizes);
  for (let round = 0; round < sizes.growth.rounds; round++) {
    for (const backlog of rotate(BACKLOGS, round)) {
      await redis.reset();
      const taken = await booth.take({ kind: 'growth', backlog, sizes: sizes.growth });
      results[backlog].push(...taken.figures);
    }
    say(`  round ${round + 1} of ${sizes.growth.rounds}`);
  }
  return results;
}

export async function measureCrowd(
  booth: QueueBooth,
  system: SystemName,
  { redis, sizes }: Pick<Run, 'redis' | 'sizes'>,
): Promise<Crowd> {
  await warmUp(booth, redis, sizes);
  const measure = async (): Promise<number[]> => {
    const results: number[] = [];
    for (let round = 0; round < sizes.growth.rounds; round++) {
      results.push(...(await booth.take(turn('process', sizes.processJobs))).figures);
    }
    return results;
  };
  return besideIdleWorkers(redis, system, sizes.idleWorkers, measure);
}

async function warmUp(booth: QueueBooth, redis: FreshRedis, sizes: Sizes): Promise<void> {
  for (let done = 0; done < sizes.warmUps; done++) {
    await redis.reset();
    await booth.take(turn('process', sizes.processJobs));
  }
}

function eachSystem<T, U>(values: PerSystem<T>, change: (value: T) => U): PerSystem<U> {
  return Object.fromEntries(Object.entries(values).map(([system, value]) => [system, change(value)]));
}

/** `--only` may name measures, systems or both; what it does not name a kind of stays complete. */
function choose(only: readonly string[]): { measures: readonly Measure[]; systems: readonly SystemName[] } {
  // Processing yields the CPU time as well; both names of that measurement are accepted.
  const asked = only.map((name) => (name === 'redisCpuMicrosPerJob' ? 'process' : name));
  const known: readonly string[] = [...MEASURES, ...SYSTEMS];
  const unknown = asked.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw errors.BAD_COMMAND_LINE({ why: `--only knows no ${unknown}; it knows ${known.join(', ')}` });
  }
  const measures = MEASURES.filter((name) => asked.includes(name));
  const systems = SYSTEMS.filter((name) => asked.includes(name));
  return {
    measures: measures.length > 0 ? measures : MEASURES,
    systems: systems.length > 0 ? systems : SYSTEMS,
  };
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
