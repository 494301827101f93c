import { isSluiceError } from '@sluice/base';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { checkSchedule, nextTick, type ScheduleSpec, ticksBetween } from '../src/cron.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MANY = 10_000;

/** The ticks from one UTC time to another, each written as UTC `day hour:minute`. */
function utcTicks(cron: string, timeZone: string, from: string, to: string): string[] {
  const ticks = ticksBetween({ cron, timeZone }, Date.parse(`${from}Z`), Date.parse(`${to}Z`), MANY);
  return ticks.map((tick) => new Date(tick).toISOString().slice(8, 16).replace('T', ' '));
}

test('a cron expression ticks in its time zone, and in UTC unless one is stated', () => {
  const after = Date.parse('2025-01-15T12:00:00Z');
  assert.equal(nextTick({ cron: '0 9 * * *' }, after), Date.parse('2025-01-16T09:00:00Z'));
  assert.equal(
    nextTick({ cron: '0 9 * * *', timeZone: 'Asia/Tokyo' }, after),
    Date.parse('2025-01-16T00:00:00Z'),
  );
  assert.equal(
    nextTick({ cron: '@daily', timeZone: 'Asia/Kolkata' }, after),
    Date.parse('2025-01-15T18:30:00Z'),
  );
  assert.equal(nextTick({ cron: '15 30 12 * * *' }, after), Date.parse('2025-01-15T12:30:15Z'));
  assert.equal(nextTick({ cron: '0 0 L * *' }, after), Date.parse('2025-01-31T00:00:00Z'));
});

test('the next tick lies strictly after the moment asked about, to the millisecond', () => {
  const noon = Date.parse('2025-01-15T12:00:00Z');
  for (const timeZone of ['UTC', 'Europe/Berlin']) {
    for (const cron of ['0 * * * *', '0 12,13 * * *']) {
      assert.equal(nextTick({ cron, timeZone }, noon - 1), noon);
      assert.ok(nextTick({ cron, timeZone }, noon)! > noon);
      assert.ok(nextTick({ cron, timeZone }, noon + 1)! > noon + 1);
    }
  }
});

test('a schedule that never ticks again says so', () => {
  assert.equal(nextTick({ cron: '0 0 31 2 *' }, 0), null);
  assert.equal(nextTick({ cron: '0 0 31 2 *', timeZone: 'Europe/Berlin' }, 0), null);
  assert.equal(nextTick({ cron: '0 0 0 1 1 * 2020' }, Date.parse('2025-01-01T00:00:00Z')), null);
  assert.deepEqual(ticksBetween({ cron: '0 0 31 2 *' }, 0, DAY_MS, MANY), []);
});

// Europe/Berlin 2025: forward on 30 March 01:00 UTC (02:00 → 03:00), back on 26 October 01:00 UTC (03:00 → 02:00).
// America/New_York 2025: forward on 9 March 07:00 UTC (02:00 → 03:00), back on 2 November 06:00 UTC (02:00 → 01:00).

test('gap, Berlin: a time that does not exist fires when the gap ends', () => {
  const ticks = utcTicks('30 2 * * *', 'Europe/Berlin', '2025-03-29T00:00', '2025-03-31T12:00');
  assert.deepEqual(ticks, ['29 01:30', '30 01:00', '31 00:30']);
});

test('gap, New York: a time that does not exist fires when the gap ends', () => {
  const ticks = utcTicks('30 2 * * *', 'America/New_York', '2025-03-08T00:00', '2025-03-10T12:00');
  assert.deepEqual(ticks, ['08 07:30', '09 07:00', '10 06:30']);
});

test('gap: several missing times fire together as one tick, and so with the time at which the gap ends', () => {
  const berlin = utcTicks('0,20,40 2,3 * * *', 'Europe/Berlin', '2025-03-30T00:00', '2025-03-30T12:00');
  assert.deepEqual(berlin, ['30 01:00', '30 01:20', '30 01:40']);
  const newYork = utcTicks('0,30 2 * * *', 'America/New_York', '2025-03-09T00:00', '2025-03-09T12:00');
  assert.deepEqual(newYork, ['09 07:00']);
});

