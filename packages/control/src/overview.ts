// Everything at a glance, put together once for all who look: whoever asks within two seconds gets the same answer.
//
// Counts come from the sampler, whose cost has a bound. What jobs died of and what waits for its next attempt are questions of another kind:
// they read letters and jobs. Only queues that have some are asked, and what the questions took is paid off before they are asked again:
// they take at most a fiftieth of the time. In between their last answers are shown beside counts that are fresh.
import { isKeptWell, type AlertRow } from '@sluice/alerts';
import type { DeadSummary, Overview as Sums, RedisHealth, RetrySummary, Snapshot } from '@sluice/inspect';
import type { ControlParts } from './parts.js';
import { withOwner, type QueueRow } from './reserved.js';

const freshMs = 2_000;
const detailsShare = 0.02;
/** Whatever they took, after a minute they are asked again. */
const longestRestMs = 60_000;
const mostQueuesWithDead = 20;

export interface DeadOverview {
  letters: number;
  /** Runs of a letter on average, over the newest of each queue; null without letters. */
  averageAttempts: number | null;
  topError: { queue: string; title: string; fingerprint: string; count: number } | null;
  /** The queues with the most of them. */
  queues: DeadSummary[];
  /** How many queues have some. */
  queueCount: number;
}

export interface Overview extends Omit<Sums, 'queues'> {
  queues: QueueRow[];
  dead: DeadOverview;
  retries: RetrySummary;
  uploads: { open: number };
  outbox: { waiting: number; oldestMs: number };
  /** First what needs somebody, each with what it is about. */
  attention: Attention[];
}

export interface Attention {
  code: string;
  message: string;
  queue?: string;
  /** The target that is missed. */
  target?: Pick<AlertRow, 'name' | 'about' | 'keep' | 'limit' | 'unit' | 'value' | 'link'>;
}

/** What reading letters and jobs has found. */
interface Details {
  dead: readonly DeadSummary[];
  retries: RetrySummary;
}

export type OverviewParts = Pick<ControlParts, 'inspect' | 'records' | 'alerts'>;

export class OverviewSource {
  readonly #parts: OverviewParts;
  readonly #nowMs: () => number;
  #last: { atMs: number; overview: Promise<Overview> } | undefined;
  #details: { found: Details; dueMs: number } | undefined;
  /** What was told the last time. */
  #attention: readonly Attention[] = [];

  constructor(parts: OverviewParts, nowMs: () => number = () => performance.now()) {
    this.#parts = parts;
    this.#nowMs = nowMs;
  }

