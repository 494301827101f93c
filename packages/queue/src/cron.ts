/**
 * When a schedule ticks.
 *
 * A schedule is a cron expression in a time zone, or an interval. Both are pure functions of time: every
 * scheduler, asked at any moment, computes the same ticks, which is what makes "one job per tick" possible
 * without one scheduler being in charge.
 *
 * An interval ticks at anchor + n × everyMs. The anchor is the epoch unless stated, never "when the process
 * started", so that all schedulers agree and a restart shifts nothing.
 *
 * Cron expressions are read by croner: five fields, six with seconds in front, seven with years behind,
 * names and `@daily`-style nicknames, `L`, `W` and `#`. When both day fields are restricted, either may
 * match, as cron always did. The zone is UTC unless stated, never the machine's.
 *
 * Daylight saving, stated. What an expression means depends on its hour field:
 *
 * - It names hours (`30 2 * * *`, `0,30 9-17 * * *`, also as steps): it means times on the wall clock, and
 *   each of them fires once a day on every day.
 *   Gap (clocks go forward): a local time that does not exist fires at the moment the gap ends; several
 *   missing times fire there together, as one tick.
 *   Overlap (clocks go back): a local time that occurs twice fires the first time only.
 * - It is every hour (`0 * * * *`, `0,30 * * * *`): it means a steady rhythm, and time goes on in real time.
 *   Gap: the hour that does not exist has no ticks. Overlap: the repeated hour ticks again; not doing so
 *   would leave a job that runs every minute silent for an hour.
 *
 * For the first kind croner is run on the wall clock itself, as though it were UTC, and the wall times it
 * gives are turned into instants here. Croner alone makes this distinction only for single times: it would
 * fire `0,30 2 * * *` four times in the overlap and skip `0 2,14 * * *`'s first run in the gap.
 */

import { queueErrors } from './errors.js';
import { Cron } from 'croner';

export interface CronSpec {
  cron: string;
  /** An IANA name such as Europe/Berlin. UTC unless stated. */
  timeZone?: string;
}

export interface EverySpec {
  everyMs: number;
  /** A moment at which it ticks, in epoch milliseconds. The epoch itself unless stated. */
  anchorMs?: number;
}

export type ScheduleSpec = CronSpec | EverySpec;

/** The first tick after `afterMs`, or null if there is none (31 February, a year that has passed). */
export function nextTick(spec: ScheduleSpec, afterMs: number): number | null {
  return ticker(spec)(afterMs);
}

/** The ticks in (fromMs, toMs], oldest first, at most `max`. To go on, ask again from the last one. */
export function ticksBetween(spec: ScheduleSpec, fromMs: number, toMs: number, max: number): number[] {
  const next = ticker(spec);
  const ticks: number[] = [];
  for (let tick = next(fromMs); tick !== null && tick <= toMs && ticks.length < max; tick = next(tick)) {
    ticks.push(tick);
  }
  return ticks;
}

/** Throws `CRON_INVALID`, `TIME_ZONE_INVALID` or `INTERVAL_INVALID` with what is wrong. */
export function checkSchedule(spec: ScheduleSpec): void {
  ticker(spec);
}

type Ticker = (afterMs: number) => number | null;

function ticker(spec: ScheduleSpec): Ticker {
  return 'everyMs' in spec ? everyTicker(spec) : cronTicker(spec);
}

function everyTicker({ everyMs, anchorMs = 0 }: EverySpec): Ticker {
  if (!Number.isSafeInteger(everyMs) || everyMs < 1) {
    throw queueErrors.INTERVAL_INVALID({
      field: 'everyMs',
      given: everyMs,
      expected: 'a whole number from 1',
    });
  }
  if (!Number.isSafeInteger(anchorMs)) {
    throw queueErrors.INTERVAL_INVALID({
      field: 'anchorMs',
      given: anchorMs,
      expected: 'epoch milliseconds',
    });
  }
  return (afterMs) => anchorMs + (Math.floor((afterMs - anchorMs) / everyMs) + 1) * everyMs;
}

/** Parsing an expression and opening a time zone are slow, and schedulers ask for the same few again. */
const tickers = new Map<string, Ticker>();
const MAX_KEPT_TICKERS = 1_000;

