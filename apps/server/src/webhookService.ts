/**
 * Webhooks in this process. Every process with files may publish; those that relay events also follow the jobs of all queues, and
 * deliver.
 */
import { isSluiceError, type Logger } from '@sluice/base';
import type { EventSink } from '@sluice/events';
import { AllQueues } from '@sluice/inspect';
import type { Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import type { Route } from '@sluice/rest';
import { AllowedNetworks, FanOut, JobFollower, webhookRoutes, Webhooks } from '@sluice/webhooks';
import type { Config } from './config.js';
import { serverErrors } from './errors.js';
import type { MetricsSource } from './http.js';
import { figure } from './metrics.js';

const PREFIX = 'sluice';

export interface WebhookServiceOptions {
  config: Config;
  redisUrl: string;
  records: Records;
  /** Seals what signs deliveries. */
  secret: string;
  logger: Logger;
}

export class WebhookService {
  readonly webhooks: Webhooks;
  readonly routes: Route[];
  readonly #options: WebhookServiceOptions;
  #follower: { stop(deadlineMs: number): Promise<void> } | undefined;

  constructor(options: WebhookServiceOptions) {
    const { config, redisUrl, records, secret, logger } = options;
    this.#options = options;
    checkNetworks(config.webhookAllow);
    this.webhooks = new Webhooks({
      records,
      redis: redisUrl,
      secret,
      allow: config.webhookAllow,
      workers: config.roles.has('relay') ? config.webhookWorkers : 0,
      timeoutMs: config.webhookTimeoutMs,
      leaseMs: config.leaseMs,
      tracing: config.traces !== undefined,
      logger,
    });
    this.routes = webhookRoutes(this.webhooks);
  }

  async start(): Promise<void> {
    await this.webhooks.start();
    if (this.#options.config.roles.has('relay')) this.#follower = await this.#followJobs();
  }

  /** In front of the sink of the relay. */
  before(sink: EventSink): EventSink {
    return new FanOut(this.webhooks, sink);
  }

  readonly metrics: MetricsSource = async () => {
    const counts = await this.webhooks.queue.counts().catch(() => undefined);
    if (!counts) return '';
    const waiting = counts.waiting + counts.delayed + counts.active;
    return [
      figure('sluice_webhook_deliveries_waiting', 'gauge', 'Deliveries that are yet to be made.', waiting),
      figure('sluice_webhook_deliveries_dead', 'gauge', 'Deliveries that were given up.', counts.dead),
    ].join('');
  };

  async stop(deadlineMs: number): Promise<void> {
    await this.#follower?.stop(deadlineMs);
    await this.webhooks.stop(deadlineMs);
  }

  async #followJobs() {
    const { redisUrl, logger } = this.#options;
    const redis = new RedisLink(redisUrl, { name: 'sluice-job-follower' });
    const queues = new AllQueues(redis, PREFIX, logger);
    const follower = new JobFollower({ webhooks: this.webhooks, queues: () => queues.all(), redis, logger });
    await follower.start();
    return {
      stop: async (deadlineMs: number) => {
        await follower.stop(deadlineMs);
        await queues.close();
        redis.close();
      },
    };
  }
}

/** Here and not where the setting is read: what knows networks is not loaded by processes without webhooks. */
function checkNetworks(networks: readonly string[]): void {
  try {
    void new AllowedNetworks(networks);
  } catch (error) {
    if (!isSluiceError(error, 'WEBHOOK_INVALID')) throw error;
    const wanted = 'networks with commas between them, like "10.1.0.0/16,fd00::/8"';
    const value = networks.join();
    throw serverErrors.BAD_CONFIG({ name: 'SLUICE_WEBHOOK_ALLOW', value, wanted }, { cause: error });
  }
}
