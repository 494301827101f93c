/**
 * Everything about files in this process: records, store, uploads, and the relay of their events. Which of it runs depends on the
 * roles; all of it works on the same database, store and Redis, in as many processes as there are.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { defaultTenant, installation } from '@sluice/access';
import { isSluiceError, type Logger } from '@sluice/base';
import { applyEvent, Cache, prometheusText } from '@sluice/cache';
import { RedisStreamSink, Relay } from '@sluice/events';
import { Inspect } from '@sluice/inspect';
import { CachedReads, ChangeFollower, eventsOfChange } from '@sluice/reads';
import { openRecords, type OnChange, type Records } from '@sluice/records';
import { RedisLink } from '@sluice/redis';
import {
  checkInsider,
  isInsider,
  markAnswers,
  endStreams,
  notFound,
  refuse,
  rest,
  serverOptions,
  ServiceKeys,
  type RestOptions,
} from '@sluice/rest';
import { DiskStore, S3Store, type ObjectStore } from '@sluice/store';
import { Uploads, type Hooks } from '@sluice/upload';
import { startAccess } from './accessService.js';
import { startAlerts } from './alertService.js';
import { openControlRoom } from './controlRoom.js';
import type { Door } from './door.js';
import { FIRST_DRIVE, keepSdkQuiet, type Config, type S3Config } from './config.js';
import { serverErrors } from './errors.js';
import type { MetricsSource, ReadyCheck } from './http.js';
import { figure } from './metrics.js';
import { queueFigures } from './queueFigures.js';
import type { Stop } from './parts.js';
import { secretOf } from './secret.js';
import { WebhookService } from './webhookService.js';

const DISK_BUCKET = 'disk';
/** Of the memory for chunks: what Redis needs for itself, and for frames that are on their way out. */
const SHARE_ON_THE_WAY = 1 / 16;
const LEAST_ON_THE_WAY = 8 * 1_048_576;

/** The HTTP interface, handed over together: a process that serves no files does not load it. */
export interface FilesInterface {
  rest: typeof rest;
  options: RestOptions;
  notFound: typeof notFound;
  refuse: typeof refuse;
  serverOptions: typeof serverOptions;
  markAnswers: typeof markAnswers;
  endStreams: typeof endStreams;
}

export interface FileService {
  readonly checks: Record<string, ReadyCheck>;
  readonly metrics: MetricsSource[];
  readonly door: Door;
  /** Whether there has ever been a key, in the configuration or in the records. */
  hasKeys(): boolean;
  /** What the HTTP interface needs, if this process answers it. */
  readonly rest: FilesInterface | undefined;
}

export interface FileServiceOptions {
  config: Config;
  redisUrl: string;
  chunksRedisUrl: string | undefined;
  cacheRedisUrl: string | undefined;
  databaseUrl: string;
  version: string;
  logger: Logger;
}