test('overlap, Berlin: a time that occurs twice fires once, the first time', () => {
  const ticks = utcTicks('30 2 * * *', 'Europe/Berlin', '2025-10-25T00:00', '2025-10-27T12:00');
  assert.deepEqual(ticks, ['25 00:30', '26 00:30', '27 01:30']);
});

test('overlap, New York: a time that occurs twice fires once, the first time', () => {
  const ticks = utcTicks('30 1 * * *', 'America/New_York', '2025-11-01T00:00', '2025-11-03T12:00');
  assert.deepEqual(ticks, ['01 05:30', '02 05:30', '03 06:30']);
});

test('overlap: each of several times that occur twice fires once', () => {
  const berlin = utcTicks('0,30 2,3 * * *', 'Europe/Berlin', '2025-10-26T00:00', '2025-10-26T12:00');
  assert.deepEqual(berlin, ['26 00:30', '26 02:00', '26 02:30']);
  const newYork = utcTicks('*/30 1-2 * * *', 'America/New_York', '2025-11-02T00:00', '2025-11-02T12:00');
  assert.deepEqual(newYork, ['02 05:00', '02 05:30', '02 07:00', '02 07:30']);
});

test('overlap: asked within the repeated hour, the next tick is one that has not fired', () => {
  const spec = { cron: '30 2,4 * * *', timeZone: 'Europe/Berlin' };
  for (const after of ['01:00:00', '01:10:00', '01:30:00.001', '01:59:59.999']) {
    assert.equal(nextTick(spec, Date.parse(`2025-10-26T${after}Z`)), Date.parse('2025-10-26T03:30:00Z'));
  }
});

test('an expression of every hour keeps its rhythm through gap and overlap', () => {
  const changes = [
    ['Europe/Berlin', '2025-03-30'],
    ['Europe/Berlin', '2025-10-26'],
    ['America/New_York', '2025-03-09'],
    ['America/New_York', '2025-11-02'],
  ] as const;
  for (const [timeZone, day] of changes) {
    const fromMs = Date.parse(`${day}T00:00:00Z`);
    const ticks = ticksBetween({ cron: '0,30 * * * *', timeZone }, fromMs, fromMs + 12 * HOUR_MS, MANY);
    assert.deepEqual(
      ticks,
      Array.from({ length: 24 }, (_, i) => fromMs + (i + 1) * 30 * MINUTE_MS),
    );
  }
});

test('steps of hours are times on the wall clock: as many on every day of the year', () => {
  for (const timeZone of ['America/New_York', 'Australia/Lord_Howe']) {
    const offset = zoneOffset(timeZone);
    const ticks = ticksBetween(
      { cron: '0 */2 * * *', timeZone },
      Date.UTC(2025, 0, 2),
      Date.UTC(2025, 11, 30),
      MANY,
    );
    const perDay = new Map<number, number>();
    for (const tick of ticks) {
      const day = Math.floor((tick + offset(tick)) / DAY_MS);
      perDay.set(day, (perDay.get(day) ?? 0) + 1);
    }
    const whole = [...perDay.values()].slice(1, -1);
    assert.ok(whole.length > 350 && whole.every((count) => count === 12), timeZone);
  }
});

test('a day that a zone left out altogether still fires, when the gap ends', () => {
  // Samoa had no 30 December 2011.
  assert.deepEqual(utcTicks('0 9 * * *', 'Pacific/Apia', '2011-12-29T00:00', '2012-01-01T00:00'), [
    '29 19:00',
    '30 10:00',
    '30 19:00',
    '31 19:00',
  ]);
});

/** Minutes around a change of the clocks, for the model below. */
const changes = [
  ['Europe/Berlin', '2025-03-30'],
  ['Europe/Berlin', '2025-10-26'],
  ['America/New_York', '2025-03-09'],
  ['America/New_York', '2025-11-02'],
  ['Australia/Lord_Howe', '2025-04-06'],
  ['Australia/Lord_Howe', '2025-10-05'],
  ['America/Sao_Paulo', '2018-11-04'],
  ['Africa/Casablanca', '2025-02-23'],
  ['Asia/Kathmandu', '2025-06-01'],
] as const;

interface Minutes {
  timeZone: string;
  fromMs: number;
  toMs: number;
  /** Every minute of the window with what the wall clock shows, in order. */
  shown: { instantMs: number; wallMs: number }[];
}

