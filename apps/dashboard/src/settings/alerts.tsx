// Alerts: what the server watches, what it should be and what it is.
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { AlertRow } from '../data/shapes.js';
import { Answered } from '../parts/answered.js';
import { Mark, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { describeTarget } from '../targets.js';

const everyMs = 15_000;

export function Alerts() {
  const alerts = useAnswer(
    'alerts',
    (abort) => get<{ items: AlertRow[] }>('/v1/alerts', { signal: abort }),
    everyMs,
  );
  return (
    <Panel title="Alerts" note="told to webhooks when they are crossed for a while" flush>
      <Answered answer={alerts}>
        {({ items }) => <Table label="Alerts" rows={items} keyOf={({ name }) => name} columns={columns} />}
      </Answered>
    </Panel>
  );
}

const columns: Column<AlertRow>[] = [
  { title: 'Alert', name: true, cell: (row) => <strong>{describeTarget(row).title}</strong> },
  { title: 'Should be', wide: true, cell: (row) => describeTarget(row).goal },
  { title: 'Is', number: true, cell: (row) => describeTarget(row).now },
  {
    title: 'State',
    tight: true,
    cell: ({ met, state }) =>
      met === false ? (
        <Mark tone={state === 'pending' ? 'warn' : 'bad'}>{state}</Mark>
      ) : (
        <span class="soft">{met === null ? 'no data' : state}</span>
      ),
  },
  { title: 'Since', number: true, cell: ({ since }) => <Ago at={since} /> },
  { title: 'About', wide: true, cell: ({ about }) => <span class="wrap">{about}</span> },
];
