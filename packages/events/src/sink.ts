/**
 * Where events go. The contract fits a Redis stream and Kafka alike: a topic, a key that keeps the order of what belongs
 * together, a value, and an id by which a consumer recognises an event that came twice.
 */
export interface SinkEvent {
  /** The same every time the same event is published. */
  eventId: string;
  topic: string;
  /** The node: events with the same key stay in order. */
  key: string;
  /** JSON. */
  value: string;
}

export interface EventSink {
  /**
   * Resolves when all of them are safe, in this order; rejects when that is not certain. The same events are then published
   * again. It settles by a deadline of its own.
   */
  publish(events: readonly SinkEvent[]): Promise<void>;
}