  latest(): Promise<Overview> {
    const now = this.#nowMs();
    if (!this.#last || now - this.#last.atMs > freshMs) {
      const overview = this.#compose();
      this.#last = { atMs: now, overview };
      // What failed is asked for again by the next one.
      overview.catch(() => {
        if (this.#last?.overview === overview) this.#last = undefined;
      });
    }
    return this.#last.overview;
  }

  async #compose(): Promise<Overview> {
    const { inspect, records, alerts } = this.#parts;
    const [sums, snapshot, open, outbox, targets] = await Promise.all([
      inspect.overview(),
      inspect.snapshot(),
      records.uploads.countOpen(),
      records.outbox.state(),
      alerts.list(),
    ]);
    const { dead, retries } = await this.#detailsOf(snapshot);
    const summary = summariseDead(withCounts(dead, snapshot.queues));
    const overview = {
      ...sums,
      queues: snapshot.queues.map(withOwner),
      dead: summary,
      retries,
      uploads: { open },
      outbox,
    };
    this.#attention = attentionOf(overview, targets, this.#attention);
    return { ...overview, attention: [...this.#attention] };
  }

  async #detailsOf({ queues, problem }: Snapshot): Promise<Details> {
    const startedMs = this.#nowMs();
    // While Redis is away all queues are asked, and fail: whoever looks is told so, not what was known before.
    if (this.#details && !problem && startedMs < this.#details.dueMs) return this.#details.found;
    const { inspect } = this.#parts;
    const having = (count: 'dead' | 'delayed') =>
      problem ? {} : { queues: queues.filter(({ counts }) => counts[count] > 0).map(({ name }) => name) };
    const [dead, retries] = await Promise.all([
      inspect.deadSummaries(having('dead')),
      inspect.retrySummary(having('delayed')),
    ]);
    const endedMs = this.#nowMs();
    const restMs = Math.min((endedMs - startedMs) / detailsShare, longestRestMs);
    this.#details = { found: { dead, retries }, dueMs: endedMs + restMs };
    return { dead, retries };
  }
}

/** The number of letters is that of now; what they say may be older, and of a queue whose first letter has just come nothing is known. */
function withCounts(found: readonly DeadSummary[], queues: Snapshot['queues']): DeadSummary[] {
  const known = new Map(found.map((summary) => [summary.queue, summary]));
  return queues.map(({ name, counts }) => ({
    ...{ queue: name, averageAttempts: null, sampled: 0, topError: null },
    ...known.get(name),
    letters: counts.dead,
  }));
}

function summariseDead(queues: readonly DeadSummary[]): DeadOverview {
  const having = queues.filter((queue) => queue.letters > 0);
  const letters = having.reduce((sum, queue) => sum + queue.letters, 0);
  const counted = queues.filter(({ averageAttempts }) => averageAttempts !== null);
  const sampled = counted.reduce((sum, queue) => sum + queue.sampled, 0);
  const attempts = counted.reduce((sum, queue) => sum + queue.averageAttempts! * queue.sampled, 0);
  const tops = queues.flatMap(({ queue, topError }) => (topError ? [{ queue, ...topError }] : []));
  tops.sort((a, b) => b.count - a.count);
  const [top] = tops;
  return {
    letters,
    averageAttempts: sampled > 0 ? attempts / sampled : null,
    topError: top
      ? { queue: top.queue, title: top.title, fingerprint: top.fingerprint, count: top.count }
      : null,
    queues: having.toSorted((a, b) => b.letters - a.letters).slice(0, mostQueuesWithDead),
    queueCount: having.length,
  };
}

const longWaitMs = 5 * 60_000;
const lateOutboxMs = 60_000;
const nearlyFull = 0.9;
/** Where nearly all of so many attempts fail, it is not this job or that one. A queue that was told of is told of until there are fewer still. */
const fewestAttempts = 10;
const fewestToStay = 5;
const nearlyAll = 0.8;

/** What somebody on call should look at, the worst first. What was told `before` stays while it hovers at its limit, or it would blink. */
function attentionOf(
  overview: Omit<Overview, 'attention'>,
  targets: readonly AlertRow[],
  before: readonly Attention[],
): Attention[] {
  const { redis, cache, queues, problems, outbox } = overview;
  const wasTold = (target: string): boolean => before.some((item) => item.target?.name === target);
  const wasFailing = (queue: string): boolean =>
    before.some((item) => item.code === 'JOBS_FAIL' && item.queue === queue);
  const missed = targets.filter(
    (row) => row.met === false || row.state === 'raised' || (wasTold(row.name) && isClose(row)),
  );
  // Among queues with the same trouble, the one with the most letters is the worst.
  const worstFirst = [...queues].sort((a, b) => b.counts.dead - a.counts.dead);
  const found: Attention[] = [
    ...problems.map(({ code, message, queue }) => ({
      ...{ code, message },
      ...(queue !== undefined && { queue }),
    })),
    ...(redis ? troublesOfRedis(redis) : []),
    ...worstFirst.flatMap((queue) => troublesOfQueue(queue, wasFailing(queue.name))),
    ...missed.map(missedTarget),
  ];
  if (redis && isNearlyFull(redis) && !missed.some(({ name }) => name === 'redisMemory'))
    found.push({ code: 'REDIS_NEARLY_FULL', message: 'Redis has used more than nine tenths of its memory' });
  if (cache && cache.openBreakers > 0)
    found.push({
      code: 'CACHE_WITHOUT_REDIS',
      message: `${counted(cache.openBreakers, 'process', 'processes')} could not reach the cache in the last minute`,
    });
  if (outbox.oldestMs > lateOutboxMs)
    found.push({ code: 'OUTBOX_LATE', message: 'events wait for more than a minute to be published' });
  return found;
}

function troublesOfRedis({ evicted, policy, aof }: RedisHealth): Attention[] {
  const found: Attention[] = [];
  if (evicted > 0)
    found.push({ code: 'REDIS_EVICTS', message: 'Redis has thrown keys away; jobs may be among them' });
  else if (policy !== '' && policy !== 'noeviction')
    found.push({
      code: 'REDIS_MAY_EVICT',
      message: `Redis throws keys away when its memory is full (${policy}); jobs may be among them`,
    });
  if (!aof.enabled)
    found.push({
      code: 'REDIS_KEEPS_NO_FILE',
      message: 'Redis keeps no append-only file: a crash loses jobs',
    });
  else if (!aof.lastWriteOk)
    found.push({ code: 'REDIS_CANNOT_WRITE', message: 'Redis could not write its append-only file' });
  return found;
}

function troublesOfQueue(
  { name: queue, counts, paused, lately }: QueueRow,
  wasFailing: boolean,
): Attention[] {
  const found: Attention[] = [];
  const failed = lately.failed + lately.died;
  const attempts = lately.done + failed;
  const fewest = wasFailing ? fewestToStay : fewestAttempts;
  if (!paused && attempts >= fewest && failed >= nearlyAll * attempts)
    found.push({
      code: 'JOBS_FAIL',
      message: `${failed.toLocaleString('en-US')} of ${counted(attempts, 'attempt', 'attempts')} failed just now`,
      queue,
    });
  if (paused) found.push({ code: 'QUEUE_PAUSED', message: 'paused: no job is started', queue });
  else if (counts.waiting > 0 && counts.workers === 0)
    found.push({
      code: 'NO_WORKERS',
      message: `${counted(counts.waiting, 'job waits', 'jobs wait')} and nobody works`,
      queue,
    });
  else if (counts.oldestWaitingMs > longWaitMs)
    found.push({ code: 'LONG_WAIT', message: 'its oldest job waits for minutes', queue });
  if (counts.dead > 0)
    found.push({ code: 'DEAD_LETTERS', message: counted(counts.dead, 'dead letter', 'dead letters'), queue });
  return found;
}

/** One that is raised has been told to whoever is called at night; one that is not may still turn out to be nothing. */
function missedTarget({ name, about, keep, limit, unit, value, link, state, met }: AlertRow): Attention {
  // One that is only just met again is not called missed, and not forgotten either.
  const isMet = met === true;
  return {
    code: isMet ? 'TARGET_CLOSE' : state === 'raised' ? 'ALERT_RAISED' : 'TARGET_MISSED',
    message: `${name} is ${figure(value, unit)}, ${isMet ? 'only just' : 'should be'} ${keep} ${figure(limit, unit)}`,
    target: { name, about, keep, limit, unit, value, link },
  };
}

function isClose({ keep, limit, unit, value }: AlertRow): boolean {
  return value !== null && isKeptWell({ keep, limit, unit }, value) === false;
}

function isNearlyFull({ usedBytes, maxBytes }: RedisHealth): boolean {
  return maxBytes > 0 && usedBytes > nearlyFull * maxBytes;
}

/** `1 dead letter`, `1,204,331 jobs wait`: people read these. */
function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;
}

const figureStyles = {
  count: {},
  share: { style: 'percent' },
  seconds: { style: 'unit', unit: 'second', unitDisplay: 'long' },
} as const satisfies Record<AlertRow['unit'], Intl.NumberFormatOptions>;

function figure(value: number | null, unit: AlertRow['unit']): string {
  const style = { maximumFractionDigits: 1, ...figureStyles[unit] };
  return value === null ? 'not known' : value.toLocaleString('en-US', style);
}
