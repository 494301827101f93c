/** A real server, started the way `npm start` does, and the command line run against it as a process of its own. */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder, spawnOwned, waitUntil } from '@sluice/testbed';

/** A first start makes a database, which takes its time on a busy machine. */
const START_TIMEOUT_MS = 120_000;
const SERVER = fileURLToPath(new URL('../../../server/dist/src/main.js', import.meta.url));
export const CLI = fileURLToPath(new URL('../src/main.js', import.meta.url));

export interface RunningServer {
  url: string;
  redisUrl: string;
  /** A home of its own: what login keeps, what uploads remember. */
  env: Record<string, string>;
  folder: string;
  run: (args: string[], options?: RunOptions) => Promise<Ran>;
  stop: () => Promise<void>;
}

export interface RunOptions {
  input?: string | Buffer;
  env?: Record<string, string | undefined>;
  cwd?: string;
}

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
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

/** Nothing of the user's own may be seen or changed by a test. */
export function homeIn(folder: string): Record<string, string> {
  mkdirSync(join(folder, 'home'), { recursive: true });
  return {
    HOME: join(folder, 'home'),
    XDG_CONFIG_HOME: join(folder, 'config'),
    XDG_STATE_HOME: join(folder, 'state'),
  };
}

const inherited = ['PATH', 'TMPDIR', 'LANG', 'SLUICE_TEST_RUN'];

/** With as little of our own environment as possible: no NO_COLOR, no key of ours. */
export async function runCli(args: string[], { input, env = {}, cwd }: RunOptions = {}): Promise<Ran> {
  const base = Object.fromEntries(inherited.map((name) => [name, process.env[name]]));
  const child = spawnOwned(process.execPath, [CLI, ...args], {
    env: { ...base, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  });
  // A command that does not read closes the pipe, which is its right.
  child.stdin!.on('error', () => undefined);
  child.stdin!.end(input ?? '');
  const [stdout, stderr] = [[] as Buffer[], [] as Buffer[]];
  child.stdout!.on('data', (chunk: Buffer) => stdout.push(chunk));
  child.stderr!.on('data', (chunk: Buffer) => stderr.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() };
}

/** The lines of a list that came with --json. */
export function jsonLines<T = Record<string, unknown>>({ stdout }: Ran): T[] {
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as T);
}
