// What a Redis should be like for a cache: one that may throw cached values away when its memory is full, and nothing else. A queue
// needs the opposite. Sharing one Redis is therefore noticed and told, and refused where it would cost jobs.
import { RedisLink, type RedisTarget } from '@sluice/redis';
import { cacheErrors } from './errors.js';

export interface RedisAdvice {
  code: 'SHARED_WITH_QUEUE' | 'NEVER_EVICTS';
  message: string;
}

interface Server {
  runId: string;
  policy: string;
  maxBytes: number;
}

const askLimitMs = 2_000;

/** Throws EVICTING_QUEUE_REDIS when the cache and the queue share a Redis that evicts. Clusters share one if they share any node. */
export async function checkRedis(
  link: RedisLink,
  queueRedis: string | RedisTarget | undefined,
): Promise<RedisAdvice[]> {
  const servers = await describe(link);
  const ofQueue = queueRedis === undefined ? new Set<string>() : await runIdsOf(queueRedis);
  const shared = servers.filter(({ runId }) => ofQueue.has(runId));
  const evicting = shared.find(evicts);
  if (evicting) throw cacheErrors.EVICTING_QUEUE_REDIS({ policy: evicting.policy });
  if (shared.length > 0) {
    return [
      {
        code: 'SHARED_WITH_QUEUE',
        message:
          'The cache and the queue share a Redis. Cached values take memory that jobs may need, and nothing is evicted: ' +
          'give the cache a Redis of its own with maxmemory and "maxmemory-policy allkeys-lru".',
      },
    ];
  }
  const bounded = servers.find((server) => !evicts(server) && server.maxBytes > 0);
  if (bounded) {
    return [
      {
        code: 'NEVER_EVICTS',
        message:
          `The Redis of the cache is full at ${bounded.maxBytes} bytes and then stores nothing more until values expire. ` +
          'Set "maxmemory-policy allkeys-lru" there.',
      },
    ];
  }
  return [];
}

function evicts({ policy }: Server): boolean {
  return policy !== 'noeviction';
}

/** All masters. Which node of a cluster answers a plain INFO is chance. */
async function describe(link: RedisLink): Promise<Server[]> {
  const replies = (await link.callEverywhere('INFO', ['server', 'memory'], {
    deadlineMs: askLimitMs,
  })) as Buffer[];
  return replies.map((text) => {
    const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(String(text))?.[1];
    return {
      runId: field('run_id') ?? '',
      policy: field('maxmemory_policy') ?? 'noeviction',
      maxBytes: Number(field('maxmemory') ?? 0),
    };
  });
}

/** Empty if that Redis cannot be asked: then nothing is known, and the queue's own check still stands. */
async function runIdsOf(target: string | RedisTarget): Promise<Set<string>> {
  const link = new RedisLink(target, { name: 'sluice-cache-check' });
  try {
    return new Set((await describe(link)).map(({ runId }) => runId));
  } catch {
    return new Set();
  } finally {
    link.close();
  }
}
