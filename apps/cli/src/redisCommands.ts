// `sluice redis health`: how Redis is, in words.
import { declare, group, type SluiceCommand } from './command.js';
import type { Context } from './context.js';
import { bytes, count, duration, percent } from './human.js';
import type { RedisHealth } from './replies.js';

export function redisCommands(program: SluiceCommand): void {
  const redis = group(program, 'redis', 'How Redis is.').example('redis health', 'memory, load, persistence');
  declare(redis, 'health', 'Memory, load, persistence and evictions of Redis.')
    .example('redis health', 'in words')
    .example('redis health --json | jq .usedBytes', 'one figure')
    .runs(async ({ api, out }) => {
      const reply = await readRedis(api);
      out.one(reply, () => printRedis(out, reply));
    });
}

export async function readRedis(api: Context['api']): Promise<RedisHealth> {
  const reply = await api.get<RedisHealth & { redis?: RedisHealth }>('/v1/redis');
  return reply.redis ?? reply;
}

function printRedis(out: Context['out'], redis: RedisHealth): void {
  const limit =
    redis.maxBytes > 0
      ? ` of ${bytes(redis.maxBytes)} (${percent(redis.usedBytes / redis.maxBytes)})`
      : ', no limit';
  const { aof } = redis;
  const asked = redis.hits + redis.misses;
  out.pairs([
    ['version', redis.version],
    ['servers', redis.masters > 1 ? counted(redis.masters) : undefined],
    ['up', duration(redis.uptimeSeconds * 1_000)],
    ['memory', bytes(redis.usedBytes) + limit],
    ['fragmentation', redis.fragmentation.toFixed(2)],
    ['when full', redis.policy],
    ['evicted', count(redis.evicted)],
    ['expired', count(redis.expired)],
    ['keys', count(redis.keys)],
    ['commands', `${count(redis.opsPerSecond)} per second`],
    ['clients', `${count(redis.clients)}, ${count(redis.blockedClients)} of them waiting`],
    ['lookups that hit', asked > 0 ? percent(redis.hits / asked) : undefined],
    [
      'append-only file',
      aof.enabled ? `${bytes(aof.bytes)}, last write ${aof.lastWriteOk ? 'ok' : 'FAILED'}` : 'off',
    ],
    ['slow disk', aof.enabled ? `${count(aof.delayedFsyncs)} times` : undefined],
  ]);
}

function counted(masters: number): string {
  return `${count(masters)} masters of a cluster`;
}
