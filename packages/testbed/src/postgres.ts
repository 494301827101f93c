/**
 * A real PostgreSQL for tests, on a free loopback port, with its data in a folder of its own.
 *
 * Two kinds of programs can be run: those that come inside an npm package (`startPostgres`) and those that Debian
 * installs (`startDebianPostgres`); what is tested on both holds for the newest and for an older version.
 * One server holds many databases (`createDatabase`), so that the tests of a file share a server and nothing else.
 *
 * As whom it runs, and where the programs are, `@sluice/postgres` knows. It listens on TCP only: the path of a Unix socket may have
 * 107 bytes, a temporary folder can be longer.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packagedPrograms, preparePrograms, type RunProgram } from '@sluice/postgres';
import { Client, escapeIdentifier } from 'pg';
import { freePort } from './freePort.js';
import { makeOwnedFolder, spawnOwned } from './janitor.js';
import { waitUntil } from './waitUntil.js';

const USER = 'sluice';
const PORT_TRIES = 5;
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const KEPT_LOG_LINES = 200;
const LOOK_EVERY_MS = 50;
const STILL_IN_USE = 'shared memory block';
const DEBIAN_PROGRAMS = '/usr/lib/postgresql';

export interface PostgresOptions {
  /** More configuration, as in postgresql.conf: `{ max_connections: 20 }`. It wins over the defaults. */
  config?: Record<string, string | number>;
  /** A commit waits for the disk, as in production. `false` is faster and may lose data with the machine. */
  fsync?: boolean;
}

export interface PostgresServer {
  readonly host: string;
  readonly port: number;
  /** Of the database `postgres`. */
  readonly url: string;
  readonly pid: number;
  readonly running: boolean;
  readonly dir: string;
  /** Makes an empty database and returns its URL. */
  createDatabase(name?: string): Promise<string>;
  /** Runs one statement on a connection of its own and returns the rows. */
  query(sql: string, values?: unknown[], url?: string): Promise<Record<string, unknown>[]>;
  /** The newest lines of the server's log. */
  log(): string;
  /** Ends the process with no chance to write anything. `restart` brings it back on what is on disk. */
  kill9(): Promise<void>;
  /** Ends it if it runs, cutting all connections, and starts it again on the same port and data. */
  restart(): Promise<void>;
  /** Freezes the process that accepts connections, and those that serve them. */
  pause(): void;
  resume(): void;
  /** Ends it for good and removes its folder. */
  stop(): Promise<void>;
}

/** The PostgreSQL that comes inside the npm package. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  return startFrom(packagedPrograms(), options);
}

/** Where Debian has put the programs of its newest PostgreSQL; undefined if there is none. */
export function debianPostgres(): string | undefined {
  if (!existsSync(DEBIAN_PROGRAMS)) return undefined;
  const versions = readdirSync(DEBIAN_PROGRAMS).filter((name) =>
    existsSync(join(DEBIAN_PROGRAMS, name, 'bin', 'postgres')),
  );
  const newest = versions.sort((a, b) => Number(b) - Number(a))[0];
  return newest === undefined ? undefined : join(DEBIAN_PROGRAMS, newest, 'bin');
}

/** The PostgreSQL that Debian installs. */
export async function startDebianPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = debianPostgres();
  if (programs === undefined) throw new Error('Debian’s PostgreSQL is not installed');
  return startFrom(programs, options);
}

async function startFrom(programs: string, options: PostgresOptions): Promise<PostgresServer> {
  const dir = makeOwnedFolder('postgres');
  mkdirSync(dataFolder(dir), { mode: 0o700 });
  const runProgram = preparePrograms([dir, dataFolder(dir)], programs, spawnOwned);
  await initialise(dir, runProgram);
  for (let tries = 1; ; tries++) {
    const server = new LocalPostgres(await freePort(), dir, runProgram, options);
    try {
      await server.start();
      return server;
    } catch (error) {
      const lostRace = error instanceof Error && error.message.includes('Address already in use');
      if (lostRace && tries < PORT_TRIES) continue;
      await server.stop();
      throw error;
    }
  }
}

class LocalPostgres implements PostgresServer {
  readonly host = '127.0.0.1';
  private child: ChildProcess | undefined;
  private readonly logLines: string[] = [];

  constructor(
    readonly port: number,
    readonly dir: string,
    private readonly runProgram: RunProgram,
    private readonly options: PostgresOptions,
  ) {}

