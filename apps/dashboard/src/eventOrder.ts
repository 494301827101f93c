// Events of the list and events of the stream as one list, the newest first, each once.
import type { EventRow } from './data/shapes.js';

/** The topic itself, or with a dot at the end all that begin so; as the server matches them. */
export function isOfTopic(topic: string, wanted: string): boolean {
  return wanted === '' || topic === wanted || (wanted.endsWith('.') && topic.startsWith(wanted));
}

export function newestFirst(listed: readonly EventRow[], streamed: readonly EventRow[]): EventRow[] {
  const byPlace = new Map([...streamed, ...listed].map((event) => [event.cursor, event]));
  return [...byPlace.values()].sort((a, b) => byAge(b.cursor, a.cursor));
}

/** Places of a stream are `milliseconds-number`; as texts they do not sort. */
export function byAge(a: string, b: string): number {
  const [ms = 0, number = 0] = a.split('-').map(Number);
  const [otherMs = 0, otherNumber = 0] = b.split('-').map(Number);
  return ms - otherMs || number - otherNumber;
}