/** What has been started is in `stops`, also when the start fails half-way. */
export async function startFileService(options: FileServiceOptions, stops: Stop[]): Promise<FileService> {
  const { config, redisUrl, chunksRedisUrl, databaseUrl, version, logger } = options;
  const hooks = await loadHooks(config.uploadHooksFile);
  const cache = new Cache({ redis: options.cacheRedisUrl ?? redisUrl, queueRedis: redisUrl, logger });
  stops.push(() => cache.close());
  await cache.start();
  const onChange = invalidating(cache, logger);
  const records = await openRecords({ url: databaseUrl, logger, onChange });
  stops.push(() => records.close());
  // Before anything begins to work: a server that nobody may use, or everybody, does not start.
  const access = await startAccess(config, records, logger);
  stops.push(() => access.stop());
  const stores = new Stores(config);
  stops.push(() => stores.close());
  const uploads = new Uploads({
    redis: redisUrl,
    ...(chunksRedisUrl !== undefined && { chunksRedis: chunksRedisUrl }),
    records,
    storeOf: (drive) => stores.of(drive.bucket),
    hooks,
    logger,
    workers: config.roles.has('uploads') ? config.uploadWorkers : 0,
    tracing: config.traces !== undefined,
    settings: {
      budgetBytes: roomForFrames(config.uploadBudgetBytes),
      idleMs: config.uploadIdleMs,
      spillAfterMs: config.uploadSpillMs,
      lateMs: config.uploadLateMs,
      deleteGraceMs: config.deleteGraceMs,
      recordKeepMs: config.uploadRecordMs,
      leaseMs: config.leaseMs,
    },
  });
  stops.push((deadlineMs) => uploads.stop(deadlineMs));
  await makeFirstDrives(config, records, stores.defaultBucket);
  await uploads.start();
  const secret = secretOf(config);
  const webhooks = new WebhookService({ config, redisUrl, records, secret, logger });
  stops.push((deadlineMs) => webhooks.stop(deadlineMs));
  await webhooks.start();
  const inspect = new Inspect({
    redis: redisUrl,
    queues: 'all',
    cache: { redis: options.cacheRedisUrl ?? redisUrl },
    logger,
  });
  stops.push(() => inspect.close());
  await inspect.start();
  const alerting = await startAlerts({ config, redisUrl, inspect, webhooks: webhooks.webhooks, logger });
  stops.push((deadlineMs) => alerting.stop(deadlineMs));
  const relay = config.roles.has('relay')
    ? startRelay(redisUrl, records, cache, webhooks, logger)
    : undefined;
  if (relay) stops.push((deadlineMs) => relay.stop(deadlineMs));
  const isApi = config.roles.has('api');
  const control = isApi
    ? await openControlRoom({ redisUrl, inspect, alerts: alerting.alerts, cache, records, uploads, logger })
    : undefined;
  if (control) stops.push((deadlineMs) => control.stop(deadlineMs));
  const restOptions: RestOptions | undefined = isApi
    ? {
        uploads,
        records,
        reads: new CachedReads(cache, records),
        storeOf: ({ bucket }) => stores.of(bucket),
        access: access.access,
        ring: access.ring,
        rates: { keyPerSecond: config.keyRate, failuresPerMinute: config.failureRate },
        defaultBucket: stores.defaultBucket,
        serviceKeys: new ServiceKeys(config.serviceKeys),
        more: [...(control?.routes ?? []), ...webhooks.routes, ...alerting.routes],
        origins: config.origins,
        ...(config.publicUrl !== undefined && { publicUrl: config.publicUrl }),
        trustProxy: config.trustProxy,
        logger,
        version,
      }
    : undefined;
  return {
    checks: {
      records: () => records.check(),
      store: () => stores.of(stores.defaultBucket).check(),
      uploads: () => uploads.check(),
    },
    metrics: [
      () => uploads.metrics().catch(() => ''),
      async () => prometheusText(cache.statistics()),
      ...(relay ? [relay.metrics, webhooks.metrics] : []),
      queueFigures(() => inspect.openAll()),
      alerting.metrics,
    ],
    hasKeys: () => access.access.hasKeys,
    door: {
      check: (request) => checkInsider(access.access, request),
      isInsider: (request) => isInsider(access.access, request),
      refuse,
    },
    rest: restOptions && {
      ...{ rest, options: restOptions, notFound, refuse, serverOptions, markAnswers },
      endStreams: (server) => {
        uploads.endWaits();
        endStreams(server);
      },
    },
  };
}

function roomForFrames(redisBytes: number): number {
  return redisBytes - Math.max(redisBytes * SHARE_ON_THE_WAY, LEAST_ON_THE_WAY);
}

/** Copies of what has changed are gone before the writer has its answer; should it die before, the outbox says it again. */
function invalidating(cache: Cache, logger: Logger): OnChange {
  return async (change) => {
    try {
      await applyEvent(cache, ...eventsOfChange(change));
    } catch (err) {
      logger.warn({ err, change }, 'copies of a change were not invalidated; the outbox will');
    }
  };
}

