// The event stream of a queue, for those who switched it on (`queue.limit({ events: 10_000 })`): what happened to which job,
// in order, as long as the stream is long. It is for watching; nothing in Sluice depends on it.
//
// A reader sleeps in XREAD on connections of its own, one per partition, because a blocked connection serves nobody else
// and one command cannot read from two cluster slots. It remembers where it is, so a lost connection loses no event.
import { setTimeout as pause } from 'node:timers/promises';
import type { RedisLink } from '@sluice/redis';
import type { Partition } from './partition.js';
import type { AnyQueue } from './queue.js';

const defaultBlockMs = 5_000;
const hangsAfterMs = 3_000;
const eventsPerRead = 500;
const retryPauseMs = 250;

export interface QueueEvent {
  /** Unique within its partition. */
  id: string;
  /** What happened: added, claimed, done, failed, dead, cancelled, replayed. */
  type: string;
  jobIds: string[];
  /** By the clock of Redis. */
  atMs: number;
  partition: number;
  /** Given as `after`, it continues behind this event. */
  cursor: string;
}

export interface ReadEventsOptions {
  /** Where to begin: a cursor, '0' for the oldest event that is kept, or nothing for what happens from now on. */
  after?: string;
  /** How long one look waits for events. */
  blockMs?: number;
  /** Ends the reading. */
  signal?: AbortSignal;
}

/** Events as they happen, until the loop over them is left or the signal fires. In order within each partition. */
export async function* readEvents(
  queue: AnyQueue,
  { after, blockMs = defaultBlockMs, signal }: ReadEventsOptions = {},
): AsyncGenerator<QueueEvent, void, void> {
  await queue.ready();
  const ending = new AbortController();
  const links = queue.partitions.map(({ link }) => link.another({ name: `sluice-${queue.name}-events` }));
  const end = () => {
    ending.abort();
    for (const link of links) link.close();
  };
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  try {
    const start = after?.split(',') ?? (await Promise.all(queue.partitions.map(lastId)));
    const positions = queue.partitions.map((_, i) => start[i] ?? '0');
    const look = ({ index, keys }: Partition) =>
      lookOnce(index, links[index]!, keys.events, positions[index]!, blockMs, ending.signal);
    const looks = queue.partitions.map(look);
    while (!ending.signal.aborted) {
      const { index, entries } = await Promise.race(looks);
      for (const [id, fields] of entries) {
        positions[index] = id.toString();
        yield { ...readEvent(id.toString(), fields), partition: index, cursor: positions.join() };
      }
      looks[index] = look(queue.partitions[index]!);
    }
  } finally {
    signal?.removeEventListener('abort', end);
    end();
  }
}

/** Entries of the stream that are read with one call, and looked at for one job in each partition. */
const entriesPerLook = 1_000;
const maxEntriesLookedAt = 5_000;

export interface JobEvents {
  /** Oldest first. */
  events: Pick<QueueEvent, 'type' | 'atMs'>[];
  /** Entries of the stream that were looked at. */
  scanned: number;
  /** The whole stream was looked at; what it has let go is not known. */
  complete: boolean;
}

/** What the stream says about one job, looking back through its newest 5,000 entries. Nothing while no stream is kept. */
export async function readEventsOf(queue: AnyQueue, id: string): Promise<JobEvents> {
  await queue.ready();
  const found: JobEvents = { events: [], scanned: 0, complete: true };
  for (const { link, keys } of queue.partitions) {
    let before = '+';
    for (let looked = 0; ;) {
      const args = [keys.events, before, '-', 'COUNT', entriesPerLook];
      const entries = (await link.call('XREVRANGE', args)) as Entry[];
      for (const [entryId, fields] of entries) {
        const { type, atMs, jobIds } = readEvent(entryId.toString(), fields);
        if (jobIds.includes(id)) found.events.push({ type, atMs });
      }
      looked += entries.length;
      found.scanned += entries.length;
      if (entries.length < entriesPerLook) break;
      before = `(${entries.at(-1)![0].toString()}`;
      if (looked < maxEntriesLookedAt) continue;
      found.complete = false;
      break;
    }
  }
  // They were read newest first. Several may share a millisecond, and the stream knows which of them came first: so they are turned
  // round before they are sorted, which keeps the order of equals.
  return { ...found, events: found.events.toReversed().toSorted((a, b) => a.atMs - b.atMs) };
}

