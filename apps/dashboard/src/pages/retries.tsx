// Jobs that failed and will be tried again, the next one first.
import { cancelJob, retryJob } from '../data/actions.js';
import { get } from '../data/api.js';
import type { Page, RetryRow } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Empty } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { QueueField } from '../parts/queueField.js';
import { Cut, Table, type Column } from '../parts/table.js';
import { Until } from '../parts/time.js';
import { filter, query, to } from '../place.js';

const everyMs = 5_000;

export default function RetriesPage() {
  const queue = query.value.get('queue') ?? '';
  const pages = usePages<RetryRow>(
    `retries ${queue}`,
    (cursor, abort) =>
      get<Page<RetryRow>>('/v1/retries', {
        query: { queue, limit: 50, cursor },
        signal: abort,
      }),
    everyMs,
  );
  return (
    <PageFrame title="Retries" lead="Jobs that failed and will be tried again">
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <QueueField all value={queue} set={(name) => filter({ queue: name })} />
      </form>
      <Panel title="Next attempts" flush>
        <Listing
          pages={pages}
          one="job"
          isFiltered={queue !== ''}
          none={
            <Empty title="Nothing waits for another attempt">
              A handler that throws makes its job come back later, each time after a longer pause, until its
              attempts are used up.
            </Empty>
          }
        >
          {(rows) => (
            <Table
              label="Retries"
              rows={rows}
              keyOf={({ queue: of, id }) => `${of}/${id}`}
              columns={columnsFor(pages.again)}
            />
          )}
        </Listing>
      </Panel>
    </PageFrame>
  );
}

function columnsFor(onDone: () => void): Column<RetryRow>[] {
  return [
    {
      title: 'Job',
      name: true,
      cell: ({ queue, id }) => (
        <a class="mono" title={id} href={to('jobs', queue, id)}>
          {id}
        </a>
      ),
    },
    { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('queues', queue)}>{queue}</a> },
    { title: 'Next in', number: true, cell: ({ dueMs }) => <Until at={dueMs} /> },
    { title: 'Attempt', number: true, cell: ({ attempt }) => attempt ?? '' },
    { title: 'Last error', cut: true, cell: ({ error }) => <Cut text={textOf(error)} /> },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: ({ queue, id }) => (
        <span class="row-actions">
          <Action small label={`Run now: ${id}`} run={() => retryJob(queue, id)} onDone={onDone}>
            Run now
          </Action>
          <Action
            small
            tone="danger"
            label={`Cancel ${id}`}
            confirm={{
              title: 'Cancel this job?',
              text: `${id} ends and does not come back.`,
              button: 'Cancel it',
            }}
            run={() => cancelJob(queue, id)}
            onDone={onDone}
          >
            Cancel
          </Action>
        </span>
      ),
    },
  ];
}

function textOf(error: unknown): string {
  if (typeof error === 'object' && error !== null) {
    const { name, message } = error as { name?: string; message?: string };
    return [name, message].filter(Boolean).join(': ');
  }
  return typeof error === 'string' ? error : '';
}
