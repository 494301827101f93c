// Reads from Redis, many readers at once: everything that is asked for in one turn of the event loop goes out as one MGET, in which
// each key stands once. Who asks after it was sent goes with the next: its answer must not be older than the question.
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

/** Somebody who wants a value and the generations of its groups. */
export interface Reading {
  readonly valueKey: string;
  readonly generationKeys: readonly string[];
  /** `read` tells what the answer is worth. Returns a promise if it is not done with it at once. Neither throws. */
  answer(
    value: Buffer | null,
    generations: readonly (Buffer | null)[],
    read: Read,
  ): Promise<void> | undefined;
  fail(error: unknown): void;
}

/** One MGET with its answers. */
export class Read {
  readonly keys: string[] = [];
  readonly readings: Reading[] = [];
  /** Where in the list the value of each reading is. */
  readonly places: number[] = [];
  readonly #known = new Map<string, number>();
  changed: Set<string> | undefined;
  /** When it was sent: monotonic, and in the order of everything that this process does. */
  sentMs = 0;
  sentAs = 0;
  /** How often tracking had broken by then. */
  breaks = 0;

  add(reading: Reading): void {
    this.readings.push(reading);
    this.places.push(this.#place(reading.valueKey));
    for (const key of reading.generationKeys) this.#place(key);
  }

  /** Whether a copy of what was read may be kept. */
  isUnchanged(reading: Reading): boolean {
    const { changed } = this;
    if (changed === undefined) return true;
    return !changed.has(reading.valueKey) && !reading.generationKeys.some((key) => changed.has(key));
  }

  placeOf(key: string): number {
    return this.#known.get(key)!;
  }

  #place(key: string): number {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.#known.set(key, this.keys.length);
    return this.keys.push(key) - 1;
  }
}

/** Redis does nothing else while it answers; a longer list goes out in parts. */
export const maxKeysPerRead = 1_000;
const none: readonly (Buffer | null)[] = [];

export class Reader {
  readonly #channel: Channel;
  readonly #clock: Clock;
  readonly #order: Order;
  readonly #watch: { readonly breaks: number };
  readonly #underWay = new Set<Read>();
  #next: Read | undefined;

  constructor(channel: Channel, clock: Clock, order: Order, watch: { readonly breaks: number }) {
    this.#channel = channel;
    this.#clock = clock;
    this.#order = order;
    this.#watch = watch;
  }

  ask(reading: Reading): void {
    let next = this.#next;
    if (next === undefined || next.keys.length >= maxKeysPerRead) {
      next = new Read();
      this.#next = next;
      const read = next;
      setImmediate(() => {
        if (this.#next === read) this.#next = undefined;
        void this.#send(read);
      });
    }
    next.add(reading);
  }

  noteChanged(keys: readonly string[]): void {
    for (const read of this.#underWay) {
      read.changed ??= new Set();
      for (const key of keys) read.changed.add(key);
    }
  }

  async #send(read: Read): Promise<void> {
    read.sentMs = this.#clock.monotonicMs();
    read.sentAs = this.#order.next();
    read.breaks = this.#watch.breaks;
    this.#underWay.add(read);
    let values: (Buffer | null | Error)[];
    try {
      values = await this.#channel.read(read.keys);
    } catch (error) {
      this.#underWay.delete(read);
      for (const reading of read.readings) reading.fail(error);
      return;
    }
    let late: Promise<void>[] | undefined;
    for (let i = 0; i < read.readings.length; i++) {
      const ending = deliver(read.readings[i]!, read, values[read.places[i]!]!, values);
      if (ending !== undefined) (late ??= []).push(ending);
    }
    if (late !== undefined) await Promise.all(late);
    this.#underWay.delete(read);
  }
}

function deliver(
  reading: Reading,
  read: Read,
  value: Buffer | null | Error,
  values: readonly (Buffer | null | Error)[],
): Promise<void> | undefined {
  const { generationKeys } = reading;
  if (value instanceof Error) {
    reading.fail(value);
    return undefined;
  }
  if (generationKeys.length === 0) return reading.answer(value, none, read);
  const generations: (Buffer | null)[] = [];
  for (const key of generationKeys) {
    const generation = values[read.placeOf(key)]!;
    if (generation instanceof Error) {
      reading.fail(generation);
      return undefined;
    }
    generations.push(generation);
  }
  return reading.answer(value, generations, read);
}
