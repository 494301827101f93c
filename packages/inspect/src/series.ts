// How it was: points of the history, of a queue, of a cache or of Redis.
import { inspectErrors } from './errors.js';
import { cacheFigures, combine, queueFigures, redisFigures, toNamed } from './figures.js';
import type { Named } from './figures.js';
import type { History } from './history.js';
import { hourRing, minuteRing } from './ring.js';
import { cacheSeriesOf, redisSeries, seriesOf } from './roller.js';

export type Step = 'minute' | 'hour' | 'day';

export interface SeriesQuestion {
  /** Of this queue; of Redis when neither a queue nor a cache is named. */
  queue?: string;
  /** Of this family of values; `*` is all of them together. */
  cache?: string;
  step: Step;
  /** An hour of minutes, a week of hours or 90 days, when absent. The history reaches back a day of minutes and 90 days of hours. */
  fromMs?: number;
  toMs?: number;
}

export interface SeriesPoint {
  /** The beginning of the minute, hour or day (of UTC). */
  atMs: number;
  /** Those that are known; nothing at all when nobody sampled. */
  figures: Named<string> | null;
}

export interface Series {
  step: Step;
  stepMs: number;
  points: SeriesPoint[];
  /** No point is missing. */
  complete: boolean;
}

/** `of`: so many records of the ring make a point. Days are made of hours when somebody asks: ninety points show what two thousand do. */
const steps = {
  minute: { ring: minuteRing, of: 1, usual: 60 },
  hour: { ring: hourRing, of: 1, usual: 7 * 24 },
  day: { ring: hourRing, of: 24, usual: 90 },
} as const;

export async function readSeries(history: History, question: SeriesQuestion, nowMs: number): Promise<Series> {
  const { step } = question;
  const { ring, of, usual } = steps[step];
  const stepMs = ring.stepMs * of;
  const present = Math.floor(nowMs / stepMs);
  const last = Math.min(stepAt('toMs', question.toMs, stepMs) ?? present - 1, present - 1);
  const wanted = stepAt('fromMs', question.fromMs, stepMs) ?? last - usual + 1;
  // What lies further back has been written over.
  const oldest = Math.floor((Math.floor(nowMs / ring.stepMs) - ring.places + 1) / of);
  const first = Math.max(wanted, oldest, 0);
  const count = Math.max(0, last - first + 1);
  const { series, table } = subjectOf(question);
  const asked = [series, first * of, count * of] as const;
  const read = () => (ring === minuteRing ? history.readMinutes(...asked) : history.readHours(...asked));
  const records = count === 0 ? [] : await read();
  const points = Array.from({ length: count }, (_, i) => {
    const known = records.slice(i * of, (i + 1) * of).filter((figures) => figures !== null);
    const figures = known.length === 0 ? null : toNamed(table, combine(table, known));
    return { atMs: (first + i) * stepMs, figures };
  });
  const complete = first === wanted && records.every((figures) => figures !== null);
  return { step, stepMs, points, complete };
}

function subjectOf({ queue, cache }: SeriesQuestion) {
  if (queue !== undefined) return { series: seriesOf(queue), table: queueFigures };
  if (cache !== undefined) return { series: cacheSeriesOf(cache), table: cacheFigures };
  return { series: redisSeries, table: redisFigures };
}

function stepAt(field: string, timeMs: number | undefined, stepMs: number): number | undefined {
  if (timeMs === undefined) return undefined;
  if (!Number.isFinite(timeMs) || timeMs < 0) {
    throw inspectErrors.QUESTION_INVALID({ field, value: timeMs, allowed: 'a time in ms since 1970' });
  }
  return Math.floor(timeMs / stepMs);
}
