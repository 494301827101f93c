// The page that users read: webhooks are made, changed, rotated, tried and deleted here, and told of events.
//
//   something happens ──▶ publish: one job for each webhook that wants it ──▶ queue `sluice.webhooks` ──▶ courier ──▶ receiver
//
// Publishing is safe to repeat: the job's id is made of the event's and the webhook's, and the queue takes it once. What has been
// published is in the queue, with everything that a queue promises; what could not be delivered is with its dead letters.
import { randomUUID } from 'node:crypto';
import { silentLogger, type Logger } from '@sluice/base';
import { Queue, type Worker } from '@sluice/queue';
import type { Records, SealedSecret, WebhookRecord } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import { AllowedNetworks } from './address.js';
import { Courier, type Errand } from './courier.js';
import { Deliveries, keptDeliveries, type Delivery } from './deliveries.js';
import { webhookErrors } from './errors.js';
import { bodyOf, deliveryId, type WebhookEvent } from './event.js';
import { defaultPrefix } from './keys.js';
import { newSecret, Seal } from './sealing.js';
import { checkTopics, matches } from './topics.js';
import { findTarget, type Resolve } from './target.js';
import { isSluiceError } from '@sluice/base';

export const webhookQueue = 'sluice.webhooks';
/** With the pauses below: for more than half a day. */
const defaultAttempts = 20;
const firstPauseMs = 5_000;
const longestPauseMs = 3_600_000;
const defaultTimeoutMs = 10_000;
const defaultWorkers = 20;
/** A relay that died repeats what it published within seconds; a day is plenty. */
const rememberMs = 86_400_000;
const jobsPerCall = 500;
const defaultGraceMs = 24 * 3_600_000;
const longestGraceMs = 30 * 24 * 3_600_000;
export const everything = '*';

export interface WebhooksOptions {
  records: Records;
  redis: string;
  prefix?: string;
  /** Seals the secrets at rest. */
  secret: string;
  /** Networks that may be reached although they are not public: `10.1.0.0/16`. */
  allow?: readonly string[];
  /** How many deliveries this process makes at once; 0: it only publishes. */
  workers?: number;
  attempts?: number;
  firstPauseMs?: number;
  timeoutMs?: number;
  leaseMs?: number;
  /** Of names, instead of the system's. */
  resolve?: Resolve;
  /** Also trusts receivers with certificates of this authority. */
  ca?: string;
  tracing?: boolean;
  logger?: Logger;
}

/** What may be shown of a webhook: not its secrets. */
export interface WebhookView {
  id: string;
  tenant: string;
  url: string;
  topics: string[];
  active: boolean;
  /** How many secrets sign now: two while one replaces another. */
  secrets: number;
  createdAt: string;
  updatedAt: string;
}

export interface WebhookDraft {
  tenant: string;
  url: string;
  topics: string[];
  active?: boolean;
}

export class Webhooks {
  readonly queue: Queue<Errand>;
  readonly #options: WebhooksOptions;
  readonly #records: Records;
  readonly #redis: RedisLink;
  readonly #seal: Seal;
  readonly #allowed: AllowedNetworks;
  readonly #deliveries: Deliveries;
  #worker: Worker<Errand> | undefined;

  constructor(options: WebhooksOptions) {
    const { redis, prefix = defaultPrefix, attempts = defaultAttempts, logger = silentLogger } = options;
    this.#options = options;
    this.#records = options.records;
    this.#seal = new Seal(options.secret);
    this.#allowed = new AllowedNetworks(options.allow);
    this.#redis = new RedisLink(redis, { name: 'sluice-webhooks' });
    this.#deliveries = new Deliveries(this.#redis, prefix);
    this.queue = new Queue<Errand>(webhookQueue, {
      redis,
      prefix,
      attempts,
      backoff: {
        type: 'exponential',
        delayMs: options.firstPauseMs ?? firstPauseMs,
        factor: 3,
        maxMs: longestPauseMs,
        jitter: 0.2,
      },
      ...(options.tracing && { tracing: true }),
      logger,
    });
  }

