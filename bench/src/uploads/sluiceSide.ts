/*
 * Sluice's own server, as a process of its own: the program that `npm start` runs, with the Redis servers and the PostgreSQL that it
 * starts itself, and S3 as its store. Its data folder lies on the disk, so that the records pay for their commits.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { makeOwnedFolder, spawnOwned } from '@sluice/testbed';
import type { S3Access } from './s3Server.js';
import type { UploadServer } from './side.js';
import { errors } from '../errors.js';
import { until, withDeadline } from '../waiting.js';

const START_DEADLINE_MS = 60_000;
const STOP_DEADLINE_MS = 30_000;
const BUDGET_BYTES = 256 * 1_048_576;

export async function startSluice({ s3 }: { s3: S3Access }): Promise<UploadServer> {
  const program = fileURLToPath(new URL('../../../../apps/server/dist/src/main.js', import.meta.url));
  const folder = makeOwnedFolder('sluice');
  const child = spawnOwned(process.execPath, [program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      SLUICE_DATA_DIR: folder,
      SLUICE_PORT: '0',
      SLUICE_ROLES: 'api,uploads,relay',
      SLUICE_LOG_LEVEL: 'error',
      SLUICE_UPLOAD_BUDGET_BYTES: String(BUDGET_BYTES),
      SLUICE_S3_BUCKET: s3.bucket,
      SLUICE_S3_ENDPOINT: s3.endpoint,
      SLUICE_S3_REGION: s3.region,
      SLUICE_S3_ACCESS_KEY_ID: s3.accessKeyId,
      SLUICE_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
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
  const redisPids = childrenOf(child.pid!, 'redis-server');
  return {
    url: /runs at (\S+)/.exec(said)![1]!,
    pid: child.pid!,
    redisPids,
    chunks: { redisUrl: /^Chunks: (\S+?),/m.exec(said)![1]!, budgetBytes: BUDGET_BYTES },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      child.kill('SIGTERM');
      await withDeadline(gone, STOP_DEADLINE_MS, 'the end of sluice').finally(() => child.kill('SIGKILL'));
    },
  };
}

/** Its Redis servers lead process groups of their own, but stay its children. */
function childrenOf(pid: number, program: string): number[] {
  const list = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(pid)], { encoding: 'utf8' });
  return list
    .split('\n')
    .filter((line) => line.includes(program))
    .map((line) => Number.parseInt(line, 10));
}
