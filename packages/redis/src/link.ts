// A link is one connection (or one set of cluster connections) with the manners that every part of Sluice
// relies on:
//   - every call has a deadline and settles, whatever happens to the socket;
//   - nothing is resent behind the caller's back: a call is repeated only here, only until its deadline, and
//     only because every script is safe to repeat;
//   - what is ordinary in the life of a Redis (LOADING, READONLY after a failover, NOSCRIPT, a half-open
//     socket, a cluster that reshards) is waited out, not reported;
//   - what remains is a typed error.
import { setTimeout as wait } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import type { ClusterOptions, RedisOptions } from 'ioredis';
import { redisErrors } from './errors.js';
import type { Script, ScriptArgument } from './script.js';
import { parseTarget, tlsOptions } from './target.js';
import type { RedisTarget, TlsContents } from './target.js';
import { UncopiedCommand } from './uncopied.js';

/** How long a call may take in all, its repetitions included. */
export const defaultDeadlineMs = 10_000;
/** A single attempt may take this long. */
const attemptMs = 4_000;
/** Making a connection may take this long, for each host that is tried. */
const connectMs = 1_500;
/** A connection that has not become ready by then, for each host that is tried, is given up for a new one: its greeting may
 *  have been lost. Longer than `connectMs`, so that a host which is away does not keep the next one from being tried. */
const greetingMs = 2_000;
/** A socket that brought nothing for this long, while a call ran into its limit, is taken for half-open and replaced. */
const silentMs = 250;
/** A node of a cluster that does not answer a PING for this long, after a call ran into its limit, gets a new connection. */
const pingMs = 1_000;
const firstPauseMs = 10;
const longestPauseMs = 500;
/** A cluster's map is read again this often; whenever a call meets trouble it is read at once. */
const mapEveryMs = 60_000;

export interface LinkOptions {
  /** Shown by CLIENT LIST. */
  name?: string;
  /** Called when the state of the connection changes. */
  onState?: (state: 'ready' | 'lost') => void;
}

export interface CallOptions {
  deadlineMs?: number;
  /** Large buffers among the arguments are sent as they are instead of from a copy. They must never change, whatever becomes of the call. */
  uncopied?: boolean;
}

type Reply = unknown;
type Named<N extends string, V> = { readonly [name in N]: V };

/** Answers of a Redis that will soon answer otherwise: the same command is worth another attempt. */
const passing =
  /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY |NOREPLICAS|UNBLOCKED|MISCONF|ERR max number of clients)/;
/** Greetings that were answered so are not answered otherwise until somebody changes something. */
const unwelcome = /^(WRONGPASS|NOAUTH|NOPERM|ERR (AUTH|invalid password|DB index))/;
const wrongDatabase = /^ERR DB index/;
/** Troubles of a connection with which the command has certainly not been sent. */
const unsent = /isn't (writeable|ready)/;

export class RedisLink {
  readonly target: RedisTarget;
  #client: Redis | Cluster;
  readonly #options: LinkOptions;
  /** Read once: a file that is gone later must not break a reconnection. */
  readonly #tls: TlsContents | undefined;
  #closed = false;
  /** The nodes of the cluster are being asked whether they live. */
  #asking = false;
  #openedMs = 0;
  /** Since when a call has been waiting without any reply on this connection. */
  #waitingSinceMs: number | undefined;
  /** What the connection last complained of, until it is ready. */
  #trouble: Error | undefined;
  /** Calls that wait for a greeting, told when there is one or something is wrong. */
  #expecting = new Set<() => void>();
  /** Ends of the attempts under way, called when the socket goes away. */
  #underWay = new Set<(error: Error) => void>();

  constructor(target: string | RedisTarget, options: LinkOptions = {}) {
    this.target = parseTarget(target);
    this.#options = options;
    this.#tls = this.target.tls && tlsOptions(this.target.tls);
    this.#client = this.#open();
  }

  get ready(): boolean {
    return this.#client.status === 'ready';
  }

  /** Another link to the same place. */
  another(options: LinkOptions = {}): RedisLink {
    return new RedisLink(this.target, options);
  }

  /** Runs a script by name: EVALSHA, and EVAL where the server does not know it yet. */
  async run<K extends string, A extends string>(
    script: Script<K, A>,
    keys: Named<K, string>,
    args: Named<A, ScriptArgument>,
    options?: CallOptions,
  ): Promise<Reply> {
    const list: ScriptArgument[] = [];
    for (const name of script.keys) list.push(keys[name]);
    for (const name of script.args) list.push(args[name]);
    return this.#attemptUntil(script.name, options, () => this.#evaluate(script, list));
  }

  /** One plain command. Only commands that are safe to repeat belong here. */
  async call(command: string, args: ScriptArgument[], options?: CallOptions): Promise<Reply> {
    const send = options?.uncopied
      ? () => this.#sendUncopied(command, args)
      : () => this.#send(command, args);
    return this.#attemptUntil(command, options, send);
  }