function startRelay(
  redisUrl: string,
  records: Records,
  cache: Cache,
  webhooks: WebhookService,
  logger: Logger,
) {
  const redis = new RedisLink(redisUrl, { name: 'sluice-events' });
  const relay = new Relay({ records, sink: webhooks.before(new RedisStreamSink({ redis })), logger });
  void relay.start();
  const follower = new ChangeFollower({
    cache,
    redis: new RedisLink(redisUrl, { name: 'sluice-cache-follower' }),
    logger,
  });
  follower.start();
  return {
    metrics: async () => {
      const state = await relay.state().catch(() => undefined);
      return state ? outboxFigures(state.waiting, state.oldestMs / 1_000) : '';
    },
    stop: async (deadlineMs: number) => {
      await Promise.all([relay.stop(deadlineMs), follower.stop()]);
      redis.close();
    },
  };
}

function outboxFigures(waiting: number, oldestSeconds: number): string {
  return [
    figure('sluice_outbox_waiting', 'gauge', 'Events that wait to be published.', waiting),
    figure('sluice_outbox_oldest_seconds', 'gauge', 'Age of the oldest of them.', oldestSeconds),
  ].join('');
}

/** One store per bucket, or the data folder. */
class Stores {
  readonly defaultBucket: string;
  readonly #s3: S3Config | undefined;
  readonly #folder: string;
  readonly #known = new Map<string, ObjectStore>();

  constructor({ s3, dataDir }: Config) {
    this.#s3 = s3;
    this.#folder = join(dataDir, 'objects');
    this.defaultBucket = s3?.bucket ?? DISK_BUCKET;
  }

  of(bucket: string): ObjectStore {
    let store = this.#known.get(bucket);
    if (!store) {
      store = this.#s3 ? s3Store(this.#s3, bucket) : new DiskStore({ folder: this.#folder });
      this.#known.set(bucket, store);
    }
    return store;
  }

  close(): void {
    for (const store of this.#known.values()) store.close();
  }
}

function s3Store(s3: S3Config, bucket: string): ObjectStore {
  const { endpoint, region, accessKeyId, secretAccessKey, pathStyle, equalParts, maxParts, idleMs } = s3;
  keepSdkQuiet();
  return new S3Store({
    bucket,
    region,
    forcePathStyle: pathStyle,
    ...(idleMs !== undefined && { idleTimeoutMs: idleMs, slowTimeoutMs: 10 * idleMs }),
    ...(endpoint !== undefined && { endpoint }),
    ...(accessKeyId !== undefined &&
      secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
    limits: { ...(equalParts && { equalParts }), ...(maxParts !== undefined && { maxParts }) },
  });
}

async function makeFirstDrives(config: Config, records: Records, bucket: string): Promise<void> {
  const named = config.keys.map(({ tenant }) => (tenant === installation ? defaultTenant : tenant));
  const tenants = named.length > 0 ? new Set(named) : [defaultTenant];
  for (const tenant of tenants) {
    const prefix = `${tenant}/${FIRST_DRIVE}/`;
    await records.drives
      .create({ tenant, name: FIRST_DRIVE, bucket, prefix })
      .catch(async (error: unknown) => {
        const there = await records.drives.get(tenant, FIRST_DRIVE);
        if (!isSluiceError(error, 'DRIVE_CONFLICT') || !there || there.bucket === bucket) throw error;
        throw serverErrors.DRIVE_ELSEWHERE({ drive: FIRST_DRIVE, bucket: there.bucket, wanted: bucket });
      });
  }
}

async function loadHooks(file: string | undefined): Promise<Hooks> {
  if (file === undefined) return {};
  let module: Hooks;
  try {
    module = (await import(pathToFileURL(file).href)) as Hooks;
  } catch (error) {
    throw serverErrors.BAD_HOOKS({ file, reason: `it cannot be loaded: ${String(error)}` }, { cause: error });
  }
  const { beforeAccept, afterComplete } = module;
  if (typeof (beforeAccept ?? afterComplete) !== 'function')
    throw serverErrors.BAD_HOOKS({
      file,
      reason: 'it exports neither a function beforeAccept nor afterComplete',
    });
  return { ...(beforeAccept && { beforeAccept }), ...(afterComplete && { afterComplete }) };
}