const windows: Minutes[] = changes.map(([timeZone, day]) => {
  const fromMs = Date.parse(`${day}T00:00:00Z`) - 2 * DAY_MS;
  const toMs = fromMs + 4 * DAY_MS;
  const offset = zoneOffset(timeZone);
  const shown = [];
  for (let instantMs = fromMs; instantMs <= toMs + DAY_MS; instantMs += MINUTE_MS) {
    shown.push({ instantMs, wallMs: instantMs + offset(instantMs) });
  }
  return { timeZone, fromMs, toMs, shown };
});

/** What the essay of cron.ts says, done the slow way: by looking at the clock every minute. */
function modelTicks(window: Minutes, minutes: number[], hours: number[] | '*'): number[] {
  const matches = (wallMs: number) => {
    const wall = new Date(wallMs);
    return minutes.includes(wall.getUTCMinutes()) && (hours === '*' || hours.includes(wall.getUTCHours()));
  };
  const within = (instantMs: number) => instantMs > window.fromMs && instantMs <= window.toMs;
  if (hours === '*') {
    return window.shown.filter((m) => matches(m.wallMs) && within(m.instantMs)).map((m) => m.instantMs);
  }
  const ticks = new Set<number>();
  const lastWallMs = window.shown.at(-1)!.wallMs;
  for (let wallMs = window.shown[0]!.wallMs; wallMs < lastWallMs; wallMs += MINUTE_MS) {
    if (!matches(wallMs)) continue;
    const exact = window.shown.find((m) => m.wallMs === wallMs);
    const tick = (exact ?? window.shown.find((m) => m.wallMs > wallMs))!.instantMs;
    if (within(tick)) ticks.add(tick);
  }
  return [...ticks];
}

const someOf = (max: number, count: number) =>
  fc.uniqueArray(fc.integer({ min: 0, max }), { minLength: 1, maxLength: count });

test('around every change of the clocks no tick is skipped, doubled or invented', () => {
  const hours = fc.oneof(fc.constant('*' as const), someOf(5, 4), someOf(23, 3));
  fc.assert(
    fc.property(fc.constantFrom(...windows), someOf(59, 4), hours, (window, minutes, hourList) => {
      const cron = `${minutes.join()} ${hourList === '*' ? '*' : hourList.join()} * * *`;
      const ticks = ticksBetween({ cron, timeZone: window.timeZone }, window.fromMs, window.toMs, MANY);
      assert.deepEqual(ticks, modelTicks(window, minutes, hourList));
    }),
    { numRuns: 150 },
  );
});

const schedules: fc.Arbitrary<ScheduleSpec> = fc.oneof(
  fc.record({
    everyMs: fc.integer({ min: 1, max: 3 * DAY_MS }),
    anchorMs: fc.integer({ min: 0, max: 4e12 }),
  }),
  fc.record({
    cron: fc.constantFrom(
      '* * 2 * * *',
      '*/7 * * * *',
      '30 2 * * *',
      '0 1,2,3 * * 0',
      '*/10 1-3 * * *',
      '@hourly',
    ),
    timeZone: fc.constantFrom('UTC', ...changes.map(([timeZone]) => timeZone)),
  }),
);
const moments = fc.oneof(
  fc.integer({ min: 0, max: 4e12 }),
  fc.constantFrom(...windows).chain((w) => fc.integer({ min: w.fromMs, max: w.toMs })),
);

test('ticks strictly increase, and none lies between a moment and its next tick', () => {
  fc.assert(
    fc.property(schedules, moments, fc.double({ min: 0, max: 1, noNaN: true }), (spec, afterMs, share) => {
      const tick = nextTick(spec, afterMs)!;
      assert.ok(tick > afterMs);
      // Asked at any moment before the tick, the answer is the same: schedulers agree.
      const between = afterMs + Math.floor((tick - 1 - afterMs) * share);
      assert.equal(nextTick(spec, between), tick);
      assert.equal(nextTick(spec, tick - 1), tick);
      assert.ok(nextTick(spec, tick)! > tick);
    }),
    { numRuns: 1_000 },
  );
});

