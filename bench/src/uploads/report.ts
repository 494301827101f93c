/*
 * From findings to figures: the JSON object, the table, and the spreads that go into a saved result.
 */
import type { MemoryFindings } from './memoryWatch.js';
import { SIDES, type PerSide } from './side.js';
import type { ScenarioName } from './sizes.js';
import { cell, middle, rounded, show, verdict } from '../figures.js';
import { spread } from '../statistics.js';
import { renderTable } from '../table.js';

type PerScenario<T> = Partial<Record<ScenarioName, T>>;

/** Raw results: one number per round. What was not measured is absent. */
export interface Findings {
  /** MB/s; of `smallFiles` files/s. */
  rates: PerScenario<PerSide<number[]>>;
  /** Of the process that receives the bytes. */
  cpuSecondsPerGib: PerScenario<PerSide<number[]>>;
  /** Of the Redis servers that work for it. */
  redisCpuSecondsPerGib: PerScenario<PerSide<number[]>>;
  /** By operation. */
  s3CallsPerFile: PerScenario<PerSide<Record<string, number>>>;
  memory?: MemoryFindings | undefined;
}

const MIB = 2 ** 20;

/** The figures of `--json`: medians. What was left out of the run is null. `s3CallsPerFile` is Sluice's. */
export function toJson(findings: Findings): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const name of Object.keys(findings.rates) as ScenarioName[]) {
    const rates = findings.rates[name] ?? {};
    const cpu = findings.cpuSecondsPerGib[name];
    const [sluice, tus, direct] = SIDES.map((side) => rounded(middle(rates[side]), 1));
    json[name] = {
      sluice,
      tus,
      direct,
      vsTus: rounded(ratio(rates, 'tus'), 2),
      vsDirect: rounded(ratio(rates, 'direct'), 2),
      s3CallsPerFile: rounded(totalCalls(findings, name, 'sluice'), 2),
      cpuSecondsPerGiB: { sluice: rounded(middle(cpu?.sluice), 2), tus: rounded(middle(cpu?.tus), 2) },
    };
  }
  const { memory } = findings;
  if (memory) {
    json['rssMb'] = rounded(memory.rssMaxBytes / MIB, 1);
    json['rssGrowthMb'] = rounded(memory.rssGrowthBytes / MIB, 1);
    json['redisPeakBytes'] = rounded(memory.redisPeakBytes, 0);
    json['redisBudgetBytes'] = rounded(memory.redisBudgetBytes, 0);
  }
  return json;
}

/** Smallest and largest round of what `toJson` gives the median of, and what it leaves out: S3 calls one by one. */
export function toSpreads(findings: Findings): Record<string, unknown> {
  const ofSides = (values: PerSide<number[]> | undefined): Record<string, unknown> =>
    Object.fromEntries(Object.entries(values ?? {}).map(([side, rounds]) => [side, spread(rounds)]));
  const ofScenario = (name: ScenarioName): [string, unknown] => [
    name,
    {
      ...ofSides(findings.rates[name]),
      cpuSecondsPerGiB: ofSides(findings.cpuSecondsPerGib[name]),
      redisCpuSecondsPerGiB: ofSides(findings.redisCpuSecondsPerGib[name]),
      s3CallsPerFile: findings.s3CallsPerFile[name] ?? {},
    },
  ];
  const rssMbBySecond = findings.memory?.rssBySecond.map((bytes) => Math.round(bytes / MIB));
  return {
    ...Object.fromEntries((Object.keys(findings.rates) as ScenarioName[]).map(ofScenario)),
    ...(rssMbBySecond && { rssMbBySecond }),
  };
}

const RATE_ROWS: Record<ScenarioName, { label: string; vsTus: number; vsDirect?: number }> = {
  large: { label: 'one file of 1 GiB (MB/s)', vsTus: 1.6, vsDirect: 0.8 },
  parallel: { label: 'four files of 256 MiB at once (MB/s)', vsTus: 1.4 },
  smallChunks: { label: '64 MiB in chunks of 1 MiB (MB/s)', vsTus: 5 },
  smallFiles: { label: '2,000 files of 100 KiB, 16 at once (files/s)', vsTus: 4 },
};
const CPU_SHARE_AT_MOST = 0.5;
const S3_CALLS_PER_SMALL_FILE_AT_MOST = 2;
const RSS_MIB_AT_MOST = 400;
/** A heap breathes: so much more in the second half is still flat. */
const RSS_GROWTH_MIB_AT_MOST = 40;

