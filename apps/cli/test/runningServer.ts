/** A real server, started the way `npm start` does, and the command line run against it. */
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder, spawnOwned, waitUntil } from '@sluice/testbed';
import { homeIn, runCli, type Ran, type RunOptions } from './commandLine.js';

/** A first start makes a database, which takes its time on a busy machine. */
const START_TIMEOUT_MS = 120_000;
const SERVER = fileURLToPath(new URL('../../../server/dist/src/main.js', import.meta.url));

export interface RunningServer {
  url: string;
  redisUrl: string;
  /** A home of its own: what login keeps, what uploads remember. */
  env: Record<string, string>;
  folder: string;
  run: (args: string[], options?: RunOptions) => Promise<Ran>;
  stop: () => Promise<void>;
}

export async function startServer(env: Record<string, string> = {}): Promise<RunningServer> {
  const folder = makeOwnedFolder('cli');
  const child = spawnOwned(process.execPath, [SERVER], {
    env: { ...process.env, SLUICE_DATA_DIR: join(folder, 'data'), SLUICE_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  let hasEnded = false;
  const ended = once(child, 'close').then(() => (hasEnded = true));
  const runs = (): boolean => hasEnded || /^Upload a file: .*\n/m.test(output);
  await waitUntil('the server runs or gives up', runs, { timeoutMs: START_TIMEOUT_MS });
  if (hasEnded) throw new Error(output);
  const url = /runs at (\S+)/.exec(output)![1]!;
  const redisUrl = /^Redis: (redis:\/\/[^,\s]+)/m.exec(output)![1]!;
  const own = { ...homeIn(folder), SLUICE_URL: url };
  return {
    url,
    redisUrl,
    env: own,
    folder,
    run: (args, options = {}) => runCli(args, { cwd: folder, ...options, env: { ...own, ...options.env } }),
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
