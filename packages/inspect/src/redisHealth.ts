// How Redis is: the few lines of INFO that tell, as numbers. On a cluster the figures of all masters are added up; of versions and policies
// the worst is told, because one master that evicts loses jobs.
import type { RedisLink } from '@sluice/redis';

const sections = ['server', 'memory', 'clients', 'stats', 'persistence', 'keyspace'];

export interface RedisHealth {
  version: string;
  /** By the clock of Redis. */
  nowMs: number;
  masters: number;
  usedBytes: number;
  rssBytes: number;
  /** 0 when there is no limit. */
  maxBytes: number;
  policy: string;
  /** Memory that the system has given per memory that is used; 1 is ideal. */
  fragmentation: number;
  opsPerSecond: number;
  clients: number;
  blockedClients: number;
  keys: number;
  /** Since the server began. */
  evicted: number;
  expired: number;
  hits: number;
  misses: number;
  uptimeSeconds: number;
  aof: { enabled: boolean; bytes: number; lastWriteOk: boolean; rewriting: boolean; delayedFsyncs: number };
}

export async function readHealth(link: RedisLink, deadlineMs: number): Promise<RedisHealth> {
  const replies = (await link.callEverywhere('INFO', sections, { deadlineMs })) as Buffer[];
  return summarise(replies.map((reply) => parseInfo(reply.toString())));
}

type Info = ReadonlyMap<string, string>;

export function parseInfo(text: string): Info {
  const fields = new Map<string, string>();
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0 && !line.startsWith('#')) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return fields;
}

function summarise(servers: readonly Info[]): RedisHealth {
  const first = servers[0]!;
  const sum = (name: string) => servers.reduce((total, info) => total + Number(info.get(name) ?? 0), 0);
  const all = (name: string, value: string) => servers.every((info) => (info.get(name) ?? value) === value);
  const any = (name: string, value: string) => servers.some((info) => info.get(name) === value);
  const usedBytes = sum('used_memory');
  const policies = servers.map((info) => info.get('maxmemory_policy') ?? '');
  return {
    version: oldest(servers.map((info) => info.get('valkey_version') ?? info.get('redis_version') ?? '')),
    nowMs: Number(first.get('server_time_usec') ?? Date.now() * 1_000) / 1_000,
    masters: servers.length,
    usedBytes,
    rssBytes: sum('used_memory_rss'),
    maxBytes: sum('maxmemory'),
    policy: policies.find((policy) => policy !== 'noeviction') ?? policies[0]!,
    fragmentation: usedBytes > 0 ? sum('used_memory_rss') / usedBytes : 1,
    opsPerSecond: sum('instantaneous_ops_per_sec'),
    clients: sum('connected_clients'),
    blockedClients: sum('blocked_clients'),
    keys: servers.reduce((total, info) => total + keysIn(info), 0),
    evicted: sum('evicted_keys'),
    expired: sum('expired_keys'),
    hits: sum('keyspace_hits'),
    misses: sum('keyspace_misses'),
    uptimeSeconds: Math.min(...servers.map((info) => Number(info.get('uptime_in_seconds') ?? 0))),
    aof: {
      enabled: all('aof_enabled', '1'),
      bytes: sum('aof_current_size'),
      lastWriteOk: all('aof_last_write_status', 'ok'),
      rewriting: any('aof_rewrite_in_progress', '1'),
      delayedFsyncs: sum('aof_delayed_fsync'),
    },
  };
}

function oldest(versions: readonly string[]): string {
  const inOrder = new Intl.Collator('en', { numeric: true });
  return versions.toSorted(inOrder.compare)[0]!;
}

/** `db0:keys=12,expires=3,…`, one line per database. */
function keysIn(info: Info): number {
  let keys = 0;
  for (const [name, value] of info) {
    if (/^db\d+$/.test(name)) keys += Number(/keys=(\d+)/.exec(value)?.[1] ?? 0);
  }
  return keys;
}
