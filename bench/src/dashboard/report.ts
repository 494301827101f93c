/*
 * From visits to figures: the JSON object and the table, with what is wanted beside what was measured.
 */
import { cell, middle, rounded, show, verdict } from '../figures.js';
import { renderTable } from '../table.js';
import type { Sizes } from './sizes.js';
import type { Visit } from './visit.js';

const PAINT_MS_AT_MOST = 1_500;
const SCRIPT_KB_AT_MOST = 150;
const KILOBYTE = 1_000;

export function toJson(visits: readonly Visit[]) {
  const { firstPaintMs, figuresMs, scriptBytes, otherBytes, requests } = columns(visits);
  return {
    firstPaintMs: rounded(middle(firstPaintMs), 0),
    figuresMs: rounded(middle(figuresMs), 0),
    scriptGzipBytes: rounded(middle(scriptBytes), 0),
    otherGzipBytes: rounded(middle(otherBytes), 0),
    requests: rounded(middle(requests), 0),
  };
}

export function toTable(visits: readonly Visit[], { waiting, dead, workers, charts }: Sizes): string {
  const { firstPaintMs, figuresMs, scriptBytes, otherBytes, requests } = columns(visits);
  const kilobytes = (bytes: readonly number[]): number => middle(bytes) / KILOBYTE;
  const scripts = kilobytes(scriptBytes);
  const rows = [
    row('first paint, ms', firstPaintMs, PAINT_MS_AT_MOST),
    row('the overview with its figures, ms', figuresMs, PAINT_MS_AT_MOST),
    [
      `scripts of the page ${charts ? 'with' : 'without'} its charts, KB (gzip)`,
      show(scripts, 1),
      `≤ ${SCRIPT_KB_AT_MOST}`,
      verdict(scripts <= SCRIPT_KB_AT_MOST, scripts),
    ],
    ['other bytes before the figures, KB (gzip)', show(kilobytes(otherBytes), 1), '', ''],
    ['requests before the figures', show(middle(requests), 0), '', ''],
  ];
  const scene = `${show(waiting, 0)} waiting, ${show(dead, 0)} dead, ${show(workers, 0)} workers`;
  return renderTable([`${scene}; median (smallest–largest visit)`, 'measured', 'wanted', ''], rows);
}

function row(label: string, visits: readonly number[], atMost: number): string[] {
  return [label, cell(visits, 0), `≤ ${show(atMost, 0)}`, verdict(middle(visits) <= atMost, middle(visits))];
}

function columns(visits: readonly Visit[]): Record<keyof Visit, number[]> {
  const column = (name: keyof Visit): number[] => visits.map((visit) => visit[name]);
  return {
    firstPaintMs: column('firstPaintMs'),
    figuresMs: column('figuresMs'),
    scriptBytes: column('scriptBytes'),
    otherBytes: column('otherBytes'),
    requests: column('requests'),
  };
}
