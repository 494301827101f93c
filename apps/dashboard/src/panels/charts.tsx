// Throughput, latency and failures over the last hour, of all queues together.
import type { PanelProps } from '../panels.js';
import { Chart } from '../parts/chart.js';
import { Panel } from '../parts/panel.js';
import { compact, latency, number } from '../format.js';

type Props = Pick<PanelProps, 'history'>;

export function ThroughputChart({ history }: Props) {
  return (
    <Panel title="Throughput" note={noteOf(history, 'jobs per minute')}>
      <Chart
        label="Jobs done per minute in the last hour"
        times={history?.times ?? []}
        lines={[{ title: 'done', values: history?.done ?? [], colour: 1 }]}
        show={(value) => compact(value)}
      />
    </Panel>
  );
}

export function LatencyChart({ history }: Props) {
  return (
    <Panel title="Latency" note={noteOf(history, 'the slowest twentieth')}>
      <Chart
        label="Waiting and running time of the slowest twentieth of jobs, per minute, in the last hour"
        times={history?.times ?? []}
        lines={[
          { title: 'running', values: history?.runP95Ms ?? [], colour: 1 },
          { title: 'waiting', values: history?.waitP95Ms ?? [], colour: 4 },
        ]}
        show={(value) => latency(value)}
        grain="time"
      />
    </Panel>
  );
}

export function FailureChart({ history }: Props) {
  return (
    <Panel title="Failures" note={noteOf(history, 'per minute')}>
      <Chart
        label="Failed attempts and dead letters per minute in the last hour"
        times={history?.times ?? []}
        lines={[
          { title: 'retried', values: history?.failed ?? [], colour: 3 },
          { title: 'died', values: history?.died ?? [], colour: 2 },
        ]}
        show={(value) => number(value)}
      />
    </Panel>
  );
}

function noteOf(history: Props['history'], text: string): string {
  return history && history.leftOut > 0 ? `${text}, without ${history.leftOut} quiet queues` : text;
}
