/*
 * The queue suite: which measures there are, in which order they run, and on which systems.
 *
 * Each measure runs in rounds. Within a round the systems take turns, in an order that rotates from round to
 * round; each turn starts on an emptied Redis with a contender that has just connected. A first turn of
 * each system is not counted: it warms up the compiled code of all of them alike.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { openContender, SYSTEMS, type Contender, type PerSystem, type SystemName } from './contender.js';
import { enqueueBatches, enqueueBulk, enqueueSingle } from './enqueue.js';
import { BACKLOGS, processBeside, type Backlog } from './growth.js';
import { besideIdleWorkers, idleCommands, pickUpLatency } from './idle.js';
import { bytesPerWaitingJob } from './memory.js';
import { processBacklog } from './process.js';
import { toJson, toSpreads, toTable, type Findings } from './report.js';
import { FULL, QUICK, type Sizes } from './sizes.js';
import { errors } from '../errors.js';
import { startFreshRedis, type FreshRedis } from '../freshRedis.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';

export async function benchQueue(options: BenchOptions): Promise<void> {
  const { measures, systems } = choose(options.only);
  const sizes = { ...(options.quick ? QUICK : FULL) };
  sizes.rounds = options.rounds ?? sizes.rounds;
  sizes.growth = { ...sizes.growth, rounds: Math.min(sizes.growth.rounds, sizes.rounds) };

  const redis = await startFreshRedis();
  try {
    const machine = await describeMachine(redis.version);
    const findings = await measureQueue({ redis, sizes, measures, systems, say });
    if (options.save) await save({ measuredAt: new Date(), machine, sizes, findings });
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
  const { redis, sizes, say } = run;
  const findings: Findings = { rates: {} };
  for (const measure of run.measures) {
    say(`${measure} …`);
    switch (measure) {
      case 'enqueueBulk':
        findings.rates.enqueueBulk = await takeTurns(run, (c) => enqueueBulk(c, sizes.bulkJobs));
        break;
      case 'enqueueBatches':
        findings.rates.enqueueBatches = await takeTurns(run, (c) => enqueueBatches(c, sizes.batchesJobs));
        break;
      case 'enqueueSingle':
        findings.rates.enqueueSingle = await takeTurns(run, (c) => enqueueSingle(c, sizes.singleJobs));
        break;
      case 'process': {
        const processed = await takeTurns(run, (c) => processBacklog(redis, c, sizes.processJobs));
        findings.rates.process = eachSystem(processed, (turns) => turns.map((turn) => turn.jobsPerSecond));
        findings.redisCpuMicrosPerJob = eachSystem(processed, (turns) =>
          turns.map((turn) => turn.redisCpuMicrosPerJob),
        );
        break;
      }
      case 'idleLatencyMs': {
        const samples = Math.ceil(sizes.latencySamples / sizes.rounds);
        const latencies = await takeTurns(run, (c) => pickUpLatency(c, samples, sizes.latencyPauseMs));
        findings.idleLatencyMs = eachSystem(latencies, (turns) => turns.flat());
        break;
      }
      case 'bytesPerJob': {
        const jobs = (system: SystemName): number =>
          system === 'sluice' ? sizes.memoryJobs : sizes.memoryJobsOfPeers;
        findings.bytesPerJob = await onceEach(run, (c, system) => bytesPerWaitingJob(redis, c, jobs(system)));
        break;
      }
      case 'growth':
        if (run.systems.includes('sluice')) findings.growth = await measureGrowth(run, 'sluice');
        break;
      case 'idleCommands':
        findings.idleCommands = await onceEach(run, (c) => idleCommands(redis, c, sizes.idleWatchMs));
        break;
      case 'idleWorkers':
        if (run.systems.includes('sluice'))
          findings.idleWorkers = await besideIdleWorkers(redis, 'sluice', sizes);
        break;
    }
  }
  return findings;
}

/** Rounds in which the systems take turns; the first round is a warm-up and does not count. */
async function takeTurns<T>(
  { redis, sizes, systems, say }: Run,
  measure: (contender: Contender) => Promise<T>,
): Promise<PerSystem<T[]>> {
  const results: PerSystem<T[]> = {};
  for (let round = 0; round <= sizes.rounds; round++) {
    for (const system of rotate(systems, round)) {
      const result = await takeTurn(redis, system, measure);
      if (round > 0) (results[system] ??= []).push(result);
    }
    say(round === 0 ? '  warm' : `  round ${round} of ${sizes.rounds}`);
  }
  return results;
}

async function onceEach<T>(
  { redis, systems }: Run,
  measure: (contender: Contender, system: SystemName) => Promise<T>,
): Promise<PerSystem<T>> {
  const results: PerSystem<T> = {};
  for (const system of systems) {
    results[system] = await takeTurn(redis, system, (contender) => measure(contender, system));
  }
  return results;
}

async function takeTurn<T>(
  redis: FreshRedis,
  system: SystemName,
  measure: (contender: Contender) => Promise<T>,
): Promise<T> {
  await redis.reset();
  const contender = await openContender(system, redis.url);
  try {
    return await measure(contender);
  } finally {
    await contender.close();
  }
}

/** The four backlogs take turns as systems do elsewhere. */
export async function measureGrowth(
  { redis, sizes, say }: Pick<Run, 'redis' | 'sizes' | 'say'>,
  system: SystemName,
): Promise<Record<Backlog, number[]>> {
  const results: Record<Backlog, number[]> = {
    waiting10k: [],
    waiting1m: [],
    active50k: [],
    delayed100k: [],
  };
  for (let round = 0; round < sizes.growth.rounds; round++) {
    for (const backlog of rotate(BACKLOGS, round)) {
      await redis.reset();
      results[backlog].push(await processBeside(backlog, redis.url, system, sizes.growth));
    }
    say(`  round ${round + 1} of ${sizes.growth.rounds}`);
  }
  return results;
}

function rotate<T>(items: readonly T[], by: number): T[] {
  const shift = by % Math.max(items.length, 1);
  return [...items.slice(shift), ...items.slice(0, shift)];
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

async function save(result: {
  measuredAt: Date;
  machine: object;
  sizes: Sizes;
  findings: Findings;
}): Promise<void> {
  const { findings, ...circumstances } = result;
  const directory = new URL('../../../results/', import.meta.url);
  const file = new URL(`${result.measuredAt.toISOString().slice(0, 10)}-queue.json`, directory);
  const content = { ...circumstances, ...toJson(findings), spreads: toSpreads(findings) };
  await mkdir(directory, { recursive: true });
  await writeFile(file, `${JSON.stringify(content, null, 2)}\n`);
  say(`saved ${fileURLToPath(file)}`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
