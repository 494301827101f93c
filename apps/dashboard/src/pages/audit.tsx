// Who changed what, when, and how it ended.
import { get } from '../data/api.js';
import type { AuditRow, Page } from '../data/shapes.js';
import { Field } from '../parts/field.js';
import { brief } from '../parts/json.js';
import { Empty } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { Mark, PageFrame, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { At } from '../parts/time.js';
import { filter, query, to } from '../place.js';

const everyMs = 10_000;

export default function AuditPage() {
  const action = query.value.get('action') ?? '';
  const actor = query.value.get('actor') ?? '';
  const pages = usePages<AuditRow>(
    `audit ${action} ${actor}`,
    (after, abort) =>
      get<Page<AuditRow>>('/v1/audit', {
        query: { action, actor, limit: 50, after },
        signal: abort,
      }),
    everyMs,
  );
  return (
    <PageFrame title="Audit" lead="Every change, the newest first">
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Field
          label="Action"
          type="search"
          value={action}
          placeholder="queue.pause"
          settle={(text) => filter({ action: text })}
        />
        <Field
          label="Key"
          type="search"
          value={actor}
          placeholder="its id"
          settle={(text) => filter({ actor: text })}
        />
      </form>
      <Panel title="Changes" flush>
        <Listing
          pages={pages}
          one="change"
          isFiltered={action !== '' || actor !== ''}
          none={
            <Empty title="Nobody has changed anything">
              Pauses, replays, keys, drives: everything that somebody changes is written down here before it
              happens.
            </Empty>
          }
        >
          {(rows) => (
            <Table
              label="Changes"
              rows={rows}
              keyOf={(row) => row.id ?? `${row.at} ${row.requestId ?? ''}`}
              columns={columns}
            />
          )}
        </Listing>
      </Panel>
    </PageFrame>
  );
}

const columns: Column<AuditRow>[] = [
  { title: 'When', cell: ({ at }) => <At at={at} /> },
  { title: 'Action', name: true, cell: ({ action }) => <a href={to('audit', { action })}>{action}</a> },
  {
    title: 'By',
    name: true,
    cell: ({ actor, actorName }) =>
      actor && actor !== 'open' ? (
        <a href={to('audit', { actor })}>{actorName || actor}</a>
      ) : (
        <span class="faint">{actorName || 'no key'}</span>
      ),
  },
  { title: 'Tenant', name: true, cell: ({ tenant }) => tenant ?? '*' },
  {
    title: 'Outcome',
    tight: true,
    cell: ({ outcome }) =>
      outcome === 'done' ? (
        <span class="soft">done</span>
      ) : (
        <Mark tone={outcome === null ? 'warn' : 'bad'}>{outcome ?? 'not known'}</Mark>
      ),
  },
  {
    title: 'Details',
    cut: true,
    cell: ({ target, details }) => {
      const text = [
        target,
        ...Object.entries(details ?? {}).map(([name, value]) => `${name}: ${brief(value)}`),
      ]
        .filter(Boolean)
        .join(' · ');
      return <span title={text}>{text}</span>;
    },
  },
];
