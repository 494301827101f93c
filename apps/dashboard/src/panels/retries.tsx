// Jobs that failed and wait for their next attempt, by queue, with how long until the next one.
import { useAnswer } from '../data/answer.js';
import { get } from '../data/api.js';
import type { Page, RetryRow } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Answered } from '../parts/answered.js';
import { Empty } from '../parts/notice.js';
import { Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Until } from '../parts/time.js';
import { to } from '../place.js';
import { leftOut, number, plural } from '../format.js';

const shown = 8;
const everyMs = 5_000;
/** The next ones; a queue with more says so. */
const looked = 500;

export function RetriesPanel({ overview }: PanelProps) {
  const retries = useAnswer(
    'retries by queue',
    (abort) => get<Page<RetryRow>>('/v1/retries', { query: { limit: looked }, signal: abort }),
    everyMs,
  );
  const queues = byQueue(retries.data?.items ?? []);
  const rows = queues.slice(0, shown);
  const { count, complete } = overview.retries;
  return (
    <Panel
      title="Retry queues"
      flush
      note={complete ? number(count) : `${number(count)}+`}
      actions={<a href="/retries">All retries</a>}
      foot={
        retries.data?.next && rows.length > 0
          ? `Counted among the next ${plural(looked, 'retry', 'retries')}.`
          : leftOut(rows.length, queues.length, 'queues')
      }
    >
      <Answered answer={retries}>
        {({ next }) =>
          rows.length === 0 && next !== null ? (
            <Empty title="No retry so far">
              Other jobs that wait for their time come first. <a href="/retries">Look further</a>.
            </Empty>
          ) : rows.length === 0 ? (
            <Empty title="Nothing waits for another attempt">
              A job that fails comes back later, each time after a longer pause.
            </Empty>
          ) : (
            <Table label="Retries by queue" rows={rows} keyOf={({ queue }) => queue} columns={columns} />
          )
        }
      </Answered>
    </Panel>
  );
}

const columns: Column<RetryQueue>[] = [
  { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('retries', { queue })}>{queue}</a> },
  { title: 'Pending', number: true, cell: ({ pending }) => number(pending) },
  { title: 'Next retry in', number: true, cell: ({ nextMs }) => <Until at={nextMs} /> },
];

export interface RetryQueue {
  queue: string;
  pending: number;
  nextMs: number;
}

/** The queue whose next attempt is nearest comes first. */
export function byQueue(retries: readonly Pick<RetryRow, 'queue' | 'dueMs'>[]): RetryQueue[] {
  const queues = new Map<string, RetryQueue>();
  for (const { queue, dueMs } of retries) {
    const known = queues.get(queue);
    if (known) {
      known.pending++;
      known.nextMs = Math.min(known.nextMs, dueMs);
    } else queues.set(queue, { queue, pending: 1, nextMs: dueMs });
  }
  return [...queues.values()].sort((a, b) => a.nextMs - b.nextMs);
}
