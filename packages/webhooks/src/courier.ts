// Delivers: the handler of the queue `sluice.webhooks`. It looks the webhook up for each attempt, so that a change of address, secret or
// mind counts at once; finds out where the name leads now; signs; sends; and says in one note how it went.
//
//   2xx              done
//   410              the receiver is gone for good: dead letter at once
//   429, 503         tried again when Retry-After says so, within bounds
//   anything else    tried again with growing pauses, until the attempts are used up: dead letter
//   refused address  dead letter at once: trying again would only ask the same name again
import { isSluiceError, type Logger } from '@sluice/base';
import { GiveUp, RetryAt, type Job } from '@sluice/queue';
import type { Records, WebhookRecord } from '@sluice/records';
import type { AllowedNetworks } from './address.js';
import type { Deliveries, Delivery } from './deliveries.js';
import { webhookErrors } from './errors.js';
import type { Seal } from './sealing.js';
import { send } from './send.js';
import { sign } from './signature.js';
import { findTarget, type Resolve } from './target.js';

const longestRetryAfterMs = 3_600_000;

/** What a job of the queue says. */
export interface Errand {
  webhookId: string;
  eventId: string;
  topic: string;
  body: string;
}

export interface CourierOptions {
  records: Records;
  seal: Seal;
  allowed: AllowedNetworks;
  deliveries: Deliveries;
  attempts: number;
  timeoutMs: number;
  resolve?: Resolve;
  ca?: string;
  logger: Logger;
}

export class Courier {
  constructor(private readonly options: CourierOptions) {}

  /** Throws or returns what the queue is to do next. */
  async deliver(job: Job<Errand>): Promise<{ status: number } | { skipped: string } | GiveUp | RetryAt> {
    const webhook = await this.options.records.webhooks.find(job.data.webhookId);
    if (!webhook?.active) {
      if (webhook) await this.#note(job, { state: 'skipped', tookMs: 0 });
      return { skipped: 'the webhook is gone or was switched off' };
    }
    const began = performance.now();
    const tookMs = () => Math.round(performance.now() - began);
    try {
      const { status, retryAfter } = await this.#attempt(webhook, job);
      const ok = status >= 200 && status < 300;
      if (ok) {
        await this.#note(job, { state: 'delivered', status, tookMs: tookMs() });
        return { status };
      }
      const error = webhookErrors.DELIVERY_FAILED({
        origin: new URL(webhook.url).origin,
        reason: `it answered ${status}`,
      });
      const isOver = status === 410 || this.#isLast(job);
      await this.#note(job, {
        state: isOver ? 'dead' : 'retrying',
        status,
        error: error.message,
        tookMs: tookMs(),
      });
      if (status === 410) return new GiveUp(error.message, { cause: error });
      const waitMs = retryAfterMs(retryAfter);
      if (!isOver && waitMs !== undefined) return new RetryAt(Date.now() + waitMs, error.message);
      throw error;
    } catch (error) {
      if (isSluiceError(error, 'DELIVERY_FAILED') && error.cause === undefined) throw error;
      const isRefused = isSluiceError(error, 'ADDRESS_REFUSED') || isSluiceError(error, 'WEBHOOK_INVALID');
      const message = error instanceof Error ? error.message : String(error);
      const state = isRefused || this.#isLast(job) ? 'dead' : 'retrying';
      await this.#note(job, { state, error: message, tookMs: tookMs() });
      if (isRefused) return new GiveUp(message, { cause: error });
      throw error;
    }
  }

  async #attempt(webhook: WebhookRecord, job: Job<Errand>) {
    const { body, topic } = job.data;
    const { allowed, timeoutMs, resolve, ca } = this.options;
    const target = await findTarget(webhook.url, allowed, resolve);
    const timestamp = String(Math.floor(Date.now() / 1_000));
    return send(target, {
      body,
      timeoutMs,
      signal: job.signal,
      ...(ca !== undefined && { ca }),
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': 'Sluice-Webhooks/1',
        'X-Sluice-Id': job.id,
        'X-Sluice-Topic': topic,
        'X-Sluice-Attempt': String(job.attempt),
        'X-Sluice-Timestamp': timestamp,
        'X-Sluice-Signature': sign(this.#secretsOf(webhook), timestamp, body),
      },
    });
  }

  #secretsOf({ id, secrets }: WebhookRecord): string[] {
    const live = secrets.filter(({ endsAt }) => endsAt === undefined || Date.parse(endsAt) > Date.now());
    const opened = live.flatMap(({ sealed }) => this.options.seal.open(sealed, id) ?? []);
    if (opened.length > 0) return opened;
    const reason = 'it was sealed with another SLUICE_SECRET; rotate it';
    throw webhookErrors.WEBHOOK_INVALID({ field: 'secret', reason });
  }

  #isLast({ attempt }: Job<Errand>): boolean {
    return attempt >= this.options.attempts;
  }

  /** Notes are for people; a delivery does not fail for want of one. */
  async #note(job: Job<Errand>, how: Omit<Delivery, 'id' | 'eventId' | 'topic' | 'attempt' | 'at'>) {
    const { webhookId, eventId, topic } = job.data;
    const note = { id: job.id, eventId, topic, attempt: job.attempt, at: new Date().toISOString(), ...how };
    try {
      await this.options.deliveries.note(webhookId, note);
    } catch (err) {
      this.options.logger.warn({ err, webhookId }, 'how a delivery went was not written down');
    }
  }
}

/** Seconds or a date; undefined if it is neither. */
function retryAfterMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, Math.min(ms, longestRetryAfterMs)) : undefined;
}
