/**
 * A PostgreSQL of our own: its data in a folder, on a free loopback port, kept running, stopped in order.
 *
 * - The first start makes the data in a folder beside its final place and then renames it: a start that is killed half-way leaves
 *   nothing that looks finished.
 * - Connections need a password (SCRAM), also from this machine: others may have accounts on it. It is random, made once, and kept in a
 *   file that only its owner can read. There is no Unix socket: its path may have 107 bytes, and a data folder's can be longer.
 * - The folder is locked first, so that two servers never start on the same data.
 * - A PostgreSQL that an earlier, killed server left behind is found by its mark, or by PostgreSQL's own note if the server died before it
 *   could write the mark, and ended in good order.
 * - One that dies under us is started again on the same port, with growing pauses, until we are stopped.
 * - It runs in a process group of its own, so that the terminal's Ctrl-C reaches only us: it must outlive the drain.
 */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { sleep, type Logger } from '@sluice/base';
import { preparePrograms, type RunProgram } from '@sluice/postgres';
import { serverErrors } from './errors.js';
import { lockFolder } from './folderLock.js';
import { endOrphan, freePort, OwnProcess } from './ownProcess.js';
import { markOf, type ProcessMark } from './processMark.js';

const USER = 'sluice';
const DATABASE = 'postgres';
/** How long a start that failed for a passing reason is tried again. */
const START_AGAIN_MS = 30_000;
const PASSWORD_BYTES = 24;
const KEPT_LOG_LINES = 20;
const STILL_STARTING_MS = 5_000;
const LOOK_EVERY_MS = 50;
const MAX_CONNECTIONS = 100;

export interface PostgresProcess {
  /** With user and password in it: not for logs. */
  readonly url: string;
  readonly port: number;
  /** The process now; undefined between a death and the restart. */
  readonly pid: number | undefined;
  /** Ends it in good order; with force when the deadline passes. */
  stop(deadlineMs: number): Promise<void>;
}

export interface PostgresProcessOptions {
  /** Data goes to `postgres/` inside. */
  dataDir: string;
  logger: Logger;
}

export async function startPostgresProcess(options: PostgresProcessOptions): Promise<PostgresProcess> {
  const folder = makeFolder(options.dataDir);
  const lock = await lockFolder(folder);
  try {
    const { logger } = options;
    // SIGINT is the fast shutdown: connections are cut, and everything is written. SIGTERM would wait for clients to leave.
    const ours = {
      title: 'PostgreSQL',
      stopSignal: 'SIGINT',
      markFile: markFile(folder),
      lock,
      logger,
    } as const;
    await endOrphan(ours, () => unmarkedOrphan(dataFolder(folder)));
    const runProgram = preparePrograms([folder]);
    const password = await initialise(folder, runProgram);
    const giveUpMs = performance.now() + START_AGAIN_MS;
    for (;;) {
      const port = await freePort((reason) => serverErrors.POSTGRES_FAILED({ reason }));
      const postgres = new OwnProcess({
        ...ours,
        spawn: () => runProgram('postgres', ['-D', dataFolder(folder), ...settings(port)]),
        untilReady: (child) => untilReady(child, logger),
      });
      try {
        await postgres.launch();
        return {
          url: `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`,
          port,
          get pid() {
            return postgres.pid;
          },
          stop: (deadlineMs) => postgres.stop(deadlineMs),
        };
      } catch (error) {
        if (!isPassing(error) || performance.now() > giveUpMs) throw error;
        await sleep(LOOK_EVERY_MS);
      }
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Somebody else took the port in the last moment; or a PostgreSQL was killed just before, and the processes that served its connections
 * have not noticed yet: the data is theirs until they do.
 */
function isPassing(error: unknown): boolean {
  return error instanceof Error && /Address already in use|shared memory block/.test(error.message);
}

function makeFolder(dataDir: string): string {
  const folder = join(dataDir, 'postgres');
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const wanted = `a folder that can be written to (${(error as NodeJS.ErrnoException).code})`;
    throw serverErrors.BAD_CONFIG({ name: 'SLUICE_DATA_DIR', value: dataDir, wanted }, { cause: error });
  }
  return folder;
}

function settings(port: number): string[] {
  const config = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: MAX_CONNECTIONS,
    // The password must not be hashed in a way that old clients would need.
    password_encryption: 'scram-sha-256',
    // In the data folder, where a killed server's leftovers are found and removed by the next one.
    dynamic_shared_memory_type: 'mmap',
    log_line_prefix: '',
  };
  return Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Makes the data if there is none. Returns the password. */
async function initialise(folder: string, runProgram: RunProgram): Promise<string> {
  const password = readPassword(folder);
  const data = dataFolder(folder);
  if (existsSync(data)) return password;
  const draft = join(folder, 'draft');
  rmSync(draft, { recursive: true, force: true });
  const identity = ['-U', USER, '--auth=scram-sha-256', `--pwfile=${passwordFile(folder)}`];
  const child = runProgram('initdb', ['-D', draft, ...identity, '--encoding=UTF8', '--locale=C']);
  const output: string[] = [];
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  }
  const end = await new Promise<unknown>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
  if (end !== 0)
    throw serverErrors.POSTGRES_FAILED({ reason: `initdb ended with ${end}\n  ${output.join('')}` });
  renameSync(draft, data);
  return password;
}

/** Made before the data, and only once: data and password belong together. */
function readPassword(folder: string): string {
  const file = passwordFile(folder);
  if (!existsSync(file)) {
    const draft = `${file}.draft`;
    writeFileSync(draft, `${randomBytes(PASSWORD_BYTES).toString('hex')}\n`, { mode: 0o600 });
    // initdb reads it as the user who owns the folder.
    const { uid, gid } = statSync(folder);
    if (process.getuid?.() === 0) chownSync(draft, uid, gid);
    renameSync(draft, file);
  }
  return readFileSync(file, 'utf8').trim();
}

/** Recovery after a crash takes as long as it takes: it says every few seconds that it goes on. */
function untilReady(child: ChildProcess, logger: Logger): Promise<void> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    const progress = setInterval(() => logger.info({}, 'PostgreSQL is still starting'), STILL_STARTING_MS);
    const fail = (reason: string): void => {
      clearInterval(progress);
      reject(serverErrors.POSTGRES_FAILED({ reason: [reason, ...lines].join('\n  ') }));
    };
    child.once('error', (error) => fail(error.message));
    child.once('close', (code, signal) => fail(`it ended with ${code ?? signal}`));
    const read = (chunk: Buffer): void => {
      for (const line of chunk.toString().trimEnd().split('\n')) {
        lines.push(line);
        logger.debug({ line }, 'PostgreSQL says');
        if (!line.includes('ready to accept connections')) continue;
        clearInterval(progress);
        resolve();
      }
      lines.splice(0, lines.length - KEPT_LOG_LINES);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
  });
}

/** PostgreSQL notes its process id. Whoever has that id now is ours only if it works in our data folder. */
function unmarkedOrphan(data: string): ProcessMark | undefined {
  try {
    const pid = Number.parseInt(readFileSync(join(data, 'postmaster.pid'), 'utf8'), 10);
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(data) ? markOf(pid) : undefined;
  } catch {
    return undefined;
  }
}

function markFile(folder: string): string {
  return join(folder, 'postgres-process.json');
}

function passwordFile(folder: string): string {
  return join(folder, 'password');
}

function dataFolder(folder: string): string {
  return join(folder, 'data');
}
