// How Redis is and how it was.
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { overview } from '../data/live.js';
import type { RedisHealth, Series } from '../data/shapes.js';
import { RedisFacts } from '../panels/redis.js';
import { Chart, type ChartProps, type Line } from '../parts/chart.js';
import { Failure, Notice, Waiting } from '../parts/notice.js';
import { PageFrame, Panel } from '../parts/panel.js';
import { filter, query } from '../place.js';
import { bytes, compact } from '../format.js';

const everyMs = 30_000;

export default function RedisPage() {
  const step = query.value.get('step') === 'hour' ? 'hour' : 'minute';
  const now = useAnswer(
    'redis',
    (abort) => get<{ redis: RedisHealth | null }>('/v1/redis', { signal: abort }),
    everyMs,
  );
  const series = useAnswer(
    `redis series ${step}`,
    (abort) => get<Series>('/v1/redis/series', { query: { step }, signal: abort }),
    everyMs,
  );
  const redis = overview.value?.redis ?? now.data?.redis;
  const points = series.data?.points ?? [];
  return (
    <PageFrame
      title="Redis"
      actions={
        <label class="check">
          <span>History</span>
          <select value={step} onChange={(event) => filter({ step: event.currentTarget.value })}>
            <option value="minute">last hour</option>
            <option value="hour">last week</option>
          </select>
        </label>
      }
    >
      {now.error !== undefined && <Failure error={now.error} again={now.again} />}
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
        <Over points={points} title="Memory" lines={memory} show={bytes} grain="bytes" />
        <Over points={points} title="Operations" note="per second" lines={operations} show={compact} />
        <Over points={points} title="Keys" lines={keys} show={compact} />
        <Over points={points} title="Connections" lines={connections} show={compact} />
        <Over
          points={points}
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
  title: string;
  note?: string;
  lines: Measured[];
  show: ChartProps['show'];
  grain?: ChartProps['grain'];
}) {
  const { points, title, show, grain } = props;
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
          show={show}
          {...(grain && { grain })}
        />
      </Panel>
    </div>
  );
}
