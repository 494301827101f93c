/**
 * A real Redis (or Valkey) server for one test, on a free port, with its data in a folder of its own.
 *
 * The server can be treated as badly as in production: killed, restarted on its data, frozen, woken. Its port and
 * folder stay the same over a restart; `stop` ends it for good and removes the folder. A server that loses the
 * race for its port is started again on another one.
 */
import type { ChildProcess } from 'node:child_process';
import { accessSync, constants, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { Redis } from 'ioredis';
import { makeCertificate, type Certificate } from './certificate.js';
import { freePort } from './freePort.js';
import { makeOwnedFolder, spawnOwned } from './janitor.js';

const PORT_TRIES = 5;
const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 10_000;
const COMMAND_TIMEOUT_MS = 10_000;
const KEPT_LOG_LINES = 200;
/** The testbed's own way in, whatever the test does to the other users. */
const TESTBED_USER = 'testbed';
const TESTBED_PASSWORD = 'testbed-only';

export interface RedisServerOptions {
  /** Append-only file with `appendfsync everysec`; on by default. */
  appendonly?: boolean;
  /** More configuration, as in redis.conf: `{ maxmemory: '10mb' }`. It wins over the defaults. */
  config?: Record<string, string | number>;
  /** Serve TLS only, with a fresh certificate. */
  tls?: boolean;
  /** Lines of an ACL file: `['user default off', 'user app on >secret ~* +@all']`. */
  acl?: string[];
  /** A folder to use and to keep after `stop`, instead of a temporary one. */
  dir?: string;
  /** Run as a sentinel with these lines as its configuration. */
  sentinel?: string[];
  /** A fixed port. Without it a free one is chosen. */
  port?: number;
}

export interface RedisServer {
  readonly host: string;
  readonly port: number;
  /** `redis://127.0.0.1:port`, or `rediss://` with TLS. */
  readonly url: string;
  /** The same address with a user's name and password in it. */
  urlAs(user: string, password: string): string;
  readonly pid: number;
  readonly running: boolean;
  readonly dir: string;
  /** The authority a TLS client has to trust (PEM). */
  readonly ca: string | undefined;
  /** The file it is in. */
  readonly caFile: string | undefined;
  /** Runs one command with all rights on a connection of its own. */
  command(...args: (string | number)[]): Promise<unknown>;
  /** One section of INFO as a record. */
  info(section: string): Promise<Record<string, string>>;
  /** The newest lines of the server's log. */
  log(): string;
  /** Ends the process with no chance to write anything. `restart` brings it back on what is on disk. */
  kill9(): Promise<void>;
  /** Ends it in good order if it runs, and starts it again on the same port and data, with changes of its settings if any. */
  restart(changes?: Record<string, string | number>): Promise<void>;
  /** Freezes the process (SIGSTOP): connections stay open and nothing answers. */
  pause(): void;
  resume(): void;
  /** Ends it for good and removes its folder. */
  stop(): Promise<void>;
}

export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  for (let tries = 1; ; tries++) {
    const server = await LocalRedis.prepare(options);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      const lostRace = error instanceof Error && error.message.includes('Address already in use');
      if (!lostRace || options.port !== undefined || tries === PORT_TRIES) throw error;
    }
  }
}

class LocalRedis implements RedisServer {
  readonly host = '127.0.0.1';
  private child: ChildProcess | undefined;
  private readonly logLines: string[] = [];

  private constructor(
    readonly port: number,
    readonly dir: string,
    private readonly args: string[],
    private readonly certificate: Certificate | undefined,
    private readonly hasAcl: boolean,
    private readonly keepDir: boolean,
  ) {}

  static async prepare(options: RedisServerOptions): Promise<LocalRedis> {
    const port = options.port ?? (await freePort());
    const dir = options.dir ?? makeOwnedFolder('redis');
    const certificate = options.tls ? await makeCertificate(dir) : undefined;
    const config: Record<string, string | number> = {
      port: certificate ? 0 : port,
      bind: '127.0.0.1',
      'protected-mode': 'no',
      dir,
      save: '',
      appendonly: options.appendonly === false ? 'no' : 'yes',
      appendfsync: 'everysec',
      'maxmemory-policy': 'noeviction',
      'repl-diskless-sync-delay': 0,
    };
    if (certificate) {
      config['tls-port'] = port;
      config['tls-cert-file'] = certificate.certFile;
      config['tls-key-file'] = certificate.keyFile;
      config['tls-ca-cert-file'] = certificate.certFile;
      config['tls-auth-clients'] = 'no';
    }
    if (options.acl) {
      config['aclfile'] = join(dir, 'users.acl');
      const own = `user ${TESTBED_USER} on >${TESTBED_PASSWORD} ~* &* +@all`;
      writeFileSync(config['aclfile'], [...options.acl, own, ''].join('\n'));
    }
    Object.assign(config, options.config);
    if (options.sentinel) {
      // A sentinel rewrites its configuration, so it insists on a file.
      const file = join(dir, 'sentinel.conf');
      writeFileSync(
        file,
        [`port ${port}`, 'bind 127.0.0.1', `dir ${dir}`, ...options.sentinel, ''].join('\n'),
      );
      return new LocalRedis(port, dir, [file, '--sentinel'], undefined, false, options.dir !== undefined);
    }
    const args = Object.entries(config).flatMap(([name, value]) => [`--${name}`, String(value)]);
    return new LocalRedis(port, dir, args, certificate, options.acl !== undefined, options.dir !== undefined);
  }

