// Events of jobs on their way to webhooks: jobs.done, jobs.failed, jobs.dead.
//
// A queue writes its event stream in the very script that moves a job, so what happened is in the stream. The stream has a length,
// though, and somebody must read it in time. So, while any webhook wants events of jobs:
//
// - the stream of each queue is switched on, long enough for hours of work, and off again when no webhook wants it any more; a stream that
//   somebody else has switched on stays as it is;
// - how far it was read is kept in Redis, and moves on only when the queue of deliveries has confirmed: after a crash or an outage it
//   goes on where it stopped, and what is published again has the same ids;
// - if the place where it stopped is gone from the stream, something was dropped. What died in the meantime is then found among
//   the dead letters, where it lies until somebody decides; that jobs were done or failed once is lost then, and the log says so.
//
// Several processes may follow; what one has published, the other publishes in vain.
import { silentLogger, startStop, sleep, type Logger, type Service } from '@sluice/base';
import { eventsAfter, readRules, type AnyQueue, type DeadLetter, type QueueEvent } from '@sluice/queue';
import type { RedisLink } from '@sluice/redis';
import type { WebhookEvent } from './event.js';
import { defaultPrefix, jobCursorKey } from './keys.js';
import { mayMatch } from './topics.js';
import { matches } from './topics.js';
import { webhookQueue, type Webhooks } from './webhooks.js';

const defaultEveryMs = 1_000;
const longestPauseMs = 10_000;
const eventsPerStep = 500;
const lettersPerPage = 200;
export const streamLength = 100_000;
/** Behind the place: the stream was switched on here. */
const switchedOn = ' ours';
const told = new Set(['done', 'failed', 'dead']);
const longestMessage = 500;

export interface JobFollowerOptions {
  webhooks: Webhooks;
  /** All queues; that of the deliveries themselves is left out. */
  queues: () => readonly AnyQueue[] | Promise<readonly AnyQueue[]>;
  /** Keeps the place; stays its owner's. */
  redis: RedisLink;
  prefix?: string;
  everyMs?: number;
  logger?: Logger;
}

