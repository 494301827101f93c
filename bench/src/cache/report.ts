/*
 * From findings to figures: the JSON object and the table, with what is wanted beside what was measured.
 */
import { SYSTEMS, type PerContender } from './contender.js';
import type { Sizes } from './sizes.js';
import { cell, middle, rounded, show, verdict } from '../figures.js';
import { renderTable } from '../table.js';

/** One number per round, or one number. What was not measured is absent. */
export interface Findings {
  nearHitNs?: PerContender<number[]>;
  redisHitUs?: PerContender<number[]>;
  getManyUs?: PerContender<number[]>;
  stampedeLoads?: PerContender<number>;
  staleAfterInvalidate?: PerContender<number>;
  redisDownMs?: PerContender<number>;
  redisStoppedMs?: PerContender<number>;
  redisDownRecoveredMs?: PerContender<number>;
  redisStoppedRecoveredMs?: PerContender<number>;
}

const NEAR_TIMES_AT_LEAST = 10;
const RAW_TIMES_AT_MOST = 1.3;
const MANY_TIMES_AT_LEAST = 3;
const ANSWER_MS_AT_MOST = 100;
const RECOVERED_MS_AT_MOST = 2_000;

/** A system that was left out of the run is null. */
export function toJson(findings: Findings): Record<string, unknown> {
  const timed = (values: PerContender<number[]>, digits: number, more: 'raw'[] = []) =>
    Object.fromEntries([...SYSTEMS, ...more].map((name) => [name, rounded(middle(values[name]), digits)]));
  const counted = (values: PerContender<number>, digits: number) =>
    Object.fromEntries(SYSTEMS.map((name) => [name, rounded(values[name] ?? Number.NaN, digits)]));
  const { nearHitNs, redisHitUs, getManyUs, stampedeLoads, staleAfterInvalidate } = findings;
  const { redisDownMs, redisStoppedMs } = findings;
  return {
    ...(nearHitNs && { nearHitNs: timed(nearHitNs, 0) }),
    ...(redisHitUs && { redisHitUs: timed(redisHitUs, 2, ['raw']) }),
    ...(getManyUs && { getManyUs: timed(getManyUs, 1) }),
    ...(stampedeLoads && { stampedeLoads: counted(stampedeLoads, 0) }),
    ...(staleAfterInvalidate && { staleAfterInvalidate: counted(staleAfterInvalidate, 0) }),
    ...(redisDownMs && { redisDownMs: counted(redisDownMs, 1) }),
    ...(redisStoppedMs && { redisStoppedMs: counted(redisStoppedMs, 1) }),
  };
}

const HEADER = ['median (smallest–largest round)', ...SYSTEMS, 'raw', 'ratio', 'wanted', ''];

export function toTable(findings: Findings, sizes: Sizes): string {
  return renderTable(HEADER, [
    ...timedRows(findings),
    ...countedRows(findings, sizes),
    ...outageRows(findings, sizes),
  ]);
}

function timedRows({ nearHitNs, redisHitUs, getManyUs }: Findings): string[][] {
  const rows: string[][] = [];
  if (nearHitNs) {
    const times = middle(nearHitNs.bentocache) / middle(nearHitNs.sluice);
    rows.push([
      'hit in the process (ns)',
      ...cells(nearHitNs, 0),
      '',
      `${show(times, 1)}×`,
      `≥ ${NEAR_TIMES_AT_LEAST}×`,
      verdict(times >= NEAR_TIMES_AT_LEAST, times),
    ]);
  }
  if (redisHitUs) {
    const times = middle(redisHitUs.sluice) / middle(redisHitUs.raw);
    rows.push([
      'hit in Redis, 50 at once (µs)',
      ...cells(redisHitUs, 1),
      cell(redisHitUs.raw ?? [], 1),
      show(times, 2),
      `≤ ${RAW_TIMES_AT_MOST} raw`,
      verdict(times <= RAW_TIMES_AT_MOST, times),
    ]);
  }
  if (getManyUs) {
    const [bento, cacheable] = [middle(getManyUs.bentocache), middle(getManyUs.cacheable)];
    const ours = middle(getManyUs.sluice);
    rows.push([
      'getMany of 100 (µs)',
      ...cells(getManyUs, 0),
      '',
      `${show(bento / ours, 1)}×, ${show(cacheable / ours, 1)}×`,
      `≥ ${MANY_TIMES_AT_LEAST}×, ≥ 1×`,
      verdict(bento / ours >= MANY_TIMES_AT_LEAST && cacheable >= ours, bento / ours),
    ]);
  }
  return rows;
}

function countedRows({ stampedeLoads, staleAfterInvalidate }: Findings, sizes: Sizes): string[][] {
  const rows: string[][] = [];
  const row = (label: string, values: PerContender<number>, wanted: number): void => {
    const ours = values.sluice ?? Number.NaN;
    const shown = SYSTEMS.map((name) => show(values[name] ?? Number.NaN, 0));
    rows.push([label, ...shown, '', '', `${wanted}`, verdict(ours === wanted, ours)]);
  };
  const crowd = `${sizes.processes} × ${sizes.readersEach}`;
  if (stampedeLoads) row(`loads for ${crowd} cold readers`, stampedeLoads, 1);
  if (staleAfterInvalidate)
    row(`stale in ${sizes.staleRounds} invalidations during a load`, staleAfterInvalidate, 0);
  return rows;
}

function outageRows(findings: Findings, sizes: Sizes): string[][] {
  const rows: string[][] = [];
  const row = (label: string, values: PerContender<number> | undefined, atMost: number): void => {
    if (!values) return;
    const ours = values.sluice ?? Number.NaN;
    const text = (value: number) => (value >= sizes.hangsAfterMs ? `> ${show(value, 0)}` : show(value, 0));
    const shown = SYSTEMS.map((name) => text(values[name] ?? Number.NaN));
    rows.push([label, ...shown, '', '', `≤ ${atMost}`, verdict(ours <= atMost, ours)]);
  };
  row('Redis killed: slowest answer (ms)', findings.redisDownMs, ANSWER_MS_AT_MOST);
  row('… as before after its return (ms)', findings.redisDownRecoveredMs, RECOVERED_MS_AT_MOST);
  row('Redis stopped: slowest answer (ms)', findings.redisStoppedMs, ANSWER_MS_AT_MOST);
  row('… as before after its return (ms)', findings.redisStoppedRecoveredMs, RECOVERED_MS_AT_MOST);
  return rows;
}

function cells(values: PerContender<number[]>, digits: number): string[] {
  return SYSTEMS.map((name) => cell(values[name] ?? [], digits));
}
