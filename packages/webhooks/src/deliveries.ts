// How the last deliveries of each webhook went, for people who look for the reason. Bounded in number and in time; what counts is in the
// queue.
import type { RedisLink } from '@sluice/redis';
import { loadScript } from '@sluice/redis';
import { webhookKeys } from './keys.js';

const noteScript = loadScript(
  new URL('../../lua/', import.meta.url),
  'note',
  ['deliveries', 'order'],
  ['id', 'atMs', 'note', 'keep', 'keepMs'],
);

export const keptDeliveries = 100;
const keepMs = 30 * 86_400_000;
const deadlineMs = 3_000;

export interface Delivery {
  id: string;
  eventId: string;
  topic: string;
  /** `retrying` will be tried again; `dead` lies with the dead letters of the queue. */
  state: 'delivered' | 'retrying' | 'dead' | 'skipped';
  attempt: number;
  /** Of the answer, if there was one. */
  status?: number;
  error?: string;
  tookMs: number;
  at: string;
}

export class Deliveries {
  constructor(
    private readonly redis: RedisLink,
    private readonly prefix: string,
  ) {}

  async note(webhookId: string, delivery: Delivery): Promise<void> {
    const { id, at } = delivery;
    const note = JSON.stringify(delivery);
    const args = { id, atMs: Date.parse(at), note, keep: keptDeliveries, keepMs };
    await this.redis.run(noteScript, webhookKeys(this.prefix, webhookId), args, { deadlineMs });
  }

  /** The latest first. */
  async list(webhookId: string, limit: number): Promise<Delivery[]> {
    const keys = webhookKeys(this.prefix, webhookId);
    const ids = (await this.redis.call('ZRANGE', [keys.order, 0, limit - 1, 'REV'])) as Buffer[];
    if (ids.length === 0) return [];
    const notes = (await this.redis.call('HMGET', [keys.deliveries, ...ids])) as (Buffer | null)[];
    return notes.flatMap((note) => (note ? [JSON.parse(String(note)) as Delivery] : []));
  }

  async forget(webhookId: string): Promise<void> {
    const { deliveries, order } = webhookKeys(this.prefix, webhookId);
    await this.redis.call('DEL', [deliveries, order]);
  }
}
