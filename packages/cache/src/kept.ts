// Invalidations that did not reach Redis. They are kept and applied before this process reads the same values or groups again: until
// then they are loaded, not read. Should the process die first, the outbox repeats them.
import { cacheErrors } from './errors.js';

/** What an invalidation kills. */
export interface Killed {
  names: readonly string[];
  groups: readonly string[];
}

/** Redis being away for long, with millions of changes: then the caller is told instead. */
export const maxKept = 1_000_000;

export class KeptInvalidations {
  /** → a number that changes when the same one is kept again, while the one before is being applied. */
  readonly #names = new Map<string, number>();
  readonly #groups = new Map<string, number>();
  #count = 0;

  get size(): number {
    return this.#names.size + this.#groups.size;
  }

  keep({ names, groups }: Killed): void {
    if (this.size + names.length + groups.length > maxKept) {
      throw cacheErrors.INVALIDATIONS_FULL({ kept: this.size });
    }
    for (const name of names) this.#names.set(name, ++this.#count);
    for (const group of groups) this.#groups.set(group, ++this.#count);
  }

  /** Whether a value must not be read from Redis. */
  concerns(name: string, groups: readonly string[]): boolean {
    if (this.#names.size > 0 && this.#names.has(name)) return true;
    return this.#groups.size > 0 && groups.some((group) => this.#groups.has(group));
  }

  /** Some of them, and what to call when they were applied. */
  some(limit: number): Killed & { applied: () => void } {
    const names = firstOf(this.#names, limit);
    const groups = firstOf(this.#groups, limit - names.length);
    return {
      names: names.map(([name]) => name),
      groups: groups.map(([group]) => group),
      applied: () => {
        for (const [name, number] of names) if (this.#names.get(name) === number) this.#names.delete(name);
        for (const [group, number] of groups) {
          if (this.#groups.get(group) === number) this.#groups.delete(group);
        }
      },
    };
  }
}

function firstOf(kept: Map<string, number>, limit: number): [string, number][] {
  const some: [string, number][] = [];
  for (const entry of kept) {
    if (some.length >= limit) break;
    some.push(entry);
  }
  return some;
}
