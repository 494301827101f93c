// Finds jobs that Redis takes for running here and that nobody here knows of.
//
// A Redis may come back with an older state: a replica took over that had not heard the last words of its master, or a backup was
// restored. Jobs that were acknowledged after that state are then held again, by a session that lives and renews its lease, so
// nobody would ever rescue them. A worker therefore compares, now and then, what its session holds with what it knows.
//
// One comparison proves nothing: the reply that brings a job may still be on its way. What is unknown in two of them, under the
// same token, with no call under way that is older than the first, goes back and runs again.
import { readHeld } from './held.js';
import type { Hold } from './held.js';
import type { Partition } from './partition.js';

export class Audit {
  readonly #partition: Partition;
  readonly #known: () => ReadonlySet<string>;
  /** Id → token of what the last comparison did not know. */
  #strangers = new Map<string, string>();
  #lastMs = 0;
  #underWay = false;
  #isDue = false;

  /** `known`: the ids of all that the worker knows of. */
  constructor(partition: Partition, known: () => ReadonlySet<string>) {
    this.#partition = partition;
    this.#known = known;
  }

  /** Jobs were claimed, or the server was away: something could be held that nobody knows of. */
  request(): void {
    this.#isDue = true;
  }

  /** A new session holds nothing. */
  reset(): void {
    this.#strangers.clear();
    this.#isDue = false;
  }

  /** Compares if it is time to; returns what has to go back. `oldestCallMs` is when the oldest call under way began. */
  async compare(
    session: string,
    everyMs: number,
    oldestCallMs: () => number,
  ): Promise<{ id: string; token: string }[]> {
    const nowMs = performance.now();
    if (!this.#isDue || this.#underWay || nowMs - this.#lastMs < everyMs) return [];
    const before = this.#lastMs;
    this.#lastMs = nowMs;
    this.#underWay = true;
    const { keys, link } = this.#partition;
    try {
      return this.#judge(await readHeld(link, keys, session), oldestCallMs() > before);
    } catch {
      // Redis is away; the worker says so elsewhere.
      return [];
    } finally {
      this.#underWay = false;
    }
  }

  #judge(held: Map<string, Hold>, isConclusive: boolean): { id: string; token: string }[] {
    const lost: { id: string; token: string }[] = [];
    const strangers = new Map<string, string>();
    const known = this.#known();
    for (const [id, { token }] of held) {
      if (known.has(id)) continue;
      if (isConclusive && this.#strangers.get(id) === token) lost.push({ id, token });
      else strangers.set(id, token);
    }
    this.#strangers = strangers;
    this.#isDue = strangers.size > 0;
    return lost;
  }
}
