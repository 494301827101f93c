/**
 * A real S3 server for one test: versitygw on a free port, over a folder of its own, with one bucket in it.
 *
 * It is a program written in Go, which `scripts/prepare.mjs` builds once into a cache folder; `versitygwProblem` says why it
 * is not there, for tests that have to be skipped. Like the Redis of this testbed it can be killed, restarted on its data and
 * frozen. Its posix backend takes every folder below its root for a bucket, so making a bucket needs no signed request. Objects
 * keep their metadata in extended attributes, which tmpfs has since Linux 6.6, so a benchmark may use /dev/shm.
 */
import type { ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdirSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './freePort.js';
import { makeOwnedFolder, spawnOwned } from './janitor.js';
import { waitUntil } from './waitUntil.js';

export const VERSITYGW_VERSION = 'v1.8.0';

const PORT_TRIES = 5;
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 10_000;
const KEPT_LOG_LINES = 200;
const HEALTH_PATH = '/testbed-health';

export interface VersitygwOptions {
  /** A folder to use and to keep after `stop`, instead of a temporary one: /dev/shm/… for benchmarks. */
  folder?: string;
  bucket?: string;
  /** More options of the program, before its backend: `['--mp-max-parts', '1000']`. */
  args?: string[];
}

export interface Versitygw {
  /** `http://127.0.0.1:port` */
  readonly endpoint: string;
  readonly port: number;
  readonly region: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly bucket: string;
  readonly folder: string;
  readonly pid: number;
  /** The newest lines of the server's log. */
  log(): string;
  /** Ends the process with no chance to write anything. `restart` brings it back on what is on disk. */
  kill9(): Promise<void>;
  /** Ends it in good order if it runs, and starts it again on the same port and data. */
  restart(): Promise<void>;
  /** Freezes the process (SIGSTOP): connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** Ends it for good and removes its folder. */
  stop(): Promise<void>;
}

/** Why there is no versitygw to start, in words for `t.skip`; nothing if there is one. */
export function versitygwProblem(): string | undefined {
  try {
    accessSync(versitygwFile(), constants.X_OK);
    return undefined;
  } catch {
    return `no Go toolchain: versitygw ${VERSITYGW_VERSION} was not built; install Go and run npm test`;
  }
}

export async function startVersitygw(options: VersitygwOptions = {}): Promise<Versitygw> {
  const problem = versitygwProblem();
  if (problem !== undefined) throw new Error(problem);
  for (let tries = 1; ; tries++) {
    const server = new LocalVersitygw(await freePort(), options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      const lostRace = error instanceof Error && error.message.includes('address already in use');
      if (!lostRace || tries === PORT_TRIES) throw error;
    }
  }
}

/** Where scripts/prepare.mjs puts the program. */
function versitygwFile(): string {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return join(cache, 'sluice', 'bin', `versitygw-${VERSITYGW_VERSION}`);
}

class LocalVersitygw implements Versitygw {
  readonly region = 'us-east-1';
  readonly accessKey = 'testbed';
  readonly secretKey = 'testbed-only-secret';
  readonly bucket: string;
  readonly folder: string;
  private readonly keepFolder: boolean;
  private readonly args: string[];
  private child: ChildProcess | undefined;
  private readonly logLines: string[] = [];

  constructor(
    readonly port: number,
    options: VersitygwOptions,
  ) {
    this.bucket = options.bucket ?? 'bucket';
    this.folder = options.folder ?? makeOwnedFolder('versitygw');
    this.keepFolder = options.folder !== undefined;
    mkdirSync(join(this.folder, this.bucket), { recursive: true });
    const credentials = ['--access', this.accessKey, '--secret', this.secretKey, '--region', this.region];
    const manners = ['--keep-alive', '--quiet', '--health', HEALTH_PATH];
    const address = ['--port', `127.0.0.1:${port}`];
    this.args = [...address, ...credentials, ...manners, ...(options.args ?? []), 'posix', this.folder];
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('this versitygw does not run');
    return this.child.pid;
  }

  log(): string {
    return this.logLines.join('\n');
  }

  async start(): Promise<void> {
    const child = spawnOwned(versitygwFile(), this.args, {
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A Ctrl-C in the terminal is for the tests; the testbed decides what it means for their servers.
      detached: true,
    });
    this.child = child;
    let ended: string | undefined;
    child.once('error', (error) => (ended = error.message));
    child.once('close', (code) => {
      ended ??= `it ended with code ${code}`;
      if (this.child === child) this.child = undefined;
    });
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (chunk: Buffer) => this.note(chunk));
    try {
      const ready = async (): Promise<boolean> => ended !== undefined || (await this.answers());
      await waitUntil('versitygw answers', ready, { timeoutMs: START_TIMEOUT_MS });
    } finally {
      // A forgotten server must not keep a finished test process alive.
      child.unref();
      for (const stream of [child.stdout!, child.stderr!]) (stream as unknown as { unref(): void }).unref();
    }
    if (ended !== undefined) throw new Error(`versitygw did not start: ${ended}\n${this.log()}`);
  }

  async kill9(): Promise<void> {
    await this.end('SIGKILL');
  }

  async restart(): Promise<void> {
    await this.end('SIGTERM');
    await this.start();
  }

  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async stop(): Promise<void> {
    await this.end(this.keepFolder ? 'SIGTERM' : 'SIGKILL');
    if (!this.keepFolder) rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  private note(chunk: Buffer): void {
    this.logLines.push(...chunk.toString().trimEnd().split('\n'));
    this.logLines.splice(0, this.logLines.length - KEPT_LOG_LINES);
  }

  /** Somebody else's server on this port would not know the path of our health check. */
  private answers(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const asked = request(`${this.endpoint}${HEALTH_PATH}`, { agent: false, timeout: 1_000 }, (reply) => {
        reply.resume();
        resolve(reply.statusCode === 200);
      });
      asked.once('timeout', () => asked.destroy(new Error('no answer')));
      asked.once('error', reject);
      asked.end();
    });
  }

  private async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.child;
    if (child === undefined) return;
    child.ref();
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
    });
    child.kill(signal);
    // A frozen process obeys once it is woken.
    child.kill('SIGCONT');
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(impatience);
    this.child = undefined;
  }
}
