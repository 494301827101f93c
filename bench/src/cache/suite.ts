/*
 * The cache suite: Sluice, bentocache and cacheable on the same Redis, in one run, each in a process of its own that stays.
 *
 * Within a round the systems take turns in an order that rotates; each turn begins on an emptied Redis. What counts (loads, stale
 * reads) is counted once; what is timed is the median of the rounds.
 */
import { SYSTEMS, type ContenderName, type PerContender, type SystemName } from './contender.js';
import { toJson, toTable, type Findings } from './report.js';
import { FULL, QUICK, type Sizes } from './sizes.js';
import type { Taken, Turn } from './turns.js';
import { Booth } from '../booth.js';
import { errors } from '../errors.js';
import { startFreshRedis, type FreshRedis } from '../freshRedis.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { saveResult } from '../results.js';
import { rotate } from '../rotate.js';

export const MEASURES = [
  'nearHit',
  'redisHit',
  'getMany',
  'stampede',
  'stale',
  'redisDown',
  'redisStopped',
] as const;
export type Measure = (typeof MEASURES)[number];

export async function benchCache(options: BenchOptions): Promise<void> {
  const { measures, systems } = choose(options.only);
  const sizes = { ...(options.quick ? QUICK : FULL) };
  sizes.rounds = options.rounds ?? sizes.rounds;
  const redis = await startFreshRedis();
  try {
    const machine = await describeMachine({ redis: redis.version });
    const findings = await measureCache({ redis, sizes, measures, systems, say });
    if (options.save) {
      const { extras, ...figures } = { ...toJson(findings), extras: findings };
      say(`saved ${await saveResult('cache', new Date(), { machine, sizes, ...figures, rounds: extras })}`);
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

interface Run {
  redis: FreshRedis;
  sizes: Sizes;
  measures: readonly Measure[];
  systems: readonly SystemName[];
  say: (line: string) => void;
}

type CacheBooth = Booth<Turn, Taken>;

export async function measureCache(run: Run): Promise<Findings> {
  const names: ContenderName[] = [
    ...run.systems,
    ...(run.measures.includes('redisHit') ? ['raw' as const] : []),
  ];
  const booths = new Map(names.map((name) => [name, openBooth(name, run.redis.url)]));
  const findings: Findings = {};
  try {
    for (const measure of run.measures) {
      run.say(`${measure} …`);
      await measureOne(measure, booths, run, findings);
    }
  } finally {
    await Promise.all([...booths.values()].map((booth) => booth.close()));
  }
  return findings;
}

async function measureOne(
  measure: Measure,
  booths: Map<ContenderName, CacheBooth>,
  run: Run,
  findings: Findings,
): Promise<void> {
  const { sizes, systems } = run;
  const { hangsAfterMs } = sizes;
  switch (measure) {
    case 'nearHit':
      findings.nearHitNs = await timed(booths, run, systems, { kind: 'nearHit', gets: sizes.nearGets });
      break;
    case 'redisHit': {
      const turn: Turn = { kind: 'redisHit', gets: sizes.redisGets };
      findings.redisHitUs = await timed(booths, run, ['raw', ...systems], turn);
      break;
    }
    case 'getMany':
      findings.getManyUs = await timed(booths, run, systems, { kind: 'getMany', calls: sizes.manyCalls });
      break;
    case 'stampede':
      findings.stampedeLoads = await counted(run, (system) => stampede(system, run));
      break;
    case 'stale': {
      const turn: Turn = { kind: 'stale', rounds: sizes.staleRounds };
      findings.staleAfterInvalidate = await counted(
        run,
        async (system) => (await booths.get(system)!.take(turn)).figure,
      );
      break;
    }
    case 'redisDown':
    case 'redisStopped': {
      const how = measure === 'redisDown' ? 'killed' : 'stopped';
      const recovered: PerContender<number> = {};
      const answered = await counted(run, async (system) => {
        const taken = await inOwnProcess(system, run, { kind: 'outage', how, hangsAfterMs });
        if (taken.recoveredMs !== undefined) recovered[system] = taken.recoveredMs;
        return taken.figure;
      });
      findings[`${measure}Ms`] = answered;
      findings[`${measure}RecoveredMs`] = recovered;
      break;
    }
  }
}

/** One number per round. */
async function timed(
  booths: Map<ContenderName, CacheBooth>,
  run: Run,
  names: readonly ContenderName[],
  turn: Turn,
): Promise<PerContender<number[]>> {
  const figures: PerContender<number[]> = {};
  const { warmUps, rounds } = run.sizes;
  for (let round = -warmUps; round < rounds; round++) {
    for (const name of rotate(names, round + warmUps)) {
      await run.redis.reset();
      const { figure } = await booths.get(name)!.take(turn);
      if (round >= 0) (figures[name] ??= []).push(figure);
    }
  }
  return figures;
}

async function counted(
  run: Run,
  measure: (system: SystemName) => Promise<number>,
): Promise<PerContender<number>> {
  const figures: PerContender<number> = {};
  for (const system of run.systems) {
    await run.redis.reset();
    figures[system] = await measure(system);
  }
  return figures;
}

/** Long enough for every process to load its modules and to connect. */
const ASSEMBLE_MS = 3_000;

async function stampede(system: SystemName, { redis, sizes }: Run): Promise<number> {
  const booths = Array.from({ length: sizes.processes }, () => openBooth(system, redis.url));
  const { readersEach: readers, loadMs } = sizes;
  const turn: Turn = { kind: 'stampede', readers, loadMs, startAtMs: Date.now() + ASSEMBLE_MS };
  try {
    const taken = await Promise.all(booths.map((booth) => booth.take(turn)));
    return taken.reduce((sum, { figure }) => sum + figure, 0);
  } finally {
    await Promise.all(booths.map((booth) => booth.close()));
  }
}

/** What hangs must not hang with the booth of the other measures. */
async function inOwnProcess(system: SystemName, { redis }: Run, turn: Turn): Promise<Taken> {
  const booth = openBooth(system, redis.url);
  try {
    return await booth.take(turn);
  } finally {
    await booth.close();
  }
}

function openBooth(name: ContenderName, url: string): CacheBooth {
  return new Booth(name, new URL('./boothMain.js', import.meta.url), [name, url]);
}

function choose(only: readonly string[]): { measures: readonly Measure[]; systems: readonly SystemName[] } {
  const unknown = only.filter((name) => ![...MEASURES, ...SYSTEMS].some((known) => known === name));
  if (unknown.length > 0) {
    const why = `--only does not know ${unknown.join(', ')}; it knows ${[...MEASURES, ...SYSTEMS].join(', ')}`;
    throw errors.BAD_COMMAND_LINE({ why });
  }
  const pick = <T extends string>(all: readonly T[]): readonly T[] => {
    const chosen = all.filter((name) => only.includes(name));
    return chosen.length > 0 ? chosen : all;
  };
  return { measures: pick(MEASURES), systems: pick(SYSTEMS) };
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
