// How the cache does, family by family.
import { useAnswer } from '../data/answer.js';
import { get } from '../data/api.js';
import type { CacheAnswer, CacheFamily } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Answered } from '../parts/answered.js';
import { Empty } from '../parts/notice.js';
import { Mark, Panel } from '../parts/panel.js';
import { Table, type Column } from '../parts/table.js';
import { hitsOf, isHitOften } from '../targets.js';
import { readDrives } from '../commands.js';
import { to } from '../place.js';
import { leftOut, number, percent, rate, span } from '../format.js';

const everyMs = 5_000;
const shown = 8;

export const familyColumns: Column<CacheFamily>[] = [
  { title: 'Family', name: true, cell: ({ family }) => <a href={to('cache', { family })}>{family}</a> },
  { title: 'Hit rate', number: true, cell: ({ hitRate }) => percent(hitRate) },
  { title: 'Goal', number: true, cell: (family) => <Goal family={family} /> },
  { title: 'Requests', number: true, cell: (family) => number(hitsOf(family) + family.misses) },
  {
    title: 'Avg TTL',
    number: true,
    cell: ({ averageRemainingTtlMs }) =>
      averageRemainingTtlMs === undefined ? '–' : span(averageRemainingTtlMs),
  },
];

export function CachePanel(_props: PanelProps) {
  const cache = useAnswer(
    'cache',
    (abort) => get<CacheAnswer | null>('/v1/cache', { signal: abort }),
    everyMs,
  );
  const { data } = cache;
  const used = (data?.families ?? []).filter((family) => hitsOf(family) + family.misses > 0);
  const rows = used.sort((a, b) => hitsOf(b) + b.misses - hitsOf(a) - a.misses).slice(0, shown);
  return (
    <Panel
      title="Cache"
      flush
      note={
        rows.length > 0 && data
          ? `${percent(data.total.hitRate)} hits, ${rate(data.total.rates?.reads)} reads/s`
          : undefined
      }
      actions={<a href="/cache">All families</a>}
      foot={leftOut(rows.length, used.length, 'families')}
    >
      <Answered answer={cache}>
        {() =>
          rows.length === 0 ? (
            <Empty title="Nothing has been read yet" command={readDrives()}>
              Reads of files, drives and jobs go through the cache; the first one fills it.
            </Empty>
          ) : (
            <Table
              label="Cache performance"
              rows={rows}
              keyOf={({ family }) => family}
              columns={familyColumns}
            />
          )
        }
      </Answered>
    </Panel>
  );
}

function Goal({ family }: { family: CacheFamily }) {
  const isMet = isHitOften(family);
  const goal = percent(family.hitGoal);
  if (isMet === null) return <span class="faint">{goal}</span>;
  return <Mark tone={isMet ? 'ok' : 'warn'}>{`${isMet ? '✓' : '✗'} ${goal}`}</Mark>;
}
