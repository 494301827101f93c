/**
 * What the environment says about this server, read once and checked. No other file of Sluice reads the
 * environment; everything else is handed in.
 */
import { resolve } from 'node:path';
import { isRole, roles as roleNames, type ConfiguredKey, type TenantRules } from '@sluice/access';
import { isSluiceError, logLevels, type LogLevel } from '@sluice/base';
import { parseTarget } from '@sluice/redis';
import { serverErrors } from './errors.js';

export interface Config {
  /** A Redis to use (`SLUICE_REDIS_URL`); without it the server starts one of its own. */
  redisUrl: string | undefined;
  /** Where a Redis of our own keeps its data (`SLUICE_DATA_DIR`, `.sluice`). */
  dataDir: string;
  /** Where programs are looked for (`PATH`). */
  searchPath: string;
  /** The queues to work on (`SLUICE_QUEUES`); without it those that have a handler, or `default`. */
  queues: QueueConfig[] | undefined;
  /** An ES module that exports the handlers (`SLUICE_HANDLERS`); without it jobs are only logged. */
  handlersFile: string | undefined;
  /** How long a worker may be silent until others take its jobs, those of uploads included (`SLUICE_LEASE_MS`). */
  leaseMs: number;
  /** The address health and metrics are served on (`SLUICE_HOST`, loopback). */
  host: string;
  /** Their port (`SLUICE_PORT`); without it 7420, or a free one if that is taken. */
  port: number | undefined;
  /** What this process does (`SLUICE_ROLES`); everything unless stated. */
  roles: ReadonlySet<Role>;
  /** The PostgreSQL to use (`SLUICE_DATABASE_URL`); without it the server starts one of its own. */
  databaseUrl: string | undefined;
  /** The Redis for frames of chunks (`SLUICE_CHUNKS_REDIS_URL`); without it the one for everything. */
  chunksRedisUrl: string | undefined;
  /** The Redis for cached reads, which may evict (`SLUICE_CACHE_REDIS_URL`); without it the one for everything. */
  cacheRedisUrl: string | undefined;
  /** How much memory a Redis for the cache may take that the server starts itself (`SLUICE_CACHE_BYTES`, 128 MiB). */
  cacheBytes: number;
  /** Where files are kept (`SLUICE_S3_*`); without a bucket in the data folder. */
  s3: S3Config | undefined;
  /** Keys (`SLUICE_KEYS`, `tenant=key,tenant:role=key,*=key`), besides those in the database; without any only this machine is answered. */
  keys: ConfiguredKey[];
  /** Keys of services that report results (`SLUICE_SERVICE_KEYS`, with commas); without them none may. */
  serviceKeys: string[];
  /** Networks that webhooks may reach although they are not public (`SLUICE_WEBHOOK_ALLOW`, `10.1.0.0/16,fd00::/8`). */
  webhookAllow: string[];
  /** How many deliveries of webhooks are made here at once (`SLUICE_WEBHOOK_WORKERS`, 20). */
  webhookWorkers: number;
  /** How long a receiver may take to answer (`SLUICE_WEBHOOK_TIMEOUT_MS`, 10 s). */
  webhookTimeoutMs: number;
  /** Other limits of alerts (`SLUICE_ALERTS`, JSON: `{"deadLetters":500,"hitRate":null}`). */
  alertLimits: Record<string, unknown>;
  /** So long a threshold must be crossed until it is told, and kept until it is taken back (`SLUICE_ALERT_FOR_MS`, 2 minutes). */
  alertForMs: number;
  /** How often thresholds are looked at (`SLUICE_ALERT_EVERY_MS`, 15 s). */
  alertEveryMs: number;
  /** A collector of traces (`OTEL_EXPORTER_OTLP_ENDPOINT`, and the name we have there: `OTEL_SERVICE_NAME`); without it there are none. */
  traces: { endpoint: string; serviceName: string } | undefined;
  /** Requests of one key in a second, bytes of uploads not counted (`SLUICE_KEY_RATE`, 1,000; 0 for any number). */
  keyRate: number;
  /** Wrong keys from one address in a minute (`SLUICE_FAILURE_RATE`, 60; 0 for any number). */
  failureRate: number;
  /** So long rows stay in the audit log (`SLUICE_AUDIT_KEEP_MS`, 400 days). */
  auditKeepMs: number;
  /** Limits of tenants (`SLUICE_TENANTS`, JSON: `{"acme":{"maxBytes":…,"maxOpenUploads":…,"maxFileBytes":…,"types":[…]}}`). */
  tenants: Record<string, TenantRules>;
  /** Signs sessions, tokens and links (`SLUICE_SECRET`); without it one that is made once and kept in the data folder. */
  secret: string | undefined;
  /** Origins of pages that may use this server (`SLUICE_ORIGINS`). */
  origins: string[];
  /** Where clients find this server (`SLUICE_PUBLIC_URL`), if that is not where they ask. */
  publicUrl: string | undefined;
  /** Whether X-Forwarded-… is believed (`SLUICE_TRUST_PROXY=true`). */
  trustProxy: boolean;
  /** An ES module that exports `beforeAccept` and `afterComplete` (`SLUICE_UPLOAD_HOOKS`). */
  uploadHooksFile: string | undefined;
  /** What all uploads together may have in Redis (`SLUICE_UPLOAD_BUDGET_BYTES`, 256 MiB). */
  uploadBudgetBytes: number;
  /** After so long without a byte an upload expires (`SLUICE_UPLOAD_IDLE_MS`, a day). */
  uploadIdleMs: number;
  /** After so long without a byte its buffered bytes leave Redis for the store (`SLUICE_UPLOAD_SPILL_MS`, a minute). */
  uploadSpillMs: number;
  /** What a dead process had sent to the store arrives within this time, or never (`SLUICE_UPLOAD_LATE_MS`, ten minutes). */
  uploadLateMs: number;
  /** The object of a file that was replaced or deleted stays so long for downloads under way (`SLUICE_DELETE_GRACE_MS`, an hour). */
  deleteGraceMs: number;
  /** So long after its end an upload is in the records (`SLUICE_UPLOAD_RECORD_MS`, 30 days); files stay. */
  uploadRecordMs: number;
  /** How many jobs of uploads run here at once (`SLUICE_UPLOAD_WORKERS`, 20). */
  uploadWorkers: number;
  /** How long a stop may take before it is forced (`SLUICE_STOP_DEADLINE_MS`). */
  stopDeadlineMs: number;
  /** The least important lines that are logged (`SLUICE_LOG_LEVEL`). */
  logLevel: LogLevel;
}

