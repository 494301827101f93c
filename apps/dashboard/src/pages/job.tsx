// One job: payload, what happened to it when, logs, stack, result, the chain it belongs to; retry, cancel, edit and replay.
import { cancelJob, replayJob, retryJob } from '../data/actions.js';
import { ApiError, at, get, may } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { overview } from '../data/live.js';
import type { JobDetail } from '../data/shapes.js';
import type { PageProps } from '../pages.js';
import { Action } from '../parts/action.js';
import { openDialog } from '../parts/dialog.js';
import { EditAndReplay } from '../parts/editAndReplay.js';
import { Json, Text } from '../parts/json.js';
import { Copy, Empty, Failure, Notice, Waiting } from '../parts/notice.js';
import { Facts, PageFrame, Panel } from '../parts/panel.js';
import { Progress } from '../parts/progress.js';
import { StateMark } from '../parts/states.js';
import { Table } from '../parts/table.js';
import { Ago, At, Until } from '../parts/time.js';
import { go, to } from '../place.js';
import { bytes } from '../format.js';

const everyMs = 3_000;

export default function JobPage({ params }: PageProps) {
  const { queue = '', id = '' } = params;
  const asked = useAnswer(
    `job ${queue} ${id}`,
    (abort) => get<JobDetail>(at('v1', 'queues', queue, 'jobs', id), { signal: abort }),
    everyMs,
  );
  const job = asked.data;
  const isForgotten = isNotFound(asked.error);
  return (
    <PageFrame
      title={id}
      crumbs={
        <>
          <a href={to('jobs', { queue })}>Jobs</a> / <a href={to('queues', queue)}>{queue}</a>
        </>
      }
      lead={job && !isForgotten && <StateMark state={job.state} />}
      actions={job && !isForgotten && <Actions job={job} onDone={asked.again} />}
    >
      {job && isForgotten ? (
        // Most jobs that are retried end so: this is no failure.
        <Notice
          actions={
            <a class="button small" href={to('trace', { id, tenant: job.labels['tenant'] })}>
              Follow its id
            </a>
          }
        >
          This job has ended, and jobs that end are forgotten unless they keep their result. Below is what was
          last known of it.
        </Notice>
      ) : (
        asked.error !== undefined && <Failure error={asked.error} again={asked.again} />
      )}
      {!job && isForgotten && (
        <Empty title="This job is not known any more">
          It may be done and forgotten. <a href={to('trace', { id })}>Follow its id</a> through files and
          events.
        </Empty>
      )}
      {!job && asked.error === undefined && <Waiting />}
      {job && (
        <div class="columns">
          <div class="two-thirds stack">
            {job.error && (
              <Panel title="Died of">
                <div class="stack">
                  <p class="text-bad wrap">
                    {job.error.name}: {job.error.message}
                  </p>
                  {job.error.stack !== '' && <Text text={job.error.stack} label="Stack" />}
                </div>
              </Panel>
            )}
            <Timeline job={job} />
            <Payload job={job} />
            {job.result !== undefined && job.result !== null && (
              <Panel title="Result">
                <Json value={job.result} label="Result" />
              </Panel>
            )}
          </div>
          <div class="third stack">
            <About job={job} />
            {job.progress !== undefined && job.progress !== null && (
              <Panel title="Progress">
                <Progress progress={job.progress} label="Progress" />
              </Panel>
            )}
            <Logs logs={job.logs} />
            <Chain job={job} />
          </div>
        </div>
      )}
    </PageFrame>
  );
}

/** Everything else, such as a Redis that is away, says nothing about the job. */
function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

function Actions({ job, onDone }: { job: JobDetail; onDone: () => void }) {
  const { queue, id, state } = job;
  // Jobs of Sluice itself keep the data that it gave them.
  const isOurs = overview.value?.queues.some(({ name, reserved }) => name === queue && reserved) ?? false;
  // Of a job that is done or cancelled no payload is left to edit, and bytes cannot be edited here.
  const canEdit = state === 'dead' && job.data !== undefined && !isOurs;
  const edit = (): void =>
    openDialog((close) => (
      <EditAndReplay
        title={`Edit and replay ${id}`}
        data={job.data}
        onClose={close}
        replay={async (data) => {
          const running = await replayJob(queue, id, data);
          close();
          if (running === id) onDone();
          else go(to('jobs', queue, running));
          return running === id ? `${id} runs again.` : `A copy runs as ${running}.`;
        }}
      />
    ));
  return (
    <>
      {(state === 'dead' || state === 'delayed') && (
        <Action tone="primary" run={() => retryJob(queue, id)} onDone={onDone}>
          {state === 'dead' ? 'Retry' : 'Run now'}
        </Action>
      )}
      {canEdit && (
        <button class="button" type="button" disabled={!may('operator')} onClick={edit}>
          Edit and replay
        </button>
      )}
      {['waiting', 'delayed', 'blocked', 'active'].includes(state) && (
        <Action
          tone="danger"
          confirm={{
            title: 'Cancel this job?',
            text:
              state === 'active'
                ? 'It runs: its handler is told to stop.'
                : 'It ends and does not come back.',
            button: 'Cancel it',
          }}
          run={() => cancelJob(queue, id)}
          onDone={onDone}
        >
          Cancel
        </Action>
      )}
    </>
  );
}

