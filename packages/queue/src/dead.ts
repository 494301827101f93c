// The dead letters of a queue: read, repair, run again, give up, export.
//
// Nothing is dropped unless `retain` says so. A letter stays where its job was, and three indexes are kept with every burial:
// all letters by time of death, the letters of each cause by time of death, and the number of letters per cause. So a page of
// a list and the most frequent causes cost the same for a hundred letters and for a hundred thousand.
//
// Reading goes by place, never by offset: a place is (time of death, partition, id), and the next page is what lies behind
// it, however many letters came and went meanwhile. That makes a cursor a short text, also for a queue of many partitions.
//
// Replay and discard are operations. Each begins by writing down the time of Redis in every partition; letters that die later
// are not its business. It then walks through its letters, oldest first, in small batches that can be paced. A process that
// dies in the middle is no harm: a run under the same name goes on where the letters are still dead, and the count, which
// is written in the step that moves a letter, counts each of them once. See operation.lua.
import { failPoint } from '@sluice/base';
import { setTimeout as wait } from 'node:timers/promises';
import { queueErrors } from './errors.js';
import { randomName } from './ids.js';
import { labelMatcher } from './labels.js';
import { DeadLetter } from './letter.js';
import type { LetterReply } from './letter.js';
import { checkCount, checkMs, checkName } from './options.js';
import { unpackJob } from './packed.js';
import type { Partition } from './partition.js';
import type { AnyQueue } from './queue.js';
import { pack } from './wire.js';

export { DeadLetter, buryDetail } from './letter.js';

/** Letters on one page of a list. */
const maxPageLetters = 1_000;
/** Letters that one call of `list` looks at, and payload bytes it reads, before it answers with what it found. */
const maxExamined = 5_000;
const maxPageBytes = 32 * 1024 * 1024;
/** Letters whose contents are read with one call. */
const lettersPerRead = 100;
const bytesPerRead = 8 * 1024 * 1024;
/** Ids that are read with one call. */
const idsPerRead = 500;
/** Letters that one call moves, which bounds how long Redis is busy with it. */
const lettersPerMove = 200;
const maxPerSecond = 1_000_000;
/** Batches per second of a paced operation: its letters trickle instead of arriving once a second. */
const batchesPerSecond = 10;
const maxGroups = 1_000;
/** Causes beyond the limit that each partition proposes: the most frequent of all may lead in none. */
const spareGroups = 100;
const expiredPerCall = 200;
const expireCallsPerSweep = 10;
/** Beyond every time of death. */
const endOfTimeMs = Number.MAX_SAFE_INTEGER;

/** Which letters are meant; every condition given must hold. */
export interface LetterFilter {
  /** Died of this cause: see {@link DeadLetters.groups}. */
  fingerprint?: string;
  /** Died at or after this time. */
  from?: Date | number;
  /** Died at or before this time. */
  to?: Date | number;
  /** A part of the name or the message of the last error. */
  text?: string;
  /** Has these labels, all of them. */
  labels?: Readonly<Record<string, string>>;
  /** Any other condition. */
  where?: (letter: DeadLetter) => boolean;
}

/** Letters by their ids, by a filter with at least one condition, or `'all'`. */
export type LetterChoice = 'all' | LetterFilter | { ids: readonly string[]; labels?: LetterFilter['labels'] };

export interface ListOptions extends LetterFilter {
  /** From the page before. */
  cursor?: string;
  /** Letters per page: 50 by default, 1,000 at most. */
  limit?: number;
}

export interface LetterPage {
  /** Newest first. */
  letters: DeadLetter[];
  /** Where the next page begins; null at the end. */
  cursor: string | null;
  /** The page was cut short by the bound on one call (5,000 letters looked at, 32 MiB read): go on with the cursor. */
  bounded: boolean;
}

/** The letters that died of one cause. */
export interface LetterGroup {
  fingerprint: string;
  /** The cause in one line. */
  title: string;
  count: number;
  /** When the oldest and the newest of the letters died. */
  firstMs: number;
  lastMs: number;
  /** How many of them died in each hour of the last day, the present hour last; when asked for. Those that were replayed do not count. */
  perHour?: number[];
}