/** The drive that every tenant has from the start. */
export const FIRST_DRIVE = 'main';

/** What a process can be: works on queues, answers HTTP, does the jobs of uploads, publishes events. */
export const roles = ['queues', 'api', 'uploads', 'relay'] as const;
export type Role = (typeof roles)[number];

export interface S3Config {
  bucket: string;
  endpoint: string | undefined;
  region: string;
  accessKeyId: string | undefined;
  secretAccessKey: string | undefined;
  pathStyle: boolean;
  /** All parts of one size, as R2 asks. */
  equalParts: boolean;
  /** A request on which nothing moves for so long is given up (`SLUICE_S3_IDLE_MS`, 30 s); one that lets the store work, after ten times that. */
  idleMs: number | undefined;
  maxParts: number | undefined;
}

export interface QueueConfig {
  name: string;
  /** How many jobs of the queue run here at once; absent, the worker's own default. */
  concurrency?: number;
}

const LARGEST_PORT = 65_535;
const LONGEST_STOP_MS = 3_600_000;
const SHORTEST_LEASE_MS = 500;
const LONGEST_LEASE_MS = 3_600_000;
const LARGEST_CONCURRENCY = 100_000;
const MEBIBYTE = 1_048_576;
const LARGEST_BUDGET = 2 ** 40;
const SHORTEST_KEY = 16;
const DAY_MS = 86_400_000;
const SHORTEST_IDLE_MS = 1_000;
const LONGEST_IDLE_MS = 30 * DAY_MS;
const LARGEST_RATE = 1_000_000;
const tenantLimits = ['maxBytes', 'maxOpenUploads', 'maxFileBytes'];
const LONGEST_WEBHOOK_MS = 120_000;
const LONGEST_RECORD_MS = 3_650 * DAY_MS;

