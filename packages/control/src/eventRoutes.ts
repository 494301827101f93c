// Published events, and what waits to be published.
import { readEvents, readNewest, type StreamEvent } from '@sluice/events';
import { restErrors, type Route } from '@sluice/rest';
import type { Principal } from '@sluice/access';
import type { ControlParts } from './parts.js';
import { pageOf, paging } from './query.js';

/** A page that is filtered looks at so many at most, and says how far it came. */
const maxScanned = 5_000;
const perRead = 500;

export function eventRoutes({ events, records }: ControlParts): Route[] {
  return [
    {
      method: 'GET',
      url: '/v1/events',
      needs: 'viewer',
      of: 'tenant',
      summary: 'Events, the newest first; with `after`, those behind it, the oldest first.',
      answers: '200 {items, next, scanned}',
      query: {
        topic: { type: 'string', description: 'A topic, or the beginning of several: repository.documents.' },
        after: { type: 'string', description: 'The `cursor` of an event.' },
        ...paging,
      },
      handle: async ({ query, principal }) => {
        const { limit, cursor } = pageOf(query);
        const { topic, after } = query;
        const items: object[] = [];
        let at = checkCursor(after ?? cursor);
        let scanned = 0;
        let isEnd = false;
        while (items.length < limit && scanned < maxScanned && !isEnd) {
          const batch =
            after === undefined
              ? await readNewest({ redis: events, limit: perRead, ...(at !== undefined && { before: at }) })
              : await readEvents({ redis: events, limit: perRead, after: at! });
          isEnd = batch.length < perRead;
          for (const event of batch) {
            if (items.length === limit) {
              isEnd = false;
              break;
            }
            scanned++;
            at = event.cursor;
            const view = eventView(event);
            if (isFor(principal, view) && (topic === undefined || isOfTopic(event.topic, topic)))
              items.push(view);
          }
        }
        // Whoever follows goes on behind the last one, also at the end.
        return { items, next: isEnd && after === undefined ? null : (at ?? null), scanned };
      },
    },
    {
      method: 'GET',
      url: '/v1/events/outbox',
      needs: 'viewer',
      of: 'installation',
      summary: 'How many events wait to be published, and for how long.',
      answers: '200 {waiting, oldestMs}',
      handle: () => records.outbox.state(),
    },
  ];
}

export interface EventView {
  cursor: string;
  eventId: string;
  topic: string;
  key: string;
  data: Record<string, unknown>;
}

export function eventView({ cursor, eventId, topic, key, value }: StreamEvent): EventView {
  return { cursor, eventId, topic, key, data: parsed(value) };
}

/** What has no tenant concerns the installation. */
export function isFor({ installation, tenant }: Principal, { data }: EventView): boolean {
  return installation || data['tenant'] === tenant;
}

function isOfTopic(topic: string, wanted: string): boolean {
  return topic === wanted || (wanted.endsWith('.') && topic.startsWith(wanted));
}

function checkCursor(text: string | undefined): string | undefined {
  if (text !== undefined && text !== '0' && !/^\d{1,15}-\d{1,15}$/.test(text))
    throw restErrors.REQUEST_INVALID({ reason: 'a cursor is what an event has as `cursor`, or 0' });
  return text;
}

function parsed(value: string): Record<string, unknown> {
  try {
    const data = JSON.parse(value) as unknown;
    return typeof data === 'object' && data !== null ? (data as Record<string, unknown>) : { value: data };
  } catch {
    return { value };
  }
}
