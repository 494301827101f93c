// Dead letters by queue: how many, how often they were tried, what most of them died of.
import type { PanelProps } from '../panels.js';
import { Empty } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';
import { Table } from '../parts/table.js';
import { to } from '../place.js';
import { decimal, leftOut, number } from '../format.js';

const shown = 8;

export function DeadPanel({ overview }: PanelProps) {
  const rows = overview.dead.queues.slice(0, shown);
  return (
    <Panel
      title="Dead letters"
      flush
      note={number(overview.dead.letters)}
      actions={<a href="/dead">All causes</a>}
      foot={leftOut(rows.length, overview.dead.queueCount, 'queues')}
    >
      {rows.length === 0 ? (
        <Empty title="Nothing has died">
          Jobs whose attempts are used up are kept here, with all they died of.
        </Empty>
      ) : (
        <Table
          label="Dead letters by queue"
          rows={rows}
          keyOf={({ queue }) => queue}
          columns={[
            { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('dead', { queue })}>{queue}</a> },
            { title: 'Size', number: true, cell: ({ letters }) => number(letters) },
            {
              title: 'Avg retries',
              number: true,
              cell: ({ averageAttempts }) => decimal(retriesOf(averageAttempts)),
            },
            {
              title: 'Top error',
              cut: true,
              cell: ({ queue, topError }) =>
                topError && (
                  <a href={to('dead', { queue, fingerprint: topError.fingerprint })} title={topError.title}>
                    {topError.title}
                  </a>
                ),
            },
          ]}
        />
      )}
    </Panel>
  );
}

/** The first attempt is no retry. */
function retriesOf(attempts: number | null): number | null {
  return attempts === null ? null : Math.max(0, attempts - 1);
}