test('ticks asked for piece by piece are the ticks asked for at once', () => {
  fc.assert(
    fc.property(schedules, moments, fc.integer({ min: 1, max: 7 }), (spec, fromMs, piece) => {
      const whole = ticksBetween(spec, fromMs, fromMs + 3 * DAY_MS, 20);
      const pieces: number[] = [];
      while (pieces.length < whole.length) {
        const more = ticksBetween(spec, pieces.at(-1) ?? fromMs, fromMs + 3 * DAY_MS, piece);
        assert.ok(more.length > 0 && more.length <= piece);
        pieces.push(...more);
      }
      assert.deepEqual(pieces.slice(0, whole.length), whole);
    }),
  );
});

test('an interval ticks at the same moments for every scheduler, aligned to its anchor', () => {
  assert.equal(nextTick({ everyMs: 5_000 }, 12_345), 15_000);
  assert.equal(nextTick({ everyMs: 5_000 }, 15_000), 20_000);
  assert.equal(nextTick({ everyMs: 5_000, anchorMs: 1_000 }, 12_345), 16_000);
  assert.equal(nextTick({ everyMs: 5_000, anchorMs: 1_000_001 }, 12_345), 15_001);
  assert.deepEqual(ticksBetween({ everyMs: 10 }, 0, 30, MANY), [10, 20, 30]);
  assert.deepEqual(ticksBetween({ everyMs: 10 }, 0, 30, 2), [10, 20]);
  assert.deepEqual(ticksBetween({ everyMs: 10 }, 30, 0, 2), []);
});

test('a schedule that makes no sense is refused with the reason', () => {
  const cases: [unknown, string, RegExp][] = [
    [{ cron: '61 * * * *' }, 'CRON_INVALID', /^cron expression "61 \* \* \* \*" is invalid: .*minute.*61/],
    [{ cron: '* * * *' }, 'CRON_INVALID', /five, six, or seven/],
    [{ cron: '' }, 'CRON_INVALID', /five/],
    [{ cron: '2025-01-01T00:00:00' }, 'CRON_INVALID', /five/],
    [{ cron: '@reboot' }, 'CRON_INVALID', /@reboot/],
    [{ cron: '*/0 * * * *' }, 'CRON_INVALID', /stepping/],
    [{}, 'CRON_INVALID', /undefined/],
    [{ cron: '* * * * *', timeZone: 'Mars/Base' }, 'TIME_ZONE_INVALID', /"Mars\/Base" is unknown/],
    [{ cron: '0 2 * * *', timeZone: '' }, 'TIME_ZONE_INVALID', /""/],
    [{ everyMs: 0 }, 'INTERVAL_INVALID', /everyMs must be a whole number from 1, not 0/],
    [{ everyMs: 1.5 }, 'INTERVAL_INVALID', /everyMs/],
    [{ everyMs: NaN }, 'INTERVAL_INVALID', /everyMs/],
    [{ everyMs: 10, anchorMs: NaN }, 'INTERVAL_INVALID', /anchorMs must be epoch milliseconds, not NaN/],
  ];
  for (const [spec, code, message] of cases) {
    assert.throws(
      () => checkSchedule(spec as ScheduleSpec),
      (error) => isSluiceError(error, code) && message.test(error.message),
      JSON.stringify(spec),
    );
  }
});

test('more schedules than are kept parsed are served all the same', () => {
  for (let i = 0; i < 2_500; i++) {
    const [minute, hour] = [i % 60, Math.floor(i / 60) % 24];
    const cron = `${minute} ${hour} ${1 + Math.floor(i / 1_440)} * *`;
    assert.equal(
      nextTick({ cron }, Date.UTC(2024, 11, 31, 23, 59)),
      Date.UTC(2025, 0, 1 + Math.floor(i / 1_440), hour, minute),
    );
  }
});

function zoneOffset(timeZone: string): (instantMs: number) => number {
  // Written differently from cron.ts on purpose: the name of the zone at that time, such as GMT+05:45.
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  return (instantMs) => {
    const name = format.formatToParts(instantMs).find((part) => part.type === 'timeZoneName')!.value;
    const [, sign, hours, minutes] = /GMT(?:([+-])(\d\d):(\d\d))?/.exec(name)!;
    return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * HOUR_MS + Number(minutes ?? 0) * MINUTE_MS);
  };
}
