/*
 * The uploads suite: Sluice, @tus/server and the bare AWS SDK upload the same files to the same S3 server, on the same
 * machine, in one run.
 *
 * Each scenario runs in rounds. Within a round the sides take turns in an order that rotates; while one has its turn, the
 * servers of the others idle. Every turn starts on an emptied bucket. The first turns are not counted: they warm up the
 * compiled code, and what they sent is read back and compared. Before every other turn its side sends an eighth of it, which
 * does not count either: while the others had theirs, V8 has thrown away some of what it had compiled.
 *
 * S3 calls are counted in a pass of its own, after the timed one, on an S3 server that writes a log.
 */
import { keepTemporaryFilesInMemory } from '@sluice/testbed';
import { setTimeout as sleep } from 'node:timers/promises';
import { watchMemory } from './memoryWatch.js';
import { toJson, toSpreads, toTable, type Findings } from './report.js';
import { startS3, type S3Server } from './s3Server.js';
import type { SenderOptions } from './sender.js';
import { SIDES, type PerSide, type SideName, type UploadServer, type UploadServers } from './side.js';
import {
  eighthOf,
  FULL,
  GIB,
  longestFileBytes,
  QUICK,
  SCENARIOS,
  type Scenario,
  type ScenarioName,
  type Sizes,
} from './sizes.js';
import { startSluice } from './sluiceSide.js';
import { startTus } from './tusSide.js';
import type { Taken, Turn } from './turns.js';
import { WarmMemory } from './warmMemory.js';
import { Booth } from '../booth.js';
import { errors } from '../errors.js';
import { describeMachine } from '../machine.js';
import type { BenchOptions } from '../options.js';
import { cpuSeconds } from '../processCost.js';
import { saveResult } from '../results.js';
import { rotate } from '../rotate.js';

/** What a server still does after its last reply belongs to its cost. */
const SETTLE_MS = 250;
const MEGABYTE = 1e6;

export async function benchUploads(options: BenchOptions): Promise<void> {
  const { measures, sides } = choose(options.only);
  const sizes = { ...(options.quick ? QUICK : FULL) };
  sizes.rounds = options.rounds ?? sizes.rounds;
  const inMemory = keepTemporaryFilesInMemory();
  quietenSdk();

  const servers: UploadServers = { tus: startTus, sluice: startSluice };
  const { findings, s3Version } = await measureUploads({ servers, sizes, measures, sides, say });
  const machine = await describeMachine({ s3: s3Version });
  if (options.save) {
    const figures = { ...toJson(findings), spreads: toSpreads(findings) };
    say(`saved ${await saveResult('uploads', new Date(), { machine, sizes, ...figures })}`);
  }
  const { cpu, cores, node } = machine;
  const size = options.quick ? '; QUICK: smaller than the labels say' : '';
  const place = inMemory ? 'on tmpfs' : 'on disk, because there is no tmpfs';
  const heading = `${cpu}, ${cores} cores; Node ${node}; ${s3Version} ${place}${size}`;
  process.stdout.write(
    options.json ? `${JSON.stringify(toJson(findings), null, 2)}\n` : `${heading}\n\n${toTable(findings)}\n`,
  );
}

export const MEASURES = [...SCENARIOS, 'memory'] as const;
export type Measure = (typeof MEASURES)[number];

interface Run {
  servers: UploadServers;
  sizes: Sizes;
  measures: readonly Measure[];
  sides: readonly SideName[];
  say: (line: string) => void;
}

export async function measureUploads(asked: Run): Promise<{ findings: Findings; s3Version: string }> {
  const sides = asked.sides.filter((side) => side === 'direct' || asked.servers[side] !== undefined);
  const leftOut = asked.sides.filter((side) => !sides.includes(side));
  if (leftOut.length > 0) asked.say(`without ${leftOut.join(' and ')}: there is no server to start`);
  const run = { ...asked, sides };
  const findings: Findings = {
    rates: {},
    cpuSecondsPerGib: {},
    redisCpuSecondsPerGib: {},
    s3CallsPerFile: {},
  };

  const s3Version = await onStage(run, { countCalls: false }, async (stage) => {
    for (const measure of run.measures) {
      run.say(`${measure} …`);
      if (measure === 'memory') findings.memory = await measureMemory(stage, run);
      else await measureScenario(stage, run, measure, findings);
    }
  });
  const scenarios = run.measures.filter((measure) => measure !== 'memory');
  await onStage(run, { countCalls: true }, async (stage) => {
    run.say('S3 calls …');
    for (const name of scenarios) findings.s3CallsPerFile[name] = await countCalls(stage, run, name);
  });
  return { findings, s3Version };
}

/** An S3 server, and each side on it: the server if it has one, and its client. */
interface Stage {
  s3: S3Server;
  sides: PerSide<{ server: UploadServer | undefined; client: Booth<Turn, Taken> }>;
  warmMemory: WarmMemory;
  /** Makes the names of files differ from turn to turn. */
  turns: number;
}

async function onStage(
  run: Run,
  { countCalls }: { countCalls: boolean },
  work: (stage: Stage) => Promise<void>,
): Promise<string> {
  const s3 = await startS3({ countCalls });
  const stage: Stage = { s3, sides: {}, warmMemory: new WarmMemory(), turns: 0 };
  try {
    for (const side of run.sides) {
      const start = side === 'direct' ? undefined : run.servers[side];
      const server = await start?.({ s3: s3.access });
      stage.sides[side] = {
        server,
        client: openClient({ side, s3: s3.access, url: server?.url ?? '' }, run.sizes),
      };
    }
    await work(stage);
  } finally {
    for (const { client, server } of Object.values(stage.sides)) {
      await client.close();
      await server?.stop();
    }
    await s3.stop();
  }
  return s3.version;
}

