// The Redis keys of the event stream. A key is `<prefix>:{events}:<name>`; the braces are the hash tag that keeps both in
// one cluster slot, because one script writes both.

export const keyNames = {
  /** STREAM: the events, oldest first. */
  events: 'events',
  /** ZSET: ids of the events appended last, scored with the moment (ms). */
  recent: 'recent',
  /** STRING: how far somebody has come who follows the events; behind it, who. */
  cursor: 'cursor',
} as const;

export const defaultPrefix = 'sluice';

export type EventKeys = Readonly<Record<'events' | 'recent', string>>;

export function eventKeys(prefix: string): EventKeys {
  const base = `${prefix}:{events}:`;
  return { events: base + keyNames.events, recent: base + keyNames.recent };
}

export function followerKey(who: string, prefix: string = defaultPrefix): string {
  return `${prefix}:{events}:${keyNames.cursor}:${who}`;
}
