/*
 * What Redis spent: processor time of its main thread, which is the one that answers, and commands, those within scripts included.
 */
import { Redis } from 'ioredis';

export interface Spent {
  busyMs: number;
  commands: number;
}

/** Asks on a connection that stays, so that asking costs the same each time. */
export class RedisTime {
  readonly #client: Redis;

  constructor(url: string) {
    this.#client = new Redis(url);
  }

  async spent(): Promise<Spent> {
    const text = await this.#client.info('cpu', 'commandstats');
    const seconds = (name: string) =>
      Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? Number.NaN);
    let commands = 0;
    for (const [, calls] of text.matchAll(/^cmdstat_[^:]+:calls=(\d+)/gm)) commands += Number(calls);
    const busy = seconds('used_cpu_user_main_thread') + seconds('used_cpu_sys_main_thread');
    return { busyMs: 1_000 * busy, commands };
  }

  close(): void {
    this.#client.disconnect();
  }
}

export function less(a: Spent, b: Spent): Spent {
  return { busyMs: a.busyMs - b.busyMs, commands: a.commands - b.commands };
}