export class JobFollower implements Service {
  readonly #options: JobFollowerOptions;
  readonly #logger: Logger;
  readonly #service: Service;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: JobFollowerOptions) {
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    this.#service = startStop({
      name: 'follower of jobs',
      start: () => {
        this.#stopping = new AbortController();
        this.#running = this.#run(this.#stopping.signal);
      },
      stop: () => {
        this.#stopping.abort();
        return this.#running;
      },
    });
  }

  start(): Promise<void> {
    return this.#service.start();
  }

  stop(deadlineMs?: number): Promise<void> {
    return this.#service.stop(deadlineMs);
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { everyMs = defaultEveryMs } = this.#options;
    let pauseMs = everyMs;
    while (!signal.aborted) {
      try {
        await this.step();
        pauseMs = everyMs;
      } catch (err) {
        if (signal.aborted) return;
        this.#logger.warn({ err }, 'events of jobs cannot be followed now; it is tried again');
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
      await sleep(pauseMs, signal).catch(() => {});
    }
  }

  /** @internal One look at every queue. */
  async step(): Promise<void> {
    const wanted = (await this.#options.webhooks.active()).flatMap(({ topics }) => topics);
    const isWanted = mayMatch(wanted, 'jobs.');
    const queues = (await this.#options.queues()).filter(({ name }) => name !== webhookQueue);
    for (const queue of queues) {
      if (isWanted) await this.#follow(queue, wanted);
      else await this.#leave(queue);
    }
  }

  async #follow(queue: AnyQueue, wanted: readonly string[]): Promise<void> {
    const { redis } = this.#options;
    const key = this.#cursorKey(queue);
    const kept = (await redis.call('GET', [key])) as Buffer | null;
    if (kept === null) {
      const { events } = await readRules(queue);
      if (!events) await queue.limit({ events: streamLength });
      const { cursor } = await eventsAfter(queue, undefined);
      // Whoever switched it on has the last word: one that came in between found it on, and does not know that it is ours.
      await redis.call('SET', events ? [key, cursor, 'NX'] : [key, cursor + switchedOn]);
      return;
    }
    const mark = String(kept).endsWith(switchedOn) ? switchedOn : '';
    for (let after = String(kept).slice(0, -mark.length || undefined); ;) {
      const { events, cursor, gapSinceMs } = await eventsAfter(queue, after, eventsPerStep);
      if (gapSinceMs !== undefined) await this.#makeUp(queue, gapSinceMs);
      await this.#publish(queue, events, wanted);
      if (cursor !== after) await redis.call('SET', [key, cursor + mark]);
      if (events.length < eventsPerStep || this.#stopping.signal.aborted) return;
      after = cursor;
    }
  }

  /** Nobody wants to hear of it any more: what was switched on for that is switched off, and the place forgotten. */
  async #leave(queue: AnyQueue): Promise<void> {
    const { redis } = this.#options;
    const key = this.#cursorKey(queue);
    const kept = (await redis.call('GET', [key])) as Buffer | null;
    if (kept === null) return;
    if (String(kept).endsWith(switchedOn) && (await readRules(queue)).events === streamLength)
      await queue.limit({ events: null });
    await redis.call('DEL', [key]);
  }

  async #publish(queue: AnyQueue, events: readonly QueueEvent[], wanted: readonly string[]): Promise<void> {
    const found = events
      .filter(({ type }) => told.has(type) && matches(wanted, `jobs.${type}`))
      .flatMap((event) => event.jobIds.map((id) => describe(queue, event, id)));
    await this.#options.webhooks.publish(await Promise.all(found));
  }

  /** Publishes what died since then. */
  async #makeUp(queue: AnyQueue, sinceMs: number): Promise<void> {
    this.#logger.warn(
      { queue: queue.name, sinceMs },
      'events of jobs were dropped before they were followed',
    );
    let cursor: string | undefined;
    do {
      const page = await queue.dead.list({
        from: sinceMs,
        limit: lettersPerPage,
        ...(cursor !== undefined && { cursor }),
      });
      await this.#options.webhooks.publish(page.letters.map((letter) => describeDeath(queue.name, letter)));
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
  }

  #cursorKey({ name }: AnyQueue): string {
    return jobCursorKey(this.#options.prefix ?? defaultPrefix, name);
  }
}

/** What is still known of the job. Of one that is done and that nobody remembers, that is its id. */
async function describe(
  queue: AnyQueue,
  { type, atMs, id: at }: QueueEvent,
  id: string,
): Promise<WebhookEvent> {
  if (type === 'dead') {
    const letter = await queue.dead.get(id);
    if (letter) return describeDeath(queue.name, letter);
  }
  const job = await queue.job(id);
  const last = job?.attempts.at(-1);
  const tenant = job?.labels['tenant'];
  return {
    id: `job:${queue.name}:${id}:${type}:${type === 'dead' ? atMs : at}`,
    topic: `jobs.${type}`,
    ...(tenant !== undefined && { tenant }),
    occurredAt: new Date(atMs).toISOString(),
    data: {
      queue: queue.name,
      jobId: id,
      ...(job && { labels: job.labels }),
      ...(type !== 'done' && last && { attempt: last.attempt, error: shortError(last) }),
    },
  };
}

/** The same whether it comes from the stream or from the letters: by the time of death, which both have from one script. */
function describeDeath(queue: string, letter: DeadLetter): WebhookEvent {
  const { id, labels, lastFailureMs, attemptCount, fingerprint, error } = letter;
  const { tenant } = labels;
  return {
    id: `job:${queue}:${id}:dead:${lastFailureMs}`,
    topic: 'jobs.dead',
    ...(tenant !== undefined && { tenant }),
    occurredAt: new Date(lastFailureMs).toISOString(),
    data: { queue, jobId: id, labels, attempt: attemptCount, fingerprint, error: shortError(error) },
  };
}

/** Neither the stack nor the payload: both may hold what a receiver should not get. */
function shortError({ name, message }: { name: string; message: string }) {
  return { name, message: message.slice(0, longestMessage) };
}