function cronTicker({ cron, timeZone = 'UTC' }: CronSpec): Ticker {
  const key = `${timeZone} ${cron}`;
  let kept = tickers.get(key);
  if (!kept) {
    kept = makeCronTicker(cron, timeZone);
    if (tickers.size >= MAX_KEPT_TICKERS) tickers.clear();
    tickers.set(key, kept);
  }
  return kept;
}

function makeCronTicker(expression: string, timeZone: string): Ticker {
  const zone = openZone(timeZone);
  const [wallClock, hours] = parse(expression, 'UTC');
  if (EVERY_HOUR.test(hours)) {
    const [rhythm] = parse(expression, timeZone);
    return (afterMs) => rhythm.nextRun(new Date(afterMs))?.getTime() ?? null;
  }
  return (afterMs) => {
    const wall = wallClock.nextRun(new Date(lastWallTime(zone, afterMs)));
    return wall && toInstant(zone, wall.getTime());
  };
}

const EVERY_HOUR = /^(?:[*?](?:\/1)?|0-23(?:\/1)?)$/;

/** The parsed expression and its hour field. */
function parse(expression: string, timezone: string): [Cron, string] {
  // Croner would also take a date, which is no schedule.
  if (typeof expression !== 'string' || expression.includes(':')) {
    throw queueErrors.CRON_INVALID({ cron: expression, reason: 'it needs five, six or seven fields' });
  }
  try {
    const cron = new Cron(expression, { timezone, paused: true });
    const fields = (cron.getPattern() ?? '').trim().split(/\s+/);
    return [cron, fields[fields.length === 5 ? 1 : 2] ?? ''];
  } catch (cause) {
    const reason = (cause instanceof Error ? cause.message : String(cause)).replace(/^CronPattern: /, '');
    throw queueErrors.CRON_INVALID({ cron: expression, reason }, { cause });
  }
}

// ── Wall clock and instants ─────────────────────────────────────────────────────────────────────────────
// A wall time is written as the epoch milliseconds it would be in UTC; a zone is wall time − instant.

/** The zone's offset from UTC at an instant, in milliseconds; east is positive. */
type Zone = (instantMs: number) => number;

/** Zones change their offset at most once within this time on either side of a moment. */
const DAY_MS = 24 * 60 * 60 * 1_000;

/** The instant of a wall time: the first of two in an overlap, the end of the gap in a gap. */
function toInstant(zone: Zone, wallMs: number): number {
  const before = zone(wallMs - DAY_MS);
  const after = zone(wallMs + DAY_MS);
  // Clocks go back by lowering the offset, so `before` gives the first of two.
  for (const offset of [before, after]) {
    if (zone(wallMs - offset) === offset) return wallMs - offset;
  }
  return findChange(zone, wallMs - DAY_MS, wallMs + DAY_MS);
}

/** The latest wall time whose tick, if it had one, would lie at or before the instant. */
function lastWallTime(zone: Zone, instantMs: number): number {
  const wallMs = instantMs + zone(instantMs);
  if (toInstant(zone, wallMs) === instantMs) return wallMs;
  // The hour that is shown for the second time: all its wall times fired the first time round.
  const changeMs = findChange(zone, instantMs - DAY_MS, instantMs);
  return changeMs + zone(changeMs - 1) - 1;
}

/** The first instant of the offset that is in force at `toMs`, known not to be in force at `fromMs`. */
function findChange(zone: Zone, fromMs: number, toMs: number): number {
  const offset = zone(toMs);
  let low = Math.floor(fromMs / 1_000);
  let high = Math.ceil(toMs / 1_000);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone(middle * 1_000) === offset) high = middle;
    else low = middle;
  }
  return high * 1_000;
}

function openZone(timeZone: string): Zone {
  if (timeZone === 'UTC') return () => 0;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch (cause) {
    throw queueErrors.TIME_ZONE_INVALID({ timeZone }, { cause });
  }
  return (instantMs) => {
    const wholeSecondMs = Math.floor(instantMs / 1_000) * 1_000;
    const part = Object.fromEntries(
      format.formatToParts(wholeSecondMs).map((p) => [p.type, Number(p.value)]),
    );
    const wallMs = Date.UTC(
      part['year']!,
      part['month']! - 1,
      part['day'],
      part['hour'],
      part['minute'],
      part['second'],
    );
    return wallMs - wholeSecondMs;
  };
}
