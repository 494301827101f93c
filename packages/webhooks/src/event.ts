// What a webhook is told: the same text for every attempt and every receiver.
import { createHash } from 'node:crypto';

/** Something that happened. */
export interface WebhookEvent {
  /** The same every time the same event is published. */
  id: string;
  topic: string;
  /** Whose it is; without one only webhooks of the installation (`*`) hear of it. */
  tenant?: string;
  occurredAt: string;
  data: Readonly<Record<string, unknown>>;
}

export function bodyOf({ id, topic, tenant, occurredAt, data }: WebhookEvent): string {
  return JSON.stringify({ id, topic, ...(tenant !== undefined && { tenant }), occurredAt, data });
}

/** One event for one webhook: what a receiver recognises a repetition by, and the id of the job that delivers it. */
export function deliveryId(eventId: string, webhookId: string): string {
  return createHash('sha256').update(`${eventId}\n${webhookId}`).digest('base64url');
}
