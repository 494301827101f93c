// What the books say: about one job, about all of them, about the last minutes. Nothing here changes anything.
//
// Counts are derived, not kept: every job that has not ended is in the `jobs` hash, and all states but "waiting" have a
// size that Redis knows, so waiting is what remains. (Keeping counters would cost every job a few microseconds.)
//
// Latencies are kept as histograms whose buckets double: 0 ms, 1 ms, 2–3 ms, 4–7 ms, … up to a day. A worker counts in
// memory (LatencyTally) and adds its counts to the minute's hash once a second, so a job costs two additions.
//
// A result is stored as bytes: nothing for `undefined`, 'b' and the bytes for a Uint8Array, 'j' and JSON for the rest. In
// the `results` hash one more letter stands before it: d for done, c for cancelled. The labels of a job that ended lie beside it.
import { setTimeout as pause } from 'node:timers/promises';
import { parseRef } from './chain.js';
import { queueErrors } from './errors.js';
import type { ErrorDescription } from './fingerprint.js';
import { decodeAttempt } from './history.js';
import type { AttemptRecord } from './history.js';
import type { JobRef } from './options.js';
import { decodePayload, payloadOf, readCreatedMs, unpackJob } from './packed.js';
import type { Partition } from './partition.js';
import type { AnyQueue } from './queue.js';
import type { WireValue } from './wire.js';

const minuteMs = 60_000;
/** stats:<minute> hashes live a little longer than a day. */
const maxMinutes = 24 * 60;
const firstPollMs = 20;
const slowestPollMs = 500;

export type JobState = 'waiting' | 'delayed' | 'blocked' | 'active' | 'done' | 'dead' | 'cancelled';

export interface JobView<Data = unknown, Result = unknown> {
  id: string;
  state: JobState;
  /** Absent once the job has ended, or when it cannot be decoded. */
  data?: Data;
  /** The payload as it is stored. */
  payload?: Buffer;
  /** The run that it is in or waits for; the last one of a dead job. Absent once it has ended. */
  attempt?: number;
  crashes?: number;
  priority?: number;
  createdMs?: number;
  /** Delayed: when it becomes due. */
  dueMs?: number;
  /** Active: who holds it, and the fencing token. */
  session?: string;
  token?: string;
  progress?: unknown;
  result?: Result;
  /** Dead: what it died of. */
  error?: ErrorDescription;
  /** Blocked by a chain: what it still waits for. */
  waitsFor: JobRef[];
  /** Attempts that failed: the first and the last 19. */
  attempts: AttemptRecord[];
  logs: string[];
  labels: Readonly<Record<string, string>>;
  group?: string;
}

export interface QueueCounts {
  waiting: number;
  delayed: number;
  blocked: number;
  active: number;
  dead: number;
  /** Ended jobs that are still remembered, done and cancelled. */
  done: number;
  workers: number;
  /** Foreign messages that were not taken yet; part of `waiting`. */
  inbox: number;
  /** Cancelled jobs whose ids still stand in a list; no state, but memory. */
  tombstones: number;
  /** How long ago the oldest waiting job was added; 0 when none waits. */
  oldestWaitingMs: number;
  /** When the next delayed job is due; absent when there is none. */
  nextDueMs?: number;
  /** Waiting jobs without a group, by priority 0–5. */
  byPriority: number[];
}

export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

export interface MinuteStats {
  minuteMs: number;
  done: number;
  dead: number;
  cancelled: number;
  /** Attempts that failed and will be repeated. */
  failed: number;
  /** From the add to the start of the handler; null when nothing ran. */
  waitMs: Percentiles | null;
  runMs: Percentiles | null;
}

type LookReply = [
  ...[state: Buffer, packed: Buffer, dueMs: number, session: Buffer, token: Buffer, progress: Buffer],
  ...[result: Buffer, detail: Buffer, refs: Buffer[], tries: Buffer[], logs: Buffer[], labels: Buffer],
];

