/*
 * From findings to figures: the JSON object, the table, and the spreads that go into a saved result.
 *
 * Figures are medians over the rounds; the table shows the smallest and the largest round beside them, because on a
 * shared machine a median alone hides how far it can be trusted.
 */
import { SYSTEMS, type PerSystem, type SystemName } from './contender.js';
import type { Backlog } from './growth.js';
import type { Crowd } from './idle.js';
import { PAYLOAD_BYTES } from './payload.js';
import { cell, middle, rounded, show, verdict } from '../figures.js';
import { median, percentile, spread } from '../statistics.js';
import { renderTable } from '../table.js';

export type RateName = 'enqueueBulk' | 'enqueueBatches' | 'enqueueSingle' | 'process';

/** Raw results: one number per round, or per sample. What was not measured is absent. */
export interface Findings {
  rates: Partial<Record<RateName, PerSystem<number[]>>>;
  redisCpuMicrosPerJob?: PerSystem<number[]>;
  idleLatencyMs?: PerSystem<number[]>;
  bytesPerJob?: PerSystem<number>;
  growth?: Record<Backlog, number[]>;
  idleCommands?: PerSystem<number>;
  idleWorkers?: Crowd;
}

/** The figures of `--json`. A system that was left out of the run is null. */
export function toJson(findings: Findings): Record<string, unknown> {
  const json: Record<string, unknown> = {};
  for (const [name, rates] of Object.entries(findings.rates)) {
    const [sluice, bullmq, beequeue] = SYSTEMS.map((system) => rounded(middle(rates[system]), 0));
    json[name] = { sluice, bullmq, beequeue, ratio: rounded(ratio(rates), 2) };
  }
  const { redisCpuMicrosPerJob: cpu, idleLatencyMs: latency, bytesPerJob: bytes, growth } = findings;
  if (cpu) {
    json['redisCpuMicrosPerJob'] = {
      sluice: rounded(middle(cpu.sluice), 2),
      bullmq: rounded(middle(cpu.bullmq), 2),
    };
  }
  if (latency) {
    const at = (percent: number): number | null => rounded(percentile(latency.sluice ?? [], percent), 3);
    json['idleLatencyMs'] = { p50: at(50), p99: at(99) };
  }
  if (bytes) json['bytesPerJob'] = rounded(bytes.sluice ?? Number.NaN, 1);
  if (growth) {
    const medians = Object.entries(growth).map(([backlog, rates]) => [backlog, rounded(median(rates), 0)]);
    json['growth'] = Object.fromEntries(medians);
  }
  return json;
}

/** Smallest and largest round of what `toJson` gives the median of, and the measures that it leaves out. */
export function toSpreads(findings: Findings): Record<string, unknown> {
  const ofSystems = (values: PerSystem<number[]>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(values).map(([system, rounds]) => [system, spread(rounds)]));
  const rates = Object.entries(findings.rates).map(([name, values]) => [name, ofSystems(values)]);
  return { ...Object.fromEntries(rates), ...extras(findings, ofSystems) };
}

function extras(
  findings: Findings,
  ofSystems: (values: PerSystem<number[]>) => Record<string, unknown>,
): Record<string, unknown> {
  const { redisCpuMicrosPerJob, idleLatencyMs, growth, bytesPerJob, idleCommands, idleWorkers } = findings;
  return {
    ...(redisCpuMicrosPerJob && { redisCpuMicrosPerJob: ofSystems(redisCpuMicrosPerJob) }),
    ...(idleLatencyMs && { idleLatencyMs: ofSystems(idleLatencyMs) }),
    ...(growth && {
      growth: Object.fromEntries(Object.entries(growth).map(([name, rounds]) => [name, spread(rounds)])),
    }),
    ...(bytesPerJob && { bytesPerJob }),
    ...(idleCommands && { idleCommandsPerSecond: idleCommands }),
    ...(idleWorkers && { besideIdleWorkers: idleWorkers }),
  };
}

const RATE_ROWS: Record<RateName, { label: string; atLeast: number }> = {
  enqueueBulk: { label: 'add: one bulk call (jobs/s)', atLeast: 20 },
  enqueueBatches: { label: 'add: calls of 1,000, 4 in flight (jobs/s)', atLeast: 12 },
  enqueueSingle: { label: 'add: one by one, 1,000 in flight (jobs/s)', atLeast: 11 },
  process: { label: 'process, concurrency 100 (jobs/s)', atLeast: 18 },
};
const CPU_MICROS_AT_MOST = 7;
const CPU_SHARE_AT_MOST = 1 / 12;
const LATENCY_P50_MS_AT_MOST = 2;
const LATENCY_P99_MS_AT_MOST = 10;
const OVERHEAD_BYTES_AT_MOST = 120;
const GROWTH_AT_LEAST = 0.8;
const IDLE_COMMANDS_AT_MOST = 1;
const CROWDED_AT_LEAST = 0.95;

