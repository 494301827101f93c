// Jobs that come back: when next, with what; set one, end one.
import { useState } from 'preact/hooks';
import { at, call, get, may } from '../data/api.js';
import type { Page, ScheduleRow } from '../data/shapes.js';
import { Action } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Field } from '../parts/field.js';
import { brief } from '../parts/json.js';
import { Empty, Notice } from '../parts/notice.js';
import { Listing, usePages } from '../parts/pager.js';
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
        signal: abort,
      }),
    everyMs,
  );
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
      <Panel title="Schedules" flush>
        <Listing
          pages={pages}
          one="schedule"
          isFiltered={queue !== ''}
          none={
            <Empty title="Nothing comes back by itself">
              A schedule adds a job at each of its times, once, however many servers run. “New schedule” sets
              one.
            </Empty>
          }
        >
          {(rows) => (
            <Table
              label="Schedules"
              rows={rows}
              keyOf={({ queue: of, name }) => `${of} ${name}`}
              columns={columnsFor(pages.again)}
            />
          )}
        </Listing>
      </Panel>
      {isOpen && (
        <NewSchedule
          queue={queue}
          known={pages.items ?? []}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false);
            pages.again();
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
      <span>
        <code>{cron}</code> <span class="faint">{timeZone ?? 'UTC'}</span>
      </span>
    );
  return interval === undefined ? '' : `every ${span(interval)}`;
}

const unitsMs = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 };
type Unit = keyof typeof unitsMs;

function NewSchedule(props: {
  queue: string;
  known: readonly ScheduleRow[];
  onClose: () => void;
  onDone: () => void;
}) {
  const [queue, setQueue] = useState(props.queue);
  const [name, setName] = useState('');
  const [kind, setKind] = useState<'cron' | 'every'>('cron');
  const [cron, setCron] = useState('0 6 * * *');
  const [timeZone, setTimeZone] = useState('UTC');
  const [every, setEvery] = useState('15');
  const [unit, setUnit] = useState<Unit>('minutes');
  const [data, setData] = useState('{}');
  const isThere = props.known.some((row) => row.queue === queue && row.name === name);
  const intervalMs = Math.round(Number(every) * unitsMs[unit]);
  const when = kind === 'cron' ? { cron, timeZone } : { everyMs: intervalMs };
  const isUnclear = kind === 'every' && !(intervalMs > 0 && intervalMs < Infinity);
  const problem = isUnclear ? 'Say how often, as a number above 0.' : jsonProblem(data);
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
              body: { when, data: JSON.parse(data) as unknown },
            });
            return `${name} is set.`;
          }}
          onDone={props.onDone}
        >
          {isThere ? 'Replace' : 'Set'}
        </Action>
      }
    >
      <div class="filters">
        <QueueField writable value={queue} set={setQueue} />
        <Field grow label="Name" value={name} set={setName} />
      </div>
      <div class="filters">
        <label class="field">
          When
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value as typeof kind)}>
            <option value="cron">at certain times</option>
            <option value="every">every so often</option>
          </select>
        </label>
        {kind === 'cron' ? (
          <>
            <Field grow mono label="Cron" value={cron} set={setCron} hint="minute hour day month weekday" />
            <Field label="Time zone" value={timeZone} set={setTimeZone} hint="of the hours" />
          </>
        ) : (
          <>
            <Field grow label="Every" value={every} set={setEvery} hint="at round times of UTC" />
            <label class="field">
              Unit
              <select value={unit} onChange={(event) => setUnit(event.currentTarget.value as Unit)}>
                {Object.keys(unitsMs).map((word) => (
                  <option key={word}>{word}</option>
                ))}
              </select>
            </label>
          </>
        )}
      </div>
      <label class="field">
        Data of its jobs
        <textarea spellcheck={false} value={data} onInput={(event) => setData(event.currentTarget.value)} />
      </label>
      {isThere && <Notice tone="warn">There is a schedule of this name; this takes its place.</Notice>}
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