/** Node 20 will do for this server. What later versions of the AWS SDK want is no news for whoever runs it. */
export function keepSdkQuiet(env: NodeJS.ProcessEnv = process.env): void {
  env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
}

export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return {
    redisUrl: redisUrl(env, 'SLUICE_REDIS_URL'),
    dataDir: resolve(env['SLUICE_DATA_DIR'] || '.sluice'),
    searchPath: env['PATH'] ?? '',
    queues: queues(env),
    handlersFile: env['SLUICE_HANDLERS'] ? resolve(env['SLUICE_HANDLERS']) : undefined,
    leaseMs: wholeNumber(env, 'SLUICE_LEASE_MS', SHORTEST_LEASE_MS, LONGEST_LEASE_MS) ?? 15_000,
    host: env['SLUICE_HOST'] || '127.0.0.1',
    port: wholeNumber(env, 'SLUICE_PORT', 0, LARGEST_PORT),
    roles: chosenRoles(env),
    databaseUrl: databaseUrl(env),
    chunksRedisUrl: redisUrl(env, 'SLUICE_CHUNKS_REDIS_URL'),
    cacheRedisUrl: redisUrl(env, 'SLUICE_CACHE_REDIS_URL'),
    cacheBytes: wholeNumber(env, 'SLUICE_CACHE_BYTES', 8 * MEBIBYTE, LARGEST_BUDGET) ?? 128 * MEBIBYTE,
    s3: s3(env),
    keys: configuredKeys(env),
    serviceKeys: serviceKeys(env),
    keyRate: wholeNumber(env, 'SLUICE_KEY_RATE', 0, LARGEST_RATE) ?? 1_000,
    failureRate: wholeNumber(env, 'SLUICE_FAILURE_RATE', 0, LARGEST_RATE) ?? 60,
    auditKeepMs: wholeNumber(env, 'SLUICE_AUDIT_KEEP_MS', DAY_MS, LONGEST_RECORD_MS) ?? 400 * DAY_MS,
    webhookAllow: (env['SLUICE_WEBHOOK_ALLOW'] ?? '')
      .split(',')
      .map((network) => network.trim())
      .filter(Boolean),
    webhookWorkers: wholeNumber(env, 'SLUICE_WEBHOOK_WORKERS', 1, LARGEST_CONCURRENCY) ?? 20,
    webhookTimeoutMs: wholeNumber(env, 'SLUICE_WEBHOOK_TIMEOUT_MS', 100, LONGEST_WEBHOOK_MS) ?? 10_000,
    traces: traces(env),
    alertLimits: json(env, 'SLUICE_ALERTS') as Record<string, unknown>,
    alertForMs: wholeNumber(env, 'SLUICE_ALERT_FOR_MS', 0, DAY_MS) ?? 120_000,
    alertEveryMs: wholeNumber(env, 'SLUICE_ALERT_EVERY_MS', 100, DAY_MS) ?? 15_000,
    tenants: tenants(env),
    secret: env['SLUICE_SECRET'] || undefined,
    origins: origins(env),
    publicUrl: publicUrl(env),
    trustProxy: yesOrNo(env, 'SLUICE_TRUST_PROXY', false),
    uploadHooksFile: env['SLUICE_UPLOAD_HOOKS'] ? resolve(env['SLUICE_UPLOAD_HOOKS']) : undefined,
    uploadBudgetBytes:
      wholeNumber(env, 'SLUICE_UPLOAD_BUDGET_BYTES', 16 * MEBIBYTE, LARGEST_BUDGET) ?? 256 * MEBIBYTE,
    uploadIdleMs: wholeNumber(env, 'SLUICE_UPLOAD_IDLE_MS', SHORTEST_IDLE_MS, LONGEST_IDLE_MS) ?? DAY_MS,
    uploadSpillMs: wholeNumber(env, 'SLUICE_UPLOAD_SPILL_MS', SHORTEST_IDLE_MS, DAY_MS) ?? 60_000,
    uploadLateMs: wholeNumber(env, 'SLUICE_UPLOAD_LATE_MS', 0, DAY_MS) ?? 600_000,
    deleteGraceMs: wholeNumber(env, 'SLUICE_DELETE_GRACE_MS', 0, LONGEST_IDLE_MS) ?? 3_600_000,
    uploadRecordMs: wholeNumber(env, 'SLUICE_UPLOAD_RECORD_MS', DAY_MS, LONGEST_RECORD_MS) ?? 30 * DAY_MS,
    uploadWorkers: wholeNumber(env, 'SLUICE_UPLOAD_WORKERS', 1, LARGEST_CONCURRENCY) ?? 20,
    stopDeadlineMs: wholeNumber(env, 'SLUICE_STOP_DEADLINE_MS', 1, LONGEST_STOP_MS) ?? 30_000,
    logLevel: logLevel(env),
  };
}

