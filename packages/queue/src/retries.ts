// Jobs that failed and wait for their next attempt, soonest first.
//
// They lie among the delayed jobs, which are ordered by the time at which they are due. A page walks along that order and keeps those that
// were tried before. Keeping them apart would cost every failure and every claim; so a page looks at 5,000 delayed jobs at most, says how
// many those were, and where it stopped. Retries are due within minutes mostly, and so lie at the beginning.
//
// A page goes by place (time, partition, id), as that of dead letters does: jobs may come and go between two pages.
import { decodeAttempt } from './history.js';
import type { AttemptRecord } from './history.js';
import { labelMatcher } from './labels.js';
import { checkCount } from './options.js';
import { flag, payloadOf, unpackJob } from './packed.js';
import type { Partition } from './partition.js';
import { behindAll, placesAfter } from './places.js';
import type { TimePlace } from './places.js';
import { pack } from './wire.js';

const maxPageRetries = 1_000;
/** Delayed jobs that one call looks at, and bytes of them. */
const maxExamined = 5_000;
const idsPerRead = 500;
const bytesPerRead = 8 * 1024 * 1024;
/** Of a payload, what a list may show. */
const previewBytes = 1_500;

export interface WaitingRetry {
  id: string;
  /** When its next attempt is due. */
  dueMs: number;
  /** The run that it waits for. */
  attempt: number;
  crashes: number;
  priority: number;
  createdMs: number;
  labels: Readonly<Record<string, string>>;
  group?: string;
  /** The beginning of the payload, unless it is binary. */
  preview?: string;
  /** How the last attempt ended; null when that is not known. */
  last: AttemptRecord | null;
  place: TimePlace;
}

export interface RetryOptions {
  /** Jobs per page: 50 by default, 1,000 at most. */
  limit?: number;
  /** Only those with these labels. */
  labels?: Readonly<Record<string, string>>;
  /** Where the page before ended. */
  after?: TimePlace;
}

export interface RetryPage {
  /** Soonest first. */
  items: WaitingRetry[];
  /** Delayed jobs that were looked at. */
  scanned: number;
  /** Where it stopped; null at the end. */
  end: TimePlace | null;
}

export async function findRetries(
  partitions: readonly Partition[],
  { limit = 50, labels, after }: RetryOptions,
): Promise<RetryPage> {
  checkCount('limit', limit, maxPageRetries);
  const hasLabels = labelMatcher(labels);
  let place = after ?? { atMs: Math.floor(partitions[0]!.clock.nowMs()), partition: behindAll, id: '' };
  const page: RetryPage = { items: [], scanned: 0, end: null };
  while (page.scanned < maxExamined) {
    const places = await placesAfter(partitions, 'delayed', place, idsPerRead);
    const { looked, retries } = await readPlaces(partitions, places);
    for (const candidate of looked) {
      place = candidate;
      page.scanned++;
      const retry = retries.get(candidate);
      if (retry && hasLabels(retry.labels)) page.items.push(retry);
      if (page.items.length === limit) return { ...page, end: place };
    }
    if (places.length < idsPerRead && looked.length === places.length) return page;
  }
  return { ...page, end: place };
}

/** The retries among these places; `looked` are those that were not too much for one answer. */
async function readPlaces(
  partitions: readonly Partition[],
  places: readonly TimePlace[],
): Promise<{ looked: TimePlace[]; retries: Map<TimePlace, WaitingRetry> }> {
  const unread = new Set<TimePlace>();
  const retries = new Map<TimePlace, WaitingRetry>();
  const read = async (partition: Partition) => {
    const here = places.filter((place) => place.partition === partition.index);
    if (here.length === 0) return;
    const ids = pack(here.map(({ id }) => id));
    const reply = await partition.run('retries', { ids, previewBytes, maxBytes: bytesPerRead });
    const [looked, ...found] = reply as [number, ...[Buffer, Buffer, Buffer][]];
    for (const place of here.slice(looked)) unread.add(place);
    const byId = new Map(here.map((place) => [place.id, place]));
    for (const [id, bytes, last] of found) {
      const place = byId.get(String(id))!;
      retries.set(place, describeRetry(place, bytes, last));
    }
  };
  await Promise.all(partitions.map(read));
  const firstUnread = places.findIndex((place) => unread.has(place));
  return { looked: places.slice(0, firstUnread === -1 ? places.length : firstUnread), retries };
}

function describeRetry(place: TimePlace, bytes: Buffer, last: Buffer): WaitingRetry {
  const stored = unpackJob(bytes);
  const { attempts, crashes, priority, createdMs, options } = stored;
  const isText = !(stored.flags & flag.binary);
  return {
    ...{ id: place.id, dueMs: place.atMs, attempt: attempts + 1, crashes, priority, createdMs, place },
    labels: options?.m ?? {},
    ...(options?.g !== undefined && { group: options.g }),
    ...(isText && { preview: payloadOf(stored).toString() }),
    last: last.length > 0 ? decodeAttempt(last.toString()) : null,
  };
}
