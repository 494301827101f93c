// Looking through the jobs of a queue by state, and through their payloads, at a bounded cost.
//
// There is no list of all jobs, because keeping one would cost every job. But each state has its shelves: lists, hashes and sorted
// sets that hold ids. Browsing walks along the shelves of the states asked for, partition by partition, reads the jobs it finds there
// and keeps those that match. A page ends when it is full or when so many jobs and bytes were looked at; then it says how many that
// were and where to go on, so a rare match in millions of jobs costs many small calls and never a large one.
//
// Jobs move while somebody browses. One that changes its shelf between two pages may be seen twice or not at all; one that stays is
// seen.
import { queueErrors } from './errors.js';
import type { JobState } from './inspect.js';
import { checkCount } from './options.js';
import { decodePayload, payloadOf, unpackJob } from './packed.js';
import type { Partition } from './partition.js';
import { pack } from './wire.js';

const maxPageJobs = 1_000;
/** Jobs that one call looks at, and payload bytes it reads, before it answers with what it found. */
const maxExamined = 5_000;
const maxPageBytes = 32 * 1024 * 1024;
const idsPerShelfPage = 100;
const bytesPerRead = 8 * 1024 * 1024;
/** Shelf pages of one call: shelves may be many and empty. */
const maxShelfPages = 500;
const jobsPerBale = 16;
const endOfTimeMs = Number.MAX_SAFE_INTEGER;

export interface JobGlance<Data = unknown> {
  id: string;
  state: JobState;
  /** Absent once the job has ended, or when it cannot be decoded. */
  data?: Data;
  payload?: Buffer;
  attempt?: number;
  crashes?: number;
  priority?: number;
  createdMs?: number;
  /** Delayed: when it becomes due. Dead: when it died. Done and cancelled: until when it is remembered. */
  atMs?: number;
  labels: Readonly<Record<string, string>>;
  group?: string;
}

export interface BrowseOptions<Data = unknown> {
  /** All of them when absent. */
  states?: readonly JobState[];
  /** Keeps the jobs for which it is true. */
  where?: (job: JobGlance<Data>) => boolean;
  /** From the page before; to be used with the same states. */
  cursor?: string;
  /** Jobs per page: 50 by default, 1,000 at most. A page may exceed it by the rest of a bale. */
  limit?: number;
  /** Jobs that may be looked at for this page: 5,000 by default and at most. */
  maxScanned?: number;
}

export interface JobPage<Data = unknown> {
  items: JobGlance<Data>[];
  /** How many jobs were looked at. */
  scanned: number;
  /** Nothing was left out: the shelves were walked to their end, and no group was cut short. */
  complete: boolean;
  /** Where the next page begins; null at the end. */
  cursor: string | null;
}

type Shelf =
  | 'active'
  | `wait${0 | 1 | 2 | 3 | 4 | 5}`
  | 'suspects'
  | 'ready'
  | 'due'
  | OrderedShelf
  | 'held'
  | 'blocked';
type OrderedShelf = 'delayed' | 'dead' | 'ended';

const shelvesOf: Record<JobState, readonly Shelf[]> = {
  active: ['active'],
  waiting: ['wait0', 'wait1', 'wait2', 'wait3', 'wait4', 'wait5', 'suspects', 'ready', 'due'],
  delayed: ['delayed'],
  blocked: ['blocked', 'held'],
  dead: ['dead'],
  done: ['ended'],
  cancelled: ['ended'],
};
const allStates = Object.keys(shelvesOf) as JobState[];

/** Where a walk stands: a partition, a shelf, a position on it, and whether something was left out before. */
interface Stand {
  partition: number;
  shelf: number;
  at: string;
  cut: boolean;
}

interface Stop {
  state: JobState;
  shelf: Shelf;
}