/** What of it must not be in a log, in whatever place. */
export function secretsOf(config: Config): string[] {
  const { keys, serviceKeys, secret, s3, redisUrl, chunksRedisUrl, cacheRedisUrl, databaseUrl } = config;
  const urls = [redisUrl, chunksRedisUrl, cacheRedisUrl, databaseUrl].filter((url) => url !== undefined);
  const passwords = urls.map((url) => (URL.canParse(url) ? decodeURIComponent(new URL(url).password) : ''));
  const texts = [...keys.map(({ key }) => key), ...serviceKeys, secret, s3?.secretAccessKey, ...passwords];
  return texts.filter((text) => text !== undefined && text !== '') as string[];
}

function redisUrl(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name];
  if (!text) return undefined;
  try {
    parseTarget(text);
    return text;
  } catch (error) {
    if (!isSluiceError(error, 'REDIS_TARGET')) throw error;
    // Its own details have no password in them.
    const { target, reason } = error.details as { target: string; reason: string };
    throw serverErrors.BAD_CONFIG({
      name,
      value: target,
      wanted: `redis://host:port, rediss://…, redis+cluster://… or redis+sentinel://… (${reason})`,
    });
  }
}

function chosenRoles(env: NodeJS.ProcessEnv): ReadonlySet<Role> {
  const text = env['SLUICE_ROLES'];
  if (!text) return new Set(roles);
  const chosen = text.split(',').map((name) => roles.find((role) => role === name.trim()));
  if (chosen.includes(undefined))
    throw serverErrors.BAD_CONFIG({
      name: 'SLUICE_ROLES',
      value: text,
      wanted: `some of ${roles.join(', ')}`,
    });
  return new Set(chosen as Role[]);
}

