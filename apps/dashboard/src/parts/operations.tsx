// Work that goes on after its request: how far it is, and the button that stops it.
import { cancelOperation } from '../data/actions.js';
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Operation } from '../data/shapes.js';
import { number } from '../format.js';
import { Action } from './action.js';
import { Mark, Meter, Panel, type Tone } from './panel.js';
import { Table } from './table.js';
import { Ago } from './time.js';

const everyMs = 1_500;
const shown = 5;
const over = ['done', 'cancelled', 'failed'];

export function Operations() {
  const { data, again } = useAnswer(
    'operations',
    (abort) => get<{ items: Operation[] }>('/v1/operations', { query: { limit: shown }, signal: abort }),
    everyMs,
  );
  const rows = (data?.items ?? []).slice(0, shown);
  if (rows.length === 0) return null;
  return (
    <Panel title="Operations" note="the last ones" flush>
      <Table
        label="Operations"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          { title: 'What', cell: ({ kind, queue }) => `${kind.replace('dead.', '')} letters of ${queue}` },
          {
            title: 'State',
            tight: true,
            cell: ({ state, stopping }) => <Mark tone={toneOf(state)}>{stopping ? 'stopping' : state}</Mark>,
          },
          {
            title: 'Progress',
            cell: (operation) => {
              const { moved, total } = operation.progress;
              return total === undefined ? (
                '–'
              ) : (
                <>
                  {number(moved)} of {number(total)}
                  <Meter
                    part={total === 0 ? 1 : moved / total}
                    label="Progress"
                    tone={toneOf(operation.state)}
                  />
                </>
              );
            },
          },
          { title: 'By', cell: ({ by }) => by ?? '' },
          {
            title: 'Began',
            number: true,
            cell: ({ createdMs }) => <Ago at={createdMs} />,
          },
          {
            title: 'Problem',
            cut: true,
            cell: ({ error }) => error && <span class="text-bad">{error.message}</span>,
          },
          {
            title: 'Actions',
            quiet: true,
            tight: true,
            cell: ({ id, state }) =>
              !over.includes(state) && (
                <Action
                  small
                  tone="danger"
                  label={`Stop operation ${id}`}
                  run={() => cancelOperation(id)}
                  onDone={again}
                >
                  Stop
                </Action>
              ),
          },
        ]}
      />
    </Panel>
  );
}

function toneOf(state: Operation['state']): Tone {
  const tones = {
    waiting: 'neutral',
    running: 'accent',
    done: 'ok',
    cancelled: 'neutral',
    failed: 'bad',
  } as const;
  return tones[state];
}
