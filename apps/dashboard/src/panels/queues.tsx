// The busiest queues.
import type { QueueRow } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Empty } from '../parts/notice.js';
import { Mark, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { to } from '../place.js';
import { latency, leftOut, number, rate, span } from '../format.js';

const shown = 10;

export const queueColumns: Column<QueueRow>[] = [
  {
    title: 'Queue',
    name: true,
    cell: ({ name, paused, problem }) => (
      <>
        <a href={to('queues', name)}>{name}</a> {paused && <Mark>paused</Mark>}{' '}
        {problem && <Mark tone="bad">unreadable</Mark>}
      </>
    ),
  },
  { title: 'Waiting', number: true, cell: ({ counts }) => count(counts.waiting) },
  { title: 'Running', number: true, cell: ({ counts }) => count(counts.active) },
  { title: 'Delayed', number: true, cell: ({ counts }) => count(counts.delayed) },
  {
    title: 'Dead',
    number: true,
    cell: ({ name, counts }) =>
      counts.dead > 0 ? (
        <a class="text-bad" href={to('dead', { queue: name })}>
          {number(counts.dead)}
        </a>
      ) : (
        count(0)
      ),
  },
  { title: 'Done/s', number: true, cell: ({ rates }) => (rates ? zeroFaint(rate(rates.done)) : '–') },
  {
    title: 'Oldest',
    number: true,
    cell: ({ counts }) => (counts.waiting > 0 ? span(counts.oldestWaitingMs) : count(0)),
  },
  { title: 'Run p95', number: true, cell: ({ minute }) => latency(minute.runMs?.p95) },
  {
    title: 'Workers',
    number: true,
    cell: ({ counts }) =>
      counts.workers === 0 && counts.waiting > 0 ? <span class="text-bad">0</span> : count(counts.workers),
  },
];

export function QueuesPanel({ overview }: PanelProps) {
  const rows = [...overview.queues].sort((a, b) => weight(b) - weight(a)).slice(0, shown);
  return (
    <Panel
      title="Queues"
      flush
      note={`${overview.queues.length}`}
      actions={<a href="/queues">All queues</a>}
      foot={leftOut(rows.length, overview.queues.length, 'queues')}
    >
      {rows.length === 0 ? (
        <Empty title="No queue has been opened yet">
          A queue appears here when a worker or a producer opens it.
        </Empty>
      ) : (
        <Table label="The busiest queues" rows={rows} keyOf={({ name }) => name} columns={queueColumns} />
      )}
    </Panel>
  );
}

export function NoQueues() {
  return (
    <Empty title="No queue has been opened yet" command="npm run demo">
      A queue appears here when a worker or a producer opens it. This command fills the server with believable
      work:
    </Empty>
  );
}

function weight({ counts }: QueueRow): number {
  return counts.dead + counts.waiting + counts.active + counts.delayed;
}

function count(value: number) {
  return value === 0 ? <span class="zero">0</span> : number(value);
}

function zeroFaint(text: string) {
  return text === '0' ? <span class="zero">0</span> : text;
}
