/**
 * Events in a Redis stream: the sink that appends them, and a reader.
 *
 * A batch is one script call. The script remembers the ids it appended last, so that a batch that comes again (the reply was lost, or
 * the relay died before it could remove the rows) makes no second entries as long as it is remembered.
 * The stream keeps about as many events as is said; who reads slower than that loses the oldest.
 */
import { loadScript, type RedisLink } from '@sluice/redis';
import { defaultPrefix, eventKeys, type EventKeys } from './keys.js';
import type { EventSink, SinkEvent } from './sink.js';

const publishScript = loadScript(
  new URL('../../lua/', import.meta.url),
  'publish',
  ['events', 'recent'],
  ['keep', 'remember', 'batch'],
);

export const DEFAULT_KEPT_EVENTS = 100_000;
/** Many times what a relay publishes at once. */
const REMEMBERED_IDS = 10_000;
/** One call stays short, whatever it is given: Redis does nothing else meanwhile. */
const EVENTS_PER_CALL = 500;
const DEFAULT_READ = 100;
const HANGS_AFTER_MS = 3_000;

export interface RedisStreamSinkOptions {
  redis: RedisLink;
  prefix?: string;
  /** About how many events the stream keeps. */
  keep?: number;
}

export class RedisStreamSink implements EventSink {
  private readonly redis: RedisLink;
  private readonly keys: EventKeys;
  private readonly keep: number;

  constructor({ redis, prefix = defaultPrefix, keep = DEFAULT_KEPT_EVENTS }: RedisStreamSinkOptions) {
    this.redis = redis;
    this.keys = eventKeys(prefix);
    this.keep = keep;
  }

  async publish(events: readonly SinkEvent[]): Promise<void> {
    for (let at = 0; at < events.length; at += EVENTS_PER_CALL) {
      const part = events.slice(at, at + EVENTS_PER_CALL);
      const batch = JSON.stringify(
        part.map(({ eventId, topic, key, value }) => [eventId, topic, key, value]),
      );
      await this.redis.run(publishScript, this.keys, { keep: this.keep, remember: REMEMBERED_IDS, batch });
    }
  }
}

export interface StreamEvent extends SinkEvent {
  /** The position in the stream; given as `after`, it continues behind this event. */
  cursor: string;
}

export interface ReadEventsOptions {
  redis: RedisLink;
  prefix?: string;
  /** A cursor; '0', the default, is the oldest event that is kept. */
  after?: string;
  limit?: number;
  /** How long to wait for events when there are none. The link is busy meanwhile: give a link of its own. */
  blockMs?: number;
}

/** The next events after a cursor; none if none came in time. */
export async function readEvents(options: ReadEventsOptions): Promise<StreamEvent[]> {
  const { redis, prefix = defaultPrefix, after = '0', limit = DEFAULT_READ, blockMs = 0 } = options;
  const stream = eventKeys(prefix).events;
  if (blockMs === 0) {
    const args = [stream, `(${after === '0' ? '0-0' : after}`, '+', 'COUNT', limit];
    return ((await redis.call('XRANGE', args)) as Entry[]).map(toEvent);
  }
  const args = ['COUNT', limit, 'BLOCK', blockMs, 'STREAMS', stream, after];
  const reply = (await redis.once('XREAD', args, blockMs + HANGS_AFTER_MS)) as unknown[] | null;
  return entriesOf(reply).map(toEvent);
}

/** The newest events, the last one first; with a cursor those before it. */
export async function readNewest(
  options: Pick<ReadEventsOptions, 'redis' | 'prefix' | 'limit'> & { before?: string },
): Promise<StreamEvent[]> {
  const { redis, prefix = defaultPrefix, before, limit = DEFAULT_READ } = options;
  const end = before === undefined ? '+' : `(${before}`;
  const entries = await redis.call('XREVRANGE', [eventKeys(prefix).events, end, '-', 'COUNT', limit]);
  return (entries as Entry[]).map(toEvent);
}

type Entry = [id: Buffer, fields: Buffer[]];

/** [[key, entries]] or, as the newer protocol has it, [key, entries]. */
function entriesOf(reply: unknown[] | null): Entry[] {
  if (reply === null) return [];
  const [first, second] = reply;
  return (Array.isArray(first) ? (first as unknown[])[1] : second) as Entry[];
}

function toEvent([id, fields]: Entry): StreamEvent {
  const event: Record<string, string> = {};
  for (let i = 0; i < fields.length; i += 2) event[fields[i]!.toString()] = fields[i + 1]!.toString();
  return {
    cursor: id.toString(),
    eventId: event['id'] ?? '',
    topic: event['topic'] ?? '',
    key: event['key'] ?? '',
    value: event['data'] ?? '',
  };
}
