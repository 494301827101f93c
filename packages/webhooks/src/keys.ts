// Every Redis key of webhooks is built here and described in docs/redis-keys.md (a test compares the two). The queue of deliveries has
// keys of its own, those of any queue.
//
// A key is `<prefix>:{webhooks}:<name>`; the names are families, behind which an id follows.

export const keyNames = {
  /** HASH: how the last deliveries of a webhook went, by their ids. */
  deliveries: 'deliveries:',
  /** ZSET: the ids of those deliveries by the time of their last attempt. */
  order: 'order:',
  /** STRING: how far the events of a queue's jobs were followed. */
  jobs: 'jobs:',
} as const;

export const defaultPrefix = 'sluice';

export function webhookKeys(prefix: string, id: string): { deliveries: string; order: string } {
  const base = `${prefix}:{webhooks}:`;
  return { deliveries: base + keyNames.deliveries + id, order: base + keyNames.order + id };
}

export function jobCursorKey(prefix: string, queue: string): string {
  return `${prefix}:{webhooks}:${keyNames.jobs}${queue}`;
}