export interface LabelledGroups {
  /** Most frequent first. */
  groups: LetterGroup[];
  /** How many letters have the labels, of those that were looked at. */
  letters: number;
  scanned: number;
  /** All letters were looked at. */
  complete: boolean;
}

export interface MoveOptions {
  /** At most this many letters per second. */
  perSecond?: number;
  /**
   * A name under which the operation can be run again: after a crash or a stop it goes on, and once it is through, running
   * it again moves nothing. Names are remembered for the last 1,000 operations.
   */
  operation?: string;
  onProgress?: (progress: { moved: number; total: number }) => void;
  /** Stops between two batches. */
  signal?: AbortSignal;
  /** Moves nothing; `total` says how many letters match. */
  dryRun?: boolean;
}

export interface MoveReport {
  /** Letters moved while this run was under way. */
  moved: number;
  /** Letters moved by the operation in all its runs, each counted once. */
  total: number;
  /** False when the signal stopped it. */
  finished: boolean;
}

export interface Retention {
  /** Letters that died longer ago are dropped. */
  maxAgeMs?: number;
  /** Of more letters than this the oldest are dropped. Each partition keeps its equal share. */
  maxCount?: number;
}

/** A letter's position in the order of deaths. */
interface Place {
  diedMs: number;
  partition: number;
  id: string;
}

interface Mourned {
  diedMs: number;
  fingerprint: string;
  title: string;
  labels: Readonly<Record<string, string>>;
}

interface Found {
  id: string;
  letter: DeadLetter | undefined;
}

export class DeadLetters {
  readonly #queue: AnyQueue;

  constructor(queue: AnyQueue) {
    this.#queue = queue;
  }

  /** A page of letters, newest first. Bounded: a rare match may take several pages, some of them empty. */
  async list(options: ListOptions = {}): Promise<LetterPage> {
    const { limit = 50 } = options;
    checkCount('limit', limit, maxPageLetters);
    const { print, fromMs, toMs, accepts, looksInside } = readFilter(options);
    let place = options.cursor === undefined ? undefined : decodeCursor(options.cursor);
    await this.#queue.ready();
    const letters: DeadLetter[] = [];
    for (let examined = 0, bytes = 0; examined < maxExamined && bytes < maxPageBytes;) {
      const asked = Math.min(lettersPerRead, looksInside ? lettersPerRead : limit - letters.length);
      const places = await this.#placesBefore(place, toMs, print, asked);
      const found = await this.#readPlaces(places);
      for (const [i, letter] of found.entries()) {
        place = places[i]!;
        if (place.diedMs < fromMs) return { letters, cursor: null, bounded: false };
        examined++;
        bytes += letter?.payload.length ?? 0;
        if (letter && accepts(letter)) letters.push(letter);
        if (letters.length === limit) return { letters, cursor: encodeCursor(place), bounded: false };
      }
      const isEnd = places.length < asked && found.length === places.length;
      if (isEnd) return { letters, cursor: null, bounded: false };
    }
    return { letters, cursor: encodeCursor(place!), bounded: true };
  }