  get url(): string {
    return `${this.certificate ? 'rediss' : 'redis'}://${this.host}:${this.port}`;
  }

  urlAs(user: string, password: string): string {
    return this.url.replace('://', `://${encodeURIComponent(user)}:${encodeURIComponent(password)}@`);
  }

  get pid(): number {
    if (this.child?.pid === undefined) throw new Error('this Redis does not run');
    return this.child.pid;
  }

  get running(): boolean {
    return this.child !== undefined;
  }

  get ca(): string | undefined {
    return this.certificate?.ca;
  }

  get caFile(): string | undefined {
    return this.certificate?.certFile;
  }

  async command(...args: (string | number)[]): Promise<unknown> {
    const client = new Redis({
      host: this.host,
      port: this.port,
      lazyConnect: true,
      enableReadyCheck: false,
      disableClientInfo: true,
      protocol: 2,
      retryStrategy: () => null,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT_MS,
      ...(this.hasAcl ? { username: TESTBED_USER, password: TESTBED_PASSWORD } : {}),
      ...(this.certificate ? { tls: { ca: this.certificate.ca } } : {}),
    });
    client.on('error', () => {});
    try {
      await client.connect();
      return await client.call(String(args[0]), ...args.slice(1));
    } finally {
      client.disconnect();
    }
  }

  async info(section: string): Promise<Record<string, string>> {
    const text = String(await this.command('INFO', section));
    const pairs = text.split('\r\n').filter((line) => line.includes(':') && !line.startsWith('#'));
    return Object.fromEntries(pairs.map((line) => line.split(/:(.*)/s, 2) as [string, string]));
  }

  log(): string {
    return this.logLines.join('\n');
  }

  async start(moreArgs: string[] = []): Promise<void> {
    const child = spawnOwned(serverBinary(), [...this.args, ...moreArgs], {
      cwd: this.dir,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A Ctrl-C in the terminal is for the tests; the testbed decides what it means for their servers.
      detached: true,
    });
    this.child = child;
    child.once('exit', () => {
      if (this.child === child) this.child = undefined;
    });
    await this.untilReady(child);
    // A forgotten server must not keep a finished test process alive.
    child.unref();
    for (const stream of [child.stdout!, child.stderr!]) (stream as unknown as { unref(): void }).unref();
  }

  async kill9(): Promise<void> {
    await this.end('SIGKILL');
  }

  async restart(changes: Record<string, string | number> = {}): Promise<void> {
    await this.end('SIGTERM');
    await this.start(Object.entries(changes).flatMap(([name, value]) => [`--${name}`, String(value)]));
  }

  pause(): void {
    process.kill(this.pid, 'SIGSTOP');
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async stop(): Promise<void> {
    await this.end(this.keepDir ? 'SIGTERM' : 'SIGKILL');
    if (!this.keepDir) rmSync(this.dir, { recursive: true, force: true, maxRetries: 3 });
  }

  private untilReady(child: ChildProcess): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        clearTimeout(timer);
        reject(new Error(`Redis did not start: ${why}\n${this.log()}`));
      };
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        fail(`not ready after ${START_TIMEOUT_MS} ms`);
      }, START_TIMEOUT_MS);
      child.once('error', (error) => fail(error.message));
      // 'close' comes after the last output, which holds the reason.
      child.once('close', (code) => fail(`it ended with code ${code}`));
      const read = (chunk: Buffer): void => {
        const text = chunk.toString();
        this.logLines.push(...text.trimEnd().split('\n'));
        this.logLines.splice(0, this.logLines.length - KEPT_LOG_LINES);
        // A sentinel says its id instead of "ready".
        if (/Ready to accept connections|Sentinel ID is/.test(text)) {
          clearTimeout(timer);
          resolve();
        }
      };
      child.stdout!.on('data', read);
      child.stderr!.on('data', read);
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
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(impatience);
  }
}

/** The server program on the PATH: Redis, or Valkey in its place. */
function serverBinary(): string {
  for (const name of ['redis-server', 'valkey-server']) {
    for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        // Not here; the next folder may have it.
      }
    }
  }
  throw new Error('neither redis-server nor valkey-server is on the PATH');
}
