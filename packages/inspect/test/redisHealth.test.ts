// How Redis is, told from what several masters say.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RedisLink } from '@sluice/redis';
import { readHealth } from '../src/redisHealth.js';

function masters(...infos: Record<string, string>[]): RedisLink {
  const replies = infos.map((info) =>
    Buffer.from(
      Object.entries(info)
        .map(([name, value]) => `${name}:${value}\r\n`)
        .join(''),
    ),
  );
  return { callEverywhere: async () => replies } as unknown as RedisLink;
}

test('of several masters the oldest version and the worst policy are told', async () => {
  const good = { redis_version: '7.4.0', maxmemory_policy: 'noeviction' };
  const old = { redis_version: '7.2.10', maxmemory_policy: 'noeviction' };
  const evicting = { redis_version: '7.10.1', maxmemory_policy: 'allkeys-lru' };
  const health = await readHealth(masters(good, evicting, old), 1_000);
  assert.deepEqual([health.version, health.policy, health.masters], ['7.2.10', 'allkeys-lru', 3]);
  const fine = await readHealth(masters(good, good), 1_000);
  assert.deepEqual([fine.version, fine.policy], ['7.4.0', 'noeviction']);
});
