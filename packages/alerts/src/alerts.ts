// Looks at the figures now and then, holds them against the thresholds, and tells webhooks what has changed.
//
// Of all processes one judges, by a lease; how each threshold stands is in Redis. So a restart raises nothing again, another process
// goes on where the last one stopped, and one that was stopped and wakes up later changes nothing. What is told is written down
// before it is told: a crash in between tells it again, with the same id, and the queue of webhooks takes it once.
import { randomBytes } from 'node:crypto';
import { silentLogger, sleep, startStop, type Logger, type Service } from '@sluice/base';
import { loadScript, RedisLink } from '@sluice/redis';
import type { WebhookEvent } from '@sluice/webhooks';
import { isRaised, judge, type Standing } from './judge.js';
import { alertKeys, defaultPrefix } from './keys.js';
import { measure, type Questions } from './measure.js';
import { isKept, thresholds, type Limits, type Threshold } from './threshold.js';

const folder = new URL('../../lua/', import.meta.url);
const leadScript = loadScript(folder, 'lead', ['judge'], ['token', 'leaseMs']);
const keepScript = loadScript(folder, 'keep', ['judge', 'standings'], ['token', 'name', 'standing']);

const defaultEveryMs = 15_000;
const defaultForMs = 120_000;
/** Longer than a few looks: the judge prolongs it with each. */
const looksPerLease = 4;

export interface AlertsOptions {
  inspect: Questions;
  webhooks: { publish(events: readonly WebhookEvent[]): Promise<unknown> };
  redis: string;
  prefix?: string;
  limits?: Limits;
  /** How long a threshold must be crossed until it is told, and kept until it is taken back; 2 minutes. */
  forMs?: number;
  everyMs?: number;
  /** Of the server, for links that lead to what is meant. */
  publicUrl?: string;
  logger?: Logger;
}

export interface AlertRow {
  name: string;
  about: string;
  keep: 'below' | 'above';
  limit: number;
  unit: Threshold['unit'];
  /** Null while it is not known, or too little happened to say. */
  value: number | null;
  met: boolean | null;
  /** `pending` is crossed, `clearing` is kept again, both not yet for long enough. */
  state: Standing['state'];
  since: string | null;
  raisedAt: string | null;
  link: string;
}

export class Alerts implements Service {
  readonly #options: AlertsOptions;
  readonly #thresholds: Threshold[];
  readonly #redis: RedisLink;
  readonly #keys: ReturnType<typeof alertKeys>;
  readonly #token = randomBytes(12).toString('base64url');
  readonly #logger: Logger;
  readonly #service: Service;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #isTroubled = false;

  constructor(options: AlertsOptions) {
    this.#options = options;
    this.#thresholds = thresholds(options.limits);
    this.#logger = options.logger ?? silentLogger;
    this.#redis = new RedisLink(options.redis, { name: 'sluice-alerts' });
    this.#keys = alertKeys(options.prefix ?? defaultPrefix);
    this.#service = startStop({
      name: 'alerts',
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

  /** Ends it and its connection. */
  async close(deadlineMs?: number): Promise<void> {
    await this.stop(deadlineMs);
    this.#redis.close();
  }

  /** How it stands with every threshold, as the judge saw it last. */
  async list(): Promise<AlertRow[]> {
    const standings = await this.#standings();
    return this.#thresholds.map((threshold) => this.#row(threshold, standings.get(threshold.name)));
  }

  /** @internal One look; whether this process is the one that judges. */
  async look(): Promise<boolean> {
    const { everyMs = defaultEveryMs, forMs = defaultForMs } = this.#options;
    const leaseMs = everyMs * looksPerLease;
    const leads = await this.#redis.run(leadScript, this.#keys, { token: this.#token, leaseMs });
    if (String(leads) !== 'LEADS') return false;
    const { atMs, figures } = await measure(this.#options.inspect);
    const standings = await this.#standings();
    for (const threshold of this.#thresholds) {
      const { name } = threshold;
      const standing = judge(threshold, standings.get(name), figures[name], atMs, forMs);
      if (!(await this.#keep(name, standing))) return false;
      if (standing.untold) await this.#tell(threshold, standing);
    }
    return true;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { everyMs = defaultEveryMs } = this.#options;
    while (!signal.aborted) {
      try {
        await this.look();
        this.#isTroubled = false;
      } catch (err) {
        if (!this.#isTroubled && !signal.aborted)
          this.#logger.warn({ err }, 'thresholds cannot be judged now');
        this.#isTroubled = true;
      }
      await sleep(everyMs * (0.9 + Math.random() / 5), signal).catch(() => {});
    }
  }

  async #tell(threshold: Threshold, standing: Standing): Promise<void> {
    const { untold, ...told } = standing;
    const { name, about, keep, limit, unit } = threshold;
    const { value } = standing;
    await this.#options.webhooks.publish([
      {
        id: `alert:${name}:${standing.raisedMs}:${untold}`,
        topic: `sluice.alerts.${untold}`,
        occurredAt: new Date(standing.sinceMs).toISOString(),
        data: { name, about, keep, limit, unit, value: value ?? null, link: this.#link(threshold) },
      },
    ]);
    const log = untold === 'raised' ? 'warn' : 'info';
    this.#logger[log]({ threshold: name, value, limit }, `a threshold is ${untold}`);
    await this.#keep(name, told);
  }

  async #keep(name: string, standing: Standing): Promise<boolean> {
    const args = { token: this.#token, name, standing: JSON.stringify(standing) };
    return String(await this.#redis.run(keepScript, this.#keys, args)) === 'OK';
  }

  async #standings(): Promise<Map<string, Standing>> {
    const reply = (await this.#redis.call('HGETALL', [this.#keys.standings])) as Buffer[];
    const standings = new Map<string, Standing>();
    for (let i = 0; i < reply.length; i += 2)
      standings.set(String(reply[i]), JSON.parse(String(reply[i + 1])) as Standing);
    return standings;
  }

  #row(threshold: Threshold, standing: Standing | undefined): AlertRow {
    const { name, about, keep, limit, unit } = threshold;
    const raisedMs = standing && isRaised(standing) ? standing.raisedMs : undefined;
    return {
      ...{ name, about, keep, limit, unit },
      value: standing?.value ?? null,
      met: isKept(threshold, standing?.value) ?? null,
      state: standing?.state ?? 'ok',
      since: standing ? new Date(standing.sinceMs).toISOString() : null,
      raisedAt: raisedMs === undefined ? null : new Date(raisedMs).toISOString(),
      link: this.#link(threshold),
    };
  }

  #link({ path }: Threshold): string {
    return (this.#options.publicUrl ?? '').replace(/\/$/, '') + path;
  }
}
