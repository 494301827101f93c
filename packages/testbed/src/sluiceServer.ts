/**
 * Sluice's own server for one test or benchmark: the program that `npm start` runs, with the Redis servers and the PostgreSQL that it starts itself, in a
 * folder that goes with the test. It is started from what was compiled; the testbed depends on nothing of it.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder, spawnOwned } from './janitor.js';
import { waitUntil } from './waitUntil.js';

/** A first start makes a database; on a busy machine that takes its time. */
const START_TIMEOUT_MS = 120_000;

export interface SluiceServer {
  readonly url: string;
  readonly pid: number;
  /** What it printed when it was ready: the addresses of its servers are in it. */
  readonly welcome: string;
  readonly folder: string;
  /** Ends it in good order; resolves with its exit code. */
  stop: () => Promise<number | null>;
}

/** `settings` are those of the environment; a folder that is given is kept over a restart. */
export async function startSluice(settings: Record<string, string> = {}): Promise<SluiceServer> {
  const program = fileURLToPath(new URL('../../../../apps/server/dist/src/main.js', import.meta.url));
  const folder = settings['SLUICE_DATA_DIR'] ?? makeOwnedFolder('sluice');
  const child = spawnOwned(process.execPath, [program], {
    env: { ...process.env, SLUICE_PORT: '0', ...settings, SLUICE_DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const ended = once(child, 'close') as Promise<[number | null]>;
  const isReady = (): boolean => child.exitCode !== null || /^Upload a file: .*\n/m.test(output);
  await waitUntil('the server runs', isReady, { timeoutMs: START_TIMEOUT_MS });
  if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}: ${output}`);
  return {
    url: /runs at (\S+)/.exec(output)![1]!,
    pid: child.pid!,
    welcome: output,
    folder,
    stop: async () => {
      child.kill('SIGTERM');
      return (await ended)[0];
    },
  };
}
