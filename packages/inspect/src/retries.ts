// Jobs that failed and wait for their next attempt: which, how many, and when the next one is due.
import type { AnyQueue, WaitingRetry } from '@sluice/queue';
import { mergePages } from './merge.js';
import { checkLimit } from './page.js';
import type { Page } from './page.js';

const defaultLimit = 50;
const maxLimit = 500;
/** Retries of one queue that are counted. */
const maxCounted = 1_000;
const previewChars = 500;

export interface RetryQuestion {
  queue?: string;
  /** Only jobs with these labels. */
  labels?: Readonly<Record<string, string>>;
  limit?: number;
  cursor?: string;
}

export interface RetryRow extends Omit<WaitingRetry, 'place' | 'last'> {
  queue: string;
  /** The last error in one line; null when it is not known. */
  error: string | null;
  failedMs: number | null;
  worker: string | null;
}

/** Of one queue. */
export interface QueueRetries {
  queue: string;
  /** How many wait: up to 1,000 are counted, among the 5,000 delayed jobs that are due next. */
  count: number;
  /** There are no more than that. */
  complete: boolean;
  /** When the next attempt is due. */
  nextMs: number;
}

export interface RetrySummary extends Omit<QueueRetries, 'queue' | 'nextMs'> {
  /** When the next attempt of all is due; null when there is none. */
  nextMs: number | null;
  /** Those in which some wait; the one whose next attempt is nearest comes first. */
  queues: QueueRetries[];
}

export async function findRetries(
  queues: readonly AnyQueue[],
  { labels, limit = defaultLimit, cursor }: RetryQuestion,
): Promise<Page<RetryRow>> {
  checkLimit('limit', limit, maxLimit);
  return mergePages(queues, limit, cursor, async (queue, after) => {
    const page = await queue.retries({ limit, ...(labels && { labels }), ...(after && { after }) });
    return {
      ...page,
      items: page.items.map((retry) => ({ ...toRow(queue.name, retry), place: retry.place })),
    };
  });
}

export async function summariseRetries(
  queues: readonly AnyQueue[],
  labels: RetryQuestion['labels'],
): Promise<RetrySummary> {
  const pages = await Promise.all(
    queues.map((queue) => queue.retries({ limit: maxCounted, ...(labels && { labels }) })),
  );
  const waiting = pages.flatMap(({ items, end }, i): QueueRetries[] => {
    const [next] = items;
    const found = { queue: queues[i]!.name, count: items.length, complete: end === null };
    return next ? [{ ...found, nextMs: next.dueMs }] : [];
  });
  waiting.sort((a, b) => a.nextMs - b.nextMs);
  return {
    count: waiting.reduce((sum, { count }) => sum + count, 0),
    complete: pages.every(({ end }) => end === null),
    nextMs: waiting[0]?.nextMs ?? null,
    queues: waiting,
  };
}

function toRow(queue: string, { place: _, last, preview, ...retry }: WaitingRetry): RetryRow {
  return {
    queue,
    ...retry,
    ...(preview !== undefined && { preview: preview.slice(0, previewChars) }),
    error: last && `${last.name}: ${last.message}`.slice(0, previewChars),
    failedMs: last && last.atMs,
    worker: last && last.worker,
  };
}
