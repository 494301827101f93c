// How the last deliveries of one webhook went.
import { at, get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Delivery, Page, Webhook } from '../data/shapes.js';
import { Answered } from '../parts/answered.js';
import { Dialog } from '../parts/dialog.js';
import { Empty } from '../parts/notice.js';
import { Mark } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { unknown } from '../format.js';
import { scope } from './scope.js';

const everyMs = 3_000;

export function Deliveries({ hook, onClose }: { hook: Webhook; onClose: () => void }) {
  const whose = scope(hook.tenant);
  const deliveries = useAnswer(
    `deliveries ${hook.id}`,
    (abort) =>
      get<Page<Delivery>>(`${at('v1', 'webhooks', hook.id)}/deliveries`, { ...whose, signal: abort }),
    everyMs,
  );
  return (
    <Dialog title={`Deliveries to ${hook.url}`} onClose={onClose}>
      <Answered answer={deliveries}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing was delivered yet">“Test” sends an event that tells of nothing.</Empty>
          ) : (
            <Table label="Deliveries" rows={items} keyOf={({ id }) => id} columns={columns} />
          )
        }
      </Answered>
    </Dialog>
  );
}

const columns: Column<Delivery>[] = [
  { title: 'Topic', name: true, cell: ({ topic }) => topic ?? '' },
  {
    title: 'State',
    cell: ({ state }) => (
      <Mark tone={state === 'delivered' ? 'ok' : state === 'dead' ? 'bad' : 'warn'}>{state ?? unknown}</Mark>
    ),
  },
  { title: 'Status', number: true, cell: ({ status }) => status ?? '' },
  { title: 'Attempt', number: true, cell: ({ attempt }) => attempt ?? '' },
  { title: 'Problem', cell: ({ error }) => <span class="text-bad wrap">{error ?? ''}</span> },
  { title: 'When', number: true, cell: ({ at: when }) => <Ago at={when} /> },
];