/** Asks one partition after the other; the likeliest should come first. */
export async function lookAtJob<Data = unknown, Result = unknown>(
  partitions: readonly Partition[],
  id: string,
): Promise<JobView<Data, Result> | null> {
  for (const partition of partitions) {
    const reply = (await partition.run('look', { id })) as LookReply;
    if (reply[0].length > 0) return readView<Data, Result>(id, reply);
  }
  return null;
}

/** Who waits for a job, as the job's own partition knows it. */
export async function readDependents(partitions: readonly Partition[], id: string): Promise<JobRef[]> {
  for (const { link, keys } of partitions) {
    const list = (await link.call('HGET', [keys.dependents, id])) as Buffer | null;
    if (!list) continue;
    const refs = (JSON.parse(list.toString()) as string[]).map(parseRef);
    return refs.map(({ queue, id: waiting }) => ({ queue, id: waiting }));
  }
  return [];
}

export async function countJobs(partitions: readonly Partition[]): Promise<QueueCounts> {
  const all = await Promise.all(partitions.map(countPartition));
  const sum = (pick: (counts: QueueCounts) => number) =>
    all.reduce((total, counts) => total + pick(counts), 0);
  const due = all.flatMap((counts) => counts.nextDueMs ?? []);
  return {
    waiting: sum((c) => c.waiting),
    delayed: sum((c) => c.delayed),
    blocked: sum((c) => c.blocked),
    active: sum((c) => c.active),
    dead: sum((c) => c.dead),
    done: sum((c) => c.done),
    // A worker holds one session in every partition.
    workers: Math.max(...all.map((c) => c.workers)),
    inbox: sum((c) => c.inbox),
    tombstones: sum((c) => c.tombstones),
    oldestWaitingMs: Math.max(...all.map((c) => c.oldestWaitingMs)),
    ...(due.length > 0 && { nextDueMs: Math.min(...due) }),
    byPriority: [0, 1, 2, 3, 4, 5].map((priority) => sum((c) => c.byPriority[priority]!)),
  };
}

/** Resolves with a job's result; rejects when it dies, is cancelled, is not known, or takes too long. */
export async function waitForEnd<Result = unknown>(
  queue: AnyQueue,
  id: string,
  timeoutMs: number,
): Promise<Result> {
  const ref = { queue: queue.name, id };
  const likely = queue.partitionNamed(id);
  // Once the job was found, only its own partition is asked.
  let places = [likely, ...queue.partitions.filter((partition) => partition !== likely)];
  const end = performance.now() + timeoutMs;
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 2, slowestPollMs)) {
    const { word, result, place } = await ask(places, id);
    if (word === 'done') return decodeResult(result.subarray(1)) as Result;
    if (word === 'cancelled') throw queueErrors.JOB_CANCELLED(ref);
    if (word === 'dead') throw queueErrors.JOB_DEAD({ ...ref, reason: await reasonOf([place], id) });
    if (word === 'UNKNOWN') throw queueErrors.UNKNOWN_JOB(ref);
    places = [place];
    const leftMs = end - performance.now();
    if (leftMs <= 0) throw queueErrors.RESULT_TIMEOUT({ ...ref, waitedMs: timeoutMs });
    await pause(Math.min(pollMs, leftMs));
  }
}

/** The last minutes by the clock of Redis, oldest first; the present one is last and not over. */
export async function readMinutes(partitions: readonly Partition[], last: number): Promise<MinuteStats[]> {
  const count = Math.max(1, Math.min(Math.floor(last), maxMinutes));
  const present = Math.floor(partitions[0]!.clock.nowMs() / minuteMs);
  return Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const minute = present - count + 1 + i;
      const parts = await Promise.all(partitions.map((partition) => readMinute(partition, minute)));
      return summarise(minute, parts);
    }),
  );
}

