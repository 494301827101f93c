/*
 * Sluice with S3 as its store. Its data folder lies on the disk, so that the records pay for their commits.
 */
import { execFileSync } from 'node:child_process';
import { startSluice as startServer } from '@sluice/testbed';
import type { S3Access } from './s3Server.js';
import type { UploadServer } from './side.js';

const BUDGET_BYTES = 256 * 1_048_576;

export async function startSluice({ s3 }: { s3: S3Access }): Promise<UploadServer> {
  const { url, pid, welcome, stop } = await startServer({
    SLUICE_LOG_LEVEL: 'error',
    SLUICE_ROLES: 'api,uploads,relay',
    SLUICE_UPLOAD_BUDGET_BYTES: String(BUDGET_BYTES),
    SLUICE_S3_BUCKET: s3.bucket,
    SLUICE_S3_ENDPOINT: s3.endpoint,
    SLUICE_S3_REGION: s3.region,
    SLUICE_S3_ACCESS_KEY_ID: s3.accessKeyId,
    SLUICE_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  });
  return {
    url,
    pid,
    redisPids: childrenOf(pid, 'redis-server'),
    chunks: { redisUrl: /^Chunks: (\S+?),/m.exec(welcome)![1]!, budgetBytes: BUDGET_BYTES },
    stop: async () => void (await stop()),
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
