// How Redis is and how it was.
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { overview } from '../data/live.js';
import type { RedisHealth, Series } from '../data/shapes.js';
import { RedisFacts } from '../panels/redis.js';
import { Chart, emptyOf, type ChartProps, type Line } from '../parts/chart.js';
import { Failure, Notice, Waiting } from '../parts/notice.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { SpanField } from '../parts/spanField.js';
import { askedOf, chosenSpan } from '../spans.js';
import { bytes, compact } from '../format.js';

const everyMs = 30_000;

export default function RedisPage() {
  const span = chosenSpan.value;
  const now = useAnswer(
    'redis',
    (abort) => get<{ redis: RedisHealth | null }>('/v1/redis', { signal: abort }),
    everyMs,
  );
  const series = useAnswer(
    `redis series ${span.name}`,
    (abort) => get<Series>('/v1/redis/series', { query: askedOf(span), signal: abort }),
    everyMs,
  );
  const failed = [now, series].find(({ error }) => error !== undefined);
  const redis = overview.value?.redis ?? now.data?.redis;
  const points = series.data?.points ?? [];
  const over = { points, empty: emptyOf(series, span.step) };
  return (
    <PageFrame title="Redis" actions={<SpanField />}>
      {failed && <Failure error={failed.error} again={failed.again} />}
      {redis && !redis.policy.startsWith('noeviction') && (
        <Notice tone="warn">
          The policy {redis.policy} may throw away keys when memory is full. Jobs need <code>noeviction</code>
          .
        </Notice>
      )}
      <div class="columns even">
        <div class="half">
          <Panel title="Now">{redis ? <RedisFacts redis={redis} /> : <Waiting />}</Panel>
        </div>
        <Over {...over} title="Memory" lines={memory} show={bytes} grain="bytes" />
        <Over {...over} title="Operations" note="per second" lines={operations} show={compact} />
        <Over {...over} title="Keys" lines={keys} show={compact} />
        <Over {...over} title="Connections" lines={connections} show={compact} />
        <Over
          {...over}
          title="Evictions"
          note="keys lost for want of memory"
          lines={evictions}
          show={compact}
        />
      </div>
    </PageFrame>
  );
}

interface Measured {
  title: string;
  /** Its name in the series. */
  figure: string;
  colour: Line['colour'];
}

const memory: Measured[] = [
  { title: 'used', figure: 'usedBytes', colour: 1 },
  { title: 'resident', figure: 'rssBytes', colour: 4 },
];
const operations: Measured[] = [{ title: 'operations', figure: 'opsPerSecond', colour: 1 }];
const keys: Measured[] = [{ title: 'keys', figure: 'keys', colour: 1 }];
const connections: Measured[] = [{ title: 'connections', figure: 'clients', colour: 1 }];
const evictions: Measured[] = [{ title: 'evicted', figure: 'evicted', colour: 2 }];

/** One figure, or two of the same size, over time. */
function Over(props: {
  points: Series['points'];
  empty: ChartProps['empty'];
  title: string;
  note?: string;
  lines: Measured[];
  show: ChartProps['show'];
  grain?: ChartProps['grain'];
}) {
  const { points, empty, title, show, grain } = props;
  return (
    <div class="half">
      <Panel title={title} note={props.note}>
        <Chart
          label={`${title} of Redis`}
          times={points.map(({ atMs }) => atMs)}
          lines={props.lines.map((line) => ({
            title: line.title,
            colour: line.colour,
            values: points.map(({ figures }) => figures?.[line.figure] ?? null),
          }))}
          {...{ show, empty }}
          {...(grain && { grain })}
        />
      </Panel>
    </div>
  );
}
