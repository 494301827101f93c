/*
 * The peer: @tus/server with @tus/s3-store in a process of its own, which tells us its port when it listens and ends
 * when we disconnect or are gone.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { S3Access } from './s3Server.js';
import type { UploadServer } from './side.js';
import { TUS_SETTINGS, type TusSettings } from './tusSettings.js';
import { errors } from '../errors.js';
import { withDeadline } from '../waiting.js';

const START_DEADLINE_MS = 20_000;
const STOP_DEADLINE_MS = 10_000;

export async function startTus(
  { s3 }: { s3: S3Access },
  settings: TusSettings = TUS_SETTINGS,
): Promise<UploadServer> {
  const program = fileURLToPath(new URL('./tusServerMain.js', import.meta.url));
  const child = fork(program, [JSON.stringify({ s3, settings })], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const listening = once(child, 'message').then(([port]) => Number(port));
  const ended = once(child, 'exit').then(([code]) => {
    throw errors.SERVER_FAILED({ side: 'tus', why: `it ended with ${String(code)}` });
  });
  // Later on an end is expected, or shows itself as a refused connection.
  ended.catch(() => {});
  const port = await withDeadline(Promise.race([listening, ended]), START_DEADLINE_MS, 'the start of tus');
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid!,
    redisPids: [],
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.disconnect();
      await withDeadline(gone, STOP_DEADLINE_MS, 'the end of tus').finally(() => child.kill('SIGKILL'));
    },
  };
}