export function openClient(options: SenderOptions, sizes: Sizes): Booth<Turn, Taken> {
  const program = new URL('./clientMain.js', import.meta.url);
  const argument = JSON.stringify({ ...options, longestFileBytes: longestFileBytes(sizes) });
  return new Booth(options.side, program, [argument]);
}

/** Rounds in which the sides take turns; the first are a warm-up and do not count. */
async function measureScenario(
  stage: Stage,
  { sizes, sides, say }: Run,
  name: ScenarioName,
  findings: Findings,
): Promise<void> {
  const scenario = sizes.scenarios[name];
  const rates = (findings.rates[name] = {} as PerSide<number[]>);
  const cpu = (findings.cpuSecondsPerGib[name] = {} as PerSide<number[]>);
  const redisCpu = (findings.redisCpuSecondsPerGib[name] = {} as PerSide<number[]>);
  for (let round = 1 - sizes.warmUps; round <= sizes.rounds; round++) {
    for (const side of rotate(sides, round + sizes.warmUps)) {
      if (round > 0) await getReady(stage, side, name, scenario);
      const cost = await takeTurn(stage, side, name, scenario, { verify: round <= 0 });
      if (round <= 0) continue;
      (rates[side] ??= []).push(rateOf(name, scenario, cost.seconds));
      if (cost.cpuSecondsPerGib !== undefined) (cpu[side] ??= []).push(cost.cpuSecondsPerGib);
      if (cost.redisCpuSecondsPerGib !== undefined) (redisCpu[side] ??= []).push(cost.redisCpuSecondsPerGib);
    }
    say(round > 0 ? `  round ${round} of ${sizes.rounds}` : '  warm-up');
  }
}

/** An eighth of the turn, and then the memory that the turn will need. */
async function getReady(stage: Stage, side: SideName, kind: Measure, scenario: Scenario): Promise<void> {
  await takeTurn(stage, side, kind, eighthOf(scenario), { verify: false });
  await stage.warmMemory.touch(scenario.files * scenario.fileBytes);
}

/** Small files are counted in files, everything else in megabytes. */
export function rateOf(name: ScenarioName, { files, fileBytes }: Scenario, seconds: number): number {
  return name === 'smallFiles' ? files / seconds : (files * fileBytes) / MEGABYTE / seconds;
}

interface Cost {
  seconds: number;
  cpuSecondsPerGib?: number;
  redisCpuSecondsPerGib?: number;
}

async function takeTurn(
  stage: Stage,
  side: SideName,
  kind: Measure,
  scenario: Scenario,
  { verify }: { verify: boolean },
): Promise<Cost> {
  const { client, server } = stage.sides[side]!;
  const label = `${kind}-${++stage.turns}`;
  const before = await spent(server);
  const { seconds } = await client.take({ ...scenario, kind, label, verify });
  await sleep(SETTLE_MS);
  const after = await spent(server);

  const sent = scenario.files * scenario.fileBytes;
  const stored = await stage.s3.storedBytes();
  if (stored < sent) throw errors.BYTES_MISSING({ side, turn: kind, sent, stored });
  await stage.s3.empty();
  if (server === undefined) return { seconds };
  const perGib = (secondsSpent: number): number => secondsSpent / (sent / GIB);
  const cost: Cost = { seconds, cpuSecondsPerGib: perGib(after.own - before.own) };
  if (server.redisPids.length > 0) cost.redisCpuSecondsPerGib = perGib(after.redis - before.redis);
  return cost;
}

async function spent(server: UploadServer | undefined): Promise<{ own: number; redis: number }> {
  if (server === undefined) return { own: 0, redis: 0 };
  return { own: await cpuSeconds([server.pid]), redis: await cpuSeconds(server.redisPids) };
}

async function measureMemory(stage: Stage, { sizes }: Run): Promise<Findings['memory']> {
  const server = stage.sides.sluice?.server;
  if (server === undefined) return undefined;
  return watchMemory(server, () => takeTurn(stage, 'sluice', 'memory', sizes.memory, { verify: false }));
}

/** Calls by operation, for each file. */
async function countCalls(
  stage: Stage,
  { sizes, sides }: Run,
  name: ScenarioName,
): Promise<PerSide<Record<string, number>>> {
  const whole = sizes.scenarios[name];
  const scenario = { ...whole, files: Math.min(whole.files, sizes.countedFilesAtMost) };
  const counts: PerSide<Record<string, number>> = {};
  for (const side of sides) {
    const label = `count-${++stage.turns}`;
    const before = stage.s3.calls();
    await stage.sides[side]!.client.take({ ...scenario, kind: name, label, verify: false });
    await sleep(SETTLE_MS);
    const made = Object.entries(stage.s3.calls()).map(
      ([operation, calls]) => [operation, (calls - (before[operation] ?? 0)) / scenario.files] as const,
    );
    counts[side] = Object.fromEntries(made.filter(([, calls]) => calls > 0));
    await stage.s3.empty();
  }
  return counts;
}

/** `--only` may name measures, sides or both; what it does not name a kind of stays complete. */
function choose(only: readonly string[]): { measures: readonly Measure[]; sides: readonly SideName[] } {
  const known: readonly string[] = [...MEASURES, ...SIDES];
  const unknown = only.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw errors.BAD_COMMAND_LINE({ why: `--only knows no ${unknown}; it knows ${known.join(', ')}` });
  }
  const measures = MEASURES.filter((name) => only.includes(name));
  const sides = SIDES.filter((name) => only.includes(name));
  return {
    measures: measures.length > 0 ? measures : MEASURES,
    sides: sides.length > 0 ? sides : SIDES,
  };
}

/** The SDK warns every process about the age of its Node; once in the heading is enough. */
export function quietenSdk(): void {
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