  get url(): string {
    return `postgres://${USER}@${this.host}:${this.port}/postgres`;
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('this PostgreSQL does not run');
    return this.child.pid;
  }

  get running(): boolean {
    return this.child !== undefined;
  }

  async createDatabase(name = `db_${randomUUID().replaceAll('-', '')}`): Promise<string> {
    await this.query(`CREATE DATABASE ${escapeIdentifier(name)}`);
    return this.url.replace(/postgres$/, encodeURIComponent(name));
  }

  async query(sql: string, values: unknown[] = [], url = this.url): Promise<Record<string, unknown>[]> {
    const client = new Client({
      connectionString: url,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    });
    client.on('error', () => {});
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql, values)).rows;
    } finally {
      await client.end();
    }
  }

  log(): string {
    return this.logLines.join('\n');
  }

  /** Processes that served a killed server's connections need a moment to notice; until then the data is theirs. */
  async start(): Promise<void> {
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      this.logLines.length = 0;
      try {
        await this.startOnce();
        return;
      } catch (error) {
        if (!this.log().includes(STILL_IN_USE) || performance.now() > deadline) throw error;
        await sleep(LOOK_EVERY_MS);
      }
    }
  }

  private async startOnce(): Promise<void> {
    const child = this.runProgram('postgres', ['-D', dataFolder(this.dir), ...this.settings()]);
    this.child = child;
    let ended = false;
    child.once('exit', () => {
      if (this.child === child) this.child = undefined;
    });
    // 'close' comes after the last output, which holds the reason.
    child.once('close', () => (ended = true));
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on('data', (chunk: Buffer) => {
        this.logLines.push(...chunk.toString().trimEnd().split('\n'));
        this.logLines.splice(0, this.logLines.length - KEPT_LOG_LINES);
      });
    }
    const answers = async (): Promise<boolean> => ended || (await this.query('SELECT 1')).length === 1;
    await waitUntil('PostgreSQL answers', answers, { timeoutMs: START_TIMEOUT_MS });
    if (ended) throw new Error(`PostgreSQL did not start\n${this.log()}`);
    // A forgotten server must not keep a finished test process alive.
    child.unref();
    for (const stream of [child.stdout!, child.stderr!]) (stream as unknown as { unref(): void }).unref();
  }

  /** Those that serve connections are killed too: one that is busy would not notice for as long as it is. */
  async kill9(): Promise<void> {
    if (!this.running) return;
    const ended = this.ended();
    this.signalAll('SIGKILL');
    await ended;
  }

  async restart(): Promise<void> {
    await this.end('SIGINT');
    await this.start();
  }

  pause(): void {
    this.signalAll('SIGSTOP');
  }

  resume(): void {
    this.signalAll('SIGCONT');
  }

  async stop(): Promise<void> {
    if (this.running) this.resume();
    // An immediate end: nothing has to be written, but shared memory is given back.
    await this.end('SIGQUIT');
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }

  private settings(): string[] {
    const config: Record<string, string | number> = {
      port: this.port,
      listen_addresses: this.host,
      unix_socket_directories: '',
      // In the data folder, where it goes with the folder even after a kill -9.
      dynamic_shared_memory_type: 'mmap',
      max_connections: 100,
      ...(this.options.fsync === false && { fsync: 'off' }),
      ...this.options.config,
    };
    return Object.entries(config).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  }

  private signalAll(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void {
    const children = spawnSync('ps', ['-o', 'pid=', '--ppid', String(this.pid)], { encoding: 'utf8' });
    for (const pid of [this.pid, ...children.stdout.split('\n').filter(Boolean).map(Number)]) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // One that served a connection may have ended since it was listed.
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }

  private async end(signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
    const child = this.child;
    if (child === undefined) return;
    const ended = this.ended();
    child.kill(signal);
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(impatience);
  }

  private ended(): Promise<void> {
    const child = this.child!;
    child.ref();
    return new Promise((resolve) => {
      child.once('exit', () => resolve());
    });
  }
}

async function initialise(dir: string, runProgram: RunProgram): Promise<void> {
  const args = [
    '-D',
    dataFolder(dir),
    '-U',
    USER,
    '--auth=trust',
    '--no-sync',
    '--encoding=UTF8',
    '--locale=C',
  ];
  const child = runProgram('initdb', args);
  let output = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  }
  const code = await new Promise<number | string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`initdb failed (${code})\n${output}`);
}

function dataFolder(dir: string): string {
  return join(dir, 'data');
}
