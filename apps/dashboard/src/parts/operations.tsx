// Work that goes on after its request: how far it is, the button that stops it, and the one that lets it go on when it failed.
import { useEffect, useRef, useState } from 'preact/hooks';
import { cancelOperation, resumeOperation } from '../data/actions.js';
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Operation, Page } from '../data/shapes.js';
import { number } from '../format.js';
import { Action } from './action.js';
import { Mark, Meter, Panel, type Tone } from './panel.js';
import { Cut, Table } from './table.js';
import { Ago } from './time.js';

/** As long as some are at work; otherwise whoever starts one here asks at once. */
const everyMs = 1_500;
const quietMs = 10_000;
/** All that are at work, however many came after them: here they are stopped. Of those that are over, the last. */
const [mostAtWork, lastOver] = [100, 5];
const atWork = ['waiting', 'running'];
const over = ['done', 'cancelled', 'failed'];

/** `round` asks at once when it changes; `onOver` hears that one which was seen at work has ended. */
export function Operations(props: { round: number; onOver: () => void }) {
  const [isQuiet, setQuiet] = useState(false);
  const { data, again } = useAnswer(
    'operations',
    async (abort) => {
      const ask = (states: string[], limit: number): Promise<Page<Operation>> =>
        get('/v1/operations', { query: { state: states.join(), limit }, signal: abort });
      // One that ends meanwhile is in both answers; the other way around it could be in none.
      const working = await ask(atWork, mostAtWork);
      const ended = await ask(over, lastOver);
      const byId = new Map([...working.items, ...ended.items].map((operation) => [operation.id, operation]));
      return { items: [...byId.values()], isAll: working.next === null };
    },
    isQuiet ? quietMs : everyMs,
  );
  const rows = data?.items ?? [];
  const working = useRef<string[]>([]);
  useEffect(() => {
    if (props.round > 0) again();
  }, [props.round]);
  useEffect(() => {
    if (!data) return;
    const now = rows.filter(({ state }) => !over.includes(state)).map(({ id }) => id);
    const isOneOver = working.current.some((id) => !now.includes(id));
    working.current = now;
    setQuiet(now.length === 0);
    if (isOneOver) props.onOver();
  }, [data]);
  if (rows.length === 0) return null;
  return (
    <Panel
      title="Operations"
      note="at work, and the last ones"
      flush
      foot={data?.isAll === false && 'More are at work than these; “sluice operations ls” names all.'}
    >
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
          { title: 'By', name: true, cell: ({ by }) => by ?? '' },
          {
            title: 'Began',
            number: true,
            cell: ({ createdMs }) => <Ago at={createdMs} />,
          },
          {
            title: 'Problem',
            cut: true,
            cell: ({ error }) => error && <Cut text={error.message} />,
          },
          {
            title: 'Actions',
            quiet: true,
            tight: true,
            cell: ({ id, state }) =>
              state === 'failed' ? (
                <Action small label={`Resume operation ${id}`} run={() => resumeOperation(id)} onDone={again}>
                  Resume
                </Action>
              ) : (
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
                )
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
  return Object.hasOwn(tones, state) ? tones[state] : 'neutral';
}
