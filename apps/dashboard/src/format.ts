// Figures as people read them: numbers with thousands, bytes with units, spans of time in words. Pure, so that tests can hold them.

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** What stands where a figure is not known. */
export const unknown = '–';

export function number(value: number | null | undefined): string {
  return isFigure(value) ? whole.format(value) : unknown;
}

/** One digit behind the point: averages. */
export function decimal(value: number | null | undefined): string {
  return isFigure(value) ? oneDigit.format(value) : unknown;
}

const steps: [least: number, unit: string][] = [
  [1e15, 'P'],
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e4, 'k'],
];

/** Large numbers short: 12.3 k, 1.2 M. Up to 9,999 exactly. */
export function compact(value: number | null | undefined): string {
  if (!isFigure(value)) return unknown;
  for (const [least, unit] of steps) {
    if (Math.abs(value) < least) continue;
    const scaled = value / (unit === 'k' ? 1e3 : least);
    return `${scaled >= 100 ? whole.format(scaled) : oneDigit.format(scaled)} ${unit}`;
  }
  return whole.format(value);
}

/** Per second: small rates need their digits. */
export function rate(value: number | null | undefined): string {
  if (!isFigure(value)) return unknown;
  if (value === 0) return '0';
  if (value < 0.1) return '< 0.1';
  return value < 10 ? oneDigit.format(value) : compact(value);
}

export function percent(part: number | null | undefined, digits = 0): string {
  if (!isFigure(part)) return unknown;
  const shown = part * 100;
  // Nearly all is not all: 99.96 % must not read as 100.
  const bounded = shown < 100 && Number(shown.toFixed(digits)) === 100 ? 100 - 10 ** -digits : shown;
  return `${bounded.toFixed(digits)} %`;
}

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(value: number | null | undefined): string {
  if (!isFigure(value)) return unknown;
  let scaled = value;
  let unit = 0;
  while (Math.abs(scaled) >= 1_024 && unit < byteUnits.length - 1) {
    scaled /= 1_024;
    unit++;
  }
  return `${unit === 0 || scaled >= 100 ? whole.format(scaled) : oneDigit.format(scaled)} ${byteUnits[unit]}`;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `2 min 30 sec`: the two largest units. */
export function span(ms: number | null | undefined): string {
  if (!isFigure(ms)) return unknown;
  if (ms < 0) return span(0);
  if (ms < second) return `${Math.round(ms)} ms`;
  if (ms < 10 * second) return `${oneDigit.format(Math.floor(ms / 100) / 10).replace(/\.0$/, '')} sec`;
  if (ms < minute) return `${Math.floor(ms / second)} sec`;
  if (ms < hour) return two(ms, minute, 'min', second, 'sec');
  if (ms < day) return two(ms, hour, 'h', minute, 'min');
  return two(ms, day, 'd', hour, 'h');
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const [most, rest] = [Math.floor(ms / large), Math.floor((ms % large) / small)];
  return rest === 0 ? `${most} ${largeName}` : `${most} ${largeName} ${rest} ${smallName}`;
}

/** How long a handler or a wait took: `12 ms`, `1.4 sec`. */
export function latency(ms: number | null | undefined): string {
  if (!isFigure(ms)) return unknown;
  return ms < 10 ? `${oneDigit.format(ms).replace(/\.0$/, '')} ms` : span(ms);
}

/** `3 min ago`, `in 2 min 30 sec`; seconds are enough for what is near. */
export function relative(atMs: number, nowMs: number): string {
  const away = atMs - nowMs;
  if (Math.abs(away) < second) return 'now';
  if (away > 0) return `in ${span(roundToSeconds(away))}`;
  return `${oneUnit(-away)} ago`;
}

/** `in 2 min 30 sec`, or that it is due. */
export function countdown(dueMs: number, nowMs: number): string {
  return dueMs - nowMs < second ? 'due now' : span(roundToSeconds(dueMs - nowMs));
}

function roundToSeconds(ms: number): number {
  return Math.floor(ms / second) * second;
}

function oneUnit(ms: number): string {
  if (ms < minute) return `${Math.floor(ms / second)} sec`;
  if (ms < hour) return `${Math.floor(ms / minute)} min`;
  if (ms < day) return `${Math.floor(ms / hour)} h`;
  return `${Math.floor(ms / day)} d`;
}

/** The reader's own time, in an order that sorts: `2026-11-16 12:05:33`. */
export function moment(atMs: number): string {
  const at = new Date(atMs);
  if (Number.isNaN(at.getTime())) return unknown;
  const date = [at.getFullYear(), pad(at.getMonth() + 1), pad(at.getDate())].join('-');
  return `${date} ${clock(atMs)}`;
}

export function clock(atMs: number): string {
  const at = new Date(atMs);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(':');
}

/** Under an axis of time: hours and minutes, and the date where a day begins. */
export function tick(atMs: number): string {
  const at = new Date(atMs);
  const isDayStart = at.getHours() === 0 && at.getMinutes() === 0;
  const pair = isDayStart ? [at.getMonth() + 1, at.getDate()] : [at.getHours(), at.getMinutes()];
  return pair.map(pad).join(isDayStart ? '-' : ':');
}

function pad(part: number): string {
  return String(part).padStart(2, '0');
}

/** The name of something that came later: `queueWaitTime` is read as words. */
export function spelled(name: string): string {
  const words = name
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[_-]+/g, ' ')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** `1,000+` where counting stopped. */
export function atLeast(count: string, isAll: boolean): string {
  return isAll ? count : `${count}+`;
}

/** Under a list that shows only the first ones; nothing where it shows all. */
export function leftOut(shown: number, all: number, what: string): string | undefined {
  return all > shown ? `${number(shown)} of ${number(all)} ${what}` : undefined;
}

function isFigure(value: number | null | undefined): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
