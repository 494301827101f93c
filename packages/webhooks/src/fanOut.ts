// Events of the records on their way to webhooks. It stands in front of the relay's own sink: a row leaves the outbox only when both have
// confirmed, so an event that happened is an event that is in the queue, whatever dies in between. Following the stream instead would
// lose what the stream has dropped by the time a follower comes back.
import type { EventSink, SinkEvent } from '@sluice/events';
import type { WebhookEvent } from './event.js';
import type { Webhooks } from './webhooks.js';

export class FanOut implements EventSink {
  constructor(
    private readonly webhooks: Pick<Webhooks, 'publish'>,
    private readonly next: EventSink,
  ) {}

  async publish(events: readonly SinkEvent[]): Promise<void> {
    await Promise.all([this.webhooks.publish(events.map(toWebhookEvent)), this.next.publish(events)]);
  }
}

function toWebhookEvent({ eventId, topic, value }: SinkEvent): WebhookEvent {
  const { tenant, occurredAt, eventId: _, type: __, ...data } = JSON.parse(value) as Record<string, unknown>;
  return {
    id: eventId,
    topic,
    ...(typeof tenant === 'string' && { tenant }),
    occurredAt: String(occurredAt),
    data,
  };
}
