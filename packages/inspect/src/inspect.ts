// The page that users read: every question that API, dashboard, CLI and metrics ask, each a short method that leads to the file which
// answers it. Nothing here changes a job.
import type { Logger } from '@sluice/base';
import type { AnyQueue, QueueCounts, Rules, Schedule } from '@sluice/queue';
import { readRules } from '@sluice/queue';
import { RedisLink } from '@sluice/redis';
import type { RedisTarget } from '@sluice/redis';
import { CacheReader } from './caches.js';
import type { CacheFamilyRow, CacheSnapshot } from './caches.js';
import { findGroups, summariseDead } from './deadLetters.js';
import type { DeadGroups, DeadQuestion, DeadSummary } from './deadLetters.js';
import { AllQueues, givenQueues } from './directory.js';
import type { Directory } from './directory.js';
import { inspectErrors } from './errors.js';
import { History } from './history.js';
import { describeJob } from './jobDetail.js';
import type { JobDetail } from './jobDetail.js';
import { findJobs } from './jobs.js';
import type { JobQuestion, JobRow } from './jobs.js';
import { defaultPrefix, inspectKeys } from './keys.js';
import { mergePages } from './merge.js';
import { checkLimit } from './page.js';
import type { Page } from './page.js';
import type { RedisHealth } from './redisHealth.js';
import { findRetries, summariseRetries } from './retries.js';
import type { RetryQuestion, RetryRow, RetrySummary } from './retries.js';
import { Roller } from './roller.js';
import { Sampler } from './sampler.js';
import type { Watcher } from './sampler.js';
import { readSeries } from './series.js';
import type { Series, SeriesQuestion } from './series.js';
import type { Problem, QueueSnapshot, Rates, SampleCost, Snapshot } from './snapshot.js';
import { findWorkers } from './workers.js';
import type { WorkerRow } from './workers.js';

const maxSchedules = 1_000;
const defaultSchedules = 100;

export interface InspectOptions {
  /** Where the history is kept; mostly the Redis of the queues. Its health is what is shown. */
  redis: string | RedisTarget;
  prefix?: string;
  /** The queues, or what gives them at any time: they stay their owner's. Or all that anybody opens in this Redis with this prefix. */
  queues: 'all' | readonly AnyQueue[] | (() => readonly AnyQueue[]);
  /** Where the caches are, of which all processes publish what they do; `prefix` is that of their keys. */
  cache?: { redis: string | RedisTarget; prefix?: string };
  /** How often a look is taken while somebody watches; 2 s. */
  everyMs?: number;
  /** Takes part in writing the history; true. */
  history?: boolean;
  logger?: Logger;
}

export interface Overview {
  atMs: number;
  queues: number;
  workers: number;
  counts: Pick<QueueCounts, 'waiting' | 'delayed' | 'blocked' | 'active' | 'dead' | 'done'>;
  rates: Rates | null;
  oldestWaitingMs: number;
  redis: RedisHealth | null;
  /** All families together; null without a cache. */
  cache: CacheFamilyRow | null;
  cost: SampleCost;
  problems: (Problem & { queue?: string; of?: 'cache' })[];
}

export interface QueueDetail extends QueueSnapshot {
  partitions: number;
  rules: Rules;
  dead: DeadSummary;
}

export interface ScheduleRow extends Schedule<unknown> {
  queue: string;
}

export class Inspect {
  readonly #link: RedisLink;
  readonly #history: History;
  readonly #sampler: Sampler;
  readonly #directory: Directory;
  readonly #caches: CacheReader | undefined;

