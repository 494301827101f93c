// One page of what several queues have in the order of time. Each queue answers with a page of its own that begins behind the same place; they
// are merged as far as all of them were read, and the next page begins where this one ends.
import type { AnyQueue, TimePlace } from '@sluice/queue';
import { behindAll } from '@sluice/queue';
import { inspectErrors } from './errors.js';
import type { Page } from './page.js';

/** A place in the order of all queues: by time, then by queue, then as the queue orders. */
interface Place extends TimePlace {
  queue: string;
}

export interface QueuePage<Item> {
  items: Item[];
  scanned: number;
  end: TimePlace | null;
}

export async function mergePages<Item extends { queue: string; place: TimePlace }>(
  queues: readonly AnyQueue[],
  limit: number,
  cursor: string | undefined,
  ask: (queue: AnyQueue, after: TimePlace | undefined) => Promise<QueuePage<Item>>,
): Promise<Page<Omit<Item, 'place'>>> {
  const place = cursor === undefined ? undefined : readCursor(cursor);
  const pages = await Promise.all(
    queues.map(async (queue) => ({ queue: queue.name, ...(await ask(queue, startIn(queue.name, place))) })),
  );
  const ends = pages.flatMap(({ queue, end }) => (end ? [{ ...end, queue }] : []));
  const horizon = ends.sort(inOrder)[0];
  const all = pages
    .flatMap(({ items }) => items)
    .map((item) => ({ item, at: { ...item.place, queue: item.queue } }))
    .filter(({ at }) => !horizon || inOrder(at, horizon) <= 0)
    .sort((a, b) => inOrder(a.at, b.at));
  const next = all.length > limit ? all[limit - 1]!.at : horizon;
  return {
    items: all.slice(0, limit).map(({ item: { place: _, ...rest } }) => rest),
    scanned: pages.reduce((sum, { scanned }) => sum + scanned, 0),
    complete: next === undefined,
    cursor: next ? writeCursor(next) : null,
  };
}

/** Where a queue begins when everything up to a place was shown. */
function startIn(queue: string, place: Place | undefined): TimePlace | undefined {
  if (!place) return undefined;
  if (queue === place.queue) return { atMs: place.atMs, partition: place.partition, id: place.id };
  return { atMs: place.atMs, partition: queue < place.queue ? behindAll : -1, id: '' };
}

function inOrder(a: Place, b: Place): number {
  const byQueue = a.queue < b.queue ? -1 : a.queue > b.queue ? 1 : 0;
  const byId = a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
  return a.atMs - b.atMs || byQueue || a.partition - b.partition || byId;
}

function writeCursor({ atMs, queue, partition, id }: Place): string {
  return Buffer.from(JSON.stringify([atMs, queue, partition, id])).toString('base64url');
}

function readCursor(cursor: string): Place {
  try {
    const [atMs, queue, partition, id] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    const isPlace = Number.isSafeInteger(atMs) && Number.isSafeInteger(partition) && Number(atMs) >= 0;
    if (isPlace && typeof queue === 'string' && typeof id === 'string') {
      return { atMs: atMs as number, queue, partition: partition as number, id };
    }
  } catch {
    // Refused below.
  }
  throw inspectErrors.QUESTION_INVALID({
    field: 'cursor',
    value: cursor,
    allowed: 'that of the page before',
  });
}
