// Learns from Redis which keys change, so that copies in memory can be dropped (client-side caching, in broadcast mode: every change
// of a key that begins with one of the prefixes is told, whoever made it and whoever read it).
//
// One connection per server, and on a cluster one per master. It speaks the older protocol, because the client hands no pushes of
// the newer one on: tracking redirects to the connection itself, which then subscribes to the channel that Redis reserves for it.
//
// A watch is either watching, which means that every change since then was or will be told, or blind. Whoever keeps copies drops
// all of them when it goes blind. A socket that hangs is noticed by a PING that stays without answer.
import type { Redis } from 'ioredis';
import { baseOptions, openOne } from './link.js';
import type { RedisLink } from './link.js';
import { tlsOptions } from './target.js';
import type { RedisTarget } from './target.js';

const channel = '__redis__:invalidate';
/** How often each connection is asked whether it lives, and how long it may take to answer. */
const pingEveryMs = 1_000;
const pingLimitMs = 1_000;
/** A half-open socket does not confirm its end. */
const disconnectTimeout = 250;
/** How often the map of a cluster is read; at once when a connection is lost. */
const mapEveryMs = 2_000;
const mapLimitMs = 1_000;

export interface KeyWatchOptions {
  /** Beginnings of the keys to watch; none may be the beginning of another. */
  prefixes: readonly string[];
  name?: string;
  /** Keys that changed; undefined when all may have changed. */
  onChange: (keys: readonly string[] | undefined) => void;
  onState: (state: 'watching' | 'blind') => void;
}

export class KeyWatch {
  readonly #link: RedisLink;
  readonly #options: KeyWatchOptions;
  readonly #posts = new Map<string, Post>();
  #watching = false;
  #closed = false;
  #mapTimer: NodeJS.Timeout | undefined;
  #isReadingMap = false;

  /** The link says where Redis is and, on a cluster, who the masters are; it stays its owner's. */
  constructor(link: RedisLink, options: KeyWatchOptions) {
    this.#link = link;
    this.#options = options;
    if (link.target.mode === 'cluster') void this.#readMap();
    else this.#place([link.target]);
  }

  get watching(): boolean {
    return this.#watching;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#mapTimer);
    for (const post of this.#posts.values()) post.close();
    this.#posts.clear();
    this.#judge();
  }

  /** Places a post at each server, and withdraws those of servers that are masters no more. */
  #place(targets: readonly RedisTarget[]): void {
    const wanted = new Map(targets.map((target) => [JSON.stringify(target.hosts), target]));
    for (const [name, post] of this.#posts) {
      if (wanted.has(name)) continue;
      post.close();
      this.#posts.delete(name);
    }
    for (const [name, target] of wanted) {
      if (this.#posts.has(name)) continue;
      const post = new Post(target, this.#options, () => this.#judge());
      this.#posts.set(name, post);
    }
    this.#judge();
  }

  /** All of them must watch: a change at the one that does not would be missed. */
  #judge(): void {
    const posts = [...this.#posts.values()];
    const watching = posts.length > 0 && posts.every((post) => post.watching);
    const wasWatching = this.#watching;
    this.#watching = watching;
    if (watching !== wasWatching) this.#options.onState(watching ? 'watching' : 'blind');
    if (wasWatching && !watching && this.#link.target.mode === 'cluster') void this.#readMap();
  }

  async #readMap(): Promise<void> {
    if (this.#isReadingMap || this.#closed) return;
    this.#isReadingMap = true;
    try {
      const ranges = (await this.#link.call('CLUSTER', ['SLOTS'], { deadlineMs: mapLimitMs })) as SlotRange[];
      const { hosts, username, password, tls } = this.#link.target;
      const masters = ranges.map(([, , [host, port]]) => ({
        // A node that does not know its own address says nothing; then it is the one that was asked.
        host: host?.toString() || hosts[0]!.host,
        port,
      }));
      if (!this.#closed) {
        this.#place(
          masters.map((server) => ({
            mode: 'single' as const,
            hosts: [server],
            ...(username !== undefined && { username }),
            ...(password !== undefined && { password }),
            ...(tls && { tls }),
          })),
        );
      }
    } catch {
      // The cluster does not answer; the next reading finds it as it is then.
    }
    this.#isReadingMap = false;
    clearTimeout(this.#mapTimer);
    if (!this.#closed) this.#mapTimer = setTimeout(() => void this.#readMap(), mapEveryMs);
  }
}

type SlotRange = [from: number, to: number, master: [host: Buffer | null, port: number]];

/** The connection to one server. */
class Post {
  watching = false;
  readonly #client: Redis;
  readonly #options: KeyWatchOptions;
  readonly #onTurn: () => void;
  #pingTimer: NodeJS.Timeout | undefined;
  #limitTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(target: RedisTarget, options: KeyWatchOptions, onTurn: () => void) {
    this.#options = options;
    this.#onTurn = onTurn;
    const common = baseOptions(
      target,
      options.name === undefined ? {} : { name: options.name },
      target.tls && tlsOptions(target.tls),
    );
    this.#client = openOne(target, { ...common, protocol: 2, disconnectTimeout });
    this.#client.on('ready', () => void this.#begin());
    this.#client.on('close', () => this.#turn(false));
    // What went wrong is told by the link to the same server; here it only means that nothing is watched.
    this.#client.on('error', () => {});
    this.#client.on('messageBuffer', (_channel: Buffer, keys: unknown) => this.#hear(keys));
    this.#expectAnswer();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#pingTimer);
    clearTimeout(this.#limitTimer);
    this.#client.removeAllListeners('close');
    this.#client.disconnect();
    this.watching = false;
  }

  async #begin(): Promise<void> {
    try {
      const id = (await this.#client.call('CLIENT', 'ID')) as number;
      const prefixes = this.#options.prefixes.flatMap((prefix) => ['PREFIX', prefix]);
      await this.#client.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'BCAST', ...prefixes);
      await this.#client.subscribe(channel);
      // It may have been closed while the answers were on their way; nothing may begin after that.
      if (this.#isClosed) return;
      clearTimeout(this.#limitTimer);
      this.#turn(true);
      this.#pingLater();
    } catch (error) {
      // Lost again, which `close` reports; or not allowed, and asking again would not change that.
      if (error instanceof Error && error.name === 'ReplyError') clearTimeout(this.#limitTimer);
    }
  }

  #turn(watching: boolean): void {
    if (!watching) {
      clearTimeout(this.#pingTimer);
      this.#expectAnswer();
    }
    if (this.watching === watching) return;
    this.watching = watching;
    this.#onTurn();
  }

  #hear(keys: unknown): void {
    // Nothing in place of the keys: the whole database was emptied.
    this.#options.onChange(Array.isArray(keys) ? (keys as Buffer[]).map(String) : undefined);
  }

  #pingLater(): void {
    this.#pingTimer = setTimeout(() => {
      this.#expectAnswer();
      this.#client.ping().then(
        () => {
          clearTimeout(this.#limitTimer);
          if (this.watching && !this.#isClosed) this.#pingLater();
        },
        () => {},
      );
    }, pingEveryMs);
  }

  /** A server that does not answer by then gets a new connection: this one may be half open. */
  #expectAnswer(): void {
    clearTimeout(this.#limitTimer);
    this.#limitTimer = setTimeout(() => {
      this.#turn(false);
      this.#client.disconnect(true);
      this.#expectAnswer();
    }, pingLimitMs);
  }
}
