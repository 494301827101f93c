// Reads from Redis. Readers of single values share: everything that is asked for in one turn of the event loop goes out as one MGET,
// in which each key stands once. Who asks after it was sent goes with the next: its answer must not be older than the question.
//
// A value may change while its answer is on the way. Such an answer is right for whoever asked, but no copy of it may be kept; so
// every read that is under way remembers which keys were reported as changed in the meantime. It is under way until its last reading
// is done: a large value is decompressed by another thread, and a schema may take its time.
import type { Clock } from '@sluice/base';
import type { Channel } from './channel.js';

/** Numbers what happens in this process, so that it is known what came first. */
export class Order {
  #last = 0;

  next(): number {
    return ++this.#last;
  }
}

/** What Redis has for a key. On a cluster each key is asked for by itself, and may fail by itself. */
export type Answer = Buffer | null | Error;

/** Somebody who wants a value and the generations of its groups. */
export interface Reading {
  readonly valueKey: string;
  readonly generationKeys: readonly string[];
  /** `read` tells what the answer is worth. Returns a promise if it is not done with it at once. Neither throws. */
  answer(value: Answer, generations: readonly Answer[], read: Read): Promise<void> | undefined;
  fail(error: unknown): void;
}

/** One MGET, and what its answer is worth. */
export class Read {
  /** Keys that were reported as changed since it was sent: of these no copy may be kept. */
  changed: Set<string> | undefined;

  constructor(
    /** When it was sent: monotonic, and in the order of everything that this process does. */
    readonly sentMs: number,
    readonly sentAs: number,
    /** How often tracking had broken by then. */
    readonly breaks: number,
  ) {}
}

/** Redis does nothing else while it answers; a longer list goes out in parts. */
export const maxKeysPerRead = 1_000;
const none: readonly Answer[] = [];

export class Reader {
  readonly #channel: Channel;
  readonly #clock: Clock;
  readonly #order: Order;
  readonly #watch: { readonly breaks: number };
  readonly #underWay = new Set<Read>();
  #next: Shared | undefined;

  constructor(channel: Channel, clock: Clock, order: Order, watch: { readonly breaks: number }) {
    this.#channel = channel;
    this.#clock = clock;
    this.#order = order;
    this.#watch = watch;
  }

  /** For one value, together with the others of this turn of the loop. */
  ask(reading: Reading): void {
    let next = this.#next;
    if (next === undefined || next.keys.length >= maxKeysPerRead) {
      next = new Shared();
      this.#next = next;
      const shared = next;
      setImmediate(() => {
        if (this.#next === shared) this.#next = undefined;
        this.read(shared.keys, (answers, read) => shared.answer(answers, read)).catch((error: unknown) =>
          shared.fail(error),
        );
      });
    }
    next.add(reading);
  }

  /** One MGET, now. It is under way until what `use` returns has come. */
  async read<T>(keys: string[], use: (answers: readonly Answer[], read: Read) => T): Promise<Awaited<T>> {
    const read = new Read(this.#clock.monotonicMs(), this.#order.next(), this.#watch.breaks);
    this.#underWay.add(read);
    try {
      return await use(await this.#channel.read(keys), read);
    } finally {
      this.#underWay.delete(read);
    }
  }

  noteChanged(keys: readonly string[]): void {
    for (const read of this.#underWay) {
      read.changed ??= new Set();
      for (const key of keys) read.changed.add(key);
    }
  }
}

/** Readings that go out together. */
class Shared {
  readonly keys: string[] = [];
  readonly #readings: Reading[] = [];
  /** Where in the list the value of each reading is. */
  readonly #places: number[] = [];
  readonly #known = new Map<string, number>();

  add(reading: Reading): void {
    this.#readings.push(reading);
    this.#places.push(this.#place(reading.valueKey));
    for (const key of reading.generationKeys) this.#place(key);
  }

  answer(answers: readonly Answer[], read: Read): Promise<unknown> | undefined {
    let late: Promise<void>[] | undefined;
    for (let i = 0; i < this.#readings.length; i++) {
      const reading = this.#readings[i]!;
      const { generationKeys } = reading;
      const generations =
        generationKeys.length === 0 ? none : generationKeys.map((key) => answers[this.#known.get(key)!]!);
      const ending = reading.answer(answers[this.#places[i]!]!, generations, read);
      if (ending !== undefined) (late ??= []).push(ending);
    }
    return late && Promise.all(late);
  }

  fail(error: unknown): void {
    for (const reading of this.#readings) reading.fail(error);
  }

  #place(key: string): number {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.#known.set(key, this.keys.length);
    return this.keys.push(key) - 1;
  }
}
