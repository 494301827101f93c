// Which queues are looked at: those that the owner of this process gives, or all that there are.
//
// All of them are found in the list that queues enter themselves into when anybody opens them. It is read again when it is a second old
// or when somebody asks for a queue that is not known yet, so queues that appear later are found, and forgotten ones go. Each is
// opened when it is first seen, over the one connection that inspect has anyway.
import type { Logger } from '@sluice/base';
import { Queue, listQueues } from '@sluice/queue';
import type { AnyQueue } from '@sluice/queue';
import type { RedisLink } from '@sluice/redis';

const freshMs = 1_000;
const deadlineMs = 3_000;

export interface Directory {
  /** All queues, as far as is known. */
  all(): Promise<readonly AnyQueue[]>;
  named(name: string): Promise<AnyQueue | undefined>;
  close(): Promise<void>;
}

/** The queues stay their owner's. */
export function givenQueues(give: () => readonly AnyQueue[]): Directory {
  return {
    all: async () => give(),
    named: async (name) => give().find((queue) => queue.name === name),
    close: async () => {},
  };
}

export class AllQueues implements Directory {
  readonly #link: RedisLink;
  readonly #prefix: string;
  readonly #logger: Logger | undefined;
  #open = new Map<string, AnyQueue>();
  #readMs = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(link: RedisLink, prefix: string, logger?: Logger) {
    this.#link = link;
    this.#prefix = prefix;
    this.#logger = logger;
  }

  async all(): Promise<readonly AnyQueue[]> {
    if (performance.now() - this.#readMs > freshMs) {
      try {
        await this.#read();
      } catch (error) {
        // Redis is away: those that are known say so themselves.
        if (this.#readMs === -Infinity) throw error;
      }
    }
    return [...this.#open.values()];
  }

  async named(name: string): Promise<AnyQueue | undefined> {
    if (!this.#open.has(name)) await this.#read();
    return this.#open.get(name);
  }

  async close(): Promise<void> {
    await this.#reading?.catch(() => {});
    await Promise.all([...this.#open.values()].map((queue) => queue.close(0)));
  }

  /** All who ask meanwhile share one reading. */
  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(): Promise<void> {
    const listed = await listQueues(this.#link, { prefix: this.#prefix, deadlineMs });
    const open = new Map<string, AnyQueue>();
    for (const { name, partitions } of listed) {
      const known = this.#open.get(name);
      // One that was made anew with other partitions is another queue.
      const same = known?.partitions.length === partitions ? known : undefined;
      const queue = same ?? this.#tryToOpen(name, partitions);
      if (queue) open.set(name, queue);
    }
    const gone = [...this.#open.values()].filter((queue) => open.get(queue.name) !== queue);
    this.#open = open;
    this.#readMs = performance.now();
    await Promise.all(gone.map((queue) => queue.close(0)));
  }

  /** Anybody may have written into the list; what is no queue is passed over. */
  #tryToOpen(name: string, partitions: number): AnyQueue | undefined {
    try {
      return new Queue(name, { redis: this.#link, prefix: this.#prefix, partitions });
    } catch (error) {
      this.#logger?.warn({ error, queue: name, partitions }, 'what is listed cannot be a queue');
      return undefined;
    }
  }
}
