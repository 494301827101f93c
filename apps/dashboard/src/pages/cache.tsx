// The cache: how each family does and did; look a value up, ask why it is as it is, make it go.
import { useState } from 'preact/hooks';
import { readDrives } from '../commands.js';
import { at, call, get, messageOf } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { historyEveryMs } from '../data/history.js';
import type { CacheAnswer, CacheFamily, Series } from '../data/shapes.js';
import { familyColumns } from '../panels/cache.js';
import { Action } from '../parts/action.js';
import { Chart, emptyOf } from '../parts/chart.js';
import { Field } from '../parts/field.js';
import { Json } from '../parts/json.js';
import { Empty, Failure, Notice, Waiting } from '../parts/notice.js';
import { Figures, Mark, PageFrame, Panel } from '../parts/panel.js';
import { SpanField } from '../parts/spanField.js';
import { Table, type Column } from '../parts/table.js';
import { filter, query } from '../place.js';
import { askedOf, chosenSpan } from '../spans.js';
import { hitsOf } from '../targets.js';
import { compact, latency, number, percent, rate } from '../format.js';

const everyMs = 3_000;
const goal = 0.8;

const columns: Column<CacheFamily>[] = [
  ...familyColumns,
  { title: 'Reads/s', number: true, cell: ({ rates }) => rate(rates?.reads) },
  { title: 'Loads', number: true, cell: ({ loads }) => number(loads) },
  { title: 'Load time', number: true, cell: ({ averageLoadMs }) => latency(averageLoadMs) },
  {
    title: 'Load errors',
    number: true,
    cell: ({ loadErrors }) =>
      loadErrors > 0 ? <span class="text-bad">{number(loadErrors)}</span> : <span class="zero">0</span>,
  },
  { title: 'Stale served', number: true, cell: ({ staleServed }) => number(staleServed) },
  { title: 'Invalidated', number: true, cell: ({ invalidations }) => number(invalidations) },
];

export default function CachePage() {
  const { data, error, again } = useAnswer(
    'cache',
    (abort) => get<CacheAnswer | null>('/v1/cache', { signal: abort }),
    everyMs,
  );
  const chosen = query.value.get('family') ?? '';
  const total = data?.total;
  const isRead = total !== undefined && hitsOf(total) + total.misses > 0;
  return (
    <PageFrame title="Cache" actions={<SpanField />}>
      {error !== undefined && <Failure error={error} again={again} />}
      {data?.problem && <Notice tone="bad">{data.problem.message}</Notice>}
      {!data && error === undefined && <Waiting />}
      {data && total && (
        <>
          <Figures
            label="All families"
            items={[
              {
                label: 'Hit rate',
                value: percent(isRead ? total.hitRate : null),
                about: `target: more than ${percent(goal)}`,
                tone: isRead ? ((total.hitRate ?? 1) > goal ? 'ok' : 'warn') : 'neutral',
              },
              { label: 'Reads', value: rate(total.rates?.reads), unit: '/s', about: 'of all processes' },
              {
                label: 'Loads',
                value: rate(total.rates?.loads),
                unit: '/s',
                about: `${latency(total.averageLoadMs)} each`,
              },
              {
                label: 'Load errors',
                value: compact(total.loadErrors),
                about: 'since they began',
                tone: total.loadErrors > 0 ? 'bad' : 'neutral',
              },
              {
                label: 'Processes',
                value: number(total.processes),
                about:
                  total.openBreakers > 0
                    ? `${total.openBreakers} lost Redis in the last minute`
                    : 'all reach Redis',
                tone: total.openBreakers > 0 ? 'bad' : 'neutral',
              },
            ]}
          />
          <Over family={chosen} />
          <LookUp key={chosen} families={data.families.map(({ family }) => family)} chosen={chosen} />
          <Panel title="Families" flush>
            {data.families.length === 0 ? (
              <Empty title="No family has been read yet" command={readDrives()}>
                Reads of files, drives and jobs go through the cache; the first one fills it.
              </Empty>
            ) : (
              <Table
                label="Families"
                rows={data.families}
                keyOf={({ family }) => family}
                isChosen={({ family }) => family === chosen}
                columns={columns}
              />
            )}
          </Panel>
        </>
      )}
    </PageFrame>
  );
}

/** All families together. */
const all = '*';

