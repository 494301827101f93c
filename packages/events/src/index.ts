// @sluice/events: publishes the outbox in order, at least once, to a sink: a Redis stream.
export { Relay, DEFAULT_BATCH, type RelayOptions } from './relay.js';
export type { EventSink, SinkEvent } from './sink.js';
export {
  RedisStreamSink,
  readEvents,
  readNewest,
  DEFAULT_KEPT_EVENTS,
  type ReadEventsOptions,
  type RedisStreamSinkOptions,
  type StreamEvent,
} from './redisStream.js';
export { eventKeys, followerKey, keyNames } from './keys.js';
