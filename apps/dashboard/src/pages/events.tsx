// Events: what waits to be published, and the last ones that were.
import { useEffect, useRef } from 'preact/hooks';
import { sendFile } from '../commands.js';
import { get, session } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { events as live, eventsLostUpTo, overview } from '../data/live.js';
import type { EventRow, Page } from '../data/shapes.js';
import { byAge, isOfTopic, newestFirst } from '../eventOrder.js';
import { Field } from '../parts/field.js';
import { brief } from '../parts/json.js';
import { Empty, Notice } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { Figures, PageFrame, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { tenantIn } from '../parts/tenantField.js';
import { Ago } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { number, span } from '../format.js';

const lateMs = 60_000;

export default function EventsPage() {
  const topic = query.value.get('topic') ?? '';
  const outbox = useAnswer(session.value?.installation && !overview.value ? 'outbox' : null, (abort) =>
    get<{ waiting: number; oldestMs: number }>('/v1/events/outbox', { signal: abort }),
  );
  /** What the stream had brought when the list was asked for: the list has everything up to there. */
  const listedUpTo = useRef('');
  const pages = usePages<EventRow>(`events ${topic}`, (cursor, abort) => {
    if (cursor === undefined) listedUpTo.current = live.value[0]?.cursor ?? eventsLostUpTo.value ?? '';
    return get<Page<EventRow>>('/v1/events', {
      query: { topic, limit: 50, cursor },
      signal: abort,
    });
  });
  // More came than the stream keeps or sends: between the list and the stream there is a hole, and the list is asked for again. Not while
  // somebody reads further down; they are told.
  const lost = eventsLostUpTo.value;
  const hasHole = lost !== null && pages.items !== undefined && byAge(lost, listedUpTo.current) > 0;
  useEffect(() => {
    if (hasHole && !pages.isFurther) pages.again();
  }, [hasHole]);
  const state = overview.value?.outbox ?? outbox.data;
  const fresh = live.value.filter(({ topic: of }) => isOfTopic(of, topic));
  const rows = pages.items && newestFirst(pages.items, fresh);
  return (
    <PageFrame title="Events">
      {state && (
        <Figures
          label="Outbox"
          items={[
            { label: 'Waiting to be published', value: number(state.waiting), about: 'in the outbox' },
            {
              label: 'Oldest of them',
              value: state.waiting === 0 ? '–' : span(state.oldestMs),
              about: state.oldestMs > lateMs ? 'the relay is late' : 'on time',
              tone: state.oldestMs > lateMs ? 'warn' : 'neutral',
            },
          ]}
        />
      )}
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Field
          grow
          label="Topic"
          type="search"
          value={topic}
          placeholder="all; a dot at the end takes all that begin so"
          settle={(text) => filter({ topic: text })}
        />
      </form>
      {hasHole && pages.isFurther && (
        <Notice
          tone="warn"
          actions={
            <button class="button small" type="button" onClick={pages.again}>
              Show the newest
            </button>
          }
        >
          More events came than this list could take; some between these are missing.
        </Notice>
      )}
      <Panel title="Published" note="the newest first" flush>
        <Listing
          pages={pages}
          rows={rows}
          one="event"
          isFiltered={topic !== ''}
          none={
            <Empty title="Nothing has happened yet" command={sendFile()}>
              Every file that arrives, moves or goes is told here. This uploads one:
            </Empty>
          }
        >
          {(all) => <Table label="Events" rows={all} keyOf={({ cursor }) => cursor} columns={columns} />}
        </Listing>
      </Panel>
    </PageFrame>
  );
}

const columns: Column<EventRow>[] = [
  {
    title: 'Event',
    name: true,
    cell: ({ eventId, data }) => (
      <a class="mono" href={to('trace', { id: eventId, tenant: tenantIn(data) })}>
        {eventId}
      </a>
    ),
  },
  {
    title: 'Topic',
    wide: true,
    cell: ({ topic }) => <a href={to('events', { topic })}>{topic}</a>,
  },
  {
    title: 'Data',
    cut: true,
    cell: ({ data }) => <code title={brief(data)}>{brief(data)}</code>,
  },
  { title: 'Published', number: true, cell: ({ cursor }) => <Ago at={Number(cursor.split('-')[0])} /> },
];
