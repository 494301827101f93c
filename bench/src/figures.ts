/*
 * How a figure is written: in a cell of a table, or rounded in a JSON object. What was not measured is a dash in the
 * one and null in the other.
 */
import { median, spread } from './statistics.js';

/** The median of the rounds; NaN if there were none. */
export function middle(rounds: readonly number[] | undefined): number {
  return median(rounds ?? []);
}

/** The median, with the smallest and the largest round beside it. */
export function cell(rounds: readonly number[], digits: number): string {
  if (rounds.length === 0) return '–';
  const { min, max } = spread(rounds);
  return `${show(median(rounds), digits)} (${show(min, digits)}–${show(max, digits)})`;
}

export function show(value: number, digits: number): string {
  if (!Number.isFinite(value)) return '–';
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function verdict(met: boolean, value: number): string {
  if (!Number.isFinite(value)) return '';
  return met ? 'met' : 'MISSED';
}

export function rounded(value: number, digits: number): number | null {
  return Number.isFinite(value) ? Number(value.toFixed(digits)) : null;
}
