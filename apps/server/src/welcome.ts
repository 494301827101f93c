/**
 * What the server says once it runs: where it is, what it works on, and a line that adds a job and works when it is
 * pasted into a shell. Credentials are never part of it.
 */
import { describeTarget, parseTarget } from '@sluice/redis';
import { FIRST_DRIVE, type Config } from './config.js';
import type { QueueWork } from './handlers.js';
import { isOnPath } from './redisProcess.js';

const MEBIBYTE = 1_048_576;

export function welcome(
  config: Config,
  httpUrl: string,
  redisUrl: string,
  {
    chunksRedisUrl,
    cacheRedisUrl,
    hasKeys,
  }: { chunksRedisUrl: string | undefined; cacheRedisUrl: string | undefined; hasKeys: boolean },
  work: QueueWork[],
): string {
  const isOurs = config.redisUrl === undefined;
  const queues = work.map(({ name, concurrency }) =>
    concurrency === undefined ? name : `${name} (${concurrency} at a time)`,
  );
  const does = config.handlersFile ?? 'a demonstration that logs each job; set SLUICE_HANDLERS to your own';
  const example = work[0] && addCommand(config, redisUrl, work[0].name);
  return [
    `Sluice runs at ${httpUrl} (${config.roles.has('api') ? 'dashboard: /, all routes: /docs, ' : ''}health: /healthz /readyz, metrics: /metrics)`,
    `Redis: ${isOurs ? `${redisUrl}, data in ${config.dataDir}` : describeTarget(parseTarget(redisUrl))}`,
    ...(chunksRedisUrl !== undefined && config.chunksRedisUrl === undefined
      ? [`Chunks: ${chunksRedisUrl}, at most ${Math.round(config.uploadBudgetBytes / MEBIBYTE)} MiB`]
      : []),
    ...(cacheRedisUrl !== undefined && config.cacheRedisUrl === undefined
      ? [`Cache: ${cacheRedisUrl}, at most ${Math.round(config.cacheBytes / MEBIBYTE)} MiB`]
      : []),
    ...(work.length > 0 ? [`Queues: ${queues.join(', ')}`, `Handlers: ${does}`] : []),
    ...(example ? [`Add a job: ${example}`] : []),
    ...(config.roles.has('api') ? [`Upload a file: ${uploadCommand(hasKeys, httpUrl)}`] : []),
  ].join('\n');
}

/** With keys, wherever they are kept, whoever made them has them at hand; they do not belong on a screen. */
function uploadCommand(hasKeys: boolean, httpUrl: string): string {
  const key = hasKeys ? '-H "X-Sluice-Key: $KEY" ' : '';
  return `curl ${key}-T README.md ${httpUrl}/v1/files/${FIRST_DRIVE}/README.md`;
}

function addCommand(config: Config, redisUrl: string, queue: string): string | undefined {
  const server = serverArguments(config, redisUrl);
  if (server === undefined) return undefined;
  const program = isOnPath('redis-cli', config.searchPath) ? 'redis-cli' : 'valkey-cli';
  return `${program} ${server} RPUSH 'sluice:{${queue}:0}:inbox' '{"data":{"hello":"world"}}'`;
}

/** How redis-cli reaches the server; undefined when no short line can say it (sentinels, certificates). */
function serverArguments(config: Config, redisUrl: string): string | undefined {
  const { mode, hosts, username, password, tls, db } = parseTarget(redisUrl);
  const { host, port } = hosts[0]!;
  if (config.redisUrl === undefined) return `-p ${port}`;
  if (mode === 'sentinel' || tls) return undefined;
  const address = `-h ${host} -p ${port}${mode === 'cluster' ? ' -c' : ''}${db ? ` -n ${db}` : ''}`;
  if (!username && !password) return address;
  // A secret must not stand on the screen; whoever set the variable has it at hand.
  return mode === 'single' ? '-u "$SLUICE_REDIS_URL"' : undefined;
}
