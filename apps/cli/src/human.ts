// Figures for people: spans, moments, bytes, counts, shares. Programs take --json, where figures stay figures.

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The two largest units: `2 min 30 s`, `3 d 4 h`, `450 ms`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–';
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < secondMs) return `${Math.round(ms)} ms`;
  if (ms < 10 * secondMs) return `${trimmed(ms / secondMs)} s`;
  // Rounded first, so that no minute has sixty seconds.
  const seconds = Math.round(ms / secondMs);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return pair(seconds, 60, 'min', 's');
  if (seconds < 86_400) return pair(Math.round(seconds / 60), 60, 'h', 'min');
  return pair(Math.round(seconds / 3_600), 24, 'd', 'h');
}

export function ago(atMs: number | null | undefined, nowMs = Date.now()): string {
  if (atMs === null || atMs === undefined) return '–';
  const span = nowMs - atMs;
  return span >= 0 ? `${duration(span)} ago` : `in ${duration(-span)}`;
}

/** `2026-03-01 14:05:09`, where the reader is. */
export function moment(at: number | string | null | undefined): string {
  if (at === null || at === undefined) return '–';
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '–';
  const local = new Date(date.getTime() - date.getTimezoneOffset() * minuteMs);
  return local.toISOString().slice(0, 19).replace('T', ' ');
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined || !Number.isFinite(count)) return '–';
  let [value, unit] = [count, 0];
  while (Math.abs(value) >= 1_024 && unit < units.length - 1) {
    value /= 1_024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : trimmed(value)} ${units[unit]}`;
}

export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  return Math.abs(value) >= 100 || Number.isInteger(value)
    ? Math.round(value).toLocaleString('en-US')
    : trimmed(value);
}

/** `3 jobs`, `1 job`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined || !Number.isFinite(share) ? '–' : `${trimmed(share * 100)} %`;
}

function pair(value: number, per: number, large: string, small: string): string {
  const [whole, rest] = [Math.floor(value / per), value % per];
  return rest === 0 ? `${whole} ${large}` : `${whole} ${large} ${rest} ${small}`;
}

/** One digit behind the point where it says something. */
function trimmed(value: number): string {
  return Math.abs(value) >= 100 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, '');
}

export const spans = { secondMs, minuteMs, hourMs, dayMs };
