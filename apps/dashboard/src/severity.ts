// How bad is it? The server says what is wrong; the page says in which order it is read.
import type { Attention } from './data/shapes.js';

export type Severity = 'bad' | 'warn' | 'neutral';

const known: Record<string, Severity> = {
  REDIS_CANNOT_WRITE: 'bad',
  REDIS_EVICTS: 'bad',
  REDIS_NEARLY_FULL: 'warn',
  NO_WORKERS: 'bad',
  DEAD_LETTERS: 'warn',
  LONG_WAIT: 'warn',
  OUTBOX_LATE: 'warn',
  QUEUE_PAUSED: 'neutral',
};

/** What nobody has ranked is a part that could not be read: broken. */
export function severityOf(code: string): Severity {
  return known[code] ?? 'bad';
}

const order: readonly Severity[] = ['bad', 'warn', 'neutral'];

export function rank(items: readonly Attention[]): Attention[] {
  return [...items].sort((a, b) => order.indexOf(severityOf(a.code)) - order.indexOf(severityOf(b.code)));
}
