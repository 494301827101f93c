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
import { accessSync, constants, mkdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Logger } from '@sluice/base';
import { serverErrors } from './errors.js';
import { lockFolder } from './folderLock.js';
import { endOrphan, freePort, OwnProcess } from './ownProcess.js';

const START_TRIES = 5;
const KEPT_LOG_LINES = 20;
const STILL_LOADING_MS = 5_000;

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
   * file would only slow down: what it loses is asked for again. `cache` holds copies: it throws the oldest away when it is full, and
   * begins empty, because what it kept might have been changed meanwhile.
   */
  use?: 'redis' | 'chunks' | 'cache';
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
    const { logger } = options;
    const ours = { title: 'Redis', stopSignal: 'SIGTERM', markFile: markFile(folder), lock, logger } as const;
    await endOrphan(ours);
    for (let tries = 1; ; tries++) {
      const port = await freePort((reason) => serverErrors.REDIS_FAILED({ reason }));
      const start = {
        cwd: folder,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'],
      };
      const redis = new OwnProcess({
        ...ours,
        url: `redis://127.0.0.1:${port}`,
        spawn: () => spawn(program, settings(port, folder, options), start),
        untilReady: (child) => untilLoaded(child, logger),
      });
      try {
        await redis.launch();
        return {
          url: `redis://127.0.0.1:${port}`,
          get pid() {
            return redis.pid;
          },
          stop: (deadlineMs) => redis.stop(deadlineMs),
        };
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

function settings(port: number, folder: string, { use, maxMemoryBytes }: RedisProcessOptions): string[] {
  const config = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    appendonly: use === 'chunks' || use === 'cache' ? 'no' : 'yes',
    appendfsync: 'everysec',
    // The append-only file is the one truth; a second one would only cost time.
    save: '',
    'maxmemory-policy': use === 'cache' ? 'allkeys-lru' : 'noeviction',
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