  /** One letter, or null when there is none with this id. */
  async get(id: string): Promise<DeadLetter | null> {
    await this.#queue.ready();
    const likely = this.#queue.partitionNamed(id);
    // A group or a unique key may have chosen another partition than the id points to.
    for (const partition of [likely, ...this.#queue.partitions.filter((other) => other !== likely)]) {
      const { letters } = await readLetters(partition, [id]);
      if (letters[0]) return letters[0];
    }
    return null;
  }

  /** How many letters there are. */
  async count(): Promise<number> {
    await this.#queue.ready();
    const counts = this.#queue.partitions.map(({ link, keys }) => link.call('ZCARD', [keys.dead]));
    return sum((await Promise.all(counts)).map(Number));
  }

  /**
   * The causes of death, most frequent first. Takes no longer when more letters died. With `trend` each says how many of its letters died
   * in which hour of the last day.
   */
  async groups(options: { limit?: number; trend?: boolean } = {}): Promise<LetterGroup[]> {
    const { limit = 100, trend = false } = options;
    checkCount('limit', limit, maxGroups);
    await this.#queue.ready();
    const prints = pack(await this.#frequentCauses(limit + spareGroups));
    const replies = this.#queue.partitions.map((partition) => partition.run('causes', { prints }));
    const groups = new Map<string, LetterGroup>();
    for (const [print, title, ...numbers] of (await Promise.all(replies)).flat() as Buffer[][]) {
      const [count, firstMs, lastMs] = numbers.map(Number) as [number, number, number];
      mergeGroup(groups, { fingerprint: String(print), title: String(title), count, firstMs, lastMs });
    }
    const found = [...groups.values()].sort(byFrequency).slice(0, limit);
    if (trend) await this.#addTrends(found);
    return found;
  }

  /**
   * The causes among the newest letters that have these labels. Nobody keeps such groups, because every label would cost every burial: up
   * to 5,000 letters are looked at, and the answer says how many and whether they were all.
   */
  async groupsWith(labels: Readonly<Record<string, string>>): Promise<LabelledGroups> {
    await this.#queue.ready();
    const hasLabels = labelMatcher(labels);
    const groups = new Map<string, LetterGroup>();
    let [scanned, letters] = [0, 0];
    let place: Place | undefined;
    while (scanned < maxExamined) {
      const places = await this.#placesBefore(place, endOfTimeMs - 1, '', idsPerRead);
      scanned += places.length;
      for (const { fingerprint, title, diedMs, labels: own } of await this.#mourn(places)) {
        if (!hasLabels(own)) continue;
        letters++;
        mergeGroup(groups, { fingerprint, title, count: 1, firstMs: diedMs, lastMs: diedMs });
      }
      place = places.at(-1);
      if (places.length < idsPerRead) break;
    }
    const complete = scanned < maxExamined || scanned === (await this.count());
    return { groups: [...groups.values()].sort(byFrequency), letters, scanned, complete };
  }

  /**
   * Gives a letter other data, checked like that of a new job; its options stay. A letter that was changed since it was read
   * is refused with EDIT_CONFLICT: pass the letter that you read rather than its id to be told of changes since then.
   */
  async edit(letter: DeadLetter | string, data: unknown): Promise<void> {
    const { payload, flags } = await this.#queue.prepare(data);
    const id = typeof letter === 'string' ? letter : letter.id;
    const read = typeof letter === 'string' ? await this.get(id) : letter;
    if (!read) throw queueErrors.UNKNOWN_JOB({ queue: this.#queue.name, id });
    const replacement = read.packedWith(payload, flags);
    const answer = String(await read.partition.run('edit', { id, seen: read.packed, replacement }));
    if (answer === 'UNKNOWN') throw queueErrors.UNKNOWN_JOB({ queue: this.#queue.name, id });
    if (answer === 'CHANGED') throw queueErrors.EDIT_CONFLICT({ id });
  }

  /**
   * Gives a letter other data and replays it, in one step: both, or neither. Refused as `edit` refuses, and with UNIQUE_KEY_TAKEN while
   * another job holds its unique key.
   */
  async replayWith(letter: DeadLetter | string, data: unknown): Promise<void> {
    const { payload, flags } = await this.#queue.prepare(data);
    const id = typeof letter === 'string' ? letter : letter.id;
    const read = typeof letter === 'string' ? await this.get(id) : letter;
    if (!read) throw queueErrors.UNKNOWN_JOB({ queue: this.#queue.name, id });
    const { link, keys } = read.partition;
    const replacement = read.packedWith(payload, flags);
    const operation = `amend:~${randomName()}`;
    const answer = String(
      await read.partition.run('amend', { operation, id, seen: read.packed, replacement }),
    );
    // Nobody comes back to it. What cannot be removed now is forgotten with the oldest.
    await link.call('HDEL', [keys.replays, operation], { deadlineMs: 1_000 }).catch(() => {});
    if (answer === 'UNKNOWN') throw queueErrors.UNKNOWN_JOB({ queue: this.#queue.name, id });
    if (answer === 'CHANGED') throw queueErrors.EDIT_CONFLICT({ id });
    if (answer === 'TAKEN') throw queueErrors.UNIQUE_KEY_TAKEN({ id });
  }

  /**
   * Letters become waiting jobs again, oldest first, with fresh attempts and their history. A letter whose unique key another
   * job holds stays dead.
   */
  replay(choice: LetterChoice, options: MoveOptions = {}): Promise<MoveReport> {
    return this.#move('replay', choice, options);
  }

  /** Letters are given up for good; they count as cancelled. */
  discard(choice: LetterChoice, options: MoveOptions = {}): Promise<MoveReport> {
    return this.#move('discard', choice, options);
  }

  /** How many letters an operation has moved so far, in all its runs; 0 when nobody remembers it. */
  async movedBy(kind: 'replay' | 'discard', operation: string): Promise<number> {
    await this.#queue.ready();
    const name = `${kind}:${operation}`;
    const records = await Promise.all(
      this.#queue.partitions.map(({ link, keys }) => link.call('HGET', [keys.replays, name])),
    );
    return sum(records.map((record) => Number(/^\d+ (\d+)$/.exec(String(record))?.[1] ?? 0)));
  }

  /** Every letter chosen, oldest first within each partition. `JSON.stringify` of a letter loses nothing. */
  async *export(choice: LetterChoice = 'all'): AsyncGenerator<DeadLetter, void, undefined> {
    checkChoice(choice);
    await this.#queue.ready();
    for (const partition of this.#queue.partitions) {
      for await (const batch of find(partition, choice, endOfTimeMs, true)) {
        for (const { letter } of batch) if (letter) yield letter;
      }
    }
  }

  /** Lets old letters go: workers drop them within seconds. Stored with the queue; null keeps everything again. */
  async retain(retention: Retention | null): Promise<void> {
    const { maxAgeMs, maxCount } = retention ?? {};
    if (maxAgeMs !== undefined) checkMs('maxAgeMs', maxAgeMs);
    if (maxCount !== undefined) checkCount('maxCount', maxCount, Number.MAX_SAFE_INTEGER);
    await this.#queue.ready();
    const { partitions } = this.#queue;
    const share = maxCount === undefined ? {} : { maxCount: Math.ceil(maxCount / partitions.length) };
    const stored = { ...(maxAgeMs === undefined ? {} : { maxAgeMs }), ...share };
    for (const { link, keys } of partitions) {
      if (Object.keys(stored).length === 0) await link.call('HDEL', [keys.cfg, 'retention']);
      else await link.call('HSET', [keys.cfg, 'retention', JSON.stringify(stored)]);
    }
  }

  /** @internal Drops what the retention lets go, a bounded number per call. Workers call it every few seconds. */
  async sweep(partitions: readonly Partition[] = this.#queue.partitions): Promise<number> {
    let dropped = 0;
    for (const partition of partitions) {
      for (let calls = 0; calls < expireCallsPerSweep; calls++) {
        const count = Number(await partition.run('expire', { limit: expiredPerCall }));
        dropped += count;
        if (count < expiredPerCall) break;
      }
    }
    return dropped;
  }

  async #mourn(places: readonly Place[]): Promise<Mourned[]> {
    const replies = this.#queue.partitions.map(async (partition) => {
      const ids = places.filter((place) => place.partition === partition.index).map(({ id }) => id);
      if (ids.length === 0) return [];
      return (await partition.run('mourn', { ids: pack(ids) })) as Buffer[][];
    });
    return (await Promise.all(replies)).flat().map(([, died, print, title, head]) => ({
      diedMs: Number(died),
      fingerprint: String(print),
      title: String(title),
      labels: unpackJob(head!).options?.m ?? {},
    }));
  }

  async #addTrends(groups: readonly LetterGroup[]): Promise<void> {
    const prints = pack(groups.map(({ fingerprint }) => fingerprint));
    const nowMs = Math.floor(this.#queue.partitions[0]!.clock.nowMs());
    const replies = await Promise.all(
      this.#queue.partitions.map((partition) => partition.run('trend', { prints, nowMs })),
    );
    for (const [i, group] of groups.entries()) {
      const parts = (replies as number[][][]).map((reply) => reply[i]!);
      group.perHour = parts[0]!.map((_, hour) => sum(parts.map((part) => part[hour]!)));
    }
  }

  async #move(script: 'replay' | 'discard', choice: LetterChoice, options: MoveOptions): Promise<MoveReport> {
    checkChoice(choice);
    const { perSecond, signal, onProgress } = options;
    if (perSecond !== undefined) checkCount('perSecond', perSecond, maxPerSecond);
    if (options.operation !== undefined) checkName('operation', options.operation);
    await this.#queue.ready();
    const { partitions } = this.#queue;
    if (options.dryRun) return { moved: 0, total: await countFound(partitions, choice), finished: true };

    const operation = `${script}:${options.operation ?? `~${randomName()}`}`;
    const run = async (partition: Partition, ids: string[]) =>
      (await partition.run(script, { operation, ids: pack(ids) })) as [moved: number, beganMs: number];
    const begun = await Promise.all(partitions.map((partition) => run(partition, [])));
    failPoint('replay.begun');
    const totals = begun.map(([moved]) => moved);
    const before = sum(totals);
    const progress = () => ({ moved: sum(totals) - before, total: sum(totals) });
    // The beginning is a whole millisecond: let it pass, so that nothing moved dies again within it.
    await wait(2);

    const pace = new Pace(perSecond, signal);
    try {
      for (const [i, partition] of partitions.entries()) {
        for await (const found of find(partition, choice, begun[i]![1], false)) {
          for (let at = 0; at < found.length; at += pace.batch) {
            const ids = found.slice(at, at + pace.batch).map(({ id }) => id);
            if (!(await pace.allows(ids.length))) return { ...progress(), finished: false };
            [totals[i]] = await run(partition, ids);
            failPoint('replay.moved');
            onProgress?.(progress());
          }
        }
      }
      return { ...progress(), finished: true };
    } finally {
      // Without a name nobody can come back to it. What cannot be removed now is forgotten with the oldest.
      if (options.operation === undefined) {
        const forget = partitions.map(({ link, keys }) =>
          link.call('HDEL', [keys.replays, operation], { deadlineMs: 1_000 }),
        );
        await Promise.allSettled(forget);
      }
    }
  }

  /** Fingerprints that lead in some partition, the most frequent of them first. */
  async #frequentCauses(limit: number): Promise<string[]> {
    const replies = this.#queue.partitions.map(({ link, keys }) =>
      link.call('ZRANGE', [keys.deadGroups, 0, limit - 1, 'REV', 'WITHSCORES']),
    );
    const counts = new Map<string, number>();
    for (const [print, count] of (await Promise.all(replies)).flat() as [Buffer, Buffer][]) {
      counts.set(String(print), (counts.get(String(print)) ?? 0) + Number(count));
    }
    return [...counts.keys()].sort((a, b) => counts.get(b)! - counts.get(a)!).slice(0, limit);
  }

  /** The next places of all partitions in one order: newest first, then by partition, then by id. */
  async #placesBefore(
    place: Place | undefined,
    toMs: number,
    print: string,
    limit: number,
  ): Promise<Place[]> {
    const pages = await Promise.all(
      this.#queue.partitions.map((partition) => {
        if (!place || place.diedMs > toMs) return readPlaces(partition, print, toMs + 1, '', 'newest', limit);
        // Of the deaths in the place's own millisecond, those in earlier partitions have been shown, those in later ones not.
        const atMs = partition.index > place.partition ? place.diedMs + 1 : place.diedMs;
        return readPlaces(
          partition,
          print,
          atMs,
          partition.index === place.partition ? place.id : '',
          'newest',
          limit,
        );
      }),
    );
    return pages
      .flat()
      .sort((a, b) => b.diedMs - a.diedMs || a.partition - b.partition)
      .slice(0, limit);
  }

  /** The letters at these places, undefined where one has gone; only as many as are not too large together. */
  async #readPlaces(places: readonly Place[]): Promise<(DeadLetter | undefined)[]> {
    const read = new Map<Place, DeadLetter | undefined>();
    await Promise.all(
      this.#queue.partitions.map(async (partition) => {
        const here = places.filter((place) => place.partition === partition.index);
        const { looked, letters } = await readLetters(
          partition,
          here.map(({ id }) => id),
        );
        const byId = new Map(letters.map((letter) => [letter.id, letter]));
        for (const place of here.slice(0, looked)) read.set(place, byId.get(place.id));
      }),
    );
    const unread = places.findIndex((place) => !read.has(place));
    return places.slice(0, unread === -1 ? places.length : unread).map((place) => read.get(place));
  }
}

