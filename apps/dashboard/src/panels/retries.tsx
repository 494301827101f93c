// Jobs that failed and wait for their next attempt, by queue, with how long until the next one.
import type { PanelProps } from '../panels.js';
import { Empty } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';
import { Table } from '../parts/table.js';
import { Until } from '../parts/time.js';
import { to } from '../place.js';
import { number } from '../format.js';

const shown = 8;

export function RetriesPanel({ overview }: PanelProps) {
  const rows = overview.queues
    .filter(({ counts }) => counts.delayed > 0)
    .sort((a, b) => (a.counts.nextDueMs ?? Infinity) - (b.counts.nextDueMs ?? Infinity))
    .slice(0, shown);
  return (
    <Panel
      title="Retry queues"
      flush
      note={number(overview.retries.count)}
      actions={<a href="/retries">All retries</a>}
    >
      {rows.length === 0 ? (
        <Empty title="Nothing waits for another attempt">
          A job that fails comes back later, each time after a longer pause.
        </Empty>
      ) : (
        <Table
          label="Retries by queue"
          rows={rows}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Queue', cell: ({ name }) => <a href={to('retries', { queue: name })}>{name}</a> },
            { title: 'Pending', number: true, cell: ({ counts }) => number(counts.delayed) },
            {
              title: 'Next retry in',
              number: true,
              cell: ({ counts }) => (counts.nextDueMs === undefined ? '–' : <Until at={counts.nextDueMs} />),
            },
          ]}
        />
      )}
    </Panel>
  );
}