export async function browseJobs<Data>(
  partitions: readonly Partition[],
  options: BrowseOptions<Data>,
): Promise<JobPage<Data>> {
  const { limit = 50, maxScanned = maxExamined, states = allStates, where = () => true } = options;
  checkCount('limit', limit, maxPageJobs);
  checkCount('maxScanned', maxScanned, maxExamined);
  const stops = stopsOf(states);
  let stand: Stand | undefined = readCursor(options.cursor, partitions.length, stops);
  const page: JobPage<Data> = { items: [], scanned: 0, complete: false, cursor: null };
  let [bytes, pages] = [0, 0];
  let cut = stand.cut;
  while (stand) {
    const full = page.items.length >= limit || page.scanned >= maxScanned;
    if (full || bytes >= maxPageBytes || pages >= maxShelfPages) {
      return { ...page, cursor: writeCursor({ ...stand, cut }) };
    }
    const partition: Partition = partitions[stand.partition]!;
    const stop = stops[stand.shelf]!;
    const room = Math.min(idsPerShelfPage, limit - page.items.length, maxScanned - page.scanned);
    const found = await readShelf(partition, stop.shelf, stand.at, Math.max(1, room));
    pages++;
    cut ||= found.cut;
    for await (const glance of readGlances<Data>(partition, found.entries, stop)) {
      page.scanned++;
      bytes += glance?.payload?.length ?? 0;
      if (glance && states.includes(glance.state) && where(glance)) page.items.push(glance);
    }
    stand = following(stand, found.next, partitions.length, stops.length);
  }
  return { ...page, complete: !cut };
}

interface ShelfPage {
  entries: { id: string; atMs?: number }[];
  next: string;
  cut: boolean;
}

async function readShelf(partition: Partition, shelf: Shelf, at: string, limit: number): Promise<ShelfPage> {
  if (shelf === 'due' || shelf === 'delayed' || shelf === 'dead' || shelf === 'ended') {
    return readOrdered(partition, shelf, at, limit);
  }
  // An entry of a list may be a bale.
  const entries = shelf.startsWith('wait') ? Math.ceil(limit / jobsPerBale) : limit;
  const reply = (await partition.run('browse', { shelf, at, limit: entries })) as [
    Buffer,
    number,
    ...Buffer[],
  ];
  const [next, cut, ...ids] = reply;
  return { entries: ids.map((id) => ({ id: String(id) })), next: String(next), cut: cut === 1 };
}

/** Sorted sets by place (score and id), as dead letters are read: soonest first, of dead letters the newest first. */
async function readOrdered(
  partition: Partition,
  shelf: 'due' | OrderedShelf,
  at: string,
  limit: number,
): Promise<ShelfPage> {
  const nowMs = Math.floor(partition.clock.nowMs());
  const newest = shelf === 'dead';
  const start = newest ? endOfTimeMs : shelf === 'delayed' ? nowMs + 1 : 0;
  const [, atMs = String(start), atId = ''] = /^(\d+) (.*)$/.exec(at) ?? [];
  // deaths.lua reads any sorted set of ids by time; it is given ours under its name.
  const key = shelf === 'due' ? partition.keys.delayed : partition.keys[shelf];
  const reply = (await partition.runWith({ ...partition.keys, dead: key }, 'deaths', {
    print: '',
    atMs,
    atId,
    order: newest ? 'newest' : 'oldest',
    limit,
  })) as Buffer[];
  let entries = Array.from({ length: reply.length / 2 }, (_, i) => ({
    id: String(reply[2 * i]),
    atMs: Number(reply[2 * i + 1]),
  }));
  const last = entries.at(-1);
  const isEnd = entries.length < limit || (shelf === 'due' && last!.atMs > nowMs);
  if (shelf === 'due') entries = entries.filter((entry) => entry.atMs <= nowMs);
  return { entries, next: isEnd ? '' : `${last!.atMs} ${last!.id}`, cut: false };
}

type GlanceReply = [looked: number, ...[id: Buffer, packed: Buffer, ending: Buffer, labels: Buffer][]];

