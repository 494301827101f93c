// Frees the memory of groups that were invalidated: a moment later, in the background, some hundred values at a time with a pause in
// between, so that Redis has time for others. Nobody depends on it. A sweep that met a Redis that is away is repeated until it is back;
// one that Redis refuses is not: the next invalidation of the group finds what is left, and the TTL ends it otherwise.
//
// Members are taken out of the index before their values are removed. Several processes that sweep one group therefore share the work;
// one that dies leaves at most one batch to its TTL. A value that was loaded again under the present generation is in the index of that
// one, and stays. Only one that is filled between this question and the removal is lost, and loaded once more.
import { isSluiceError, type Timer } from '@sluice/base';
import type { Engine } from './engine.js';

/** Loads that were under way when the group was invalidated have mostly been filled, and have joined, by then. */
const sweepAfterMs = 1_000;
const batchSize = 500;
const pauseMs = 10;
/** Nobody waits for a sweep. */
const patienceMs = 1_000;
/** Groups that wait for their sweep; others are left to the next invalidation. */
const maxWaiting = 10_000;
/** Groups that are asked at once whether there is anything to sweep. */
const groupsAtOnce = 100;

export class Sweeper {
  readonly #engine: Engine;
  readonly #groups = new Set<string>();
  #timer: Timer | undefined;
  #isSweeping = false;
  #isClosed = false;
  #freed = 0;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Values that it has removed. */
  get freed(): number {
    return this.#freed;
  }

  /** These groups were invalidated. */
  note(groups: readonly string[]): void {
    for (const group of groups) if (this.#groups.size < maxWaiting) this.#groups.add(group);
    this.#plan();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #plan(): void {
    if (this.#timer !== undefined || this.#isSweeping || this.#isClosed || this.#groups.size === 0) return;
    this.#timer = this.#engine.clock.setTimer(() => void this.#sweepAll(), sweepAfterMs);
  }

  async #sweepAll(): Promise<void> {
    this.#timer = undefined;
    this.#isSweeping = true;
    const groups = [...this.#groups];
    this.#groups.clear();
    for (let at = 0; at < groups.length && !this.#isClosed; at += groupsAtOnce) {
      const some = groups.slice(at, at + groupsAtOnce);
      const found = await Promise.all(some.map((group) => this.#survey(group)));
      for (const { group, worthless } of found) {
        for (const generation of worthless) await this.#sweep(group, generation);
      }
    }
    this.#isSweeping = false;
    this.#plan();
  }

  /** The generations that are over and still have an index. */
  async #survey(group: string): Promise<{ group: string; worthless: string[] }> {
    try {
      // The list first: a generation that is in it and is not the present one afterwards is over.
      const listed = this.#call('SMEMBERS', [this.#engine.keys.indexes(group)]) as Promise<Buffer[]>;
      const [indexes, present] = await Promise.all([listed, this.#generationOf(group)]);
      return { group, worthless: indexes.map(String).filter((generation) => generation !== present) };
    } catch (error) {
      this.#retryIfAway(group, error);
      return { group, worthless: [] };
    }
  }

  async #sweep(group: string, generation: string): Promise<void> {
    const { keys } = this.#engine;
    const members = keys.members(group, generation);
    try {
      while (!this.#isClosed) {
        const [popped, present] = await Promise.all([
          this.#call('ZPOPMIN', [members, batchSize]) as Promise<(Buffer | Buffer[])[]>,
          this.#generationOf(group),
        ]);
        if (present === generation) return;
        if (popped.length === 0) {
          await this.#call('SREM', [keys.indexes(group), generation]);
          return;
        }
        await this.#free(group, present, namesOf(popped));
        await this.#pause();
      }
    } catch (error) {
      this.#retryIfAway(group, error);
    }
  }

  /** Memory is the smaller worry while Redis is away or too busy, but what was not swept then would stay for as long as its TTL. */
  #retryIfAway(group: string, error: unknown): void {
    if (isSluiceError(error, 'REDIS_AWAY') || isSluiceError(error, 'REDIS_UNAVAILABLE')) this.note([group]);
  }

  async #free(group: string, present: string | undefined, names: readonly string[]): Promise<void> {
    const { keys, channel } = this.#engine;
    const spared =
      present === undefined
        ? []
        : ((await this.#call('ZMSCORE', [keys.members(group, present), ...names])) as (Buffer | null)[]);
    const doomed = names.filter((_, index) => (spared[index] ?? null) === null);
    if (doomed.length === 0) return;
    await channel.unlink(
      doomed.map((name) => [keys.value(name)]),
      patienceMs,
    );
    this.#freed += doomed.length;
  }

  async #generationOf(group: string): Promise<string | undefined> {
    const [generation] = await this.#engine.channel.read([this.#engine.keys.generation(group)]);
    if (generation instanceof Error) throw generation;
    return generation?.toString();
  }

  #call(command: string, args: (string | number)[]): Promise<unknown> {
    return this.#engine.channel.call(command, args, patienceMs);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#engine.clock.setTimer(resolve, pauseMs);
    });
  }
}

/** ZPOPMIN answers with pairs of name and score, by the older protocol with names and scores in turn. */
function namesOf(popped: readonly (Buffer | Buffer[])[]): string[] {
  return popped
    .flat()
    .filter((_, index) => index % 2 === 0)
    .map(String);
}
