// What history keeps of a queue, of Redis and of the caches, and how sixty minutes become an hour.
//
// The order of the names is the order in the records: append, never reorder. A sum of an hour is that of its minutes. Of a state
// the hour keeps the largest, because a queue that was full for ten minutes was full. Percentiles cannot be combined; an hour shows
// those of its worst minute.
import type { Figures } from './ring.js';

type Combine = 'sum' | 'largest';

export const queueFigures = {
  waiting: 'largest',
  delayed: 'largest',
  blocked: 'largest',
  active: 'largest',
  dead: 'largest',
  workers: 'largest',
  oldestWaitingMs: 'largest',
  done: 'sum',
  failed: 'sum',
  died: 'sum',
  cancelled: 'sum',
  waitP50Ms: 'largest',
  waitP95Ms: 'largest',
  waitP99Ms: 'largest',
  runP50Ms: 'largest',
  runP95Ms: 'largest',
  runP99Ms: 'largest',
} as const satisfies Record<string, Combine>;

export const redisFigures = {
  usedBytes: 'largest',
  rssBytes: 'largest',
  maxBytes: 'largest',
  /** In percent: 100 is none. */
  fragmentationPercent: 'largest',
  opsPerSecond: 'largest',
  clients: 'largest',
  blockedClients: 'largest',
  keys: 'largest',
  aofBytes: 'largest',
  evicted: 'sum',
  expired: 'sum',
  hits: 'sum',
  misses: 'sum',
} as const satisfies Record<string, Combine>;

/** Of all processes; hits, of reads, is the hit rate. */
export const cacheFigures = {
  reads: 'sum',
  hits: 'sum',
  misses: 'sum',
  staleServed: 'sum',
  loads: 'sum',
  loadErrors: 'sum',
  loadMs: 'sum',
  coalesced: 'sum',
  bypassed: 'sum',
  invalidations: 'sum',
  processes: 'largest',
  openBreakers: 'largest',
  waitedMs: 'sum',
} as const satisfies Record<string, Combine>;

export type QueueFigure = keyof typeof queueFigures;
export type RedisFigure = keyof typeof redisFigures;
export type CacheFigure = keyof typeof cacheFigures;
type FigureTable = Readonly<Record<string, Combine>>;

/** Named figures; those that are not known are absent. */
export type Named<Name extends string> = Partial<Record<Name, number>>;

export function toFigures(table: FigureTable, named: Named<string>): Figures {
  return Object.keys(table).map((name) => named[name]);
}

export function toNamed(table: FigureTable, figures: Figures): Named<string> {
  const named: Named<string> = {};
  for (const [i, name] of Object.keys(table).entries()) {
    const figure = figures[i];
    if (figure !== undefined) named[name] = figure;
  }
  return named;
}

export function combine(table: FigureTable, minutes: readonly (Figures | null)[]): Figures {
  return Object.values(table).map((how, i) => {
    const known = minutes.flatMap((figures) => figures?.[i] ?? []);
    if (known.length === 0) return undefined;
    return how === 'sum' ? known.reduce((sum, figure) => sum + figure, 0) : Math.max(...known);
  });
}