function databaseUrl(env: NodeJS.ProcessEnv): string | undefined {
  const text = env['SLUICE_DATABASE_URL'];
  if (!text) return undefined;
  if (/^postgres(ql)?:\/\//.test(text) && URL.canParse(text)) return text;
  // The value may hold a password.
  throw serverErrors.BAD_CONFIG({
    name: 'SLUICE_DATABASE_URL',
    value: '…',
    wanted: 'postgres://user:password@host:5432/database',
  });
}

function s3(env: NodeJS.ProcessEnv): S3Config | undefined {
  const bucket = env['SLUICE_S3_BUCKET'];
  const endpoint = env['SLUICE_S3_ENDPOINT'] || undefined;
  if (!bucket && endpoint !== undefined)
    throw serverErrors.BAD_CONFIG({
      name: 'SLUICE_S3_ENDPOINT',
      value: endpoint,
      wanted: 'set together with SLUICE_S3_BUCKET, without which files are kept on this disk',
    });
  if (!bucket) return undefined;
  return {
    bucket,
    endpoint,
    region: env['SLUICE_S3_REGION'] || 'us-east-1',
    accessKeyId: env['SLUICE_S3_ACCESS_KEY_ID'] || undefined,
    secretAccessKey: env['SLUICE_S3_SECRET_ACCESS_KEY'] || undefined,
    pathStyle: yesOrNo(env, 'SLUICE_S3_PATH_STYLE', true),
    equalParts: yesOrNo(env, 'SLUICE_S3_EQUAL_PARTS', false),
    idleMs: wholeNumber(env, 'SLUICE_S3_IDLE_MS', SHORTEST_IDLE_MS, DAY_MS),
    maxParts: wholeNumber(env, 'SLUICE_S3_MAX_PARTS', 1, 10_000),
  };
}

/**
 * `acme=key,acme:viewer=another,*=key`: an admin of its tenant unless a role is named; `*` is the whole installation. A tenant may have
 * several keys while one replaces another.
 */
function configuredKeys(env: NodeJS.ProcessEnv): ConfiguredKey[] {
  const text = env['SLUICE_KEYS'];
  if (!text) return [];
  return text.split(',').map((item) => {
    const [, tenant, role = 'admin', key] =
      /^([A-Za-z0-9._-]{1,100}|\*)(?::(\w+))?=([\x21-\x7e]+)$/.exec(item.trim()) ?? [];
    if (tenant === undefined || key === undefined || key.length < SHORTEST_KEY || !isRole(role))
      throw serverErrors.BAD_CONFIG({
        name: 'SLUICE_KEYS',
        value: '…',
        wanted: `tenant=key or tenant:role=key with commas between them (roles: ${roleNames.join(', ')}; tenant * for all), each key of at least ${SHORTEST_KEY} characters`,
      });
    return { tenant, role, key };
  });
}

function serviceKeys(env: NodeJS.ProcessEnv): string[] {
  const text = env['SLUICE_SERVICE_KEYS'];
  if (!text) return [];
  const keys = text.split(',').map((key) => key.trim());
  if (keys.every((key) => key.length >= SHORTEST_KEY && /^[\x21-\x7e]+$/.test(key))) return keys;
  throw serverErrors.BAD_CONFIG({
    name: 'SLUICE_SERVICE_KEYS',
    value: '…',
    wanted: `keys of at least ${SHORTEST_KEY} visible characters, with commas between them`,
  });
}

function traces(env: NodeJS.ProcessEnv): Config['traces'] {
  const endpoint = env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  if (!endpoint || env['OTEL_SDK_DISABLED'] === 'true') return undefined;
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint))
    throw serverErrors.BAD_CONFIG({
      name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      value: endpoint,
      wanted: 'http://host:4318',
    });
  return { endpoint, serviceName: env['OTEL_SERVICE_NAME'] || 'sluice' };
}

/** A misspelt limit would be none, and nobody would notice. */
function tenants(env: NodeJS.ProcessEnv): Record<string, TenantRules> {
  const name = 'SLUICE_TENANTS';
  const all = json(env, name);
  for (const [tenant, rules] of Object.entries(all) as [string, unknown][]) {
    const refuse = (wanted: string): Error =>
      serverErrors.BAD_CONFIG({ name, value: JSON.stringify({ [tenant]: rules }), wanted });
    if (typeof rules !== 'object' || rules === null || Array.isArray(rules))
      throw refuse('an object of limits for each tenant');
    for (const [limit, value] of Object.entries(rules)) {
      if (limit === 'types') {
        const isList = Array.isArray(value) && value.every((type) => typeof type === 'string');
        if (!isList) throw refuse('with types as a list, like ["image/*"]');
      } else if (!tenantLimits.includes(limit))
        throw refuse(`made of ${tenantLimits.join(', ')} and types, not ${limit}`);
      else if (!Number.isSafeInteger(value) || (value as number) < 0)
        throw refuse(`with a whole number as ${limit}`);
    }
  }
  return all as Record<string, TenantRules>;
}

