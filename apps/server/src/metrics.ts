/**
 * Figures of this process and of its Redis, in Prometheus' text format. The queues bring their own.
 *
 * Redis being away is a figure too (`sluice_redis_up 0`), never an error: a dashboard must show an outage,
 * not a gap.
 */
import type { MetricsSource } from './http.js';

type Kind = 'gauge' | 'counter';

/** Fields of INFO that answer an operator's first questions. */
const INFO_FIELDS: [field: string, name: string, kind: Kind, help: string][] = [
  ['uptime_in_seconds', 'sluice_redis_uptime_seconds', 'gauge', 'Seconds since Redis was started.'],
  ['connected_clients', 'sluice_redis_clients', 'gauge', 'Connected clients.'],
  ['blocked_clients', 'sluice_redis_blocked_clients', 'gauge', 'Clients waiting in a blocking command.'],
  ['used_memory', 'sluice_redis_memory_bytes', 'gauge', 'Memory in use.'],
  ['maxmemory', 'sluice_redis_memory_limit_bytes', 'gauge', 'Memory limit; 0 means none.'],
  ['total_commands_processed', 'sluice_redis_commands_total', 'counter', 'Commands carried out.'],
  ['evicted_keys', 'sluice_redis_evicted_keys_total', 'counter', 'Keys evicted; must stay 0.'],
  ['aof_current_size', 'sluice_redis_aof_bytes', 'gauge', 'Size of the append-only file.'],
  ['aof_delayed_fsync', 'sluice_redis_aof_delayed_fsync_total', 'counter', 'Times the disk was too slow.'],
];

/** Asks one server for INFO; its text, or a rejection when it is away. */
export type AskInfo = () => Promise<string>;

export function redisMetrics(askInfo: AskInfo): MetricsSource {
  return async () => {
    const info = await askInfo().catch(() => undefined);
    const up = figure('sluice_redis_up', 'gauge', 'Whether Redis answers.', info === undefined ? 0 : 1);
    if (info === undefined) return up;
    const fields = new Map(info.split('\r\n').map((line) => line.split(':', 2) as [string, string]));
    const known = INFO_FIELDS.filter(([field]) => fields.has(field));
    return (
      up +
      known.map(([field, name, kind, help]) => figure(name, kind, help, Number(fields.get(field)))).join('')
    );
  };
}

export function processMetrics(): MetricsSource {
  return async () => {
    const { rss } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    return [
      figure('sluice_process_uptime_seconds', 'gauge', 'Seconds since the start.', process.uptime()),
      figure('sluice_process_memory_bytes', 'gauge', 'Memory of this process.', rss),
      figure('sluice_process_cpu_seconds_total', 'counter', 'Processor time used.', (user + system) / 1e6),
    ].join('');
  };
}

export function figure(name: string, kind: Kind, help: string, value: number): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${name} ${value}\n`;
}
