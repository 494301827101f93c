// The partitions that uploads are spread over. New uploads go to as many as the settings say; those that others use, or used before
// the number was lowered, are remembered in Redis: their uploads are read, tended and paid for like all others.
import type { RedisLink } from '@sluice/redis';
import { keysOf } from './keys.js';

export class Partitions {
  readonly #redis: RedisLink;
  readonly #key: string;
  readonly #own: readonly number[];
  #all: readonly number[];

  constructor(redis: RedisLink, prefix: string, count: number) {
    this.#redis = redis;
    this.#key = keysOf(prefix, 0, '').partitions;
    this.#own = Array.from({ length: count }, (_, partition) => partition);
    this.#all = this.#own;
  }

  /** Of all processes, as far as we know. */
  get all(): readonly number[] {
    return this.#all;
  }

  /** Says which ones we use, and learns which ones there are. */
  async refresh(): Promise<void> {
    const known = await this.#members();
    // A Redis that is full takes no write, also not one that changes nothing.
    const isSaid = this.#own.every((partition) => known.includes(partition));
    if (!isSaid) await this.#redis.call('SADD', [this.#key, ...this.#own]);
    this.#all = isSaid ? known : await this.#members();
  }

  async #members(): Promise<number[]> {
    const members = (await this.#redis.call('SMEMBERS', [this.#key])) as Buffer[];
    return members.map(Number).sort((a, b) => a - b);
  }
}
