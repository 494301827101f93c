// All queues in one table.
import { pauseQueue, resumeQueue } from '../data/actions.js';
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { overview } from '../data/live.js';
import type { QueueRow } from '../data/shapes.js';
import { NoQueues, queueColumns } from '../panels/queues.js';
import { Action } from '../parts/action.js';
import { Field } from '../parts/field.js';
import { Empty, Failure, Waiting } from '../parts/notice.js';
import { useFirst } from '../parts/pager.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { filter, query } from '../place.js';
import { plural } from '../format.js';

const shown = 200;
const orders: Record<string, (a: QueueRow, b: QueueRow) => number> = {
  name: (a, b) => (a.name < b.name ? -1 : 1),
  waiting: (a, b) => b.counts.waiting - a.counts.waiting,
  running: (a, b) => b.counts.active - a.counts.active,
  dead: (a, b) => b.counts.dead - a.counts.dead,
  oldest: (a, b) => b.counts.oldestWaitingMs - a.counts.oldestWaitingMs,
};

export default function QueuesPage() {
  // Until the stream brings them.
  const first = useAnswer(overview.value ? null : 'queues', (abort) =>
    get<{ items: QueueRow[] }>('/v1/queues', { signal: abort }),
  );
  const all = overview.value?.queues ?? first.data?.items;
  const word = query.value.get('name') ?? '';
  const order = query.value.get('order') ?? 'name';
  const found = (all ?? [])
    .filter(({ name }) => name.toLowerCase().includes(word.toLowerCase()))
    .sort(Object.hasOwn(orders, order) ? orders[order] : orders['name']);
  const { first: firstOnes, foot } = useFirst(found, 'queues', shown);
  return (
    <PageFrame title="Queues" lead={all && plural(all.length, 'queue')}>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <Field grow label="Name" type="search" value={word} set={(name) => filter({ name })} />
        <label class="field">
          Order
          <select value={order} onChange={(event) => filter({ order: event.currentTarget.value })}>
            {Object.keys(orders).map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </form>
      {first.error !== undefined && !all && <Failure error={first.error} again={first.again} />}
      <Panel title="Queues" flush foot={foot}>
        {!all ? (
          <Waiting />
        ) : all.length === 0 ? (
          <NoQueues />
        ) : found.length === 0 ? (
          <Empty title={`No queue is called so`}>{`None of ${all.length} has “${word}” in its name.`}</Empty>
        ) : (
          <Table label="Queues" rows={firstOnes} keyOf={({ name }) => name} columns={columns} />
        )}
      </Panel>
    </PageFrame>
  );
}

const columns: Column<QueueRow>[] = [
  ...queueColumns,
  {
    title: 'Actions',
    quiet: true,
    tight: true,
    cell: ({ name, paused }) =>
      paused ? (
        <Action small tone="primary" label={`Resume ${name}`} run={() => resumeQueue(name)}>
          Resume
        </Action>
      ) : (
        <Action small label={`Pause ${name}`} run={() => pauseQueue(name)}>
          Pause
        </Action>
      ),
  },
];
