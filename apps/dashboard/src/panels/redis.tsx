// The health of Redis: memory, keys, operations, connections, evictions.
import type { RedisHealth } from '../data/shapes.js';
import type { PanelProps } from '../panels.js';
import { Waiting } from '../parts/notice.js';
import { Facts, Mark, Meter, Panel } from '../parts/panel.js';
import { bytes, number, percent, span } from '../format.js';

const nearlyFull = 0.9;

export function RedisPanel({ overview }: PanelProps) {
  const { redis } = overview;
  return (
    <Panel
      title="Redis"
      note={redis ? `version ${redis.version}` : undefined}
      actions={<a href="/redis">History</a>}
    >
      {redis ? <RedisFacts redis={redis} /> : <Waiting what="Redis has not answered yet" />}
    </Panel>
  );
}

export function RedisFacts({ redis }: { redis: RedisHealth }) {
  const share = redis.maxBytes > 0 ? redis.usedBytes / redis.maxBytes : 0;
  const memory =
    redis.maxBytes > 0
      ? `${bytes(redis.usedBytes)} of ${bytes(redis.maxBytes)} (${percent(share)})`
      : `${bytes(redis.usedBytes)}, no limit set`;
  return (
    <Facts
      items={[
        [
          'Memory',
          <>
            {memory}
            {redis.maxBytes > 0 && (
              <Meter part={share} label="Memory used" tone={share > nearlyFull ? 'bad' : 'accent'} />
            )}
          </>,
        ],
        ['Keys', number(redis.keys)],
        ['Operations', `${number(redis.opsPerSecond)} per second`],
        ['Connections', `${number(redis.clients)}, ${number(redis.blockedClients)} of them waiting`],
        [
          'Evictions',
          <>
            {percent(evictionRate(redis), 2)}{' '}
            {redis.evicted > 0 ? (
              <Mark tone="bad">{number(redis.evicted)} keys lost</Mark>
            ) : (
              <Mark tone="ok">none</Mark>
            )}
          </>,
        ],
        ['Eviction policy', redis.policy],
        [
          'Append-only file',
          redis.aof.enabled ? (
            <>
              {bytes(redis.aof.bytes)}{' '}
              {redis.aof.lastWriteOk ? (
                <Mark tone="ok">written</Mark>
              ) : (
                <Mark tone="bad">cannot be written</Mark>
              )}
            </>
          ) : (
            <Mark tone="warn">off: a crash loses jobs</Mark>
          ),
        ],
        ['Running for', span(redis.uptimeSeconds * 1_000)],
      ]}
    />
  );
}

/** Of the keys that went, those that had to make room. */
export function evictionRate({ evicted, expired }: Pick<RedisHealth, 'evicted' | 'expired'>): number {
  return evicted + expired === 0 ? 0 : evicted / (evicted + expired);
}
