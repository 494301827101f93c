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
import type { RedisTarget } from './target.js';

/** How long a call may take in all, its repetitions included. */
export const defaultDeadlineMs = 10_000;
/** A single attempt may take this long. */
const attemptMs = 4_000;
/** A socket that brought nothing at all during a whole attempt of this length is taken for half-open and replaced. */
const silentMs = 250;
/** A connection that has not become ready by then is given up for a new one: its greeting may have been lost. */
const greetingMs = 2_000;
const firstPauseMs = 10;
const longestPauseMs = 500;

export interface LinkOptions {
  /** Shown by CLIENT LIST. */
  name?: string;
  /** Called when the state of the connection changes. */
  onState?: (state: 'ready' | 'lost') => void;
}

export interface CallOptions {
  deadlineMs?: number;
  /** Gives up early: the caller has lost interest. */
  signal?: AbortSignal;
}

type Reply = unknown;
type Named<N extends string, V> = { readonly [name in N]: V };

/** Errors that pass by themselves; the same command is worth another attempt. */
const passing = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY |NOREPLICAS|UNBLOCKED|MISCONF)/;
const connection =
  /Connection is closed|Stream isn't writeable|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|All sentinels|Cluster isn't ready|Failed to refresh slots|max(imum)? number of clients|Too many Cluster redirections|Command timed out|None of startup nodes|ended/i;

export class RedisLink {
  readonly target: RedisTarget;
  #client: Redis | Cluster;
  #options: LinkOptions;
  #closed = false;
  #lastReplyMs = 0;
  #openedMs = 0;
  /** Ends of the attempts under way, called when the socket goes away. */
  #underWay = new Set<(error: Error) => void>();

  constructor(target: string | RedisTarget, options: LinkOptions = {}) {
    this.target = parseTarget(target);
    this.#options = options;
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
    return this.#attemptUntil(command, options, () => this.#send(command, args));
  }

  /** One attempt, without repetition: for blocking commands, whose caller watches over them. */
  async once(command: string, args: ScriptArgument[], limitMs: number): Promise<Reply> {
    const end = performance.now() + limitMs;
    await this.#untilReady(end);
    return this.#attempt(() => this.#send(command, args), limitMs);
  }

  /** Sends a command to every master of a cluster, or to the one server. */
  async callEverywhere(command: string, args: ScriptArgument[]): Promise<Reply[]> {
    const client = this.#client;
    if (!(client instanceof Cluster)) return [await this.call(command, args)];
    const [first, ...rest] = command.split(' ');
    return Promise.all(client.nodes('master').map((node) => node.call(first!, ...rest, ...args)));
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
    this.#lose(redisErrors.REDIS_CLOSED({ what: 'a pending call' }));
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
      if (this.#closed) throw redisErrors.REDIS_CLOSED({ what });
      if (leftMs <= 0 || options?.signal?.aborted) {
        throw redisErrors.REDIS_UNAVAILABLE(
          { what, waitedMs: Math.round(performance.now() - start), outcomeUnknown },
          { cause },
        );
      }
      try {
        if (!this.ready) await this.#untilReady(start + limitMs);
        if (!this.ready) continue;
        return await this.#attempt(send, Math.min(attemptMs, leftMs));
      } catch (error) {
        cause = error;
        if (this.#closed) throw redisErrors.REDIS_CLOSED({ what }, { cause });
        const message = error instanceof Error ? error.message : String(error);
        if (message.startsWith('OOM')) throw redisErrors.REDIS_FULL({ what }, { cause });
        if (message.startsWith('READONLY')) this.replaceConnection();
        else if (connection.test(message)) outcomeUnknown = true;
        else if (!passing.test(message))
          throw redisErrors.REDIS_REFUSED({ what, reason: message }, { cause });
        await wait(pauseMs * (0.5 + Math.random() / 2));
      }
    }
  }

  #attempt(send: () => Promise<Reply>, limitMs: number): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const end = (error: Error) => {
        clearTimeout(timer);
        this.#underWay.delete(end);
        reject(error);
      };
      const sentMs = performance.now();
      const timer = setTimeout(() => {
        end(new Error('Command timed out'));
        if (limitMs >= silentMs && this.#lastReplyMs < sentMs) this.replaceConnection();
      }, limitMs);
      this.#underWay.add(end);
      send().then((reply) => {
        clearTimeout(timer);
        this.#underWay.delete(end);
        this.#lastReplyMs = performance.now();
        resolve(reply);
      }, end);
    });
  }

  async #untilReady(end: number): Promise<void> {
    while (!this.ready && !this.#closed) {
      const leftMs = end - performance.now();
      if (leftMs <= 0) return;
      if (performance.now() - this.#openedMs > greetingMs) this.replaceConnection();
      await new Promise<void>((resolve) => {
        const client = this.#client;
        const done = () => {
          clearTimeout(timer);
          client.off('ready', done);
          resolve();
        };
        const timer = setTimeout(done, Math.min(leftMs, longestPauseMs));
        client.once('ready', done);
      });
    }
  }

  #lose(error: Error): void {
    for (const end of [...this.#underWay]) end(error);
  }

  #open(): Redis | Cluster {
    this.#openedMs = performance.now();
    const client =
      this.target.mode === 'cluster'
        ? openCluster(this.target, this.#options)
        : openOne(this.target, this.#options);
    client.on('ready', () => {
      if (client === this.#client) this.#options.onState?.('ready');
    });
    client.on('close', () => {
      if (client !== this.#client) return;
      this.#openedMs = performance.now();
      this.#lose(new Error('Connection is closed.'));
      if (!this.#closed) this.#options.onState?.('lost');
    });
    // Without a listener ioredis prints to the console; every failure also reaches the caller of a command.
    client.on('error', () => {});
    return client;
  }
}

function baseOptions(target: RedisTarget, options: LinkOptions): RedisOptions {
  return {
    ...(target.username && { username: target.username }),
    ...(target.password && { password: target.password }),
    ...(target.tls && { tls: tlsOptions(target.tls) }),
    ...(options.name && { connectionName: options.name }),
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: attemptMs,
    disableClientInfo: true,
    noDelay: true,
    keepAlive: 5_000,
  };
}

function openOne(target: RedisTarget, options: LinkOptions): Redis {
  const retryStrategy = (times: number) => Math.min(20 * times, longestPauseMs);
  const common = { ...baseOptions(target, options), retryStrategy, ...(target.db && { db: target.db }) };
  if (target.mode === 'sentinel') {
    return new Redis({
      ...common,
      sentinels: target.hosts,
      name: target.master!,
      sentinelRetryStrategy: retryStrategy,
      ...(target.tls && { enableTLSForSentinelMode: true }),
    });
  }
  return new Redis({ ...common, ...target.hosts[0]! });
}

function openCluster(target: RedisTarget, options: LinkOptions): Cluster {
  const clusterOptions: ClusterOptions = {
    redisOptions: { ...baseOptions(target, options) },
    enableOfflineQueue: false,
    clusterRetryStrategy: (times) => Math.min(20 * times, longestPauseMs),
    clusterNodeRetryStrategy: (times) => Math.min(50 * times, longestPauseMs),
    slotsRefreshTimeout: 2_000,
    slotsRefreshInterval: 2_000,
    maxRedirections: 16,
    retryDelayOnFailover: 50,
    retryDelayOnTryAgain: 20,
  };
  return new Cluster(target.hosts, clusterOptions);
}
