/** Runs the compiled server as a process of its own, the way `npm start` does, and talks to it from outside. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { after } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeOwnedFolder, spawnOwned, waitUntil } from '@sluice/testbed';

/** A first start makes a database, which takes its time on a busy machine. */
export const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
export const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url));

export interface ServerProcess {
  readonly pid: number;
  readonly url: string;
  readonly redisUrl: string;
  /** The command that it proposes for adding a job. */
  readonly addCommand: string;
  readonly output: () => string;
  /** Sends a signal and waits for the end; returns the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

export function newDataDir(): string {
  return makeOwnedFolder('server');
}

export async function startServer(dataDir: string, env: Record<string, string> = {}): Promise<ServerProcess> {
  const child = spawnOwned(process.execPath, [MAIN], {
    // Most tests are about queues; those about files say so.
    env: { ...process.env, SLUICE_DATA_DIR: dataDir, SLUICE_PORT: '0', SLUICE_ROLES: 'queues', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const ended = once(child, 'close') as Promise<[number | null]>;
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  // In order, because it started servers of its own; but a test that fails must not keep the whole run waiting.
  after(async () => {
    if (hasEnded) return;
    child.kill('SIGTERM');
    await Promise.race([ended, sleep(STOP_TIMEOUT_MS, undefined, { ref: false })]);
    child.kill('SIGKILL');
  });
  const runs = () => hasEnded || /^(Handlers|Upload a file): .*\n/m.test(output);
  await waitUntil('the server runs or gives up', runs, { timeoutMs: START_TIMEOUT_MS });
  if (hasEnded) throw Object.assign(new Error(output), { exitCode: (await ended)[0] });
  return {
    pid: child.pid!,
    url: /runs at (\S+)/.exec(output)![1]!,
    redisUrl: /^Redis: (redis:\/\/[^,\s]+)/m.exec(output)?.[1] ?? '',
    addCommand: /^Add a job: (.+)$/m.exec(output)?.[1] ?? '',
    output: () => output,
    end: async (signal) => {
      child.kill(signal);
      return (await ended)[0];
    },
  };
}

/** Processes whose working directory is the folder: a Redis works in its data folder. */
export async function processesIn(folder: string): Promise<number[]> {
  const script = `for p in /proc/[0-9]*; do [ "$(readlink $p/cwd)" = "$1" ] && echo "\${p#/proc/}"; done; true`;
  const { stdout } = await promisify(execFile)('sh', ['-c', script, 'sh', folder]);
  return stdout.split('\n').filter(Boolean).map(Number);
}
