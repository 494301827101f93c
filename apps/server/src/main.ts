/**
 * The program behind `npm start`: wires the parts, starts them in the order they need each other, and stops them in
 * the opposite order when it is told to.
 *
 *     handlers → Redis (ours, or the one at SLUICE_REDIS_URL) → link → health and metrics → workers
 *
 * Health and metrics stand before the workers, so that a long drain can be watched; they say "not ready" meanwhile.
 *
 * The first SIGINT, SIGTERM or SIGHUP begins an orderly stop that ends by a deadline. A second one, given a second
 * later or more, ends the process at once. (A Ctrl-C under npm arrives twice within milliseconds: from the
 * terminal and from npm. That is one wish, not two.)
 *
 * Exit codes: 0 after an orderly stop, 2 when a setting is wrong, 1 for everything else.
 */
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { consoleLogger, isSluiceError, redactor } from '@sluice/base';
import { RedisLink } from '@sluice/redis';
import { readConfig, secretsOf, type Config, type Role } from './config.js';
import { EXIT_MISUSE, isMisuse } from './errors.js';
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
const SAME_WISH_MS = 1_000;
const FIRST_ANSWER_DEADLINE_MS = 10_000;
const INFO_DEADLINE_MS = 2_000;

/** A started part; stopped in the opposite order of starting. */
type Stop = (deadlineMs: number) => Promise<void> | void;

await main();

async function main(): Promise<void> {
  const stops: Stop[] = [];
  let isStopping = (): boolean => false;
  try {
    const config = readConfig();
    isStopping = obeySignals(config, stops);
    await startParts(config, stops);
  } catch (error) {
    // A start that a stop interrupted has not failed; the stop ends the process.
    if (isStopping()) return;
    process.exitCode = isSluiceError(error) && isMisuse(error.code) ? EXIT_MISUSE : 1;
    // What is expected to go wrong has a message for people; for the rest the stack helps.
    const report = isSluiceError(error) ? `sluice: ${error.message}` : inspect(error);
    console.error(redactor()('', report));
    await stopParts(stops, FIRST_ANSWER_DEADLINE_MS);
    process.exit();
  }
}

async function startParts(config: Config, stops: Stop[]): Promise<void> {
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
    startFileService({ config, ...urls, databaseUrl: urls.databaseUrl!, version: VERSION, logger }),
  );
  if (files) stops.push((deadlineMs) => files.stop(deadlineMs));
  const host = new WorkerHost({
    redisUrl: url,
    work,
    leaseMs: config.leaseMs,
    tracing: tracing !== undefined,
    logger,
  });
  const http = await serveHttp({
    host: config.host,
    port: config.port,
    checks: { redis: () => ping(INFO_DEADLINE_MS), workers: host.check, ...files?.checks },
    metrics: [processMetrics(), redisMetrics(askInfo), host.metrics, ...(files?.metrics ?? [])],
    files: files?.rest,
    pages: config.roles.has('api') ? Pages.load(DASHBOARD) : undefined,
    tracing,
    logger,
  });
  stops.push((deadlineMs) => http.stop(deadlineMs));
  stops.push((deadlineMs) => host.stop(deadlineMs));
  await host.start();
  console.log(welcome(config, http.url, url, { chunksRedisUrl, cacheRedisUrl }, work));
}

/** Returns whether a stop has begun. */
function obeySignals(config: Config, stops: Stop[]): () => boolean {
  let firstAt: number | undefined;
  const obey = async (): Promise<void> => {
    if (firstAt !== undefined) {
      if (performance.now() - firstAt > SAME_WISH_MS) process.exit(1);
      return;
    }
    firstAt = performance.now();
    console.log('Stopping; press Ctrl-C again to stop at once');
    await stopParts(stops, config.stopDeadlineMs);
    console.log('Stopped');
    process.exit();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void obey());
  return () => firstAt !== undefined;
}

/** What one part took from the time is missing for the next ones: the whole stop ends by the deadline. */
async function stopParts(stops: Stop[], deadlineMs: number): Promise<void> {
  const end = performance.now() + deadlineMs;
  for (let stop = stops.pop(); stop; stop = stops.pop()) {
    try {
      await stop(Math.max(end - performance.now(), 100));
    } catch (error) {
      process.exitCode = 1;
      console.error(error);
    }
  }
}