/** How often reads were hits, and how many there were; of the family that is chosen, or of all. */
function Over({ family }: { family: string }) {
  const span = chosenSpan.value;
  const { step } = span;
  const series = useAnswer(
    `cache series ${family} ${span.name}`,
    (abort) =>
      get<Series>(`${at('v1', 'cache', family || all)}/series`, { query: askedOf(span), signal: abort }),
    historyEveryMs,
  );
  const points = series.data?.points ?? [];
  const figures = (name: string): (number | null)[] => points.map((point) => point.figures?.[name] ?? null);
  const [reads, hits, loads] = [figures('reads'), figures('hits'), figures('loads')];
  // Where nothing was read there is no rate.
  const rates = reads.map((many, i) => (many ? ((hits[i] ?? 0) / many) * 100 : null));
  const of = family || 'all families';
  const drawn = { times: points.map(({ atMs }) => atMs), empty: emptyOf(series, step) };
  return (
    <>
      {series.error !== undefined && <Failure error={series.error} again={series.again} />}
      <div class="columns even">
        <div class="half">
          <Panel title="Hit rate" note={of}>
            <Chart
              {...drawn}
              label={`Hit rate of ${of}, per ${step}, in the ${span.title}`}
              lines={[{ title: 'hits', values: rates, colour: 1 }]}
              show={(value) => percent(value === null ? null : value / 100)}
            />
          </Panel>
        </div>
        <div class="half">
          <Panel title="Reads" note={`per ${step}, ${of}`}>
            <Chart
              {...drawn}
              label={`Reads and loads of ${of}, per ${step}, in the ${span.title}`}
              lines={[
                { title: 'reads', values: reads, colour: 1 },
                { title: 'loads', values: loads, colour: 4 },
              ]}
              show={compact}
            />
          </Panel>
        </div>
      </div>
    </>
  );
}

function LookUp({ families, chosen }: { families: string[]; chosen: string }) {
  const [key, setKey] = useState('');
  const [group, setGroup] = useState('');
  const [found, setFound] = useState<{ title: string; value: unknown } | { problem: string } | null>(null);
  const path = at('v1', 'cache', chosen);
  const ask = async (title: string, word: 'entry' | 'explain'): Promise<undefined> => {
    try {
      setFound({ title, value: await get(`${path}/${word}`, { query: { key } }) });
    } catch (error) {
      setFound({ problem: messageOf(error) });
    }
    return undefined;
  };
  return (
    <Panel title="Look up" note="one value of a family, or forget a whole group of it">
      <div class="stack">
        <div class="filters">
          <label class="field">
            Family
            <select value={chosen} onChange={(event) => filter({ family: event.currentTarget.value })}>
              <option value="">choose one</option>
              {(chosen === '' || families.includes(chosen) ? families : [...families, chosen]).map(
                (family) => (
                  <option key={family}>{family}</option>
                ),
              )}
            </select>
          </label>
          <Field
            grow
            mono
            label="Key"
            value={key}
            set={setKey}
            placeholder='17, ["17","en"] or {"id":"17"}'
          />
          <Action needs="viewer" disabled={chosen === '' || key === ''} run={() => ask('Value', 'entry')}>
            Look up
          </Action>
          <Action
            needs="viewer"
            disabled={chosen === '' || key === ''}
            run={() => ask('Why it is as it is', 'explain')}
          >
            Explain
          </Action>
          <Action
            tone="danger"
            disabled={chosen === '' || key === ''}
            run={async () => {
              const { invalidated } = await invalidate(path, { key: fromText(key) });
              setFound(null);
              return invalidated === 'kept' ? keptForLater : 'Readers load it anew from now on.';
            }}
          >
            Invalidate
          </Action>
        </div>
        <div class="filters">
          <Field
            grow
            mono
            label="Group"
            value={group}
            set={setGroup}
            placeholder='vector:search or ["graph","17"]'
          />
          <Action
            tone="danger"
            disabled={chosen === '' || group === ''}
            confirm={{
              title: 'Invalidate the group?',
              text: `Every value of ${group} is loaded anew when it is next read.`,
              button: 'Invalidate',
            }}
            run={async () => {
              const { invalidated } = await invalidate(path, { group: groupOf(group) });
              return invalidated === 'kept' ? keptForLater : `What belongs to ${group} is loaded anew.`;
            }}
          >
            Invalidate group
          </Action>
        </div>
        {found && 'problem' in found && <Notice tone="bad">{found.problem}</Notice>}
        {found && 'value' in found && (
          <div>
            <Mark tone="accent">{found.title}</Mark>
            <Json value={found.value} label={found.title} />
          </div>
        )}
      </div>
    </Panel>
  );
}

const keptForLater = 'Redis does not answer. The server has kept it, and invalidates as soon as it does.';

function invalidate(path: string, body: object): Promise<{ invalidated: 'applied' | 'kept' }> {
  return call('POST', `${path}/invalidate`, { body });
}

/** JSON if it is some; a plain word is meant as it stands. */
function fromText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Its name, or a list of its name and parts. */
function groupOf(text: string): unknown {
  const group = fromText(text);
  return Array.isArray(group) ? group : text;
}
