/** A real server, started the way `npm start` does, and the command line run against it. */
import { join } from 'node:path';
import { makeOwnedFolder, startSluice } from '@sluice/testbed';
import { homeIn, runCli, type Ran, type RunOptions } from './commandLine.js';

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
  const server = await startSluice({ SLUICE_DATA_DIR: join(folder, 'data'), ...env });
  return serverOf(folder, server.welcome, async () => void (await server.stop()));
}

/** A server that runs, by what it said when it was ready. */
export function serverOf(folder: string, welcome: string, stop: () => Promise<void>): RunningServer {
  const url = /runs at (\S+)/.exec(welcome)![1]!;
  const env = { ...homeIn(folder), SLUICE_URL: url };
  return {
    url,
    redisUrl: /^Redis: (redis:\/\/[^,\s]+)/m.exec(welcome)![1]!,
    env,
    folder,
    run: (args, options = {}) => runCli(args, { cwd: folder, ...options, env: { ...env, ...options.env } }),
    stop,
  };
}
