// Which values belong to a group: an index that exists only to free memory. Invalidating a group makes its values worthless at once;
// without the index they would lie in Redis until their TTL ends. Nothing else depends on it: an index that is incomplete,
// evicted or gone costs memory, never a wrong answer.
//
// Each generation of a group has an index of its own, so that members of the old one and of the new one never mix. A value joins while
// it is filled: nobody waits for that, and all that are filled in one turn of the event loop join together. One whose fill was refused
// is in the index for nothing, and does no harm there. Generations that have an index are listed, so that whoever sweeps the group finds
// also what a process left behind that died.
import type { Engine } from './engine.js';
import { scripts } from './scripts.js';

/** The members of one generation that are indexed; those beyond end with their TTL. */
export const membersPerGeneration = 200_000;
/** So many join with one call. */
const joinAtOnce = 500;

/** A value that is being filled. */
export interface Filled {
  name: string;
  /** When Redis will drop it, by its own clock. */
  untilMs: number;
}

interface Joining {
  group: string;
  generation: string;
  filled: Filled[];
}

export class Members {
  readonly #engine: Pick<Engine, 'keys' | 'channel'>;
  readonly #joining = new Map<string, Joining>();

  constructor(engine: Pick<Engine, 'keys' | 'channel'>) {
    this.#engine = engine;
  }

  /** `gens`: the groups of the value and the generations that it carries. */
  join(filled: Filled, gens: Readonly<Record<string, string>>): void {
    if (this.#joining.size === 0) setImmediate(() => this.#send());
    for (const [group, generation] of Object.entries(gens)) {
      // A generation is a token that no other group has.
      const joining = this.#joining.get(generation) ?? { group, generation, filled: [] };
      this.#joining.set(generation, joining);
      joining.filled.push(filled);
    }
  }

  #send(): void {
    const { keys, channel } = this.#engine;
    const joining = [...this.#joining.values()];
    this.#joining.clear();
    for (const { group, generation, filled } of joining) {
      const places = { indexes: keys.indexes(group), members: keys.members(group, generation) };
      for (let at = 0; at < filled.length; at += joinAtOnce) {
        const some = filled.slice(at, at + joinAtOnce).map(({ name, untilMs }) => [name, untilMs]);
        const args = { generation, entries: JSON.stringify(some), most: membersPerGeneration };
        // Whoever is not in the index ends with its TTL.
        channel.run(scripts.join, places, args).catch(() => {});
      }
    }
  }
}
