// The goals, met or missed.
import { useAnswer } from '../data/answer.js';
import { get } from '../data/api.js';
import { total } from '../data/history.js';
import type { DeadGroup } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Mark, Panel } from '../parts/panel.js';
import { judge } from '../targets.js';

const everyMs = 30_000;

export function TargetsPanel({ overview, history }: PanelProps) {
  const groups = useAnswer(
    'groups',
    async (abort) => (await get<{ items: DeadGroup[] }>('/v1/dead/groups', { signal: abort })).items,
    everyMs,
  );
  const judged = judge({
    letters: overview.dead.letters,
    hour: history
      ? { done: total(history.done), failed: total(history.failed), died: total(history.died) }
      : null,
    groups: groups.data ?? [],
    cache: overview.cache,
    nowMs: overview.atMs,
  });
  const missed = judged.filter(({ met }) => met === false).length;
  return (
    <Panel title="Targets" flush note={missed === 0 ? 'none missed' : `${missed} missed`}>
      <ul class="targets">
        {judged.map(({ title, goal, about, now, met }) => (
          <li key={title} title={about}>
            <span>{title}</span>
            <span class="now">{now}</span>
            <span class="goal">{goal}</span>
            {met === null ? (
              <Mark>no data</Mark>
            ) : (
              <Mark tone={met ? 'ok' : 'bad'}>{met ? '✓ met' : '✗ missed'}</Mark>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
