/*
 * The S3 server that all sides write to: versitygw on a folder, which the caller puts on tmpfs.
 *
 * With `countCalls` it writes a line for every request it gets, and `calls` tells how many there were, by operation.
 * Timed runs leave that off. `empty` makes the conditions of the next turn equal: no objects, no unfinished uploads.
 */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { S3, type S3ClientConfig } from '@aws-sdk/client-s3';
import { freePort, makeOwnedFolder, spawnOwned } from '@sluice/testbed';
import { errors } from '../errors.js';
import { until, withDeadline } from '../waiting.js';

const VERSION = 'v1.8.0';
const PORT_TRIES = 5;
const START_DEADLINE_MS = 10_000;
const STOP_DEADLINE_MS = 10_000;

/** All that a client of S3 has to know; plain data, so that it can travel to other processes. */
export interface S3Access {
  endpoint: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  bucket: string;
}

export interface S3Server {
  readonly access: S3Access;
  readonly version: string;
  readonly pid: number;
  /** Requests so far by operation, as `{ PutObject: 3 }`; only with `countCalls`. */
  calls(): Record<string, number>;
  /** How many bytes the objects have together. */
  storedBytes(): Promise<number>;
  /** Deletes every object and every unfinished upload. */
  empty(): Promise<void>;
  stop(): Promise<void>;
}

export function s3Config(access: S3Access): S3ClientConfig {
  const { endpoint, region, accessKeyId, secretAccessKey } = access;
  return { endpoint, region, credentials: { accessKeyId, secretAccessKey }, forcePathStyle: true };
}

export async function startS3({ countCalls = false } = {}): Promise<S3Server> {
  const program = findProgram();
  for (let tries = 1; ; tries++) {
    const folder = makeOwnedFolder('s3');
    const logFile = join(folder, 'access.log');
    const access = await chooseAccess();
    const child = spawnServer(program, folder, access, countCalls ? logFile : undefined);
    const s3 = new S3(s3Config(access));
    try {
      await withDeadline(createBucket(s3, access, child), START_DEADLINE_MS, 'the start of the S3 server');
      return new Versitygw(access, s3, child, logFile);
    } catch (error) {
      child.kill('SIGKILL');
      // Another process may have taken the port in between.
      if (tries === PORT_TRIES) throw error;
    }
  }
}

class Versitygw implements S3Server {
  readonly version = `versitygw ${VERSION}`;

  constructor(
    readonly access: S3Access,
    private readonly s3: S3,
    private readonly child: ChildProcess,
    private readonly logFile: string,
  ) {}

  get pid(): number {
    return this.child.pid!;
  }

  calls(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const [, operation] of readFileSync(this.logFile, 'utf8').matchAll(/ s3_(\w+) /g)) {
      counts[operation!] = (counts[operation!] ?? 0) + 1;
    }
    return counts;
  }

  async storedBytes(): Promise<number> {
    let bytes = 0;
    for await (const objects of this.pages()) for (const { Size = 0 } of objects) bytes += Size;
    return bytes;
  }

  async empty(): Promise<void> {
    const { bucket: Bucket } = this.access;
    for await (const objects of this.pages()) {
      const Objects = objects.map(({ Key }) => ({ Key }));
      if (Objects.length > 0) await this.s3.deleteObjects({ Bucket, Delete: { Objects, Quiet: true } });
    }
    const { Uploads = [] } = await this.s3.listMultipartUploads({ Bucket });
    for (const { Key, UploadId } of Uploads) await this.s3.abortMultipartUpload({ Bucket, Key, UploadId });
  }

  async stop(): Promise<void> {
    this.s3.destroy();
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    await withDeadline(ended, STOP_DEADLINE_MS, 'the end of the S3 server').finally(() =>
      this.child.kill('SIGKILL'),
    );
  }

  private async *pages() {
    let token: string | undefined;
    do {
      const page = await this.s3.listObjectsV2({ Bucket: this.access.bucket, ContinuationToken: token });
      yield page.Contents ?? [];
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }
}

async function chooseAccess(): Promise<S3Access> {
  return {
    endpoint: `http://127.0.0.1:${await freePort()}`,
    region: 'us-east-1',
    accessKeyId: 'bench',
    secretAccessKey: 'bench-only-secret',
    bucket: 'bench',
  };
}

function spawnServer(
  program: string,
  folder: string,
  access: S3Access,
  logFile: string | undefined,
): ChildProcess {
  const data = join(folder, 'data');
  mkdirSync(data);
  const credentials = ['--access', access.accessKeyId, '--secret', access.secretAccessKey];
  const log = logFile === undefined ? [] : ['--access-log', logFile];
  // Connections stay open between requests, as those of S3 do.
  const manners = ['--quiet', '--keep-alive', '--region', access.region];
  const { host } = new URL(access.endpoint);
  return spawnOwned(program, [...credentials, '--port', host, ...manners, ...log, 'posix', data], {
    // Its farewell is of no interest; why it does not start, its exit code tells.
    stdio: 'ignore',
  });
}

async function createBucket(s3: S3, access: S3Access, child: ChildProcess): Promise<void> {
  const tryOnce = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw errors.S3_FAILED({ why: `it ended with ${child.exitCode}` });
    return s3.createBucket({ Bucket: access.bucket }).then(
      () => true,
      () => false,
    );
  };
  await until(tryOnce, START_DEADLINE_MS, 'the first bucket');
}

function findProgram(): string {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'versitygw'));
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const cached = join(cache, 'sluice', 'bin', `versitygw-${VERSION}`);
  const found = [cached, ...onPath].find(isExecutable);
  if (found === undefined) throw errors.S3_MISSING({ version: VERSION });
  return found;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
