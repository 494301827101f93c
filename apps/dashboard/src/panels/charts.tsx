// Throughput, latency and failures over the span that was chosen, of all queues together.
import type { PanelProps } from '../panels.js';
import { Chart, emptyOf, type Line } from '../parts/chart.js';
import { Panel } from '../parts/panel.js';
import { chosenSpan } from '../spans.js';
import { compact, latency, number } from '../format.js';
import type { Lines } from '../data/history.js';

type Props = Pick<PanelProps, 'history'>;

export function ThroughputChart({ history }: Props) {
  const { title, step } = shownBy(history);
  return (
    <Panel title="Throughput" note={noteOf(history, `jobs per ${step}`)}>
      <Chart
        label={`Jobs done per ${step} in the ${title}`}
        {...drawn(history, [{ title: 'done', of: 'done', colour: 1 }])}
        show={(value) => compact(value)}
      />
    </Panel>
  );
}

export function LatencyChart({ history }: Props) {
  const { title, step } = shownBy(history);
  // Of minutes the percentiles are known; of hours and days, those of their worst minute.
  const worst = step === 'minute' ? '' : `, worst minute of each ${step}`;
  return (
    <Panel title="Latency" note={noteOf(history, `the slowest twentieth${worst}`)}>
      <Chart
        label={`Waiting and running time of the slowest twentieth of jobs${worst}, in the ${title}`}
        {...drawn(history, [
          { title: 'running', of: 'runP95Ms', colour: 1 },
          { title: 'waiting', of: 'waitP95Ms', colour: 4 },
        ])}
        show={(value) => latency(value)}
        grain="time"
      />
    </Panel>
  );
}

export function FailureChart({ history }: Props) {
  const { title, step } = shownBy(history);
  return (
    <Panel title="Failures" note={noteOf(history, `per ${step}`)}>
      <Chart
        label={`Failed attempts and dead letters per ${step} in the ${title}`}
        {...drawn(history, [
          { title: 'retried', of: 'failed', colour: 3 },
          { title: 'died', of: 'died', colour: 2 },
        ])}
        show={(value) => number(value)}
      />
    </Panel>
  );
}

/** What is drawn says what it is; before that, what was chosen. */
function shownBy({ data }: Props['history']) {
  return data?.span ?? chosenSpan.value;
}

function drawn(
  history: Props['history'],
  lines: (Omit<Line, 'values'> & { of: Exclude<keyof Lines, 'times'> })[],
) {
  const { data } = history;
  return {
    times: data?.times ?? [],
    lines: lines.map(({ title, of, colour }) => ({ title, colour, values: data?.[of] ?? [] })),
    empty: emptyOf(history, shownBy(history).step),
  };
}

function noteOf({ data }: Props['history'], text: string): string {
  return data && data.leftOut > 0 ? `${text}, without ${data.leftOut} quiet queues` : text;
}
