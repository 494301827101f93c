/**
 * The parts of the server, started in the order in which they need each other:
 *
 *     handlers → Redis and PostgreSQL (ours, or those that are named) → link → files → health and metrics → workers
 *
 * Health and metrics stand before the workers, so that a long drain can be watched; they say "not ready" meanwhile.
 */
import { fileURLToPath } from 'node:url';
import { consoleLogger, redactor } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { secretsOf, type Config, type Role } from './config.js';
import { workerDoor } from './door.js';
import { chooseWork } from './handlers.js';
import { serveHttp } from './http.js';
import { processMetrics, redisMetrics } from './metrics.js';
import { startOwnServers } from './ownServers.js';
import { Pages } from './pages.js';
import { welcome } from './welcome.js';
import { WorkerHost } from './workerHost.js';

const VERSION = '0.1.0';
/** Where the build of apps/dashboard lies, seen from our own compiled file. */
const DASHBOARD = fileURLToPath(new URL('../../../dashboard/dist/', import.meta.url));
const FIRST_ANSWER_DEADLINE_MS = 10_000;
const INFO_DEADLINE_MS = 2_000;

/** A started part; stopped in the opposite order of starting. */
export type Stop = (deadlineMs: number) => Promise<void> | void;

export async function startParts(config: Config, stops: Stop[]): Promise<void> {
  const logger = consoleLogger({
    level: config.logLevel,
    write: (line) => void process.stderr.write(line),
    redact: redactor(secretsOf(config)),
  });
  // Before anything that could have a trace, and stopped after everything else.
  const tracing = config.traces
    ? (await import('./tracing.js')).startTracing({ ...config.traces, version: VERSION })
    : undefined;
  if (tracing) stops.push((deadlineMs) => tracing.stop(deadlineMs));
  const servesFiles = ['api', 'uploads', 'relay'].some((role) => config.roles.has(role as Role));
  const work = config.roles.has('queues') ? await chooseWork(config.queues, config.handlersFile, logger) : [];
  // Before anything begins to work: a server that everybody could look into does not start. Those with files look for keys in the database, too.
  const door = servesFiles ? undefined : workerDoor(config);
  // Loading them takes about as long as the servers need to start.
  const loading = servesFiles ? import('./fileService.js') : undefined;
  const urls = await startOwnServers(config, { servesFiles, logger }, stops);
  const { redisUrl: url, chunksRedisUrl, cacheRedisUrl } = urls;
  const link = new RedisLink(url, { name: 'sluice-server' });
  stops.push(() => link.close());
  const ping = async (deadlineMs: number): Promise<void> =>
    void (await link.call('PING', [], { deadlineMs }));
  await ping(FIRST_ANSWER_DEADLINE_MS);

  const askInfo = async (): Promise<string> =>
    String(await link.call('INFO', [], { deadlineMs: INFO_DEADLINE_MS }));
  // A worker of queues starts twice as fast without the libraries for files.
  const files = await loading?.then(({ startFileService }) =>
    startFileService({ config, ...urls, databaseUrl: urls.databaseUrl!, version: VERSION, logger }, stops),
  );
  const host = new WorkerHost({
    redisUrl: url,
    work,
    leaseMs: config.leaseMs,
    tracing: tracing !== undefined,
    // Those of all queues come with the files.
    tellsQueues: !files,
    logger,
  });
  const http = await serveHttp({
    host: config.host,
    port: config.port,
    checks: { redis: () => ping(INFO_DEADLINE_MS), workers: host.check, ...files?.checks },
    metrics: [processMetrics(), redisMetrics(askInfo), host.metrics, ...(files?.metrics ?? [])],
    door: door ?? files!.door,
    files: files?.rest,
    pages: config.roles.has('api') ? Pages.load(DASHBOARD) : undefined,
    tracing,
    logger,
  });
  stops.push((deadlineMs) => http.stop(deadlineMs));
  stops.push((deadlineMs) => host.stop(deadlineMs));
  await host.start();
  const hasKeys = files?.hasKeys() === true;
  console.log(welcome(config, http.url, url, { chunksRedisUrl, cacheRedisUrl, hasKeys }, work));
}