/** Walks through one partition's letters that are meant and died until then, oldest first, in batches. */
async function* find(
  partition: Partition,
  choice: LetterChoice,
  untilMs: number,
  withLetters: boolean,
): AsyncGenerator<Found[], void, undefined> {
  const filter = readFilter(choice === 'all' ? {} : choice);
  const byIds = typeof choice === 'object' && 'ids' in choice;
  const pages = byIds ? pagesOfIds(partition, choice.ids) : pagesOfDeaths(partition, filter, untilMs);
  for await (const ids of pages) {
    if (!withLetters && !filter.looksInside) {
      yield ids.map((id) => ({ id, letter: undefined }));
      continue;
    }
    for (let at = 0; at < ids.length;) {
      const { looked, letters } = await readLetters(partition, ids.slice(at, at + lettersPerRead));
      yield letters.filter((letter) => filter.accepts(letter)).map((letter) => ({ id: letter.id, letter }));
      at += looked;
    }
  }
}

async function* pagesOfDeaths(
  partition: Partition,
  filter: ReadyFilter,
  untilMs: number,
): AsyncGenerator<string[]> {
  const lastMs = Math.min(filter.toMs, untilMs);
  for (let at = { diedMs: filter.fromMs, id: '' }; ;) {
    const page = await readPlaces(partition, filter.print, at.diedMs, at.id, 'oldest', idsPerRead);
    const ids = page.filter(({ diedMs }) => diedMs <= lastMs).map(({ id }) => id);
    if (ids.length > 0) yield ids;
    if (ids.length < idsPerRead) return;
    at = page[page.length - 1]!;
  }
}

