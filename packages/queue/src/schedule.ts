// Jobs that come back: cron and every-N.
//
// A schedule is a small record in Redis (its times, its payload, its options) and an entry in a sorted set: when it ticks
// next. Whoever works on the queue sees in passing that a tick is due and fires it; nobody is in charge. Ticks are pure
// functions of time (cron.ts), so all schedulers compute the same ones, and tick.lua lets exactly one of them through: it
// adds the jobs and moves the schedule to its next tick in one step, provided that the schedule still stands at the tick that
// was seen. A crash before that step changes nothing, a crash behind it leaves nothing to do. The job's id is
// `<name>@<tick in ms>` and is remembered after its end, so that one tick never makes two jobs, also when the schedule is
// removed and set again. The time is that of Redis throughout; the clock of the scheduler does not matter.
//
// A tick that fires within two seconds of its time is on time and makes its job, whatever the policy. Beyond that the schedule
// has fallen behind (nobody worked, or Redis was away), and the policy says what becomes of all the ticks that are due:
//   skip  those that are no longer on time make no job
//   once  one job makes up for all of them, that of the latest tick (the default)
//   all   each makes its job, up to the latest thousand
//
// A schedule lives where its jobs belong: in the partition of their group or unique key, otherwise of its own name.
import { setTimeout as wait } from 'node:timers/promises';
import { failPoint, isSluiceError } from '@sluice/base';
import { checkSchedule, nextTick, ticksBetween } from './cron.js';
import type { ScheduleSpec } from './cron.js';
import { queueErrors } from './errors.js';
import { checkCount, checkName, defaultRememberMs, prepareOptions } from './options.js';
import type { AddOptions } from './options.js';
import { flag, headerBytes, writeHeader } from './packed.js';
import type { Partition } from './partition.js';
import { placesAfter } from './places.js';
import type { TimePlace } from './places.js';
import type { Queue } from './queue.js';
import { Packer, pack } from './wire.js';

/** A tick that fires later than this was missed. */
export const onTimeMs = 2_000;
/** Jobs that one schedule may make at once when it has fallen behind. */
export const maxMissedTicks = 1_000;
/** Ticks that are computed to find the latest ones. */
const maxComputedTicks = 20_000;
const schedulesPerLook = 100;
const looksPerRun = 100;
const bytesPerTick = 8 * 1024 * 1024;
/** How long a schedule that this version cannot read is left to others. */
const unreadablePauseMs = 3_600_000;
/** A full Redis is not asked again at once. */
const fullPauseMs = 500;
/** An id is remembered at least this long, so that setting a schedule again cannot repeat a tick. */
const minRememberMs = 60_000;
/** The id of a job is the name, an @ and 13 digits or more; an id has at most 256 bytes. */
const maxNameBytes = 200;
const maxPageSchedules = 1_000;

export type MissedPolicy = 'skip' | 'once' | 'all';

/** What a scheduled job may have: all that a job can but an id, a time of its own, and dependencies. */
export type ScheduledJobOptions = Omit<
  AddOptions,
  'id' | 'delayMs' | 'runAt' | 'after' | 'onDependencyFailure' | 'durability' | 'requestId'
>;

export interface ScheduleOptions extends ScheduledJobOptions {
  /** What becomes of ticks that nobody fired in time: `once` by default. */
  missed?: MissedPolicy;
  /** No tick before this time. */
  startMs?: number;
  /** No tick after this time; then the schedule is removed. */
  endMs?: number;
}

export interface Schedule<Data> {
  name: string;
  /** A cron expression with its time zone, stated also when it is UTC, or an interval with its anchor. */
  when: ScheduleSpec;
  data: Data;
  options: ScheduledJobOptions;
  missed: MissedPolicy;
  startMs: number | undefined;
  endMs: number | undefined;
  /** The next tick; null when there is none. */
  nextMs: number | null;
}

export interface SchedulePage<Data> {
  items: (Schedule<Data> & { place: TimePlace })[];
  /** Where it stopped; null at the end. */
  end: TimePlace | null;
}

type Times = ScheduleSpec & { startMs?: number; endMs?: number };

/** As it lies in Redis. `when` is a text, so that schedule.lua can tell whether the times changed. */
interface StoredSchedule {
  when: string;
  payload: string;
  /** The payload is binary, and base64 here. */
  binary?: true;
  missed: MissedPolicy;
  options: ScheduledJobOptions;
}

