// Jobs of a queue: by state, id, payload field, error, owner. Every filter stands in the address.
import { useEffect, useState } from 'preact/hooks';
import { addJob } from '../commands.js';
import { cancelJob, retryJob } from '../data/actions.js';
import { at, get, session } from '../data/api.js';
import { overview } from '../data/live.js';
import type { JobRow, JobState, Page } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { NoQueues } from '../panels/queues.js';
import { Empty, Waiting } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { QueueField } from '../parts/queueField.js';
import { jobStates, StateMark } from '../parts/states.js';
import { Cut, Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { compact } from '../format.js';

const everyMs = 5_000;
const perPage = 50;

export default function JobsPage() {
  const asked = query.value;
  const queue = asked.get('queue') ?? '';
  // Into the address, once: where the most happens changes every two seconds, and the list must not jump from queue to queue.
  const proposed = queue === '' ? busiest() : '';
  useEffect(() => {
    if (proposed !== '') filter({ queue: proposed });
  }, [proposed]);
  const names = ['state', 'id', 'field', 'equals', 'error', 'fingerprint', 'owner'] as const;
  const filters = Object.fromEntries(names.map((name) => [name, asked.get(name) ?? '']));
  const question = queue === '' ? null : `jobs ${queue} ${JSON.stringify(filters)}`;
  const pages = usePages<JobRow>(
    question,
    (cursor, abort) =>
      get<Page<JobRow>>(`${at('v1', 'queues', queue)}/jobs`, {
        query: { ...filters, limit: perPage, cursor },
        signal: abort,
      }),
    everyMs,
  );
  const isSearch = names.some((name) => name !== 'state' && filters[name] !== '');
  return (
    <PageFrame title="Jobs">
      <Search key={asked.toString()} queue={queue} filters={filters} />
      <StateTabs queue={queue} state={filters['state'] ?? ''} />
      <Panel title={queue === '' ? 'Jobs' : `Jobs of ${queue}`} flush>
        {queue === '' ? (
          <WhichQueue />
        ) : (
          <Listing
            pages={pages}
            one="job"
            none={
              isSearch ? (
                <Empty title="No job matches">
                  Jobs that are done are forgotten, unless they have an id of their own or keep their result.
                </Empty>
              ) : (
                <Empty title="There is no such job" command={addJob(queue)}>
                  Jobs that are done are forgotten at once, unless they keep their result. This adds one:
                </Empty>
              )
            }
          >
            {(rows) => (
              <Table
                label={`Jobs of ${queue}`}
                rows={rows}
                keyOf={({ id }) => id}
                columns={columnsFor(pages.again)}
              />
            )}
          </Listing>
        )}
      </Panel>
    </PageFrame>
  );
}

/** Only keys of the installation know which queues there are. */
function WhichQueue() {
  if (!session.value?.installation)
    return (
      <Empty title="Which queue?">
        Write its name above. Your key sees the jobs of the tenant {session.value?.tenant} in it.
      </Empty>
    );
  return overview.value?.queues.length === 0 ? <NoQueues /> : <Waiting />;
}

/** Whoever comes without a queue most likely wants the one where the most happens. */
function busiest(): string {
  const queues = [...(overview.value?.queues ?? [])];
  queues.sort(
    (a, b) =>
      b.counts.waiting + b.counts.active + b.counts.dead - a.counts.waiting - a.counts.active - a.counts.dead,
  );
  return queues[0]?.name ?? '';
}

function StateTabs({ queue, state }: { queue: string; state: string }) {
  const counts = overview.value?.queues.find(({ name }) => name === queue)?.counts;
  const countOf = (name: JobState): number | undefined => (name === 'cancelled' ? undefined : counts?.[name]);
  const rest = Object.fromEntries(query.value);
  return (
    <nav class="tabs" aria-label="State">
      {(['', ...jobStates] as const).map((name) => {
        const count = name === '' ? undefined : countOf(name);
        return (
          <a
            key={name}
            href={to('jobs', { ...rest, queue, state: name })}
            aria-current={state === name ? 'true' : undefined}
          >
            {name === '' ? 'all' : name}
            {count !== undefined && <span class="count">{compact(count)}</span>}
          </a>
        );
      })}
    </nav>
  );
}

function Search({ queue, filters }: { queue: string; filters: Record<string, string> }) {
  const [draft, setDraft] = useState(filters);
  const set = (name: string) => (event: { currentTarget: HTMLInputElement }) =>
    setDraft({ ...draft, [name]: event.currentTarget.value });
  const field = (name: string, label: string, placeholder: string) => (
    <label class="field grow">
      {label}
      <input
        type="search"
        value={draft[name] ?? ''}
        placeholder={placeholder}
        // A value without its field would be left out of the search, and everything would seem to match.
        required={name === 'field' && (draft['equals'] ?? '') !== ''}
        onInput={set(name)}
      />
    </label>
  );
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        filter({ ...draft, queue });
      }}
    >
      <QueueField value={queue} set={(name) => filter({ queue: name })} />
      {field('id', 'Id', 'exactly')}
      {field('field', 'Payload field', 'user.id')}
      {field('equals', 'is', '17')}
      {field('error', 'Error contains', 'timeout')}
      {field('owner', 'Owner', '')}
      <button class="button primary" type="submit">
        Search
      </button>
      <a class="button plain" href={to('jobs', { queue })}>
        Clear
      </a>
    </form>
  );
}

function columnsFor(onDone: () => void): Column<JobRow>[] {
  return [
    {
      title: 'Id',
      name: true,
      cell: ({ queue, id }) => (
        <a class="mono" title={id} href={to('jobs', queue, id)}>
          {id}
        </a>
      ),
    },
    { title: 'State', tight: true, cell: ({ state }) => <StateMark state={state} /> },
    {
      title: 'Payload',
      cut: true,
      cell: ({ preview, error }) =>
        error === undefined ? <code title={preview}>{preview ?? ''}</code> : <Cut text={error} />,
    },
    { title: 'Attempt', number: true, cell: ({ attempt }) => attempt ?? '' },
    { title: 'Priority', number: true, cell: ({ priority }) => priority ?? '' },
    { title: 'Group', name: true, cell: ({ group }) => group ?? '' },
    {
      title: 'Added',
      number: true,
      cell: ({ createdMs }) => (createdMs === undefined ? '' : <Ago at={createdMs} />),
    },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: (job) => (
        <span class="row-actions">
          {(job.state === 'dead' || job.state === 'delayed') && (
            <Action small label={`Retry ${job.id}`} run={() => retryJob(job.queue, job.id)} onDone={onDone}>
              Retry
            </Action>
          )}
          {['waiting', 'delayed', 'blocked', 'active'].includes(job.state) && (
            <Action
              small
              tone="danger"
              label={`Cancel ${job.id}`}
              confirm={{
                title: 'Cancel this job?',
                text: `${job.id} ends and does not come back.`,
                button: 'Cancel it',
              }}
              run={() => cancelJob(job.queue, job.id)}
              onDone={onDone}
            >
              Cancel
            </Action>
          )}
        </span>
      ),
    },
  ];
}
