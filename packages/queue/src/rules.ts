// What a queue may do at present: whether it is paused, how many jobs may run and start, how long its event stream is. Rules
// live in Redis, so that they hold for every worker at once and survive all of them; claim.lua obeys them.
//
// A queue with several partitions has no place where all its jobs are counted together. A limit of the whole queue is
// therefore split: each partition gets its share, and the shares add up to the limit. The price is that a busy partition
// cannot borrow from an idle one, and that a limit below the number of partitions is refused, because a partition whose
// share is nothing would never run its jobs. Limits per group are not split: all jobs of a group are in one partition.
//
// A change reaches the partitions one by one. If it is interrupted, some obey the old rules; changing them again mends it.
import { queueErrors } from './errors.js';
import { checkCount } from './options.js';
import type { Partition } from './partition.js';
import type { AnyQueue } from './queue.js';

/** The times of this many claims are kept in Redis while a rate limit is set. */
const maxRate = 1_000_000;
const maxRateSpanMs = 31 * 86_400_000;
const maxActiveLimit = 1_000_000_000;
const maxEvents = 10_000_000;

export interface RateLimit {
  /** This many jobs may start … */
  max: number;
  /** … within any span of this length. */
  perMs: number;
}

/** A rule that is absent stays as it is; null removes it. */
export interface Rules {
  /** No job is claimed. */
  paused?: boolean | null;
  /** How many jobs of the queue may run at once. */
  maxActive?: number | null;
  /** How many jobs of the queue may start in a while. */
  rate?: RateLimit | null;
  /** The same for each group. */
  perGroup?: { maxActive?: number | null; rate?: RateLimit | null };
  /** About how many events the stream keeps; without it there is none. Partitions share it like a limit. */
  events?: number | null;
}

/** The names that claim.lua reads. */
interface StoredRules {
  paused?: true | null;
  maxActive?: number | null;
  rateMax?: number | null;
  ratePerMs?: number | null;
  keyMaxActive?: number | null;
  keyRateMax?: number | null;
  keyRatePerMs?: number | null;
  events?: number | null;
}

/** Changes the rules that are given and leaves the others as they are. */
export async function changeRules(queue: AnyQueue, rules: Rules): Promise<void> {
  checkRules(rules, queue.partitions.length);
  await queue.ready();
  await Promise.all(
    queue.partitions.map((partition) => {
      const changes = storedRules(rules, partition.index, queue.partitions.length);
      return partition.run('rule', { changes: JSON.stringify(changes) });
    }),
  );
}

/** The rules in force, the shares of the partitions put together again. */
export async function readRules(queue: AnyQueue): Promise<Rules> {
  await queue.ready();
  return combine(await Promise.all(queue.partitions.map(readStored)));
}

function checkRules({ maxActive, rate, perGroup, events }: Rules, partitions: number): void {
  checkLimit('maxActive', maxActive, maxActiveLimit, partitions);
  checkRate('rate', rate, partitions);
  checkLimit('perGroup.maxActive', perGroup?.maxActive, maxActiveLimit, 1);
  checkRate('perGroup.rate', perGroup?.rate, 1);
  checkLimit('events', events, maxEvents, partitions);
}

function checkRate(option: string, rate: RateLimit | null | undefined, partitions: number): void {
  if (!rate) return;
  checkLimit(`${option}.max`, rate.max, maxRate, partitions);
  checkCount(`${option}.perMs`, rate.perMs, maxRateSpanMs);
}

function checkLimit(
  option: string,
  value: number | null | undefined,
  most: number,
  partitions: number,
): void {
  if (value === undefined || value === null) return;
  checkCount(option, value, most);
  if (value < partitions) {
    const allowed = `at least ${partitions}: the queue has that many partitions, and each needs a share of the limit`;
    throw queueErrors.OPTION_INVALID({ option, value, allowed });
  }
}

function storedRules(rules: Rules, index: number, partitions: number): StoredRules {
  const share = (limit: number) => Math.floor(limit / partitions) + (index < limit % partitions ? 1 : 0);
  const { paused, maxActive, rate, perGroup, events } = rules;
  const stored: StoredRules = {};
  if (paused !== undefined) stored.paused = paused || null;
  if (maxActive !== undefined) stored.maxActive = maxActive && share(maxActive);
  if (rate !== undefined) {
    stored.rateMax = rate && share(rate.max);
    stored.ratePerMs = rate && rate.perMs;
  }
  if (perGroup?.maxActive !== undefined) stored.keyMaxActive = perGroup.maxActive;
  if (perGroup?.rate !== undefined) {
    stored.keyRateMax = perGroup.rate && perGroup.rate.max;
    stored.keyRatePerMs = perGroup.rate && perGroup.rate.perMs;
  }
  if (events !== undefined) stored.events = events && share(events);
  return stored;
}

async function readStored(partition: Partition): Promise<StoredRules> {
  const reply = await partition.link.call('HMGET', [partition.keys.cfg, 'rules', 'events']);
  const [rules, events] = reply as [Buffer | null, Buffer | null];
  const stored = (rules ? JSON.parse(rules.toString()) : {}) as StoredRules;
  return events ? { ...stored, events: Number(events) } : stored;
}

/** A queue is as strict as its least strict partition: after an interrupted change that is what its jobs experience. */
function combine(parts: StoredRules[]): Rules {
  const sum = (name: 'maxActive' | 'rateMax' | 'events'): number | undefined =>
    parts.every((part) => part[name]) ? parts.reduce((total, part) => total + part[name]!, 0) : undefined;
  const [first] = parts as [StoredRules, ...StoredRules[]];
  const rules: Rules = {};
  const [maxActive, rateMax, events] = [sum('maxActive'), sum('rateMax'), sum('events')];
  if (parts.every((part) => part.paused)) rules.paused = true;
  if (maxActive) rules.maxActive = maxActive;
  if (rateMax) rules.rate = { max: rateMax, perMs: first.ratePerMs! };
  if (first.keyMaxActive) rules.perGroup = { maxActive: first.keyMaxActive };
  if (first.keyRateMax) {
    rules.perGroup = { ...rules.perGroup, rate: { max: first.keyRateMax, perMs: first.keyRatePerMs! } };
  }
  if (events) rules.events = events;
  return rules;
}