  /** Begins to deliver, if this process is to. */
  async start(): Promise<void> {
    const { workers = defaultWorkers, leaseMs, logger = silentLogger } = this.#options;
    if (workers === 0 || this.#worker) return;
    const { attempts = defaultAttempts, timeoutMs = defaultTimeoutMs, resolve, ca } = this.#options;
    const courier = new Courier({
      records: this.#records,
      seal: this.#seal,
      allowed: this.#allowed,
      deliveries: this.#deliveries,
      attempts,
      timeoutMs,
      ...(resolve && { resolve }),
      ...(ca !== undefined && { ca }),
      logger,
    });
    this.#worker = this.queue.work((job) => courier.deliver(job), {
      concurrency: workers,
      ...(leaseMs !== undefined && { leaseMs }),
    });
    await this.#worker.start();
  }

  async stop(deadlineMs?: number): Promise<void> {
    await this.queue.close(deadlineMs);
    this.#redis.close();
  }

  /** The secret is shown once, here. */
  async create({
    tenant,
    url,
    topics,
    active = true,
  }: WebhookDraft): Promise<WebhookView & { secret: string }> {
    await this.#checkUrl(url);
    const id = `wh_${randomUUID()}`;
    const secret = newSecret();
    const secrets = [{ sealed: this.#seal.close(secret, id) }];
    const draft = { id, tenant, url, topics: checkTopics(topics), secrets, active };
    return { ...view(await this.#records.webhooks.create(draft)), secret };
  }

  async get(tenant: string, id: string): Promise<WebhookView> {
    return view(await this.#find(tenant, id));
  }

  async list(tenant: string, page?: { after?: string; limit?: number }): Promise<WebhookView[]> {
    return (await this.#records.webhooks.list(tenant, page)).map(view);
  }

  async update(
    tenant: string,
    id: string,
    change: Partial<Pick<WebhookDraft, 'url' | 'topics' | 'active'>>,
  ): Promise<WebhookView> {
    const { url, topics, active } = change;
    if (url !== undefined) await this.#checkUrl(url);
    const changed = await this.#records.webhooks.update(tenant, id, {
      ...(url !== undefined && { url }),
      ...(topics !== undefined && { topics: checkTopics(topics) }),
      ...(active !== undefined && { active }),
    });
    if (!changed) throw webhookErrors.WEBHOOK_NOT_FOUND({ id: id.slice(0, 80) });
    return view(changed);
  }

  /** A new secret, shown once, here. The one before signs as well until the time of grace is over; earlier ones end now. */
  async rotate(
    tenant: string,
    id: string,
    graceMs = defaultGraceMs,
  ): Promise<WebhookView & { secret: string; previousEndsAt: string }> {
    const { secrets } = await this.#find(tenant, id);
    const secret = newSecret();
    const previousEndsAt = new Date(Date.now() + Math.min(graceMs, longestGraceMs)).toISOString();
    const previous: SealedSecret[] = secrets.slice(0, 1).map((each) => ({ ...each, endsAt: previousEndsAt }));
    const kept = [{ sealed: this.#seal.close(secret, id) }, ...previous];
    const changed = await this.#records.webhooks.update(tenant, id, { secrets: kept });
    if (!changed) throw webhookErrors.WEBHOOK_NOT_FOUND({ id });
    return { ...view(changed), secret, previousEndsAt };
  }

  async delete(tenant: string, id: string): Promise<void> {
    if (!(await this.#records.webhooks.delete(tenant, id)))
      throw webhookErrors.WEBHOOK_NOT_FOUND({ id: id.slice(0, 80) });
    await this.#deliveries.forget(id);
  }

  /** The last hundred, the latest first. */
  async deliveries(tenant: string, id: string, limit = keptDeliveries): Promise<Delivery[]> {
    await this.#find(tenant, id);
    return this.#deliveries.list(id, Math.min(limit, keptDeliveries));
  }

  /** Sends an event that tells of nothing. Returns the id of the delivery. */
  async test(tenant: string, id: string): Promise<string> {
    const webhook = await this.#find(tenant, id);
    const event: WebhookEvent = {
      id: `test:${randomUUID()}`,
      topic: 'sluice.webhooks.test',
      tenant,
      occurredAt: new Date().toISOString(),
      data: { message: 'Hello from Sluice' },
    };
    await this.queue.addMany([errandOf(event, webhook)]);
    return deliveryId(event.id, id);
  }

  /** Resolves when every webhook that wants one of these has it in the queue. Safe to repeat. */
  async publish(events: readonly WebhookEvent[]): Promise<number> {
    if (events.length === 0) return 0;
    const webhooks = await this.active();
    const errands = events.flatMap((event) =>
      webhooks.filter((webhook) => wants(webhook, event)).map((webhook) => errandOf(event, webhook)),
    );
    for (let at = 0; at < errands.length; at += jobsPerCall)
      await this.queue.addMany(errands.slice(at, at + jobsPerCall));
    return errands.length;
  }

  /** Those of everybody that are to be told something. */
  active(): Promise<WebhookRecord[]> {
    return this.#records.webhooks.active();
  }

  async #find(tenant: string, id: string): Promise<WebhookRecord> {
    const webhook = await this.#records.webhooks.get(tenant, id);
    if (!webhook) throw webhookErrors.WEBHOOK_NOT_FOUND({ id: id.slice(0, 80) });
    return webhook;
  }

  /** A name that nobody knows yet may be known when it is needed; an address out of bounds is refused now and then. */
  async #checkUrl(url: string): Promise<void> {
    try {
      await findTarget(url, this.#allowed, this.#options.resolve);
    } catch (error) {
      if (!isSluiceError(error, 'HOST_UNKNOWN')) throw error;
    }
  }
}

function wants({ tenant, topics }: WebhookRecord, event: WebhookEvent): boolean {
  return (tenant === everything || tenant === event.tenant) && matches(topics, event.topic);
}

/** Webhooks take turns: one that is slow does not hold up the others. */
function errandOf(event: WebhookEvent, { id, tenant }: WebhookRecord) {
  return {
    data: { webhookId: id, eventId: event.id, topic: event.topic, body: bodyOf(event) },
    id: deliveryId(event.id, id),
    rememberMs,
    group: id,
    ...(tenant !== everything && { labels: { tenant } }),
  };
}

function view({ secrets, createdAt, updatedAt, ...rest }: WebhookRecord): WebhookView {
  const live = secrets.filter(({ endsAt }) => endsAt === undefined || Date.parse(endsAt) > Date.now());
  return {
    ...rest,
    secrets: live.length,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