function About({ job }: { job: JobDetail }) {
  return (
    <Panel title="About">
      <Facts
        items={[
          [
            'Id',
            <>
              <code>{job.id}</code> <Copy text={job.id} what="id" />
            </>,
          ],
          ['Queue', <a href={to('queues', job.queue)}>{job.queue}</a>],
          ['Added', job.createdMs && <Ago at={job.createdMs} />],
          ['Next attempt', job.dueMs && <Until at={job.dueMs} />],
          ['Attempt', job.attempt],
          ['Crashes', job.crashes || undefined],
          ['Priority', job.priority],
          ['Group', job.group],
          ['Held by', job.session && <code>{job.session}</code>],
          ['Payload', job.bytes === undefined ? undefined : bytes(job.bytes)],
          ...Object.entries(job.labels).map(([name, value]): [string, string] => [name, value]),
          ['Flow', <a href={to('trace', { id: job.id, tenant: job.labels['tenant'] })}>Follow this id</a>],
        ]}
      />
    </Panel>
  );
}

function Timeline({ job }: { job: JobDetail }) {
  const stacks = new Map(job.attempts.map(({ attempt, stack }) => [attempt, stack]));
  const tones = new Map([
    ['failed', 'bad'],
    ['died', 'bad'],
    ['due', 'accent'],
  ]);
  return (
    <Panel title="Timeline">
      {job.timeline.length === 0 ? (
        <p class="soft">Nothing is remembered of it.</p>
      ) : (
        <ol class="timeline">
          {job.timeline.map((entry) => {
            const stack = entry.attempt === undefined ? '' : (stacks.get(entry.attempt) ?? '');
            return (
              <li
                key={`${entry.atMs} ${entry.what} ${entry.attempt ?? ''}`}
                class={tones.get(entry.what) ?? ''}
              >
                <At at={entry.atMs} />
                <span class="dot" />
                <div>
                  <strong>
                    {entry.what === 'due' ? 'next attempt' : entry.what}
                    {entry.attempt !== undefined && ` at attempt ${entry.attempt}`}
                  </strong>{' '}
                  <span class="faint">
                    {entry.kind} {entry.worker && `on ${entry.worker}`}
                  </span>
                  {entry.message && <p class="wrap">{entry.message}</p>}
                  {stack !== '' && (
                    <details>
                      <summary class="faint">Stack</summary>
                      <Text text={stack} label={`Stack of attempt ${entry.attempt}`} />
                    </details>
                  )}
                </div>
              </li>
            );
          })}
        </ol>
      )}
    </Panel>
  );
}

function Payload({ job }: { job: JobDetail }) {
  const payload = job.base64 ?? job.data;
  return (
    <Panel title="Payload" note={job.base64 === undefined ? undefined : 'binary, as base64'}>
      {payload === undefined ? (
        <p class="soft">The payload was not kept; it goes when its job has ended.</p>
      ) : (
        <Json value={payload} label="Payload" />
      )}
    </Panel>
  );
}

function Logs({ logs }: { logs: string[] }) {
  return (
    <Panel title="Logs">
      {logs.length === 0 ? (
        <p class="soft">
          Nothing was logged. Handlers write here with <code>job.log(…)</code>.
        </p>
      ) : (
        <Text text={logs.join('\n')} label="Logs" />
      )}
    </Panel>
  );
}

function Chain({ job }: { job: JobDetail }) {
  if (job.chain.jobs.length === 0) return null;
  return (
    <Panel
      title="Chain"
      flush
      foot={job.chain.complete ? undefined : 'The chain is longer; this is the part around this job.'}
    >
      <Table
        label="Jobs of the chain"
        rows={job.chain.jobs}
        keyOf={({ queue, id }) => `${queue}/${id}`}
        isChosen={({ queue, id }) => queue === job.queue && id === job.id}
        columns={[
          {
            title: 'Job',
            name: true,
            cell: ({ queue, id }) => (
              <a href={to('jobs', queue, id)}>
                {queue} / {id}
              </a>
            ),
          },
          { title: 'State', cell: ({ state }) => <StateMark state={state} /> },
          { title: 'Waits for', name: true, cell: ({ waitsFor }) => waitsFor.map(({ id }) => id).join(', ') },
        ]}
      />
    </Panel>
  );
}