const HEADER = [
  'median (smallest–largest round)',
  'sluice',
  'tus',
  'direct',
  'vs tus',
  'vs direct',
  'wanted',
  '',
];

export function toTable(findings: Findings): string {
  const scenarios = Object.keys(findings.rates) as ScenarioName[];
  return renderTable(HEADER, [
    ...scenarios.map((name) => rateRow(findings, name)),
    ...scenarios.map((name) => cpuRow(findings, name)),
    ...scenarios.flatMap((name) => redisCpuRow(findings, name)),
    ...scenarios.map((name) => callsRow(findings, name)),
    ...memoryRows(findings),
  ]);
}

function rateRow(findings: Findings, name: ScenarioName): string[] {
  const rates = findings.rates[name] ?? {};
  const { label, vsTus, vsDirect } = RATE_ROWS[name];
  const [times, share] = [ratio(rates, 'tus'), ratio(rates, 'direct')];
  const met = times >= vsTus && (vsDirect === undefined || share >= vsDirect);
  const wanted = [`≥ ${vsTus}× tus`, ...(vsDirect === undefined ? [] : [`≥ ${vsDirect}× direct`])].join(', ');
  const cells = SIDES.map((side) => cell(rates[side] ?? [], 0));
  const measured = vsDirect === undefined ? times : times + share;
  return [label, ...cells, `${show(times, 2)}×`, `${show(share, 2)}×`, wanted, verdict(met, measured)];
}

/** The goal is that of the one large file; the other scenarios are shown beside it. */
function cpuRow(findings: Findings, name: ScenarioName): string[] {
  const cpu = findings.cpuSecondsPerGib[name] ?? {};
  const share = ratio(cpu, 'tus');
  const figures = [cell(cpu.sluice ?? [], 2), cell(cpu.tus ?? [], 2), '', `${show(share, 2)}×`, ''];
  const goal = name === 'large' ? ['≤ 0.5× tus', verdict(share <= CPU_SHARE_AT_MOST, share)] : [];
  return [`CPU of the server, ${name} (s/GiB)`, ...figures, ...goal];
}

function redisCpuRow(findings: Findings, name: ScenarioName): string[][] {
  const ours = findings.redisCpuSecondsPerGib[name]?.sluice;
  return ours === undefined ? [] : [[`CPU of its Redis, ${name} (s/GiB)`, cell(ours, 2)]];
}

function callsRow(findings: Findings, name: ScenarioName): string[] {
  const calls = SIDES.map((side) => totalCalls(findings, name, side));
  const [ours = Number.NaN] = calls;
  const goal =
    name === 'smallFiles'
      ? [`≤ ${S3_CALLS_PER_SMALL_FILE_AT_MOST}`, verdict(ours <= S3_CALLS_PER_SMALL_FILE_AT_MOST, ours)]
      : [];
  return [`S3 calls per file, ${name}`, ...calls.map((count) => show(count, 1)), '', '', ...goal];
}

function memoryRows({ memory }: Findings): string[][] {
  if (!memory) return [];
  const [most, growth] = [memory.rssMaxBytes / MIB, memory.rssGrowthBytes / MIB];
  const { redisPeakBytes: peak, redisBudgetBytes: budget } = memory;
  const flat = most <= RSS_MIB_AT_MOST && growth <= RSS_GROWTH_MIB_AT_MOST;
  const wantedRss = `≤ ${RSS_MIB_AT_MOST}, growth ≤ ${RSS_GROWTH_MIB_AT_MOST}`;
  const shownRss = `${show(most, 0)} (growth ${show(growth, 0)})`;
  return [
    [
      'RSS with 1,000 uploads of 8 MiB at once (MiB)',
      shownRss,
      '',
      '',
      '',
      '',
      wantedRss,
      verdict(flat, most),
    ],
    [
      'Redis for chunks, its peak (MiB)',
      show(peak / MIB, 0),
      '',
      '',
      '',
      '',
      `≤ ${show(budget / MIB, 0)}, its budget`,
      verdict(peak <= budget, peak + budget),
    ],
  ];
}

function totalCalls(findings: Findings, name: ScenarioName, side: keyof PerSide<unknown>): number {
  const calls = findings.s3CallsPerFile[name]?.[side];
  return calls === undefined ? Number.NaN : Object.values(calls).reduce((sum, count) => sum + count, 0);
}

function ratio(values: PerSide<number[]>, to: 'tus' | 'direct'): number {
  return middle(values.sluice) / middle(values[to]);
}
