// Dead letters: first the causes, most frequent first, with how often they came lately; then the letters of one cause or queue. Many are replayed or
// discarded at once, after a dry run that says how many that are.
import { useEffect, useState } from 'preact/hooks';
import { at, get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import type { Choice } from '../data/actions.js';
import type { DeadGroup, DeadLetter, Page } from '../data/shapes.js';
import { BulkMove } from '../parts/bulkMove.js';
import { Field } from '../parts/field.js';
import { Empty, Failure, Waiting } from '../parts/notice.js';
import { Operations } from '../parts/operations.js';
import { Listing, usePages } from '../parts/pager.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { QueueField } from '../parts/queueField.js';
import { Spark } from '../parts/spark.js';
import { Cut, Table, type Column } from '../parts/table.js';
import { Ago } from '../parts/time.js';
import { filter, query, to } from '../place.js';
import { number, plural } from '../format.js';

const everyMs = 10_000;
/** The server groups letters by cause, and names at most so many. */
const [fewCauses, mostCauses] = [50, 500];
/** Letters go one after another while a replay runs. */
const lettersEveryMs = 5_000;

export default function DeadPage() {
  const queue = query.value.get('queue') ?? '';
  const fingerprint = query.value.get('fingerprint') ?? '';
  const text = query.value.get('text') ?? '';
  const [most, setMost] = useState(fewCauses);
  const groups = useAnswer(
    `groups ${queue} ${most}`,
    (abort) =>
      get<{ items: DeadGroup[]; letters: number; complete: boolean }>('/v1/dead/groups', {
        query: { queue, limit: most },
        signal: abort,
      }),
    everyMs,
  );
  // Counted up when something began or ended here: what stands below is asked for again, and stays in its place.
  const [rounds, setRounds] = useState(0);
  const again = (): void => {
    groups.again();
    setRounds((count) => count + 1);
  };
  return (
    <PageFrame title="Dead letters" lead={groups.data && plural(groups.data.letters, 'letter')}>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <QueueField all value={queue} set={(name) => filter({ queue: name, fingerprint: '', text: '' })} />
        {queue !== '' && (
          <>
            <Field
              grow
              label="Error contains"
              type="search"
              value={text}
              settle={(wanted) => filter({ text: wanted })}
            />
            {(fingerprint !== '' || text !== '') && (
              <button
                class="button plain"
                type="button"
                onClick={() => filter({ fingerprint: '', text: '' })}
              >
                All of {queue}
              </button>
            )}
          </>
        )}
      </form>
      <Operations round={rounds} onOver={again} />
      {groups.error !== undefined && <Failure error={groups.error} again={groups.again} />}
      <Panel
        title="Causes"
        flush
        foot={
          groups.data?.complete === false &&
          groups.data.items.length > 0 && (
            <>
              <span>The {number(groups.data.items.length)} most frequent causes; there are more.</span>
              {most < mostCauses ? (
                <button class="button small" type="button" onClick={() => setMost(mostCauses)}>
                  Show more
                </button>
              ) : (
                queue === '' && <span>Choose a queue to see its own.</span>
              )}
            </>
          )
        }
      >
        {groups.data === undefined ? (
          groups.error === undefined && <Waiting />
        ) : groups.data.items.length === 0 && !groups.data.complete ? (
          <Empty title="No cause so far">
            Not all letters were looked at.{' '}
            {queue === '' ? 'Choose a queue to look through its own.' : 'Look through them below.'}
          </Empty>
        ) : groups.data.items.length === 0 ? (
          <Empty title={queue === '' ? 'Nothing has died' : `Nothing has died in ${queue}`}>
            A job whose attempts are used up is kept here with its payload, its attempts and its stack, until
            somebody replays or discards it.
          </Empty>
        ) : (
          <Table
            label="Causes of death"
            rows={groups.data.items}
            keyOf={({ queue: of, fingerprint: print }) => `${of} ${print}`}
            isChosen={(group) => group.queue === queue && group.fingerprint === fingerprint}
            columns={groupColumns(again)}
          />
        )}
      </Panel>
      {queue !== '' && (
        <Letters round={rounds} queue={queue} fingerprint={fingerprint} text={text} onDone={again} />
      )}
    </PageFrame>
  );
}

function groupColumns(onDone: () => void): Column<DeadGroup>[] {
  return [
    {
      title: 'Cause',
      cut: true,
      cell: ({ queue, fingerprint, title }) => (
        <a href={to('dead', { queue, fingerprint })} title={title}>
          {title}
        </a>
      ),
    },
    { title: 'Queue', name: true, cell: ({ queue }) => <a href={to('queues', queue)}>{queue}</a> },
    { title: 'Letters', number: true, cell: ({ count }) => number(count) },
    {
      title: 'Last day',
      tight: true,
      cell: ({ perHour, title }) =>
        perHour && (
          <Spark values={perHour} tone="bad" label={`${title}: deaths per hour, ${perHour.join(', ')}`} />
        ),
    },
    { title: 'First', number: true, cell: ({ firstMs }) => <Ago at={firstMs} /> },
    { title: 'Last', number: true, cell: ({ lastMs }) => <Ago at={lastMs} /> },
    {
      title: 'Actions',
      quiet: true,
      tight: true,
      cell: ({ queue, fingerprint, title, count }) => (
        <span class="row-actions">
          <BulkMove
            small
            word="replay"
            queue={queue}
            choice={{ fingerprint }}
            what={`${plural(count, 'letter')} of “${title}”`}
            onDone={onDone}
          />
          <BulkMove
            small
            word="discard"
            queue={queue}
            choice={{ fingerprint }}
            what={`${plural(count, 'letter')} of “${title}”`}
            onDone={onDone}
          />
        </span>
      ),
    },
  ];
}

function Letters(props: {
  round: number;
  queue: string;
  fingerprint: string;
  text: string;
  onDone: () => void;
}) {
  const { queue, fingerprint, text } = props;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const pages = usePages<DeadLetter>(
    `letters ${queue} ${fingerprint} ${text}`,
    (cursor, abort) =>
      get<Page<DeadLetter>>(`${at('v1', 'queues', queue)}/dead`, {
        query: { fingerprint, text, limit: 50, cursor },
        signal: abort,
      }),
    lettersEveryMs,
  );
  useEffect(() => {
    if (props.round > 0) pages.again();
  }, [props.round]);
  useEffect(() => setChosen(new Set()), [queue, fingerprint, text]);
  const done = (): void => {
    // They have been replayed or given up.
    setChosen(new Set());
    props.onDone();
  };
  const matching: Choice =
    fingerprint === '' && text === ''
      ? 'all'
      : { ...(fingerprint && { fingerprint }), ...(text && { text }) };
  const isSome = chosen.size > 0;
  // Where none was found so far there may be some all the same: whoever replays or exports them looks at all.
  const isNone = pages.items?.length === 0 && pages.next === null;
  const choice: Choice = isSome ? { ids: [...chosen] } : matching;
  const what = isSome
    ? plural(chosen.size, 'chosen letter')
    : matching === 'all'
      ? `all letters of ${queue}`
      : 'all that match';
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  return (
    <Panel
      title={`Letters of ${queue}`}
      note={isSome ? `${chosen.size} chosen` : undefined}
      flush
      actions={
        !isNone && (
          <>
            <a class="button small" href={exportAddress(props)} download data-leave>
              Export
            </a>
            <BulkMove small word="replay" queue={queue} choice={choice} what={what} onDone={done}>
              {isSome ? 'Replay chosen' : 'Replay all matching'}
            </BulkMove>
            <BulkMove small word="discard" queue={queue} choice={choice} what={what} onDone={done}>
              {isSome ? 'Discard chosen' : 'Discard all matching'}
            </BulkMove>
          </>
        )
      }
    >
      <Listing
        pages={pages}
        one="letter"
        none={<Empty title="There is no letter" />}
        isFiltered={matching !== 'all'}
      >
        {(rows) => (
          <Table
            label={`Dead letters of ${queue}`}
            rows={rows}
            keyOf={({ id }) => id}
            isChosen={({ id }) => chosen.has(id)}
            columns={[
              {
                title: 'Choose',
                quiet: true,
                tight: true,
                cell: ({ id }) => (
                  <input
                    type="checkbox"
                    aria-label={`Choose ${id}`}
                    checked={chosen.has(id)}
                    onChange={() => toggle(id)}
                  />
                ),
              },
              {
                title: 'Job',
                name: true,
                cell: ({ id }) => (
                  <a class="mono" title={id} href={to('jobs', queue, id)}>
                    {id}
                  </a>
                ),
              },
              {
                title: 'Error',
                cut: true,
                cell: ({ error }) => <Cut text={`${error.name}: ${error.message}`} />,
              },
              { title: 'Attempts', number: true, cell: ({ attemptCount }) => number(attemptCount) },
              { title: 'Died', number: true, cell: ({ lastFailureMs }) => <Ago at={lastFailureMs} /> },
            ]}
          />
        )}
      </Listing>
    </Panel>
  );
}

function exportAddress({
  queue,
  fingerprint,
  text,
}: {
  queue: string;
  fingerprint: string;
  text: string;
}): string {
  return to('v1', 'queues', queue, 'dead', 'export', { fingerprint, text });
}