/** Those of the ids that are dead letters of this partition. */
async function* pagesOfIds(partition: Partition, wanted: readonly string[]): AsyncGenerator<string[]> {
  const ids = [...new Set(wanted)];
  for (let at = 0; at < ids.length; at += idsPerRead) {
    const page = ids.slice(at, at + idsPerRead);
    const deaths = (await partition.link.call('ZMSCORE', [
      partition.keys.dead,
      ...page,
    ])) as (Buffer | null)[];
    yield page.filter((_, i) => deaths[i] !== null);
  }
}

async function countFound(partitions: readonly Partition[], choice: LetterChoice): Promise<number> {
  let count = 0;
  for (const partition of partitions) {
    for await (const found of find(partition, choice, endOfTimeMs, false)) count += found.length;
  }
  return count;
}

async function readPlaces(
  partition: Partition,
  print: string,
  atMs: number,
  atId: string,
  order: 'newest' | 'oldest',
  limit: number,
): Promise<Place[]> {
  const reply = (await partition.run('deaths', { print, atMs, atId, order, limit })) as Buffer[];
  return pairs(reply).map(([id, diedMs]) => ({ id, diedMs, partition: partition.index }));
}

/** Reads letters until they become too much for one answer; `looked` says how many of the ids that were. */
async function readLetters(
  partition: Partition,
  ids: readonly string[],
): Promise<{ looked: number; letters: DeadLetter[] }> {
  if (ids.length === 0) return { looked: 0, letters: [] };
  const reply = await partition.run('letters', { ids: pack([...ids]), maxBytes: bytesPerRead });
  const [looked, ...found] = reply as [number, ...LetterReply[]];
  return { looked, letters: found.map((letter) => new DeadLetter(partition, letter)) };
}

