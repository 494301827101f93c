/*
 * Sluice's own server, as a process of its own: the program that `npm start` runs, with the Redis servers and the PostgreSQL that it
 * starts itself, in a folder that goes with the run.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder, spawnOwned } from '@sluice/testbed';
import { errors } from './errors.js';
import { until, withDeadline } from './waiting.js';

const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 30_000;

export interface OwnServer {
  url: string;
  pid: number;
  /** What it printed when it was ready: the addresses of its servers are in it. */
  welcome: string;
  stop: () => Promise<void>;
}

export async function startOwnServer(settings: Record<string, string>): Promise<OwnServer> {
  const program = fileURLToPath(new URL('../../../apps/server/dist/src/main.js', import.meta.url));
  const child = spawnOwned(process.execPath, [program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      SLUICE_DATA_DIR: makeOwnedFolder('sluice'),
      SLUICE_PORT: '0',
      SLUICE_LOG_LEVEL: 'error',
      ...settings,
    },
  });
  let said = '';
  child.stdout!.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(child, 'exit').then(([code]) => {
    throw errors.SERVER_FAILED({ side: 'sluice', why: `it ended with ${String(code)}: ${said}` });
  });
  ended.catch(() => {});
  const isRunning = async () => /runs at \S+[^]*\n$/.test(said);
  await Promise.race([until(isRunning, START_DEADLINE_MS, 'the start of sluice'), ended]);
  return {
    url: /runs at (\S+)/.exec(said)![1]!,
    pid: child.pid!,
    welcome: said,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await withDeadline(gone, STOP_DEADLINE_MS, 'the end of sluice').finally(() => child.kill('SIGKILL'));
    },
  };
}