/** As browsers write them: without a path, not even a slash. */
function origins(env: NodeJS.ProcessEnv): string[] {
  const name = 'SLUICE_ORIGINS';
  const list = (env[name] ?? '').split(',').map((origin) => origin.trim());
  for (const origin of list.filter(Boolean)) {
    const isOfTheWeb = URL.canParse(origin) && new URL(origin).origin === origin;
    // Apps and extensions have schemes of their own: capacitor://localhost, chrome-extension://….
    const isOfAnApp = !/^https?:/i.test(origin) && /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/i.test(origin);
    if (origin === '*' || isOfTheWeb || isOfAnApp) continue;
    const wanted =
      'origins like https://app.example.com, without a path or a slash behind, with commas; or *';
    throw serverErrors.BAD_CONFIG({ name, value: origin, wanted });
  }
  return list.filter(Boolean);
}

function publicUrl(env: NodeJS.ProcessEnv): string | undefined {
  const text = env['SLUICE_PUBLIC_URL'];
  if (!text || (/^https?:\/\//.test(text) && URL.canParse(text))) return text || undefined;
  throw serverErrors.BAD_CONFIG({
    name: 'SLUICE_PUBLIC_URL',
    value: text,
    wanted: 'an address like https://files.example.com',
  });
}

function yesOrNo(env: NodeJS.ProcessEnv, name: string, unset: boolean): boolean {
  const text = env[name];
  if (!text) return unset;
  if (text === 'true' || text === 'false') return text === 'true';
  throw serverErrors.BAD_CONFIG({ name, value: text, wanted: 'true or false' });
}

/** A JSON object; an empty one if nothing is set. */
function json(env: NodeJS.ProcessEnv, name: string): object {
  const text = env[name];
  if (!text) return {};
  let value: unknown;
  let cause: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    cause = error;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw serverErrors.BAD_CONFIG({ name, value: text, wanted: 'a JSON object' }, { cause });
}

/** `mail,images:4`: names, each with the number of jobs that run at once if that matters. */
function queues(env: NodeJS.ProcessEnv): QueueConfig[] | undefined {
  const text = env['SLUICE_QUEUES'];
  if (!text) return undefined;
  const refuse = (wanted: string): Error =>
    serverErrors.BAD_CONFIG({ name: 'SLUICE_QUEUES', value: text, wanted });
  const list = text.split(',').map((item) => {
    const [, name, concurrency] = /^([A-Za-z0-9._-]{1,100})(?::(\d{1,6}))?$/.exec(item.trim()) ?? [];
    if (!name) throw refuse('names of queues with commas between them, like "mail,images:4"');
    if (concurrency === undefined) return { name };
    if (Number(concurrency) < 1 || Number(concurrency) > LARGEST_CONCURRENCY) {
      throw refuse(`names with a number from 1 to ${LARGEST_CONCURRENCY} behind the colon`);
    }
    return { name, concurrency: Number(concurrency) };
  });
  const names = list.map(({ name }) => name);
  if (new Set(names).size < names.length) throw refuse('names of which none occurs twice');
  return list;
}

function wholeNumber(env: NodeJS.ProcessEnv, name: string, least: number, most: number): number | undefined {
  const text = env[name];
  if (!text) return undefined;
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw serverErrors.BAD_CONFIG({ name, value: text, wanted: `a whole number from ${least} to ${most}` });
}

function logLevel(env: NodeJS.ProcessEnv): LogLevel {
  const text = env['SLUICE_LOG_LEVEL'] || 'info';
  const level = logLevels.find((known) => known === text);
  if (level) return level;
  throw serverErrors.BAD_CONFIG({ name: 'SLUICE_LOG_LEVEL', value: text, wanted: logLevels.join(', ') });
}
