// How Redis is and how it was.
import { get } from '../data/api.js';
import { useAnswer } from '../data/answer.js';
import { overview } from '../data/live.js';
import type { RedisHealth, Series } from '../data/shapes.js';
import { RedisFacts } from '../panels/redis.js';
import { Chart } from '../parts/chart.js';
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
  const times = points.map(({ atMs }) => atMs);
  const values = (name: string) => points.map(({ figures }) => figures?.[name] ?? null);
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
      <div class="columns">
        <div class="half">
          <Panel title="Now">{redis ? <RedisFacts redis={redis} /> : <Waiting />}</Panel>
        </div>
        <div class="half">
          <Panel title="Memory">
            <Chart
              label="Memory of Redis"
              times={times}
              lines={[
                { title: 'used', values: values('usedBytes'), colour: 1 },
                { title: 'resident', values: values('rssBytes'), colour: 4 },
              ]}
              show={(value) => bytes(value)}
            />
          </Panel>
        </div>
        <div class="half">
          <Panel title="Operations" note="per second">
            <Chart
              label="Operations of Redis per second"
              times={times}
              lines={[{ title: 'operations', values: values('opsPerSecond'), colour: 1 }]}
              show={(value) => compact(value)}
            />
          </Panel>
        </div>
        <div class="half">
          <Panel title="Keys and connections">
            <Chart
              label="Keys and connections of Redis"
              times={times}
              lines={[
                { title: 'keys', values: values('keys'), colour: 1 },
                { title: 'evicted', values: values('evicted'), colour: 2 },
                { title: 'connections', values: values('clients'), colour: 4 },
              ]}
              show={(value) => compact(value)}
            />
          </Panel>
        </div>
      </div>
    </PageFrame>
  );
}