const HEADER = ['median (smallest–largest round)', 'sluice', 'bullmq', 'bee-queue', 'ratio', 'wanted', ''];

/** Ratios compare Sluice with BullMQ, in the growth rows with the yardstick, and beside idle workers with being alone. */
export function toTable(findings: Findings): string {
  return renderTable(HEADER, [
    ...rateRows(findings),
    ...costRows(findings),
    ...latencyRows(findings),
    ...growthRows(findings),
    ...idleRows(findings),
  ]);
}

function rateRows({ rates }: Findings): string[][] {
  return Object.entries(rates).map(([name, values]) => {
    const { label, atLeast } = RATE_ROWS[name as RateName];
    const times = ratio(values);
    return [
      label,
      ...cells(values, 0),
      `${show(times, 1)}×`,
      `≥ ${atLeast}×`,
      verdict(times >= atLeast, times),
    ];
  });
}

function costRows({ redisCpuMicrosPerJob: cpu, bytesPerJob: bytes }: Findings): string[][] {
  const rows: string[][] = [];
  if (cpu) {
    const [micros, share] = [middle(cpu.sluice), ratio(cpu)];
    const met = micros <= CPU_MICROS_AT_MOST && share <= CPU_SHARE_AT_MOST;
    const wanted = `≤ ${CPU_MICROS_AT_MOST}, ≤ 1/12`;
    rows.push([
      'Redis CPU per job (µs)',
      ...cells(cpu, 1),
      `1/${show(1 / share, 1)}`,
      wanted,
      verdict(met, share),
    ]);
  }
  if (bytes) {
    const over = SYSTEMS.map((system) => (bytes[system] ?? Number.NaN) - PAYLOAD_BYTES);
    const [ours = Number.NaN] = over;
    const shown = over.map((value) => show(value, 0));
    const wanted = `≤ ${OVERHEAD_BYTES_AT_MOST}`;
    rows.push([
      `memory per waiting job beyond its ${PAYLOAD_BYTES} B (B)`,
      ...shown,
      '',
      wanted,
      verdict(ours <= OVERHEAD_BYTES_AT_MOST, ours),
    ]);
  }
  return rows;
}

function latencyRows({ idleLatencyMs: latency }: Findings): string[][] {
  if (!latency) return [];
  const row = (percent: number, atMostMs: number): string[] => {
    const values = SYSTEMS.map((system) => percentile(latency[system] ?? [], percent));
    const [ours = Number.NaN] = values;
    const shown = values.map((value) => show(value, 2));
    return [`idle pick-up, p${percent} (ms)`, ...shown, '', `≤ ${atMostMs}`, verdict(ours <= atMostMs, ours)];
  };
  return [row(50, LATENCY_P50_MS_AT_MOST), row(99, LATENCY_P99_MS_AT_MOST)];
}

const GROWTH_LABELS: Record<Backlog, string> = {
  waiting10k: 'process beside 10,000 waiting (jobs/s)',
  waiting1m: 'process beside 1,000,000 waiting (jobs/s)',
  active50k: 'process beside 50,000 active (jobs/s)',
  delayed100k: 'process beside 100,000 delayed (jobs/s)',
};

function growthRows({ growth }: Findings): string[][] {
  if (!growth) return [];
  return Object.entries(growth).map(([backlog, rates]) => {
    const share = median(rates) / median(growth.waiting10k);
    const figures = [cell(rates, 0), '', '', show(share, 2)];
    return [
      GROWTH_LABELS[backlog as Backlog],
      ...figures,
      `≥ ${GROWTH_AT_LEAST}`,
      verdict(share >= GROWTH_AT_LEAST, share),
    ];
  });
}

function idleRows({ idleCommands, idleWorkers }: Findings): string[][] {
  const rows: string[][] = [];
  if (idleCommands) {
    const ours = idleCommands.sluice ?? Number.NaN;
    const shown = SYSTEMS.map((system) => show(idleCommands[system] ?? Number.NaN, 2));
    const met = verdict(ours <= IDLE_COMMANDS_AT_MOST, ours);
    rows.push(['idle worker (commands/s)', ...shown, '', `≤ ${IDLE_COMMANDS_AT_MOST}`, met]);
  }
  if (idleWorkers) {
    const { alone, crowded } = idleWorkers;
    const share = median(crowded) / median(alone);
    const met = verdict(share >= CROWDED_AT_LEAST, share);
    rows.push(['process, no other worker (jobs/s)', cell(alone, 0)]);
    rows.push([
      'process beside idle workers (jobs/s)',
      cell(crowded, 0),
      '',
      '',
      show(share, 2),
      `≥ ${CROWDED_AT_LEAST}`,
      met,
    ]);
  }
  return rows;
}

function ratio(values: PerSystem<number[]>): number {
  return middle(values.sluice) / middle(values.bullmq);
}

function cells(values: PerSystem<number[]>, digits: number): string[] {
  return SYSTEMS.map((system: SystemName) => cell(values[system] ?? [], digits));
}
