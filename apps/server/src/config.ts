/**
 * What the environment says about this server, read once and checked. No other file of Sluice reads the
 * environment; everything else is handed in.
 */
import { resolve } from 'node:path';
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
  /** How long a worker may be silent until others take its jobs (`SLUICE_LEASE_MS`). */
  leaseMs: number;
  /** The address health and metrics are served on (`SLUICE_HOST`, loopback). */
  host: string;
  /** Their port (`SLUICE_PORT`); without it 7420, or a free one if that is taken. */
  port: number | undefined;
  /** How long a stop may take before it is forced (`SLUICE_STOP_DEADLINE_MS`). */
  stopDeadlineMs: number;
  /** The least important lines that are logged (`SLUICE_LOG_LEVEL`). */
  logLevel: LogLevel;
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

export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return {
    redisUrl: redisUrl(env),
    dataDir: resolve(env['SLUICE_DATA_DIR'] || '.sluice'),
    searchPath: env['PATH'] ?? '',
    queues: queues(env),
    handlersFile: env['SLUICE_HANDLERS'] ? resolve(env['SLUICE_HANDLERS']) : undefined,
    leaseMs: wholeNumber(env, 'SLUICE_LEASE_MS', SHORTEST_LEASE_MS, LONGEST_LEASE_MS) ?? 15_000,
    host: env['SLUICE_HOST'] || '127.0.0.1',
    port: wholeNumber(env, 'SLUICE_PORT', 0, LARGEST_PORT),
    stopDeadlineMs: wholeNumber(env, 'SLUICE_STOP_DEADLINE_MS', 1, LONGEST_STOP_MS) ?? 30_000,
    logLevel: logLevel(env),
  };
}

function redisUrl(env: NodeJS.ProcessEnv): string | undefined {
  const text = env['SLUICE_REDIS_URL'];
  if (!text) return undefined;
  try {
    parseTarget(text);
    return text;
  } catch (error) {
    if (!isSluiceError(error, 'REDIS_TARGET')) throw error;
    // Its own details have no password in them.
    const { target, reason } = error.details as { target: string; reason: string };
    throw serverErrors.BAD_CONFIG({
      name: 'SLUICE_REDIS_URL',
      value: target,
      wanted: `redis://host:port, rediss://…, redis+cluster://… or redis+sentinel://… (${reason})`,
    });
  }
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
