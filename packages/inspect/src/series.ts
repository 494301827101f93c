// How it was: points of the history, of a queue, of a cache or of Redis.
import { inspectErrors } from './errors.js';
import { cacheFigures, queueFigures, redisFigures, toNamed } from './figures.js';
import type { Named } from './figures.js';
import type { History } from './history.js';
import { hourRing, minuteRing } from './ring.js';
import { cacheSeriesOf, redisSeries, seriesOf } from './roller.js';

export interface SeriesQuestion {
  /** Of this queue; of Redis when neither a queue nor a cache is named. */
  queue?: string;
  /** Of this family of values; `*` is all of them together. */
  cache?: string;
  step: 'minute' | 'hour';
  /** An hour of minutes, or a week of hours, when absent. The history reaches back a day of minutes and 90 days of hours. */
  fromMs?: number;
  toMs?: number;
}

export interface SeriesPoint {
  /** The beginning of the minute or hour. */
  atMs: number;
  /** Those that are known; nothing at all when nobody sampled. */
  figures: Named<string> | null;
}

export interface Series {
  step: 'minute' | 'hour';
  stepMs: number;
  points: SeriesPoint[];
  /** No point is missing. */
  complete: boolean;
}

const defaultSteps = { minute: 60, hour: 7 * 24 };

export async function readSeries(history: History, question: SeriesQuestion, nowMs: number): Promise<Series> {
  const { step } = question;
  const ring = step === 'minute' ? minuteRing : hourRing;
  const { stepMs } = ring;
  const present = Math.floor(nowMs / stepMs);
  const last = Math.min(stepAt('toMs', question.toMs, stepMs) ?? present - 1, present - 1);
  const wanted = stepAt('fromMs', question.fromMs, stepMs) ?? last - defaultSteps[step] + 1;
  // What lies further back has been written over.
  const first = Math.max(wanted, present - ring.places + 1, 0);
  const count = Math.max(0, last - first + 1);
  const { series, table } = subjectOf(question);
  const read =
    step === 'minute' ? history.readMinutes(series, first, count) : history.readHours(series, first, count);
  const records = count === 0 ? [] : await read;
  const points = records.map((figures, i) => ({
    atMs: (first + i) * stepMs,
    figures: figures && toNamed(table, figures),
  }));
  const complete = first === wanted && points.every(({ figures }) => figures !== null);
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
