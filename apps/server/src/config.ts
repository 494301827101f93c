/**
 * What the environment says about this server, read once and checked. No other file of Sluice reads the
 * environment; everything else is handed in.
 */
import { resolve } from 'node:path';
import { logLevels, type LogLevel } from '@sluice/base';
import { serverErrors } from './errors.js';

export interface Config {
  /** A Redis to use (`SLUICE_REDIS_URL`); without it the server starts one of its own. */
  redisUrl: string | undefined;
  /** Where a Redis of our own keeps its data (`SLUICE_DATA_DIR`, `.sluice`). */
  dataDir: string;
  /** Where programs are looked for (`PATH`). */
  searchPath: string;
  /** The address health and metrics are served on (`SLUICE_HOST`, loopback). */
  host: string;
  /** Their port (`SLUICE_PORT`); without it 7420, or a free one if that is taken. */
  port: number | undefined;
  /** How long a stop may take before it is forced (`SLUICE_STOP_DEADLINE_MS`). */
  stopDeadlineMs: number;
  /** The least important lines that are logged (`SLUICE_LOG_LEVEL`). */
  logLevel: LogLevel;
}

const LARGEST_PORT = 65_535;
const LONGEST_STOP_MS = 3_600_000;

export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return {
    redisUrl: env['SLUICE_REDIS_URL'] || undefined,
    dataDir: resolve(env['SLUICE_DATA_DIR'] || '.sluice'),
    searchPath: env['PATH'] ?? '',
    host: env['SLUICE_HOST'] || '127.0.0.1',
    port: wholeNumber(env, 'SLUICE_PORT', 0, LARGEST_PORT),
    stopDeadlineMs: wholeNumber(env, 'SLUICE_STOP_DEADLINE_MS', 1, LONGEST_STOP_MS) ?? 30_000,
    logLevel: logLevel(env),
  };
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
