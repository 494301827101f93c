// What the environment says: where the server is, and its Redis.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Config {
  url: string;
  key: string | undefined;
  redisUrl: string;
  /** After so long it ends by itself; undefined: when somebody ends it. */
  seconds: number | undefined;
}

const usage =
  'npm run demo [-- --seconds 60]; SLUICE_URL, SLUICE_KEY and SLUICE_REDIS_URL say which server, unless it is the one of "npm start" here';

/** What to do, or in words why that is not clear. */
export function readConfig(args: readonly string[]): Config | string {
  const isUnderstood = args.length === 0 || (args.length === 2 && args[0] === '--seconds');
  if (!isUnderstood) return usage;
  const { SLUICE_URL, SLUICE_KEY, SLUICE_REDIS_URL, SLUICE_DATA_DIR = '.sluice' } = process.env;
  const redisUrl = SLUICE_REDIS_URL ?? ownRedis(SLUICE_DATA_DIR);
  if (redisUrl === undefined)
    return 'no server of this folder runs: start one with "npm start", or say SLUICE_REDIS_URL and SLUICE_URL';
  const seconds = args.length === 0 ? undefined : Number(args[1]);
  if (seconds !== undefined && !(seconds > 0)) return '--seconds takes a number of seconds';
  return { url: SLUICE_URL ?? 'http://127.0.0.1:7420', key: SLUICE_KEY, redisUrl, seconds };
}

/** The server notes where the Redis is that it started. */
function ownRedis(dataDir: string): string | undefined {
  try {
    const { url } = JSON.parse(readFileSync(join(dataDir, 'redis', 'redis-process.json'), 'utf8')) as {
      url?: string;
    };
    return url;
  } catch {
    return undefined;
  }
}
