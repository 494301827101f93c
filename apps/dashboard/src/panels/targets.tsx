// The goals, met or missed.
import { useAnswer } from '../data/answer.js';
import { get } from '../data/api.js';
import type { AlertRow } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Answered } from '../parts/answered.js';
import { Empty } from '../parts/notice.js';
import { Mark, Panel } from '../parts/panel.js';
import { describeTarget, placeOf } from '../targets.js';

const everyMs = 15_000;

export function TargetsPanel(_props: PanelProps) {
  const alerts = useAnswer(
    'alerts',
    (abort) => get<{ items: AlertRow[] }>('/v1/alerts', { signal: abort }),
    everyMs,
  );
  const missed = alerts.data?.items.filter(({ met }) => met === false).length;
  return (
    <Panel
      title="Targets"
      flush
      note={missed === undefined ? undefined : missed === 0 ? 'none missed' : `${missed} missed`}
    >
      <Answered answer={alerts}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="Nothing is measured" />
          ) : (
            <ul class="targets">
              {items.map((row) => (
                <TargetItem key={row.name} row={row} />
              ))}
            </ul>
          )
        }
      </Answered>
    </Panel>
  );
}

function TargetItem({ row }: { row: AlertRow }) {
  const { title, goal, now } = describeTarget(row);
  const place = placeOf(row.link);
  return (
    <li title={row.about}>
      {row.met === false && place !== undefined ? <a href={place}>{title}</a> : <span>{title}</span>}
      <span class="now">{now}</span>
      <span class="goal">{goal}</span>
      {row.met === null ? (
        <Mark>no data</Mark>
      ) : (
        <Mark tone={row.met ? 'ok' : 'bad'}>{row.met ? '✓ met' : '✗ missed'}</Mark>
      )}
    </li>
  );
}
