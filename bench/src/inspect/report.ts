/*
 * From findings to figures: the JSON object and the table, with what is wanted beside what was measured.
 */
import { cell, middle, rounded, show, verdict } from '../figures.js';
import { renderTable } from '../table.js';
import { VIEWERS, type Sizes } from './sizes.js';

/** One number per round, or one number. What was not measured is absent. */
export interface Findings {
  /** Milliseconds of Redis per look. */
  lookMs?: number[];
  /** Commands per look, those within scripts included. */
  commands?: number[];
  commandsTen?: number[];
  /** Milliseconds of Redis per look when there are no workers, for one viewer and for ten. */
  aloneMs?: number[];
  aloneTenMs?: number[];
  calls?: number;
  /** What a steady load takes of the time of Redis. */
  loadShare?: number[];
  groupsMs?: number[];
  causes?: number;
}

/** How often a look is taken, unless told otherwise. */
const EVERY_MS = 2_000;
const SHARE_AT_MOST = 0.01;
const TEN_TIMES_AT_MOST = 1.05;
const GROUPS_MS_AT_MOST = 100;

export function toJson(findings: Findings) {
  const { lookMs, aloneMs, aloneTenMs, commands, commandsTen, calls, loadShare, groupsMs, causes } = findings;
  return {
    ...(lookMs && {
      samplerShare: rounded(middle(lookMs) / EVERY_MS, 6),
      lookMs: rounded(middle(lookMs), 3),
      lookAloneMs: rounded(middle(aloneMs), 3),
      lookAloneTenViewersMs: rounded(middle(aloneTenMs), 3),
      commandsPerLook: rounded(middle(commands), 1),
      commandsPerLookTenViewers: rounded(middle(commandsTen), 1),
      tenViewersTimes: rounded(middle(commandsTen) / middle(commands), 3),
      callsPerLook: calls,
      loadShare: rounded(middle(loadShare), 4),
    }),
    ...(groupsMs && {
      deadGroupsMs: rounded(middle(groupsMs), 2),
      deadGroupsFirstMs: rounded(groupsMs[0] ?? Number.NaN, 2),
      causes,
    }),
  };
}

export function toTable(findings: Findings, sizes: Sizes): string {
  const rows: string[][] = [];
  const { lookMs, aloneMs, aloneTenMs, commands, commandsTen, loadShare, calls, groupsMs } = findings;
  if (lookMs && aloneMs && aloneTenMs && commands && commandsTen) {
    const shares = lookMs.map((ms) => (100 * ms) / EVERY_MS);
    const times = middle(commandsTen) / middle(commands);
    const isSmall = middle(shares) <= 100 * SHARE_AT_MOST;
    rows.push(
      ['sampler, % of the time of Redis', cell(shares, 3), '≤ 1', verdict(isSmall, middle(shares))],
      [`one look at ${sizes.queues} queues (${calls} calls), ms of Redis`, cell(lookMs, 3), '', ''],
      ['the same without workers', cell(aloneMs, 3), '', ''],
      [`the same without workers, ${VIEWERS} viewers`, cell(aloneTenMs, 3), '', ''],
      [
        `commands per look, ${VIEWERS} viewers : one`,
        `${show(middle(commandsTen), 0)} : ${show(middle(commands), 0)}`,
        `≤ ${TEN_TIMES_AT_MOST}`,
        verdict(times <= TEN_TIMES_AT_MOST, times),
      ],
    );
  }
  if (loadShare) {
    const percent = loadShare.map((share) => 100 * share);
    rows.push([
      `for comparison: ${sizes.jobsPerSecond} jobs per second, % of Redis`,
      cell(percent, 1),
      '',
      '',
    ]);
  }
  if (groupsMs) {
    const label = `error groups of ${show(sizes.deadLetters, 0)} dead letters, ms`;
    const first = groupsMs[0] ?? Number.NaN;
    rows.push(
      [
        label,
        cell(groupsMs, 2),
        `≤ ${GROUPS_MS_AT_MOST}`,
        verdict(middle(groupsMs) <= GROUPS_MS_AT_MOST, first),
      ],
      [
        'the first time',
        show(first, 2),
        `≤ ${GROUPS_MS_AT_MOST}`,
        verdict(first <= GROUPS_MS_AT_MOST, first),
      ],
    );
  }
  return renderTable(['median (smallest–largest round)', 'measured', 'wanted', ''], rows);
}
