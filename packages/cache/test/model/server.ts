// The real Redis behind all schedules. What they do in one turn of the loop goes out as one write, because thousands of schedules
// would otherwise spend their time in system calls.
import { Redis } from 'ioredis';
import type { Script, ScriptArgument } from '@sluice/redis';
import { scripts } from '../../src/scripts.js';

interface Waiting {
  command: string;
  args: readonly ScriptArgument[];
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
}

export class Server {
  readonly #redis: Redis;
  #waiting: Waiting[] = [];

  private constructor(redis: Redis) {
    this.#redis = redis;
  }

  static async connect(url: string): Promise<Server> {
    const redis = new Redis(url);
    for (const { source } of Object.values(scripts)) await redis.script('LOAD', source);
    return new Server(redis);
  }

  call(command: string, args: readonly ScriptArgument[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length === 0) setImmediate(() => void this.#send());
      this.#waiting.push({ command, args, resolve, reject });
    });
  }

  run<K extends string, A extends string>(
    script: Script<K, A>,
    keys: { readonly [name in K]: string },
    args: { readonly [name in A]: ScriptArgument },
  ): Promise<unknown> {
    const list = [...script.keys.map((name) => keys[name]), ...script.args.map((name) => args[name])];
    return this.call('EVALSHA', [script.sha, script.keys.length, ...list]);
  }

  close(): void {
    this.#redis.disconnect();
  }

  async #send(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    const pipeline = this.#redis.pipeline();
    for (const { command, args } of waiting) pipeline.callBuffer(command, ...args);
    const replies = (await pipeline.exec())!;
    for (const [index, { resolve, reject }] of waiting.entries()) {
      const [error, reply] = replies[index]!;
      if (error) reject(error);
      else resolve(reply);
    }
  }
}