/** Lets batches through at a steady rate. */
class Pace {
  readonly batch: number;
  readonly #perSecond: number;
  readonly #signal: AbortSignal | undefined;
  readonly #startMs = performance.now();
  #passed = 0;

  constructor(perSecond: number | undefined, signal: AbortSignal | undefined) {
    this.#perSecond = perSecond ?? Infinity;
    this.#signal = signal;
    this.batch = Math.max(1, Math.min(lettersPerMove, Math.floor(this.#perSecond / batchesPerSecond)));
  }

  /** Waits for the turn of so many letters; false when the signal fired. */
  async allows(count: number): Promise<boolean> {
    const leftMs = this.#startMs + (this.#passed * 1_000) / this.#perSecond - performance.now();
    this.#passed += count;
    if (leftMs > 0)
      await wait(leftMs, undefined, this.#signal ? { signal: this.#signal } : {}).catch(() => {});
    return !this.#signal?.aborted;
  }
}

interface ReadyFilter {
  print: string;
  fromMs: number;
  toMs: number;
  /** Whether a letter must be read to know. */
  looksInside: boolean;
  accepts: (letter: DeadLetter) => boolean;
}

function readFilter({ fingerprint, from, to, text, labels, where }: LetterFilter): ReadyFilter {
  const hasLabels = labelMatcher(labels);
  return {
    print: fingerprint ?? '',
    fromMs: readTime('from', from, 0),
    toMs: readTime('to', to, endOfTimeMs - 1),
    looksInside: text !== undefined || labels !== undefined || where !== undefined,
    accepts: (letter) => {
      const { name, message } = letter.error;
      if (!hasLabels(letter.labels)) return false;
      if (text !== undefined && !name.includes(text) && !message.includes(text)) return false;
      return where === undefined || where(letter);
    },
  };
}

function readTime(option: string, value: Date | number | undefined, otherwise: number): number {
  if (value === undefined) return otherwise;
  const timeMs = Math.floor(Number(value));
  if (!Number.isSafeInteger(timeMs))
    throw queueErrors.OPTION_INVALID({ option, value, allowed: 'a valid date' });
  return Math.min(Math.max(timeMs, 0), endOfTimeMs - 1);
}

/** A filter whose conditions all turned out undefined is more likely a mistake than a wish to discard everything. */
function checkChoice(choice: LetterChoice): void {
  if (choice === 'all') return;
  const conditions = ['ids', 'fingerprint', 'from', 'to', 'text', 'labels', 'where'] as const;
  const given = choice as Partial<Record<(typeof conditions)[number], unknown>>;
  if (conditions.some((name) => given[name] !== undefined)) return;
  throw queueErrors.OPTION_INVALID({
    option: 'filter',
    value: 'without a condition',
    allowed: `"all", or have one of ${conditions.join(', ')}`,
  });
}

function encodeCursor({ diedMs, partition, id }: Place): string {
  return Buffer.from(`${diedMs} ${partition} ${id}`).toString('base64url');
}

function decodeCursor(cursor: string): Place {
  const match = /^(\d+) (\d+) (.+)$/.exec(Buffer.from(cursor, 'base64url').toString());
  if (!match)
    throw queueErrors.OPTION_INVALID({ option: 'cursor', value: cursor, allowed: 'that of the page before' });
  return { diedMs: Number(match[1]), partition: Number(match[2]), id: match[3]! };
}

function byFrequency(a: LetterGroup, b: LetterGroup): number {
  return b.count - a.count || b.lastMs - a.lastMs;
}

function mergeGroup(groups: Map<string, LetterGroup>, part: LetterGroup): void {
  const known = groups.get(part.fingerprint);
  if (!known) {
    groups.set(part.fingerprint, part);
    return;
  }
  known.count += part.count;
  known.firstMs = Math.min(known.firstMs, part.firstMs);
  known.lastMs = Math.max(known.lastMs, part.lastMs);
}

function pairs(reply: readonly Buffer[]): [string, number][] {
  return Array.from({ length: reply.length / 2 }, (_, i) => [String(reply[2 * i]), Number(reply[2 * i + 1])]);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
