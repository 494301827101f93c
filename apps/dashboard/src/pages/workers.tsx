// Who works, on what, since when; let one finish and take nothing more.
import { drainWorker } from '../data/actions.js';
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Page, WorkerRow } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Empty, Failure, Waiting } from '../parts/notice.js';
import { useFirst } from '../parts/pager.js';
import { Mark, Meter, PageFrame, Panel } from '../parts/panel.js';
import { QueueField } from '../parts/queueField.js';
import { Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { number, plural, span } from '../format.js';

const everyMs = 3_000;
const shown = 300;

export default function WorkersPage() {
  const queue = query.value.get('queue') ?? '';
  const { data, error, again } = useAnswer(
    `workers ${queue}`,
    (abort) => get<Page<WorkerRow>>('/v1/workers', { query: { queue }, signal: abort }),
    everyMs,
  );
  const rows = [...(data?.items ?? [])].sort((a, b) => trouble(b) - trouble(a));
  const { first, foot } = useFirst(rows, 'workers', shown);
  return (
    <PageFrame title="Workers" lead={data && plural(rows.length, 'worker')}>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <QueueField all value={queue} set={(name) => filter({ queue: name })} />
      </form>
      {error !== undefined && <Failure error={error} again={again} />}
      <Panel
        title="Workers"
        flush
        foot={
          foot ??
          (data?.complete === false
            ? 'There are more workers than were looked at; choose a queue.'
            : undefined)
        }
      >
        {!data ? (
          error === undefined && <Waiting />
        ) : rows.length === 0 ? (
          <Empty
            title={queue === '' ? 'Nobody works' : `Nobody works on ${queue}`}
            command="SLUICE_HANDLERS=./handlers.js npm start"
          >
            Jobs are accepted and kept, and start as soon as a worker is there. This starts one with your
            handlers:
          </Empty>
        ) : (
          <Table
            label="Workers"
            rows={first}
            keyOf={({ queue: of, session }) => `${of} ${session}`}
            columns={columnsFor(again)}
          />
        )}
      </Panel>
    </PageFrame>
  );
}

/** Who is silent comes first, then who leaves; the rest stays in the order of the server. */
function trouble({ leaseLeftMs, drain }: WorkerRow): number {
  return leaseLeftMs < 0 ? 2 : drain === null ? 0 : 1;
}

function columnsFor(onDone: () => void): Column<WorkerRow>[] {
  return [
    {
      title: 'Worker',
      name: true,
      cell: ({ name, host, pid }) => <strong>{name || `${host} ${pid}`}</strong>,
    },
    { title: 'Host', name: true, cell: ({ host, pid }) => `${host} · ${pid}` },
    { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('queues', queue)}>{queue}</a> },
    {
      title: 'Jobs',
      number: true,
      cell: ({ active, concurrency }) => (
        <>
          {number(active)} of {number(concurrency)}
          <Meter part={concurrency === 0 ? 0 : active / concurrency} label="Busy" tone="accent" />
        </>
      ),
    },
    { title: 'Since', number: true, cell: ({ startedMs }) => <Ago at={startedMs} /> },
    {
      title: 'Lease',
      number: true,
      cell: ({ leaseLeftMs }) =>
        leaseLeftMs < 0 ? <Mark tone="bad">silent for {span(-leaseLeftMs)}</Mark> : span(leaseLeftMs),
    },
    {
      title: 'State',
      tight: true,
      cell: ({ drain }) =>
        drain === null ? <span class="soft">works</span> : <Mark tone="warn">{drain}</Mark>,
    },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: ({ queue, session, name, drain }) =>
        drain === null ? (
          <Action small label={`Drain ${name}`} run={() => drainWorker(queue, session, true)} onDone={onDone}>
            Drain
          </Action>
        ) : (
          <Action
            small
            label={`Work again: ${name}`}
            run={() => drainWorker(queue, session, false)}
            onDone={onDone}
          >
            Work again
          </Action>
        ),
    },
  ];
}
