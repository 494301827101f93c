// Jobs that come back: when next, with what; set one, end one.
import { useState } from 'preact/hooks';
import { at, call, get, may } from '../data/api.js';
import type { Page, ScheduleRow } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Field } from '../parts/field.js';
import { brief } from '../parts/json.js';
import { Empty, Failure, Notice, Waiting } from '../parts/notice.js';
import { More, usePages } from '../parts/pager.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { QueueField } from '../parts/queueField.js';
import { Table, type Column } from '../parts/table.js';
import { Until } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { span } from '../format.js';

const everyMs = 5_000;

export default function SchedulesPage() {
  const queue = query.value.get('queue') ?? '';
  const [isOpen, setOpen] = useState(false);
  const pages = usePages<ScheduleRow>(
    `schedules ${queue}`,
    (cursor, abort) =>
      get<Page<ScheduleRow>>('/v1/schedules', {
        query: { queue, limit: 50, cursor },
        ...(abort && { signal: abort }),
      }),
    everyMs,
  );
  const { items, error, again } = pages;
  return (
    <PageFrame
      title="Schedules"
      actions={
        <button
          class="button primary"
          type="button"
          disabled={!may('operator')}
          onClick={() => setOpen(true)}
        >
          New schedule
        </button>
      }
    >
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <QueueField all value={queue} set={(name) => filter({ queue: name })} />
      </form>
      {error !== undefined && <Failure error={error} again={again} />}
      <Panel
        title="Schedules"
        flush
        foot={items && items.length > 0 ? <More pages={pages} one="schedule" /> : undefined}
      >
        {!items ? (
          error === undefined && <Waiting />
        ) : items.length === 0 ? (
          <Empty title="Nothing comes back by itself">
            A schedule adds a job at each of its times, once, however many servers run. “New schedule” sets
            one.
          </Empty>
        ) : (
          <Table
            label="Schedules"
            rows={items}
            keyOf={({ queue: of, name }) => `${of} ${name}`}
            columns={columnsFor(again)}
          />
        )}
      </Panel>
      {isOpen && (
        <NewSchedule
          queue={queue}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false);
            again();
          }}
        />
      )}
    </PageFrame>
  );
}

function columnsFor(onDone: () => void): Column<ScheduleRow>[] {
  return [
    { title: 'Name', name: true, cell: ({ name }) => <strong title={name}>{name}</strong> },
    { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('queues', queue)}>{queue}</a> },
    { title: 'When', wide: true, cell: ({ when }) => describe(when) },
    {
      title: 'Next in',
      number: true,
      cell: ({ nextMs }) => (nextMs === null ? 'never' : <Until at={nextMs} />),
    },
    { title: 'When missed', cell: ({ missed }) => missed },
    { title: 'Data', cut: true, cell: ({ data }) => <code title={brief(data)}>{brief(data)}</code> },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: ({ queue, name }) => (
        <Action
          small
          tone="danger"
          label={`End ${name}`}
          confirm={{
            title: 'End this schedule?',
            text: `${name} adds no more jobs; those that it made stay.`,
            button: 'End it',
          }}
          run={async () => {
            await call('DELETE', at('v1', 'queues', queue, 'schedules', name));
            return `${name} has ended.`;
          }}
          onDone={onDone}
        >
          End
        </Action>
      ),
    },
  ];
}

function describe({ cron, timeZone, everyMs: interval }: ScheduleRow['when']) {
  if (cron !== undefined)
    return (
      <>
        <code>{cron}</code> <span class="faint">{timeZone ?? 'UTC'}</span>
      </>
    );
  return interval === undefined ? '' : `every ${span(interval)}`;
}

function NewSchedule(props: { queue: string; onClose: () => void; onDone: () => void }) {
  const [queue, setQueue] = useState(props.queue);
  const [name, setName] = useState('');
  const [cron, setCron] = useState('0 6 * * *');
  const [timeZone, setTimeZone] = useState('UTC');
  const [data, setData] = useState('{}');
  const problem = jsonProblem(data);
  return (
    <Dialog
      title="New schedule"
      onClose={props.onClose}
      foot={
        <Action
          tone="primary"
          disabled={queue === '' || name === '' || problem !== undefined}
          run={async () => {
            await call('PUT', at('v1', 'queues', queue, 'schedules', name), {
              body: { when: { cron, timeZone }, data: JSON.parse(data) as unknown },
            });
            return `${name} is set.`;
          }}
          onDone={props.onDone}
        >
          Set
        </Action>
      }
    >
      <div class="filters">
        <QueueField value={queue} set={setQueue} />
        <Field grow label="Name" value={name} set={setName} />
      </div>
      <div class="filters">
        <Field grow mono label="Cron" value={cron} set={setCron} hint="minute hour day month weekday" />
        <Field label="Time zone" value={timeZone} set={setTimeZone} hint="of the hours above" />
      </div>
      <label class="field">
        Data of its jobs
        <textarea spellcheck={false} value={data} onInput={(event) => setData(event.currentTarget.value)} />
      </label>
      {problem && <Notice tone="bad">{problem}</Notice>}
    </Dialog>
  );
}

function jsonProblem(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `This is no JSON: ${(error as Error).message}`;
  }
}
