// The figures of queues in the text format that Prometheus scrapes. All of them come from Redis, so one process may answer
// for all workers, and two that answer say the same. What happened is kept per minute, not counted for ever: those figures
// are gauges over the last full minute, and their names say so.
import type { MinuteStats, Percentiles, QueueCounts } from './inspect.js';
import type { AnyQueue } from './queue.js';

interface Figures {
  queue: string;
  counts: QueueCounts;
  minute: MinuteStats;
}

type Sample = [labels: Record<string, string>, value: number];

interface Metric {
  name: string;
  help: string;
  samples: (figures: Figures) => Sample[];
}

const metrics: Metric[] = [
  {
    name: 'sluice_queue_jobs',
    help: 'Jobs by state.',
    samples: ({ counts }) =>
      (['waiting', 'delayed', 'blocked', 'active', 'dead'] as const).map((state) => [
        { state },
        counts[state],
      ]),
  },
  {
    name: 'sluice_queue_remembered_jobs',
    help: 'Ended jobs whose id or result is still remembered.',
    samples: ({ counts }) => [[{}, counts.done]],
  },
  {
    name: 'sluice_queue_inbox_messages',
    help: 'Messages of foreign producers that were not taken yet.',
    samples: ({ counts }) => [[{}, counts.inbox]],
  },
  {
    name: 'sluice_queue_oldest_waiting_seconds',
    help: 'Age of the oldest waiting job.',
    samples: ({ counts }) => [[{}, counts.oldestWaitingMs / 1_000]],
  },
  {
    name: 'sluice_queue_workers',
    help: 'Workers that hold a lease.',
    samples: ({ counts }) => [[{}, counts.workers]],
  },
  {
    name: 'sluice_queue_last_minute_jobs',
    help: 'Jobs that ended in the last full minute, and attempts that failed.',
    samples: ({ minute }) =>
      (['done', 'failed', 'dead', 'cancelled'] as const).map((outcome) => [{ outcome }, minute[outcome]]),
  },
  {
    name: 'sluice_queue_last_minute_wait_seconds',
    help: 'Time from add to start of the jobs that ended in the last full minute.',
    samples: ({ minute }) => quantiles(minute.waitMs),
  },
  {
    name: 'sluice_queue_last_minute_run_seconds',
    help: 'Running time of the jobs that ended in the last full minute.',
    samples: ({ minute }) => quantiles(minute.runMs),
  },
];

/** Answer with the content type `text/plain; version=0.0.4`. */
export async function prometheusText(queues: readonly AnyQueue[]): Promise<string> {
  const all = await Promise.all(
    queues.map(async (queue) => {
      const [counts, minutes] = await Promise.all([queue.counts(), queue.minutes(2)]);
      return { queue: queue.name, counts, minute: minutes[0]! };
    }),
  );
  return metrics.map((metric) => writeMetric(metric, all)).join('');
}

function quantiles(percentiles: Percentiles | null): Sample[] {
  if (!percentiles) return [];
  const { p50, p95, p99 } = percentiles;
  return [
    [{ quantile: '0.5' }, p50 / 1_000],
    [{ quantile: '0.95' }, p95 / 1_000],
    [{ quantile: '0.99' }, p99 / 1_000],
  ];
}

function writeMetric({ name, help, samples }: Metric, all: Figures[]): string {
  const lines = all.flatMap((figures) =>
    samples(figures).map(
      ([labels, value]) => `${name}{${writeLabels({ queue: figures.queue, ...labels })}} ${value}\n`,
    ),
  );
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`;
}

/** Queue names and the words above contain nothing that would have to be escaped. */
function writeLabels(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');
}
