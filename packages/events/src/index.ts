// @sluice/events: publishes the outbox in order, at least once, to a sink: a Redis stream.
export {};
