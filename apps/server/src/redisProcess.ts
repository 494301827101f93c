/**
 * A Redis of our own: started on a free loopback port with its data in a folder, kept running, stopped in order.
 *
 * - The folder is locked first, so that two servers never write the same append-only file.
 * - A Redis that an earlier, killed server left behind is found by its mark and ended in good order: it holds the
 *   newest data, and it would hold the file.
 * - A Redis that dies under us is started again on the same port, with growing pauses, until we are stopped.
 * - It runs in a process group of its own, so that the terminal's Ctrl-C reaches only us: it must outlive the drain.
 * - SIGTERM makes Redis write and sync its append-only file before it ends.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { sleep, type Logger } from '@sluice/base';
import { serverErrors } from './errors.js';
import { lockFolder, type FolderLock } from './folderLock.js';
import { markOf, readMark, stillRuns } from './processMark.js';

/** Below the range the kernel gives to outgoing connections: nobody takes the port while Redis restarts. */
const LOWEST_PORT = 12_000;
const PORT_COUNT = 20_000;
const PORT_TRIES = 100;
const START_TRIES = 5;
const KEPT_LOG_LINES = 20;
const STILL_LOADING_MS = 5_000;
const ORPHAN_STOP_MS = 30_000;
const LOOK_EVERY_MS = 50;
const FIRST_RESTART_PAUSE_MS = 200;
const LONGEST_RESTART_PAUSE_MS = 10_000;
/** A Redis that ran this long was healthy; its next death begins with the shortest pause again. */
const HEALTHY_AFTER_MS = 60_000;

export interface RedisProcess {
  readonly url: string;
  /** The process now; undefined between a death and the restart. */
  readonly pid: number | undefined;
  /** Ends it in good order; with force when the deadline passes. */
  stop(deadlineMs: number): Promise<void>;
}

export interface RedisProcessOptions {
  /** Data goes to a folder inside that is named for its use. */
  dataDir: string;
  /**
   * `redis` keeps everything that must survive in an append-only file. `chunks` holds bytes on their way to the store, which a
   * file would only slow down: what it loses is asked for again.
   */
  use?: 'redis' | 'chunks';
  /** How much memory it may take; no limit unless stated. */
  maxMemoryBytes?: number;
  /** Folders to look for the program in, as in the PATH. */
  searchPath: string;
  logger: Logger;
}