/** The form in which a result is stored. Throws what JSON.stringify throws. */
export function encodeResult(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return Buffer.concat([Buffer.from('b'), value]);
  // A function or a symbol has no JSON form; like undefined it leaves nothing.
  const json = JSON.stringify(value) as string | undefined;
  return json === undefined ? Buffer.alloc(0) : Buffer.from(`j${json}`);
}

export function decodeResult(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  const body = bytes.subarray(1);
  return bytes[0] === 0x62 /* b */ ? body : (JSON.parse(body.toString()) as unknown);
}

const buckets = 28;
const lastBucket = buckets - 1;
/** From here on everything is in the last bucket: about 18.6 hours. */
const lastBucketMs = 2 ** (lastBucket - 1);

/** Counts waiting and running times in memory until they are taken to Redis. */
export class LatencyTally {
  readonly #waits = new Uint32Array(buckets);
  readonly #runs = new Uint32Array(buckets);
  isEmpty = true;

  record(waitMs: number, runMs: number): void {
    this.isEmpty = false;
    this.#waits[bucketOf(waitMs)]!++;
    this.#runs[bucketOf(runMs)]!++;
  }

  /** What was counted since the last time, as tally.lua wants it. */
  take(): WireValue | undefined {
    const counts: WireValue[] = [];
    for (let i = 0; i < buckets; i++) {
      if (this.#waits[i]! > 0) counts.push(`w${i}`, this.#waits[i]!);
      if (this.#runs[i]! > 0) counts.push(`r${i}`, this.#runs[i]!);
    }
    if (counts.length === 0) return undefined;
    this.isEmpty = true;
    this.#waits.fill(0);
    this.#runs.fill(0);
    return counts;
  }
}

/** Bucket 0 is less than 1 ms; bucket n begins at 2^(n−1) ms. Clocks may differ a little, so a time may be negative. */
function bucketOf(ms: number): number {
  if (ms < 1) return 0;
  return ms < lastBucketMs ? 32 - Math.clz32(ms) : lastBucket;
}

function readView<Data, Result>(id: string, reply: LookReply): JobView<Data, Result> {
  const [state, packed, dueMs, session, token, progress, result, detail, refs, tries, logs, labels] = reply;
  const attempts = tries.map((text) => decodeAttempt(text.toString()));
  const view: JobView<Data, Result> = {
    id,
    state: state.toString() as JobState,
    waitsFor: refs.map((ref) => parseRef(ref.toString())).map(({ queue, id }) => ({ queue, id })),
    attempts,
    logs: logs.map(String),
    labels: labels.length > 0 ? (JSON.parse(labels.toString()) as Record<string, string>) : {},
  };
  if (packed.length > 0) describeStored(view, packed);
  if (dueMs > 0) view.dueMs = dueMs;
  if (session.length > 0) {
    view.session = session.toString();
    view.token = token.toString();
  }
  if (progress.length > 0) view.progress = JSON.parse(progress.toString()) as unknown;
  if (result.length > 1) view.result = decodeResult(result.subarray(1)) as Result;
  if (view.state === 'dead') view.error = readError(detail, attempts);
  return view;
}

function describeStored<Data>(view: JobView<Data>, packed: Buffer): void {
  const stored = unpackJob(packed);
  view.payload = payloadOf(stored);
  view.attempt = stored.attempts + 1;
  view.crashes = stored.crashes;
  view.priority = stored.priority;
  view.createdMs = stored.createdMs;
  view.labels = stored.options?.m ?? {};
  if (stored.options?.g !== undefined) view.group = stored.options.g;
  try {
    view.data = decodePayload(stored) as Data;
  } catch {
    // A malformed payload is shown as the bytes that it is.
  }
}

/** A dead letter's details are written by the worker; the last attempt says the same, should they be unreadable. */
function readError(detail: Buffer, attempts: AttemptRecord[]): ErrorDescription {
  const { name = 'unreadable', message = '', stack = '' } = attempts.at(-1) ?? {};
  try {
    const stored = JSON.parse(detail.toString()) as Partial<ErrorDescription>;
    return {
      name: stored.name ?? name,
      message: stored.message ?? message,
      stack: stored.stack ?? stack,
    };
  } catch {
    return { name, message, stack };
  }
}

type CountReply = [
  ...[nowMs: number, jobs: number, lengths: number[], due: number, delayed: number, suspects: number],
  ...[inbox: number, blocked: number, held: number, tombstones: number, active: number, sessions: number],
  ...[dead: number, ended: number, heads: Buffer[], nextDueMs: number],
];

async function countPartition(partition: Partition): Promise<QueueCounts> {
  const reply = (await partition.run('count', {})) as CountReply;
  const [nowMs, jobs, lengths, , delayed, , inbox, chained, held, tombstones, active, workers, dead, ended] =
    reply;
  const [heads, nextDueMs] = [reply[14], reply[15]];
  partition.clock.observe(nowMs);
  const oldest = Math.min(...heads.map((header) => readCreatedMs(header)));
  return {
    waiting: jobs - tombstones - delayed - chained - held - active - dead + inbox,
    delayed,
    blocked: chained + held,
    active,
    dead,
    done: ended,
    workers,
    inbox,
    tombstones,
    oldestWaitingMs: heads.length > 0 ? Math.max(0, nowMs - oldest) : 0,
    // Time 0 means "at once", which is not a time to show.
    ...(nextDueMs > 0 && { nextDueMs }),
    byPriority: lengths,
  };
}

async function ask(places: readonly Partition[], id: string) {
  let answer: { word: string; result: Buffer; place: Partition } = {
    word: 'UNKNOWN',
    result: Buffer.alloc(0),
    place: places[0]!,
  };
  for (const place of places) {
    const [word, result] = (await place.run('ask', { id })) as [Buffer, Buffer];
    answer = { word: word.toString(), result, place };
    if (answer.word !== 'UNKNOWN') break;
  }
  return answer;
}

async function reasonOf(places: readonly Partition[], id: string): Promise<string> {
  const error = (await lookAtJob(places, id))?.error;
  return error ? `${error.name}: ${error.message}` : 'the reason is not known any more';
}

async function readMinute(partition: Partition, minute: number): Promise<Map<string, number>> {
  const fields = (await partition.link.call('HGETALL', [`${partition.keys.stats}${minute}`])) as Buffer[];
  const counts = new Map<string, number>();
  for (let i = 0; i < fields.length; i += 2) counts.set(fields[i]!.toString(), Number(fields[i + 1]));
  return counts;
}

function summarise(minute: number, parts: Map<string, number>[]): MinuteStats {
  const total = (field: string) => parts.reduce((sum, part) => sum + (part.get(field) ?? 0), 0);
  const histogram = (letter: string) => Array.from({ length: buckets }, (_, i) => total(`${letter}${i}`));
  return {
    minuteMs: minute * minuteMs,
    done: total('done'),
    dead: total('dead'),
    cancelled: total('cancelled'),
    failed: total('failed'),
    waitMs: percentiles(histogram('w')),
    runMs: percentiles(histogram('r')),
  };
}

function percentiles(histogram: number[]): Percentiles | null {
  const total = histogram.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  return {
    p50: quantile(histogram, total * 0.5),
    p95: quantile(histogram, total * 0.95),
    p99: quantile(histogram, total * 0.99),
  };
}

/** Within its bucket the times are taken to be spread evenly. */
function quantile(histogram: number[], rank: number): number {
  let before = 0;
  for (let i = 0; i < buckets; i++) {
    const count = histogram[i]!;
    if (before + count >= rank && count > 0) {
      const from = i === 0 ? 0 : 2 ** (i - 1);
      const width = i === 0 ? 1 : from;
      return Math.round(from + (width * (rank - before)) / count);
    }
    before += count;
  }
  return lastBucketMs;
}
