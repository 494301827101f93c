// One queue: how it is, how it was, its limits.
import { useState } from 'preact/hooks';
import { addJob } from '../commands.js';
import { pauseQueue, resumeQueue, setLimits } from '../data/actions.js';
import { ApiError, at, get, may } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { historyEveryMs, historyOf } from '../data/history.js';
import { overview } from '../data/live.js';
import type { QueueDetail, QueueRow, Rules } from '../data/shapes.js';
import type { PageProps } from '../pages.js';
import { FailureChart, LatencyChart, ThroughputChart } from '../panels/charts.js';
import { Action } from '../parts/action.js';
import { Empty, Failure, Notice, Waiting } from '../parts/notice.js';
import { Facts, Figures, Mark, PageFrame, Panel } from '../parts/panel.js';
import { SpanField } from '../parts/spanField.js';
import { NextIn } from '../parts/time.js';
import { to } from '../place.js';
import { chosenSpan } from '../spans.js';
import { compact, decimal, latency, number, plural, rate, span } from '../format.js';

const everyMs = 5_000;

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
    row ? `history ${name} ${chosenSpan.value.name}` : null,
    (abort) => historyOf(row ? [row] : [], chosenSpan.value, abort),
    historyEveryMs,
  );
  const failed = [asked, history].find(({ error }) => error !== undefined);
  const paused = row?.paused ?? false;
  const crumbs = <a href="/queues">Queues</a>;
  if (row === undefined && asked.error instanceof ApiError && asked.error.status === 404)
    return (
      <PageFrame title={name} crumbs={crumbs}>
        <Panel title="Not opened yet">
          <Empty title={`There is no queue ${name}`} command={addJob(name)}>
            A queue begins with its first worker or its first job. This adds one:
          </Empty>
        </Panel>
      </PageFrame>
    );
  return (
    <PageFrame
      title={name}
      crumbs={crumbs}
      lead={paused ? <Mark>paused</Mark> : undefined}
      actions={
        <>
          <SpanField />
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
      {failed && <Failure error={failed.error} again={failed.again} />}
      {row?.problem && <Notice tone="bad">{row.problem.message}</Notice>}
      {row ? <QueueFigures row={row} /> : asked.error === undefined && <Waiting />}
      <div class="columns even">
        <div class="third">
          <ThroughputChart history={history} />
        </div>
        <div class="third">
          <LatencyChart history={history} />
        </div>
        <div class="third">
          <FailureChart history={history} />
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
                    ['Waiting by priority', waitingOf(detail.counts)],
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
          about:
            counts.delayed === 0 || counts.nextDueMs === undefined ? (
              'none'
            ) : (
              <NextIn at={counts.nextDueMs} />
            ),
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

/** Jobs of groups, jobs that are due and messages that nobody has read yet are in no list of a priority. */
function waitingOf({ waiting, byPriority }: QueueDetail['counts']): string {
  const others = waiting - byPriority.reduce((sum, many) => sum + many, 0);
  const listed = byPriority.map(compact).join(' · ');
  return others > 0 ? `${listed}, and ${number(others)} in groups, due or just come` : listed;
}

function percentiles(of: { p50: number; p95: number; p99: number } | null): string | undefined {
  return of ? `${latency(of.p50)} median, ${latency(of.p95)} p95, ${latency(of.p99)} p99` : undefined;
}

function Limits({ queue, rules, onDone }: { queue: string; rules: Rules; onDone: () => void }) {
  const [maxActive, setMaxActive] = useState(textOf(rules.maxActive));
  const [max, setMax] = useState(textOf(rules.rate?.max));
  const [perMs, setPerMs] = useState(textOf(rules.rate?.perMs ?? 1_000));
  const [perGroup, setPerGroup] = useState(textOf(rules.perGroup?.maxActive));
  // What is no number has no value: without asking the fields, a slip would take a limit away.
  const [wrong, setWrong] = useState<readonly string[]>([]);
  const judge = (label: string, isRight: boolean): void =>
    setWrong((before) => [...before.filter((one) => one !== label), ...(isRight ? [] : [label])]);
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
        <Action
          small
          tone="primary"
          disabled={wrong.length > 0}
          run={() => setLimits(queue, wanted)}
          onDone={onDone}
        >
          Set
        </Action>
      }
    >
      <div class="filters">
        <Whole label="Jobs at once" value={maxActive} set={setMaxActive} judge={judge} />
        <Whole label="At once per group" value={perGroup} set={setPerGroup} judge={judge} />
        <Whole label="Starts" value={max} set={setMax} judge={judge} />
        <Whole label="per so many ms" value={perMs} set={setPerMs} judge={judge} />
      </div>
      {wrong.length > 0 && <p class="text-bad">{wrong.join(', ')}: a whole number from 1, or nothing.</p>}
    </Panel>
  );
}

function Whole(props: {
  label: string;
  value: string;
  set: (text: string) => void;
  judge: (label: string, isRight: boolean) => void;
}) {
  const { label, value, set, judge } = props;
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
        onInput={(event) => {
          set(event.currentTarget.value);
          judge(label, event.currentTarget.validity.valid);
        }}
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