export class Schedules<Data = unknown> {
  // oxlint-disable-next-line typescript/no-explicit-any -- a schedule makes jobs; what comes of them does not matter here
  readonly #queue: Queue<Data, any>;

  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  constructor(queue: Queue<Data, any>) {
    this.#queue = queue;
  }

  /**
   * Sets a schedule, or changes the one of this name. Setting the same one again changes nothing, so every start of a program
   * may do it; while its times stay the same it also keeps its next tick. With `unique` it never overlaps itself: a tick
   * makes no job while the one before is still there.
   */
  async set(
    name: string,
    when: ScheduleSpec,
    data: Data,
    options: ScheduleOptions = {},
  ): Promise<Schedule<Data>> {
    const { missed = 'once', startMs, endMs, ...jobOptions } = options;
    const times = checkTimes(name, when, { startMs, endMs });
    checkOptions(name, missed, jobOptions);
    const { payload, flags } = await this.#queue.prepare(data, { ...jobOptions, id: idOf(name, 0) });
    const stored: StoredSchedule = {
      when: JSON.stringify(times),
      payload: flags & flag.binary ? Buffer.from(payload).toString('base64') : String(payload),
      ...(flags & flag.binary ? { binary: true } : {}),
      missed,
      options: jobOptions,
    };
    await this.#queue.ready();
    const home = this.#queue.partitionNamed(jobOptions.group ?? uniqueKeyOf(jobOptions) ?? name);
    // Another group or unique key may have moved it. For a moment it is nowhere, which is better than in two places.
    await this.#removeFrom(
      name,
      this.#queue.partitions.filter((partition) => partition !== home),
    );
    const [nowMs] = (await home.run('due', { limit: 0 })) as [number];
    const nextMs = tickAfter(times, nowMs);
    if (nextMs === null && tickAfter({ ...times, endMs: Infinity }, nowMs) === null) {
      throw queueErrors.SCHEDULE_INVALID({ name, reason: 'it has no tick' });
    }
    const spec = JSON.stringify(stored);
    if (nextMs === null) await this.#removeFrom(name, [home]);
    else await home.run('schedule', { name, spec, next: nextMs });
    return (await readSchedule<Data>(home, name)) ?? toSchedule(name, spec, null);
  }

  /** Ends a schedule; the jobs that it made stay. False when there was none. */
  async remove(name: string): Promise<boolean> {
    await this.#queue.ready();
    return this.#removeFrom(name, this.#queue.partitions);
  }

  async get(name: string): Promise<Schedule<Data> | null> {
    await this.#queue.ready();
    for (const partition of this.#queue.partitions) {
      const found = await readSchedule<Data>(partition, name);
      if (found) return found;
    }
    return null;
  }

  /** All schedules by name. */
  async list(): Promise<Schedule<Data>[]> {
    await this.#queue.ready();
    const schedules: Schedule<Data>[] = [];
    for (const { link, keys } of this.#queue.partitions) {
      const stored = (await link.call('HGETALL', [keys.schedules])) as Buffer[];
      const ticks = (await link.call('ZRANGE', [keys.ticks, 0, -1, 'WITHSCORES'])) as [Buffer, Buffer][];
      const nextMs = new Map(ticks.map(([name, tickMs]) => [String(name), Number(tickMs)]));
      for (let i = 0; i < stored.length; i += 2) {
        const name = String(stored[i]);
        schedules.push(toSchedule(name, String(stored[i + 1]), nextMs.get(name) ?? null));
      }
    }
    return schedules.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Schedules by their next tick, soonest first, a bounded number at once; those that will never tick again are left out. */
  async page(options: { limit?: number; after?: TimePlace } = {}): Promise<SchedulePage<Data>> {
    const { limit = 100, after = { atMs: 0, partition: -1, id: '' } } = options;
    checkCount('limit', limit, maxPageSchedules);
    await this.#queue.ready();
    const { partitions } = this.#queue;
    const places = await placesAfter(partitions, 'ticks', after, limit);
    const specs = new Map<TimePlace, string>();
    const read = async ({ index, link, keys }: Partition) => {
      const here = places.filter(({ partition }) => partition === index);
      if (here.length === 0) return;
      const found = await link.call('HMGET', [keys.schedules, ...here.map(({ id }) => id)]);
      (found as (Buffer | null)[]).forEach((spec, i) => spec && specs.set(here[i]!, String(spec)));
    };
    await Promise.all(partitions.map(read));
    const items = places.flatMap((place) => {
      const spec = specs.get(place);
      return spec === undefined ? [] : [{ ...toSchedule<Data>(place.id, spec, place.atMs), place }];
    });
    return { items, end: places.length < limit ? null : places.at(-1)! };
  }

  /**
   * @internal Fires what is due in a partition. Anybody may call it at any time, and any number of them at once.
   */
  async runDue(partition: Partition): Promise<void> {
    for (let looks = 0; looks < looksPerRun; looks++) {
      const [nowMs, ...due] = (await partition.run('due', { limit: schedulesPerLook })) as [
        number,
        ...Buffer[],
      ];
      if (due.length === 0) return;
      const firing: Promise<void>[] = [];
      for (let i = 0; i < due.length; i += 3) {
        firing.push(this.#fire(partition, String(due[i]), Number(due[i + 1]), String(due[i + 2]), nowMs));
      }
      const failed = (await Promise.allSettled(firing)).find((outcome) => outcome.status === 'rejected');
      if (!failed) continue;
      if (!isSluiceError(failed.reason, 'REDIS_FULL')) throw failed.reason;
      // The tick stays due and is fired when there is room.
      await wait(fullPauseMs);
      throw queueErrors.QUEUE_FULL({ queue: this.#queue.name }, { cause: failed.reason });
    }
  }

  async #fire(partition: Partition, name: string, dueMs: number, spec: string, nowMs: number): Promise<void> {
    const move = (nextMs: number | null, ids: string[], packed: Buffer) =>
      partition.run('tick', { name, due: dueMs, next: nextMs ?? '', ids: pack(ids), packed });
    // A tick without a schedule is what a removal by hand leaves behind.
    if (spec === '') return void (await move(null, [], Buffer.alloc(0)));
    let firing: Firing;
    try {
      firing = planFiring(name, spec, dueMs, nowMs);
    } catch (error) {
      this.#queue.logger.error(
        { queue: this.#queue.name, schedule: name, error },
        'a schedule cannot be read',
      );
      return void (await move(nowMs + unreadablePauseMs, [], Buffer.alloc(0)));
    }
    failPoint('tick.planned');
    await move(firing.nextMs, firing.ids, firing.packed);
    failPoint('tick.fired');
  }

  async #removeFrom(name: string, partitions: readonly Partition[]): Promise<boolean> {
    const answers = await Promise.all(partitions.map((partition) => partition.run('unschedule', { name })));
    return answers.some((answer) => String(answer) === 'REMOVED');
  }
}

interface Firing {
  ids: string[];
  packed: Buffer;
  nextMs: number | null;
}

/** What a schedule that is due does now. Throws when another version wrote it in a way that this one cannot read. */
function planFiring(name: string, spec: string, dueMs: number, nowMs: number): Firing {
  const stored = JSON.parse(spec) as StoredSchedule;
  const times = JSON.parse(stored.when) as Times;
  const ticks = ticksToFire(times, stored.missed, dueMs, nowMs);
  const packed = packTick(stored, idOf(name, dueMs), nowMs);
  // Ticks with a large payload fire in several steps; the schedule then stands at the next of them.
  const some = ticks.slice(0, Math.max(1, Math.floor(bytesPerTick / packed.length)));
  return {
    ids: some.map((tickMs) => idOf(name, tickMs)),
    packed,
    nextMs: ticks[some.length] ?? tickAfter(times, nowMs),
  };
}

/** The ticks from the one that is due until now which get a job, oldest first. */
function ticksToFire(times: Times, missed: MissedPolicy, dueMs: number, nowMs: number): number[] {
  const toMs = Math.min(nowMs, times.endMs ?? Infinity);
  const isOnTime = (tickMs: number) => nowMs - tickMs <= onTimeMs;
  if (missed === 'once' && !isOnTime(dueMs)) return latestTicks(times, dueMs, toMs, 1);
  const ticks = latestTicks(times, dueMs, toMs, maxMissedTicks);
  return missed === 'skip' ? ticks.filter(isOnTime) : ticks;
}

/** The latest ticks in [dueMs, toMs], of which dueMs is one. A calendar only looks forward: look from ever further back. */
function latestTicks(times: Times, dueMs: number, toMs: number, most: number): number[] {
  for (let spanMs = 1_000; ; spanMs *= 2) {
    const fromMs = Math.max(dueMs, toMs - spanMs);
    const ticks = ticksBetween(times, fromMs, toMs, maxComputedTicks);
    if (fromMs === dueMs) ticks.unshift(dueMs);
    if (fromMs === dueMs || ticks.length >= most) return ticks.slice(-most);
  }
}

/** The first tick after a time, within the schedule's beginning and end. */
function tickAfter(times: Times, afterMs: number): number | null {
  const { startMs = -Infinity, endMs = Infinity } = times;
  const tickMs = nextTick(times, Math.max(afterMs, startMs - 1));
  return tickMs !== null && tickMs <= endMs ? tickMs : null;
}

function idOf(name: string, tickMs: number): string {
  return `${name}@${tickMs}`;
}

/** The packed job of a tick. Ids are not part of it, so all ticks that fire together share it. */
function packTick({ payload, binary, options }: StoredSchedule, id: string, createdMs: number): Buffer {
  const prepared = prepareOptions({ rememberMs: defaultRememberMs, ...options, id });
  const bytes = Buffer.from(payload, binary ? 'base64' : 'utf8');
  const packer = new Packer(headerBytes + 2 + Buffer.byteLength(prepared.json) + bytes.length);
  writeHeader(
    packer,
    prepared.flags | (binary ? flag.binary : 0),
    prepared.priority,
    createdMs,
    prepared.json,
  );
  packer.rawBytes(bytes);
  return packer.take();
}

async function readSchedule<Data>({ link, keys }: Partition, name: string): Promise<Schedule<Data> | null> {
  const spec = (await link.call('HGET', [keys.schedules, name])) as Buffer | null;
  if (!spec) return null;
  const nextMs = (await link.call('ZSCORE', [keys.ticks, name])) as Buffer | null;
  return toSchedule<Data>(name, spec.toString(), nextMs && Number(nextMs));
}

function toSchedule<Data>(name: string, spec: string, nextMs: number | null): Schedule<Data> {
  const { when, payload, binary, missed, options } = JSON.parse(spec) as StoredSchedule;
  const { startMs, endMs, ...times } = JSON.parse(when) as Times;
  const data: unknown = binary
    ? Buffer.from(payload, 'base64')
    : payload === ''
      ? undefined
      : JSON.parse(payload);
  return { name, when: times, data: data as Data, options, missed, startMs, endMs, nextMs };
}

/** The times in the form that is stored: complete, always in the same order. */
function checkTimes(
  name: string,
  when: ScheduleSpec,
  bounds: { startMs: number | undefined; endMs: number | undefined },
): Times {
  const refuse = (reason: string, cause?: unknown) =>
    queueErrors.SCHEDULE_INVALID({ name, reason }, { cause });
  try {
    checkSchedule(when);
  } catch (error) {
    throw refuse(error instanceof Error ? error.message : String(error), error);
  }
  for (const [field, value] of Object.entries(bounds)) {
    if (value !== undefined && !Number.isSafeInteger(value))
      throw refuse(`${field} must be epoch milliseconds`);
  }
  if (bounds.startMs !== undefined && bounds.endMs !== undefined && bounds.endMs < bounds.startMs) {
    throw refuse('it ends before it starts');
  }
  const times =
    'everyMs' in when
      ? { everyMs: when.everyMs, anchorMs: when.anchorMs ?? 0 }
      : { cron: when.cron, timeZone: when.timeZone ?? 'UTC' };
  // JSON leaves out what is undefined.
  return JSON.parse(JSON.stringify({ ...times, ...bounds })) as Times;
}

function checkOptions(name: string, missed: MissedPolicy, options: ScheduledJobOptions): void {
  checkName('name', name);
  if (Buffer.byteLength(name) > maxNameBytes) {
    throw queueErrors.SCHEDULE_INVALID({ name, reason: `its name is longer than ${maxNameBytes} bytes` });
  }
  if (!['skip', 'once', 'all'].includes(missed)) {
    throw queueErrors.OPTION_INVALID({ option: 'missed', value: missed, allowed: '"skip", "once" or "all"' });
  }
  if (options.rememberMs !== undefined && options.rememberMs < minRememberMs) {
    const allowed = `at least ${minRememberMs}, so that no tick makes two jobs`;
    throw queueErrors.OPTION_INVALID({ option: 'rememberMs', value: options.rememberMs, allowed });
  }
}

function uniqueKeyOf({ unique }: ScheduledJobOptions): string | undefined {
  return typeof unique === 'string' ? unique : unique?.key;
}