type Entry = [id: Buffer, fields: Buffer[]];

/** Resolves with the next events of one partition, or with none when the reading ends. Never rejects. */
async function lookOnce(
  index: number,
  link: RedisLink,
  stream: string,
  after: string,
  blockMs: number,
  ending: AbortSignal,
): Promise<{ index: number; entries: Entry[] }> {
  const args = ['COUNT', eventsPerRead, 'BLOCK', blockMs, 'STREAMS', stream, after];
  while (!ending.aborted) {
    try {
      const reply = (await link.once('XREAD', args, blockMs + hangsAfterMs)) as unknown[] | null;
      if (reply) return { index, entries: entriesOf(reply) };
    } catch {
      // Redis is away, or the reading has ended; in the first case it goes on from where it was.
      if (!ending.aborted) await pause(retryPauseMs);
    }
  }
  return { index, entries: [] };
}

/** A map in RESP3, which arrives flat, and a list of pairs in RESP2. */
function entriesOf(reply: unknown[]): Entry[] {
  return (Array.isArray(reply[0]) ? reply[0][1] : reply[1]) as Entry[];
}

/** XREAD's own "from now on" would skip what happens between two looks. */
async function lastId({ link, keys }: Partition): Promise<string> {
  const [last] = (await link.call('XREVRANGE', [keys.events, '+', '-', 'COUNT', 1])) as Entry[];
  return last ? last[0].toString() : '0';
}

function readEvent(id: string, fields: Buffer[]): Pick<QueueEvent, 'id' | 'type' | 'jobIds' | 'atMs'> {
  const values = new Map<string, string>();
  for (let i = 0; i < fields.length; i += 2) values.set(fields[i]!.toString(), fields[i + 1]!.toString());
  return {
    id,
    type: values.get('type') ?? '',
    jobIds: values.get('id')?.split(' ') ?? [],
    atMs: Number.parseInt(id, 10),
  };
}

export interface PastEvents {
  events: QueueEvent[];
  /** Behind the last of them. */
  cursor: string;
  /** Set when events may have been dropped that `after` had not seen yet: those since this time. */
  gapSinceMs?: number;
}

/** The events behind a cursor, without waiting; without one there are none, and the cursor is where the stream ends now. */
export async function eventsAfter(
  queue: AnyQueue,
  after: string | undefined,
  limit = eventsPerRead,
): Promise<PastEvents> {
  await queue.ready();
  if (after === undefined)
    return { events: [], cursor: (await Promise.all(queue.partitions.map(lastId))).join() };
  const positions = after.split(',');
  const found = await Promise.all(
    queue.partitions.map(async ({ link, keys }, i) => {
      positions[i] ??= '0';
      const position = positions[i];
      // The place itself comes along while it is there; without it nobody knows what stood behind it.
      const args = [keys.events, position === '0' ? '-' : position, '+', 'COUNT', limit + 1];
      const entries = (await link.call('XRANGE', args)) as Entry[];
      const isThere = position === '0' || String(entries[0]?.[0]) === position;
      return {
        index: i,
        entries: isThere && position !== '0' ? entries.slice(1) : entries.slice(0, limit),
        isThere,
      };
    }),
  );
  const lost = found
    .filter(({ isThere }) => !isThere)
    .map(({ index }) => Number.parseInt(positions[index]!, 10));
  const events = found.flatMap(({ index, entries }) =>
    entries.map(([id, fields]) => {
      positions[index] = id.toString();
      return { ...readEvent(id.toString(), fields), partition: index, cursor: positions.join() };
    }),
  );
  // A stream that is gone begins anew.
  for (const { index, entries, isThere } of found)
    if (!isThere && entries.length === 0) positions[index] = '0';
  return { events, cursor: positions.join(), ...(lost.length > 0 && { gapSinceMs: Math.min(...lost) }) };
}