  constructor(options: InspectOptions) {
    const { redis, prefix = defaultPrefix, queues, cache, everyMs, history = true, logger } = options;
    this.#link = new RedisLink(redis, { name: 'sluice-inspect' });
    this.#history = new History(this.#link, inspectKeys(prefix));
    this.#directory =
      queues === 'all'
        ? new AllQueues(this.#link, prefix, logger)
        : givenQueues(typeof queues === 'function' ? queues : () => queues);
    const cacheLink = cache && new RedisLink(cache.redis, { name: 'sluice-inspect' });
    this.#caches = cacheLink && new CacheReader(cacheLink, cache?.prefix);
    this.#sampler = new Sampler({
      link: this.#link,
      queues: () => this.#directory.all(),
      ...(this.#caches && { caches: this.#caches }),
      ...(everyMs !== undefined && { everyMs }),
      ...(history && { roller: new Roller(this.#history) }),
      ...(logger && { logger }),
    });
  }

  /** Begins to sample: once a minute for the history, more often while somebody watches. */
  start(): Promise<void> {
    return this.#sampler.start();
  }

  /** Ends sampling and its connection; the queues stay open. */
  async close(): Promise<void> {
    await this.#sampler.stop();
    await this.#directory.close();
    this.#link.close();
    this.#caches?.close();
  }

  /** Gets every snapshot from now on; all who watch get the same. Returns what ends it. Needs `start`. */
  watch(watcher: Watcher): () => void {
    return this.#sampler.watch(watcher);
  }

  /** The latest snapshot; a new look only when the last one is too old. */
  snapshot(): Promise<Snapshot> {
    return this.#sampler.latest();
  }

  async overview(): Promise<Overview> {
    return summarise(await this.snapshot());
  }

  async queues(): Promise<QueueSnapshot[]> {
    return (await this.snapshot()).queues;
  }

  /** The queue itself, for whoever has something to do with it. */
  async open(name: string): Promise<AnyQueue> {
    return this.#named(name);
  }

  /** Undefined when there is none. */
  find(name: string): Promise<AnyQueue | undefined> {
    return this.#directory.named(name);
  }

  /** All of them. */
  async openAll(): Promise<readonly AnyQueue[]> {
    return this.#directory.all();
  }

  /** One queue, with its rules and what died in it; null when it could not be read yet. */
  async queue(name: string): Promise<QueueDetail | null> {
    const queue = await this.#named(name);
    const [all, rules, dead] = await Promise.all([this.queues(), readRules(queue), summariseDead(queue)]);
    const seen = all.find((candidate) => candidate.name === name);
    return seen ? { ...seen, partitions: queue.partitions.length, rules, dead } : null;
  }

  /** Jobs by id, state, payload field, label or error. Bounded: a rare match may take several pages, some of them empty. */
  async jobs(queue: string, question: JobQuestion = {}): Promise<Page<JobRow>> {
    return findJobs(await this.#named(queue), question);
  }

  /** In whichever queue it is. */
  async jobsById(id: string, { labels }: { labels?: JobQuestion['labels'] } = {}): Promise<JobRow[]> {
    const question = { id, ...(labels && { labels }) };
    const pages = await Promise.all((await this.#directory.all()).map((queue) => findJobs(queue, question)));
    return pages.flatMap(({ items }) => items);
  }

  /** One job with its timeline, logs, stack and chain; null also when it does not have the labels that are asked for. */
  async job(
    queue: string,
    id: string,
    { labels }: { labels?: JobQuestion['labels'] } = {},
  ): Promise<JobDetail | null> {
    return describeJob(await this.#named(queue), id, labels, (name) => this.#directory.named(name));
  }

  /**
   * What jobs died of, most frequent first; of one queue, or of all. With labels, among the newest 5,000 letters of each queue. With `trend`
   * (and without labels) each cause says how many died of it in which hour of the last day.
   */
  async deadGroups(question: DeadQuestion = {}): Promise<DeadGroups> {
    return findGroups(await this.#chosen(question.queue), question);
  }

  /** Of all queues, or of those that are named, which is cheaper. */
  async deadSummaries({ queues }: { queues?: readonly string[] } = {}): Promise<DeadSummary[]> {
    return Promise.all((await this.#among(queues)).map(summariseDead));
  }

  async workers(options: { queue?: string } = {}): Promise<Page<WorkerRow>> {
    return findWorkers(await this.#chosen(options.queue));
  }

  /** Jobs that failed and wait for their next attempt, soonest first, with their last error; of one queue, or of all. */
  async retries(question: RetryQuestion = {}): Promise<Page<RetryRow>> {
    return findRetries(await this.#chosen(question.queue), question);
  }

  /** How many wait for their next attempt, and when the next one is due. */
  async retrySummary(
    options: Pick<RetryQuestion, 'queue' | 'labels'> & { queues?: readonly string[] } = {},
  ): Promise<RetrySummary> {
    const { queue, queues, labels } = options;
    return summariseRetries(queues ? await this.#among(queues) : await this.#chosen(queue), labels);
  }

  /** The schedules by their next tick, of one queue or of all. */
  async schedules(
    options: { queue?: string; limit?: number; cursor?: string } = {},
  ): Promise<Page<ScheduleRow>> {
    const { limit = defaultSchedules } = options;
    checkLimit('limit', limit, maxSchedules);
    return mergePages(await this.#chosen(options.queue), limit, options.cursor, async (queue, after) => {
      const { items, end } = await queue.schedules.page({ limit, ...(after && { after }) });
      const rows = items.map((schedule) => ({ queue: queue.name, ...schedule }));
      return { items: rows, scanned: items.length, end };
    });
  }

  /** What the caches of all processes do, family by family; null without a cache. */
  async caches(): Promise<CacheSnapshot | null> {
    return (await this.snapshot()).cache;
  }

  /** The history of a queue, of a cache, or of Redis. */
  async series(question: SeriesQuestion): Promise<Series> {
    if (question.queue !== undefined) await this.#named(question.queue);
    const [seconds] = (await this.#link.call('TIME', [])) as [Buffer, Buffer];
    return readSeries(this.#history, question, Number(seconds) * 1_000);
  }

  async #named(name: string): Promise<AnyQueue> {
    const queue = await this.#directory.named(name);
    if (queue) return queue;
    const known = (await this.#directory.all()).map((other) => other.name);
    throw inspectErrors.UNKNOWN_QUEUE({ queue: name, known: known.slice(0, 20).join(', ') });
  }

  /** Those that are gone meanwhile are passed over. */
  async #among(names: readonly string[] | undefined): Promise<readonly AnyQueue[]> {
    const all = await this.#directory.all();
    return names ? all.filter(({ name }) => names.includes(name)) : all;
  }

  async #chosen(name: string | undefined): Promise<readonly AnyQueue[]> {
    return name === undefined ? this.#directory.all() : [await this.#named(name)];
  }
}

function summarise({ atMs, queues, redis, cache, cost, problem }: Snapshot): Overview {
  const sum = (pick: (queue: QueueSnapshot) => number) =>
    queues.reduce((total, queue) => total + pick(queue), 0);
  const rate = (name: keyof Rates) => sum((queue) => queue.rates?.[name] ?? 0);
  const hasRates = queues.some(({ rates }) => rates !== null);
  return {
    atMs,
    queues: queues.length,
    workers: sum(({ counts }) => counts.workers),
    counts: {
      waiting: sum(({ counts }) => counts.waiting),
      delayed: sum(({ counts }) => counts.delayed),
      blocked: sum(({ counts }) => counts.blocked),
      active: sum(({ counts }) => counts.active),
      dead: sum(({ counts }) => counts.dead),
      done: sum(({ counts }) => counts.done),
    },
    rates: hasRates
      ? {
          added: rate('added'),
          done: rate('done'),
          failed: rate('failed'),
          died: rate('died'),
          cancelled: rate('cancelled'),
        }
      : null,
    oldestWaitingMs: Math.max(0, ...queues.map(({ counts }) => counts.oldestWaitingMs)),
    redis,
    cache: cache && cache.total,
    cost,
    problems: [
      ...(problem ? [problem] : []),
      ...(cache?.problem ? [{ of: 'cache' as const, ...cache.problem }] : []),
      ...queues.flatMap(({ name, problem: own }) => (own ? [{ queue: name, ...own }] : [])),
    ],
  };
}