export async function startRedisProcess(options: RedisProcessOptions): Promise<RedisProcess> {
  const program = findProgram(options.searchPath);
  const { use = 'redis' } = options;
  const folder = makeFolder(options.dataDir, use);
  const lock = await lockFolder(use === 'redis' ? options.dataDir : folder);
  try {
    await endOrphan(folder, options.logger);
    for (let tries = 1; ; tries++) {
      const redis = new OwnRedis(program, folder, await freePort(), lock, options);
      try {
        await redis.launch();
        return redis;
      } catch (error) {
        const lostRace = error instanceof Error && error.message.includes('Address already in use');
        if (!lostRace || tries === START_TRIES) throw error;
      }
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

function makeFolder(dataDir: string, use: string): string {
  const folder = join(dataDir, use);
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const wanted = `a folder that can be written to (${(error as NodeJS.ErrnoException).code})`;
    throw serverErrors.BAD_CONFIG({ name: 'SLUICE_DATA_DIR', value: dataDir, wanted }, { cause: error });
  }
  return folder;
}

class OwnRedis implements RedisProcess {
  readonly url: string;
  private readonly logger: Logger;
  private child: ChildProcess | undefined;
  private stopping = false;
  private pauseMs = FIRST_RESTART_PAUSE_MS;
  /** The restart under way, so that a stop can wait for it. */
  private revival: Promise<void> | undefined;
  private readonly wakeUp = new AbortController();

  constructor(
    private readonly program: string,
    private readonly folder: string,
    private readonly port: number,
    private readonly lock: FolderLock,
    private readonly options: RedisProcessOptions,
  ) {
    this.logger = options.logger;
    this.url = `redis://127.0.0.1:${port}`;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  /** Starts the process and waits until it has loaded its data. */
  async launch(): Promise<void> {
    const child = spawn(this.program, settings(this.port, this.folder, this.options), {
      cwd: this.folder,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    if (child.pid !== undefined) writeFileSync(markFile(this.folder), JSON.stringify(markOf(child.pid)));
    // If this process ends without its stop, Redis still gets the chance to end in order.
    const farewell = (): void => void child.kill('SIGTERM');
    process.once('exit', farewell);
    child.once('exit', () => {
      process.off('exit', farewell);
      this.child = undefined;
    });
    await untilLoaded(child, this.logger);
    const began = performance.now();
    child.once('exit', (code, signal) => {
      if (!this.stopping) this.revival = this.revive(performance.now() - began, code ?? signal);
    });
  }

  async stop(deadlineMs: number): Promise<void> {
    this.stopping = true;
    this.wakeUp.abort();
    const child = this.child;
    if (child) {
      const ended = new Promise<void>((resolve) => {
        child.once('exit', () => resolve());
      });
      child.kill('SIGTERM');
      const impatience = setTimeout(() => {
        this.logger.warn({ deadlineMs }, 'Redis did not stop in time and is killed');
        child.kill('SIGKILL');
      }, deadlineMs);
      await ended;
      clearTimeout(impatience);
    }
    await this.revival;
    rmSync(markFile(this.folder), { force: true });
    this.lock.release();
  }

  private async revive(ranMs: number, reason: unknown): Promise<void> {
    if (ranMs > HEALTHY_AFTER_MS) this.pauseMs = FIRST_RESTART_PAUSE_MS;
    while (!this.stopping) {
      this.logger.error({ reason, pauseMs: this.pauseMs }, 'Redis ended by itself and is started again');
      await sleep(this.pauseMs, this.wakeUp.signal).catch(() => {});
      if (this.stopping) return;
      this.pauseMs = Math.min(this.pauseMs * 2, LONGEST_RESTART_PAUSE_MS);
      try {
        await this.launch();
        return;
      } catch (error) {
        reason = error;
      }
    }
  }
}

function settings(port: number, folder: string, { use, maxMemoryBytes }: RedisProcessOptions): string[] {
  const config = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    appendonly: use === 'chunks' ? 'no' : 'yes',
    appendfsync: 'everysec',
    // The append-only file is the one truth; a second one would only cost time.
    save: '',
    'maxmemory-policy': 'noeviction',
    ...(maxMemoryBytes !== undefined && { maxmemory: maxMemoryBytes }),
    daemonize: 'no',
    logfile: '',
  };
  return Object.entries(config).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

/** Loading a large file takes long, and no time limit would be right: it says every few seconds that it goes on. */
function untilLoaded(child: ChildProcess, logger: Logger): Promise<void> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    const progress = setInterval(() => logger.info({}, 'Redis is still loading its data'), STILL_LOADING_MS);
    const fail = (reason: string): void => {
      clearInterval(progress);
      reject(serverErrors.REDIS_FAILED({ reason: [reason, ...lines].join('\n  ') }));
    };
    child.once('error', (error) => fail(error.message));
    child.once('close', (code, signal) => fail(`it ended with ${code ?? signal}`));
    const read = (chunk: Buffer): void => {
      for (const line of chunk.toString().trimEnd().split('\n')) {
        lines.push(line);
        logger.debug({ line }, 'Redis says');
        if (!line.includes('Ready to accept connections')) continue;
        clearInterval(progress);
        resolve();
      }
      lines.splice(0, lines.length - KEPT_LOG_LINES);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
  });
}

/** Ends the Redis of a server that was killed before it could do so itself. */
async function endOrphan(folder: string, logger: Logger): Promise<void> {
  const orphan = readMark(markFile(folder));
  if (orphan && stillRuns(orphan)) {
    logger.warn({ pid: orphan.pid }, 'the Redis of an earlier run is still there and is stopped first');
    process.kill(orphan.pid, 'SIGTERM');
    const deadline = performance.now() + ORPHAN_STOP_MS;
    while (stillRuns(orphan) && performance.now() < deadline) await sleep(LOOK_EVERY_MS);
    if (stillRuns(orphan)) process.kill(orphan.pid, 'SIGKILL');
    while (stillRuns(orphan)) await sleep(LOOK_EVERY_MS);
  }
  rmSync(markFile(folder), { force: true });
}

function markFile(folder: string): string {
  return join(folder, 'redis-process.json');
}

function findProgram(searchPath: string): string {
  const program = find('redis-server', searchPath) ?? find('valkey-server', searchPath);
  if (program === undefined) throw serverErrors.NO_REDIS();
  return program;
}

export function isOnPath(name: string, searchPath: string): boolean {
  return find(name, searchPath) !== undefined;
}

function find(name: string, searchPath: string): string | undefined {
  for (const folder of searchPath.split(delimiter)) {
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // Not here; the next folder may have it.
    }
  }
  return undefined;
}

async function freePort(): Promise<number> {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORT_COUNT);
    const free = await new Promise<boolean>((resolve) => {
      const probe = createServer();
      probe.once('error', () => resolve(false));
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
    });
    if (free) return port;
  }
  throw serverErrors.REDIS_FAILED({ reason: `no free port found in ${PORT_TRIES} tries` });
}
