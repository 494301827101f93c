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

/** Throws EVICTING_QUEUE_REDIS when the cache and the queue share a Redis that evicts. */
export async function checkRedis(
  link: RedisLink,
  queueRedis: string | RedisTarget | undefined,
): Promise<RedisAdvice[]> {
  const server = await describe(link);
  const isShared = queueRedis !== undefined && (await runIdOf(queueRedis)) === server.runId;
  const evicts = server.policy !== 'noeviction';
  if (isShared && evicts) throw cacheErrors.EVICTING_QUEUE_REDIS({ policy: server.policy });
  if (isShared) {
    return [
      {
        code: 'SHARED_WITH_QUEUE',
        message:
          'The cache and the queue share a Redis. Cached values take memory that jobs may need, and nothing is evicted: ' +
          'give the cache a Redis of its own with maxmemory and "maxmemory-policy allkeys-lru".',
      },
    ];
  }
  if (!evicts && server.maxBytes > 0) {
    return [
      {
        code: 'NEVER_EVICTS',
        message:
          `The Redis of the cache is full at ${server.maxBytes} bytes and then stores nothing more until values expire. ` +
          'Set "maxmemory-policy allkeys-lru" there.',
      },
    ];
  }
  return [];
}

async function describe(link: RedisLink): Promise<Server> {
  const [server, memory] = (await Promise.all([
    link.call('INFO', ['server'], { deadlineMs: askLimitMs }),
    link.call('INFO', ['memory'], { deadlineMs: askLimitMs }),
  ])) as [Buffer, Buffer];
  const field = (text: Buffer, name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(String(text))?.[1];
  return {
    runId: field(server, 'run_id') ?? '',
    policy: field(memory, 'maxmemory_policy') ?? 'noeviction',
    maxBytes: Number(field(memory, 'maxmemory') ?? 0),
  };
}

/** Undefined if that Redis cannot be asked: then nothing is known, and the queue's own check still stands. */
async function runIdOf(target: string | RedisTarget): Promise<string | undefined> {
  const link = new RedisLink(target, { name: 'sluice-cache-check' });
  try {
    return (await describe(link)).runId;
  } catch {
    return undefined;
  } finally {
    link.close();
  }
}
