// One partition of a queue: its keys, the connection, and the clock of its Redis.
import type { CallOptions, RedisLink, ScriptArgument } from '@sluice/redis';
import type { PartitionKeys } from './keys.js';
import { scripts } from './scripts.js';

type Scripts = typeof scripts;
type ArgumentsOf<N extends keyof Scripts> = { readonly [A in Scripts[N]['args'][number]]: ScriptArgument };

export class Partition {
  readonly index: number;
  readonly keys: PartitionKeys;
  readonly link: RedisLink;
  readonly clock: RedisClock;

  constructor(index: number, keys: PartitionKeys, link: RedisLink, clock: RedisClock) {
    this.index = index;
    this.keys = keys;
    this.link = link;
    this.clock = clock;
  }

  run<N extends keyof Scripts>(name: N, args: ArgumentsOf<N>, options?: CallOptions): Promise<unknown> {
    return this.runWith(this.keys, name, args, options);
  }

  /** With keys of the caller's own: a producer's, for example. */
  runWith<N extends keyof Scripts>(
    keys: PartitionKeys,
    name: N,
    args: ArgumentsOf<N>,
    options?: CallOptions,
  ): Promise<unknown> {
    return this.link.run<string, string>(scripts[name], keys, args, options);
  }
}

/**
 * The time of Redis, estimated: its last answer plus what has passed here since by the monotonic clock. Used only to stamp and
 * to show; whatever decides (due times, leases, tokens) is decided by TIME inside the scripts.
 */
export class RedisClock {
  #offsetMs = Date.now() - performance.now();

  nowMs(): number {
    return performance.now() + this.#offsetMs;
  }

  observe(redisNowMs: number): void {
    this.#offsetMs = redisNowMs - performance.now();
  }
}

/** Which partition something belongs to: FNV-1a, so that every producer in every language can agree. */
export function partitionOf(key: string, partitions: number): number {
  if (partitions === 1) return 0;
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i);
    if (code > 127) return hashBytes(Buffer.from(key)) % partitions;
    hash = Math.imul(hash ^ code, 0x01000193);
  }
  return (hash >>> 0) % partitions;
}

function hashBytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
