// Copies in this process. A hit costs one lookup and hands out a promise that was made when the copy was; nothing is copied or parsed.
//
// A copy is dropped when Redis tells that its value or the generation of one of its groups changed, when this process invalidates it,
// when tracking breaks (all of them), and in any case a few seconds after it was read. Everybody
// gets the same one, so it must be frozen. Which copy goes when there are too many is decided by second chance: one that was used since it last came
// up goes to the end of the line.
import type { Clock } from '@sluice/base';

export interface NearCopy {
  readonly value: unknown;
  readonly promise: Promise<unknown>;
  /** Monotonic. */
  readonly untilMs: number;
  readonly bytes: number;
  readonly groups: readonly GroupMark[] | undefined;
  isUsed: boolean;
}

/** A group as it was when the copy was made. */
interface GroupMark {
  readonly state: GroupState;
  readonly version: number;
}

interface GroupState {
  version: number;
}

export interface NearLimits {
  maxEntries: number;
  maxBytes: number;
}

export class NearCache {
  readonly #copies = new Map<string, NearCopy>();
  readonly #groups = new Map<string, GroupState>();
  readonly #limits: NearLimits;
  readonly #clock: Clock;
  #bytes = 0;

  constructor(limits: NearLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  get size(): number {
    return this.#copies.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  find(name: string): NearCopy | undefined {
    const copy = this.#copies.get(name);
    if (copy === undefined) return undefined;
    if (copy.untilMs <= this.#clock.monotonicMs() || !areSame(copy.groups)) {
      this.drop(name);
      return undefined;
    }
    copy.isUsed = true;
    return copy;
  }

  /** How much longer a copy would be served. */
  remainingMs(name: string): number | undefined {
    const copy = this.#copies.get(name);
    if (copy === undefined || !areSame(copy.groups)) return undefined;
    const leftMs = copy.untilMs - this.#clock.monotonicMs();
    return leftMs > 0 ? leftMs : undefined;
  }

  /** The value is frozen: nobody may change it from here on. */
  put(name: string, value: unknown, untilMs: number, bytes: number, groups: readonly string[]): void {
    if (bytes > this.#limits.maxBytes) return;
    this.drop(name);
    // Before the first mark: one that was taken and then forgotten with all groups would never be told of an invalidation. Groups of
    // copies that are gone stay behind, so now and then everything is dropped, which costs some reads of Redis.
    if (!this.#hasRoomFor(groups)) this.clear();
    const marks = groups.length === 0 ? undefined : groups.map((group) => this.#mark(group));
    this.#copies.set(name, {
      value,
      promise: Promise.resolve(value),
      untilMs,
      bytes,
      groups: marks,
      isUsed: false,
    });
    this.#bytes += bytes;
    this.#makeRoom();
  }

  drop(name: string): void {
    const copy = this.#copies.get(name);
    if (copy === undefined) return;
    this.#copies.delete(name);
    this.#bytes -= copy.bytes;
  }

  dropGroup(group: string): void {
    const state = this.#groups.get(group);
    if (state !== undefined) state.version += 1;
  }

  clear(): void {
    this.#copies.clear();
    this.#groups.clear();
    this.#bytes = 0;
  }

  #hasRoomFor(groups: readonly string[]): boolean {
    let left = this.#limits.maxEntries - this.#groups.size;
    for (const group of groups) if (!this.#groups.has(group)) left -= 1;
    return left >= 0;
  }

  #mark(group: string): GroupMark {
    let state = this.#groups.get(group);
    if (state === undefined) {
      state = { version: 0 };
      this.#groups.set(group, state);
    }
    return { state, version: state.version };
  }

  #makeRoom(): void {
    for (const [name, copy] of this.#copies) {
      if (this.#copies.size <= this.#limits.maxEntries && this.#bytes <= this.#limits.maxBytes) return;
      this.#copies.delete(name);
      if (copy.isUsed && copy.untilMs > this.#clock.monotonicMs()) {
        copy.isUsed = false;
        this.#copies.set(name, copy);
      } else {
        this.#bytes -= copy.bytes;
      }
    }
  }
}

function areSame(groups: readonly GroupMark[] | undefined): boolean {
  if (groups === undefined) return true;
  for (const { state, version } of groups) if (state.version !== version) return false;
  return true;
}
