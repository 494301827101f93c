// Dead letters by queue: how many, how often they were tried, what most of them died of.
import { useAnswer } from '../data/answer.js';
import { at, get } from '../data/api.js';
import type { DeadSummary, QueueDetail } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Empty, Waiting } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';
import { Table } from '../parts/table.js';
import { to } from '../place.js';
import { decimal, number } from '../format.js';

const shown = 8;
const everyMs = 15_000;

export function DeadPanel({ overview }: PanelProps) {
  const withDead = [...overview.queues]
    .filter(({ counts }) => counts.dead > 0)
    .sort((a, b) => b.counts.dead - a.counts.dead)
    .slice(0, shown);
  const names = withDead.map(({ name }) => name);
  const given = overview.dead.queues;
  const asked = useAnswer(
    given || names.length === 0 ? null : `dead ${names.join('\n')}`,
    async (abort) => {
      const queues = await Promise.all(
        names.map((name) => get<QueueDetail | null>(at('v1', 'queues', name), { signal: abort })),
      );
      return queues.flatMap((queue) => (queue ? [queue.dead] : []));
    },
    everyMs,
  );
  const rows: DeadSummary[] = (given ?? asked.data ?? [])
    .filter(({ letters }) => letters > 0)
    .slice(0, shown);
  return (
    <Panel
      title="Dead letters"
      flush
      note={number(overview.dead.letters)}
      actions={<a href="/dead">All causes</a>}
    >
      {names.length === 0 ? (
        <Empty title="Nothing has died">
          Jobs whose attempts are used up are kept here, with all they died of.
        </Empty>
      ) : rows.length === 0 ? (
        <Waiting />
      ) : (
        <Table
          label="Dead letters by queue"
          rows={rows}
          keyOf={({ queue }) => queue}
          columns={[
            { title: 'Queue', cell: ({ queue }) => <a href={to('dead', { queue })}>{queue}</a> },
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
