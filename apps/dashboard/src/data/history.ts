// How it was, of several queues together: their minutes, hours or days added up. Bounded: the busiest ones, and the answer says how many were left out.
import { ApiError, at, get } from './api.js';
import { askedOf, type Span } from '../spans.js';
import type { QueueRow, Series } from './shapes.js';

const mostQueues = 12;
/** So many points are shown, also where most of them are empty. */
const leastPoints = 12;

/** Charts follow it; a point more is there every minute. */
export const historyEveryMs = 60_000;

export interface Lines {
  times: number[];
  done: (number | null)[];
  failed: (number | null)[];
  died: (number | null)[];
  waitP95Ms: (number | null)[];
  runP95Ms: (number | null)[];
  waiting: (number | null)[];
}

export interface History extends Lines {
  span: Span;
  leftOut: number;
}

export async function historyOf(
  queues: readonly QueueRow[],
  span: Span,
  abort: AbortSignal,
): Promise<History> {
  const chosen = [...queues].sort((a, b) => traffic(b) - traffic(a)).slice(0, mostQueues);
  const all = await Promise.all(
    chosen.map(({ name }) =>
      get<Series>(`${at('v1', 'queues', name)}/series`, { query: askedOf(span), signal: abort }).catch(
        unlessGone,
      ),
    ),
  );
  return { ...sinceWork(together(all.flat())), span, leftOut: queues.length - chosen.length };
}

/** A queue that is gone meanwhile has no history; the others still have theirs. */
function unlessGone(error: unknown): [] {
  if (error instanceof ApiError && error.status === 404) return [];
  throw error;
}

export function together(all: readonly Series[]): Lines {
  const times = [...new Set(all.flatMap(({ points }) => points.map(({ atMs }) => atMs)))].sort(
    (a, b) => a - b,
  );
  const byTime = all.map(({ points }) => new Map(points.map(({ atMs, figures }) => [atMs, figures])));
  const combined = (name: string, combine: (values: number[]) => number): (number | null)[] =>
    times.map((time) => {
      const known = byTime.flatMap((points) => points.get(time)?.[name] ?? []);
      return known.length === 0 ? null : combine(known);
    });
  const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
  const worst = (values: number[]): number => Math.max(...values);
  return {
    times,
    done: combined('done', sum),
    failed: combined('failed', sum),
    died: combined('died', sum),
    waiting: combined('waiting', sum),
    waitP95Ms: combined('waitP95Ms', worst),
    runP95Ms: combined('runP95Ms', worst),
  };
}

/** Begins shortly before the first work: who has just begun does not look at fifty points of nothing. The length differs, the scale is on the axis. */
export function sinceWork(all: Lines): Lines {
  const first = all.times.findIndex((_, i) => [all.done, all.failed, all.died].some((values) => values[i]));
  const from = Math.max(0, Math.min(first - 1, all.times.length - leastPoints));
  const cut = <T>(values: T[]): T[] => values.slice(from);
  return {
    times: cut(all.times),
    done: cut(all.done),
    failed: cut(all.failed),
    died: cut(all.died),
    waiting: cut(all.waiting),
    waitP95Ms: cut(all.waitP95Ms),
    runP95Ms: cut(all.runP95Ms),
  };
}

export function total(values: readonly (number | null)[]): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

function traffic({ counts, minute }: QueueRow): number {
  return minute.done + minute.failed + counts.active + counts.waiting + counts.dead;
}