  /** The same command on every master of a cluster, or on the one server. */
  async callEverywhere(command: string, args: ScriptArgument[], options?: CallOptions): Promise<Reply[]> {
    const send = () => {
      const client = this.#client;
      const nodes = client instanceof Cluster ? client.nodes('master') : [client];
      return Promise.all(nodes.map((node) => node.callBuffer(command, ...args)));
    };
    return (await this.#attemptUntil(command, options, send)) as Reply[];
  }

  /** One attempt, without repetition: for blocking commands, whose caller watches over them. */
  async once(command: string, args: ScriptArgument[], limitMs: number): Promise<Reply> {
    const start = performance.now();
    try {
      await this.#untilReady(start + limitMs);
      return await this.#attempt(() => this.#send(command, args), limitMs - (performance.now() - start));
    } catch (error) {
      throw this.#explain(command, error, start, mayHaveRun(error));
    }
  }

  /** Drops the connection and makes a new one: for a socket that hangs. */
  replaceConnection(): void {
    if (this.#closed) return;
    const old = this.#client;
    this.#client = this.#open();
    old.disconnect();
    this.#lose(new Error('Connection is closed.'));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#client.disconnect();
    this.#lose(new Error('Connection is closed.'));
  }

  async #evaluate(script: Script, list: ScriptArgument[]): Promise<Reply> {
    try {
      return await this.#send('evalsha', [script.sha, script.keys.length, ...list]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#send('eval', [script.source, script.keys.length, ...list]);
    }
  }

  #send(command: string, args: ScriptArgument[]): Promise<Reply> {
    return (this.#client as Redis).callBuffer(command, ...args);
  }

  #sendUncopied(command: string, args: ScriptArgument[]): Promise<Reply> {
    return (this.#client as Redis).sendCommand(new UncopiedCommand(command, args)) as Promise<Reply>;
  }

  async #attemptUntil(
    what: string,
    options: CallOptions | undefined,
    send: () => Promise<Reply>,
  ): Promise<Reply> {
    const limitMs = options?.deadlineMs ?? defaultDeadlineMs;
    const start = performance.now();
    let outcomeUnknown = false;
    let cause: unknown;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      const leftMs = limitMs - (performance.now() - start);
      if (leftMs <= 0 || this.#closed) throw this.#explain(what, cause, start, outcomeUnknown);
      try {
        if (!this.ready) await this.#untilReady(start + limitMs);
        if (this.ready) return await this.#attempt(send, Math.min(attemptMs, leftMs));
      } catch (error) {
        cause = error;
        // After an attempt of unknown outcome a refusal says nothing about that one: only an answer or the deadline ends it.
        if (isRefusal(error) && !outcomeUnknown) throw this.#explain(what, error, start, false);
        if (isAnswer(error) && error.message.startsWith('READONLY')) this.replaceConnection();
        outcomeUnknown ||= mayHaveRun(error);
        if (this.#client instanceof Cluster && this.ready) this.#client.refreshSlotsCache();
        await wait(Math.min(pauseMs * (0.5 + Math.random() / 2), leftMs));
      }
    }
  }

  #attempt(send: () => Promise<Reply>, limitMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const end = (error: Error) => {
        clearTimeout(timer);
        this.#underWay.delete(end);
        if (isAnswer(error)) this.#hear();
        reject(error);
      };
      const timer = setTimeout(() => {
        end(new Error('Command timed out'));
        this.#suspectSilence();
      }, limitMs);
      this.#underWay.add(end);
      this.#waitingSinceMs ??= performance.now();
      send().then((reply) => {
        clearTimeout(timer);
        this.#underWay.delete(end);
        this.#hear();
        resolve(reply);
      }, end);
    });
  }

  #hear(): void {
    this.#waitingSinceMs = this.#underWay.size > 0 ? performance.now() : undefined;
  }

  /** A call ran into its limit. On one connection any reply in the meantime shows that it lives; on a cluster each node is asked. */
  #suspectSilence(): void {
    if (this.#client instanceof Cluster) void this.#replaceSilentNodes(this.#client);
    else if (performance.now() - (this.#waitingSinceMs ?? Infinity) >= silentMs) this.replaceConnection();
  }

  async #replaceSilentNodes(cluster: Cluster): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    const nodes = cluster.nodes('all').filter((node) => node.status === 'ready');
    await Promise.all(
      nodes.map(async (node) => {
        const heard = node.ping().then(
          () => true,
          () => true,
        );
        if (!(await Promise.race([heard, wait(pingMs, false)]))) node.disconnect(true);
      }),
    );
    this.#asking = false;
  }

  /** Waits for a greeting; throws when the server will not have us. */
  async #untilReady(end: number): Promise<void> {
    while (!this.ready && !this.#closed) {
      const leftMs = end - performance.now();
      if (leftMs <= 0) return;
      if (this.#trouble && unwelcome.test(this.#trouble.message)) throw this.#trouble;
      const patienceMs = greetingMs * this.target.hosts.length;
      if (performance.now() - this.#openedMs > patienceMs) this.replaceConnection();
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          this.#expecting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, Math.min(leftMs, longestPauseMs));
        this.#expecting.add(done);
      });
    }
  }

  #explain(what: string, cause: unknown, start: number, outcomeUnknown: boolean): Error {
    if (this.#closed) return redisErrors.REDIS_CLOSED({ what }, { cause });
    const trouble = cause ?? this.#trouble;
    const reason = trouble instanceof Error ? trouble.message : '';
    if (isRefusal(trouble) && !outcomeUnknown) {
      if (reason.startsWith('OOM')) return redisErrors.REDIS_FULL({ what }, { cause });
      return redisErrors.REDIS_REFUSED({ what, reason }, { cause });
    }
    const waitedMs = Math.round(performance.now() - start);
    return redisErrors.REDIS_UNAVAILABLE({ what, waitedMs, outcomeUnknown, reason }, { cause: trouble });
  }

  #lose(error: Error): void {
    if (this.#closed) for (const tell of [...this.#expecting]) tell();
    for (const end of [...this.#underWay]) end(error);
  }

  #open(): Redis | Cluster {
    this.#openedMs = performance.now();
    this.#waitingSinceMs = undefined;
    const common = baseOptions(this.target, this.#options, this.#tls);
    const client =
      this.target.mode === 'cluster' ? openCluster(this.target, common) : openOne(this.target, common);
    client.on('ready', () => {
      if (client !== this.#client) return;
      this.#trouble = undefined;
      for (const tell of [...this.#expecting]) tell();
      this.#options.onState?.('ready');
    });
    client.on('close', () => {
      if (client !== this.#client) return;
      this.#openedMs = performance.now();
      this.#waitingSinceMs = undefined;
      this.#lose(new Error('Connection is closed.'));
      if (!this.#closed) this.#options.onState?.('lost');
    });
    client.on('error', (error: Error) => {
      if (client !== this.#client) return;
      this.#trouble = rootOf(error);
      for (const tell of [...this.#expecting]) tell();
      // The client would go on with database 0.
      if (wrongDatabase.test(error.message)) client.disconnect(true);
    });
    return client;
  }
}

/** Redis itself said it; everything else is a trouble of the connection. */
function isAnswer(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

function isRefusal(error: unknown): boolean {
  return isAnswer(error) && !passing.test(error.message);
}

function mayHaveRun(error: unknown): boolean {
  return !isAnswer(error) && !(error instanceof Error && unsent.test(error.message));
}

/** A cluster client says that all nodes failed; why the last of them did is more useful. */
function rootOf(error: Error & { lastNodeError?: Error }): Error {
  return error.lastNodeError ?? error;
}

/** @internal Also for the connections of a key watch. */
export function baseOptions(
  target: RedisTarget,
  options: LinkOptions,
  tls: TlsContents | undefined,
): RedisOptions {
  return {
    ...(target.username && { username: target.username }),
    ...(target.password && { password: target.password }),
    ...(tls && { tls }),
    ...(options.name && { connectionName: options.name }),
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: connectMs,
    disableClientInfo: true,
    noDelay: true,
    keepAlive: 5_000,
  };
}

/** @internal Also for the connections of a key watch. */
export function openOne(target: RedisTarget, common: RedisOptions): Redis {
  const retryStrategy = (times: number) => Math.min(20 * times, longestPauseMs);
  const options = { ...common, retryStrategy, ...(target.db && { db: target.db }) };
  if (target.mode === 'sentinel') {
    return new Redis({
      ...options,
      sentinels: target.hosts,
      name: target.master!,
      ...(target.sentinelUsername && { sentinelUsername: target.sentinelUsername }),
      ...(target.sentinelPassword && { sentinelPassword: target.sentinelPassword }),
      sentinelRetryStrategy: retryStrategy,
      sentinelCommandTimeout: connectMs,
      ...(common.tls && { enableTLSForSentinelMode: true, sentinelTLS: common.tls }),
    });
  }
  return new Redis({ ...options, ...target.hosts[0]! });
}

function openCluster(target: RedisTarget, redisOptions: RedisOptions): Cluster {
  const clusterOptions: ClusterOptions = {
    // A half-open socket does not confirm its end.
    redisOptions: { ...redisOptions, disconnectTimeout: silentMs },
    enableOfflineQueue: false,
    // It would ask one node, which may be the one that hangs; a cluster that is down says so to every command.
    enableReadyCheck: false,
    clusterRetryStrategy: (times) => Math.min(20 * times, longestPauseMs),
    clusterNodeRetryStrategy: (times) => Math.min(50 * times, longestPauseMs),
    slotsRefreshTimeout: connectMs,
    slotsRefreshInterval: mapEveryMs,
    maxRedirections: 16,
    // Zero: a command whose connection was lost may have run, and is repeated here or not at all.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 20,
  };
  return new Cluster(target.hosts, clusterOptions);
}