async function* readGlances<Data>(
  partition: Partition,
  entries: ShelfPage['entries'],
  { state, shelf }: Stop,
): AsyncGenerator<JobGlance<Data> | undefined, void, void> {
  for (let from = 0; from < entries.length;) {
    const ids = entries.slice(from).map(({ id }) => id);
    const reply = await partition.run('glance', { ids: pack(ids), maxBytes: bytesPerRead });
    const [looked, ...found] = reply as GlanceReply;
    for (const [i, [id, packed, ending, labels]] of found.entries()) {
      const { atMs } = entries[from + i]!;
      const ended = shelf === 'ended' && (String(ending) === 'c' ? 'cancelled' : 'done');
      if (packed.length === 0 && !ended) yield undefined;
      else yield glanceAt<Data>(String(id), ended || state, packed, atMs, labels);
    }
    from += looked;
  }
}

function glanceAt<Data>(
  id: string,
  state: JobState,
  packed: Buffer,
  atMs: number | undefined,
  kept: Buffer,
): JobGlance<Data> {
  const labels = kept.length > 0 ? (JSON.parse(kept.toString()) as Record<string, string>) : {};
  const glance: JobGlance<Data> = { id, state, labels, ...(atMs !== undefined && { atMs }) };
  if (packed.length === 0) return glance;
  const stored = unpackJob(packed);
  glance.payload = payloadOf(stored);
  glance.attempt = stored.attempts + 1;
  glance.crashes = stored.crashes;
  glance.priority = stored.priority;
  glance.createdMs = stored.createdMs;
  glance.labels = stored.options?.m ?? {};
  if (stored.options?.g !== undefined) glance.group = stored.options.g;
  try {
    glance.data = decodePayload(stored) as Data;
  } catch {
    // A malformed payload is shown as the bytes that it is.
  }
  return glance;
}

/** Done and cancelled jobs share a shelf, which is walked once. */
function stopsOf(states: readonly JobState[]): Stop[] {
  const stops = new Map<Shelf, Stop>();
  for (const state of states) {
    const shelves = (shelvesOf as Partial<typeof shelvesOf>)[state];
    if (!shelves) {
      throw queueErrors.OPTION_INVALID({ option: 'states', value: state, allowed: allStates.join(', ') });
    }
    for (const shelf of shelves) if (!stops.has(shelf)) stops.set(shelf, { state, shelf });
  }
  return [...stops.values()];
}

function following(
  { partition, shelf, cut }: Stand,
  next: string,
  partitions: number,
  shelves: number,
): Stand | undefined {
  if (next !== '') return { partition, shelf, at: next, cut };
  if (shelf + 1 < shelves) return { partition, shelf: shelf + 1, at: '', cut };
  return partition + 1 < partitions ? { partition: partition + 1, shelf: 0, at: '', cut } : undefined;
}

function writeCursor({ partition, shelf, at, cut }: Stand): string {
  return Buffer.from(`${partition} ${shelf} ${cut ? 1 : 0} ${at}`).toString('base64url');
}

function readCursor(cursor: string | undefined, partitions: number, stops: readonly Stop[]): Stand {
  if (cursor === undefined) return { partition: 0, shelf: 0, at: '', cut: false };
  const match = /^(\d+) (\d+) ([01]) ([^]*)$/.exec(Buffer.from(cursor, 'base64url').toString());
  const [partition, shelf, at] = [Number(match?.[1]), Number(match?.[2]), match?.[4] ?? ''];
  const stop = stops[shelf];
  if (stop && partition < partitions && (at === '' || positionOn(stop.shelf).test(at))) {
    return { partition, shelf, at, cut: match![3] === '1' };
  }
  throw queueErrors.OPTION_INVALID({ option: 'cursor', value: cursor, allowed: 'that of the page before' });
}

/** Cursors come back from outside: what Redis is asked must be a position, whatever they say. */
function positionOn(shelf: Shelf): RegExp {
  if (shelf === 'due' || shelf === 'delayed' || shelf === 'dead' || shelf === 'ended') {
    return /^\d{1,16} [^]*$/;
  }
  if (shelf === 'active') return /^\S* \d{1,20}$/;
  return shelf.startsWith('wait') || shelf === 'suspects' ? /^\d{1,12}$/ : /^\d{1,20}$/;
}
