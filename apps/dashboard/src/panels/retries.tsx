// Jobs that failed and wait for their next attempt, by queue, with how long until the next one.
import type { Overview } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Empty } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Until } from '../parts/time.js';
import { to } from '../place.js';
import { atLeast, leftOut, number } from '../format.js';

const shown = 8;

export function RetriesPanel({ overview }: PanelProps) {
  const { queues, count, complete } = overview.retries;
  const rows = queues.slice(0, shown);
  return (
    <Panel
      title="Retry queues"
      flush
      note={atLeast(number(count), complete)}
      actions={<a href="/retries">All retries</a>}
      foot={leftOut(rows.length, queues.length, 'queues')}
    >
      {rows.length === 0 && !complete ? (
        <Empty title="No retry so far">
          Other jobs that wait for their time come first. <a href="/retries">Look further</a>.
        </Empty>
      ) : rows.length === 0 ? (
        <Empty title="Nothing waits for another attempt">
          A job that fails comes back later, each time after a longer pause.
        </Empty>
      ) : (
        <Table label="Retries by queue" rows={rows} keyOf={({ queue }) => queue} columns={columns} />
      )}
    </Panel>
  );
}

const columns: Column<Overview['retries']['queues'][number]>[] = [
  { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('retries', { queue })}>{queue}</a> },
  { title: 'Pending', number: true, cell: ({ count, complete }) => atLeast(number(count), complete) },
  { title: 'Next retry in', number: true, cell: ({ nextMs }) => <Until at={nextMs} /> },
];
