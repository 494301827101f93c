// One queue: how it is, how it was, its limits.
import { useState } from 'preact/hooks';
import { pauseQueue, resumeQueue, setLimits } from '../data/actions.js';
import { at, get, may } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { historyOf } from '../data/history.js';
import { overview } from '../data/live.js';
import type { QueueDetail, QueueRow, Rules } from '../data/shapes.js';
import type { PageProps } from '../pages.js';
import { FailureChart, LatencyChart, ThroughputChart } from '../panels/charts.js';
import { Action } from '../parts/action.js';
import { Failure, Notice, Waiting } from '../parts/notice.js';
import { Facts, Figures, Mark, PageFrame, Panel } from '../parts/panel.js';
import { NextIn } from '../parts/time.js';
import { to } from '../place.js';
import { compact, decimal, latency, number, plural, rate, span } from '../format.js';

const everyMs = 5_000;
const historyEveryMs = 60_000;

export default function QueuePage({ params }: PageProps) {
  const name = params['queue']!;
  const asked = useAnswer(
    `queue ${name}`,
    (abort) => get<QueueDetail | null>(at('v1', 'queues', name), { signal: abort }),
    everyMs,
  );
  const detail = asked.data;
  const live = overview.value?.queues.find((queue) => queue.name === name);
  const row: QueueRow | undefined = live ?? detail ?? undefined;
  const history = useAnswer(
    row ? `history ${name}` : null,
    (abort) => historyOf(row ? [row] : [], {}, abort),
    historyEveryMs,
  );
  const paused = row?.paused ?? false;
  return (
    <PageFrame
      title={name}
      crumbs={<a href="/queues">Queues</a>}
      lead={paused ? <Mark>paused</Mark> : undefined}
      actions={
        <>
          <a class="button" href={to('jobs', { queue: name })}>
            Jobs
          </a>
          <a class="button" href={to('dead', { queue: name })}>
            Dead letters
          </a>
          {paused ? (
            <Action tone="primary" run={() => resumeQueue(name)} onDone={asked.again}>
              Resume
            </Action>
          ) : (
            <Action run={() => pauseQueue(name)} onDone={asked.again}>
              Pause
            </Action>
          )}
        </>
      }
    >
      {asked.error !== undefined && <Failure error={asked.error} again={asked.again} />}
      {row?.problem && <Notice tone="bad">{row.problem.message}</Notice>}
      {row ? <QueueFigures row={row} /> : asked.error === undefined && <Waiting />}
      <div class="columns even">
        <div class="third">
          <ThroughputChart history={history.data} />
        </div>
        <div class="third">
          <LatencyChart history={history.data} />
        </div>
        <div class="third">
          <FailureChart history={history.data} />
        </div>
        {detail && (
          <>
            <div class="half">
              <Panel title="This minute">
                <Facts
                  items={[
                    ['Done', number(detail.minute.done)],
                    ['Failed and retried', number(detail.minute.failed)],
                    ['Died', number(detail.minute.dead)],
                    ['Wait', percentiles(detail.minute.waitMs)],
                    ['Run', percentiles(detail.minute.runMs)],
                    ['Waiting by priority', detail.counts.byPriority.map(compact).join(' · ')],
                    ['Partitions', number(detail.partitions)],
                    [
                      'Dead letters',
                      detail.dead.letters === 0
                        ? 'none'
                        : `${number(detail.dead.letters)}, ${decimal(detail.dead.averageAttempts)} attempts on average`,
                    ],
                    ['Top error', detail.dead.topError?.title],
                  ]}
                />
              </Panel>
            </div>
            <div class="half">
              <Limits
                key={JSON.stringify(detail.rules)}
                queue={name}
                rules={detail.rules}
                onDone={asked.again}
              />
            </div>
          </>
        )}
      </div>
    </PageFrame>
  );
}

function QueueFigures({ row: { name, counts, rates } }: { row: QueueRow }) {
  const jobs = (state: string) => to('jobs', { queue: name, state });
  return (
    <Figures
      label="Jobs by state"
      items={[
        {
          label: 'Waiting',
          value: compact(counts.waiting),
          about: counts.waiting > 0 ? `oldest ${span(counts.oldestWaitingMs)}` : 'nothing waits',
          href: jobs('waiting'),
        },
        {
          label: 'Running',
          value: compact(counts.active),
          about: plural(counts.workers, 'worker'),
          tone: counts.workers === 0 && counts.waiting > 0 ? 'bad' : 'neutral',
          href: jobs('active'),
        },
        {
          label: 'Delayed',
          value: compact(counts.delayed),
          about: counts.nextDueMs === undefined ? 'none' : <NextIn at={counts.nextDueMs} />,
          href: jobs('delayed'),
        },
        {
          label: 'Blocked',
          value: compact(counts.blocked),
          about: 'by chains or groups',
          href: jobs('blocked'),
        },
        {
          label: 'Dead',
          value: compact(counts.dead),
          about: counts.dead === 0 ? 'none' : 'kept until you decide',
          tone: counts.dead > 0 ? 'bad' : 'neutral',
          href: to('dead', { queue: name }),
        },
        { label: 'Done', value: rate(rates?.done), unit: '/s', about: `${rate(rates?.added)}/s added` },
      ]}
    />
  );
}

function percentiles(of: { p50: number; p95: number; p99: number } | null): string | undefined {
  return of ? `${latency(of.p50)} median, ${latency(of.p95)} p95, ${latency(of.p99)} p99` : undefined;
}

function Limits({ queue, rules, onDone }: { queue: string; rules: Rules; onDone: () => void }) {
  const [maxActive, setMaxActive] = useState(textOf(rules.maxActive));
  const [max, setMax] = useState(textOf(rules.rate?.max));
  const [perMs, setPerMs] = useState(textOf(rules.rate?.perMs ?? 1_000));
  const [perGroup, setPerGroup] = useState(textOf(rules.perGroup?.maxActive));
  const wanted: Rules = {
    maxActive: figureOf(maxActive),
    rate: max === '' ? null : { max: Number(max), perMs: Number(perMs) },
    perGroup: { maxActive: figureOf(perGroup) },
  };
  return (
    <Panel
      title="Limits"
      note="empty means no limit"
      actions={
        <Action small tone="primary" run={() => setLimits(queue, wanted)} onDone={onDone}>
          Set
        </Action>
      }
    >
      <div class="filters">
        <Whole label="Jobs at once" value={maxActive} set={setMaxActive} />
        <Whole label="At once per group" value={perGroup} set={setPerGroup} />
        <Whole label="Starts" value={max} set={setMax} />
        <Whole label="per so many ms" value={perMs} set={setPerMs} />
      </div>
    </Panel>
  );
}

function Whole({ label, value, set }: { label: string; value: string; set: (text: string) => void }) {
  return (
    <label class="field grow">
      {label}
      <input
        type="number"
        min={1}
        step={1}
        size={8}
        value={value}
        disabled={!may('operator')}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
}

function textOf(value: number | null | undefined): string {
  return value === null || value === undefined ? '' : String(value);
}

function figureOf(text: string): number | null {
  return text === '' ? null : Number(text);
}
