// A family that other processes have opened, as this one can see it. What decides about a value lies in Redis: its name is that of the family
// and the parts of its key, and its envelope says until when it is fresh and which groups it belongs to. So it can be looked at, explained
// and invalidated here as well; copies in the processes that have it go the way they always do, when Redis tells of the change.
//
// What nobody else knows is how to load it, and how a key becomes parts. Families of the catalogue are known by their names, those of users
// are asked for by the parts themselves.
import { groupsOf, valueName, type Family } from './define.js';
import type { Engine, Invalidated } from './engine.js';
import { readEnvelope } from './envelope.js';
import { cacheErrors } from './errors.js';
import { examine, type Explanation } from './explain.js';
import { families } from './families.js';
import { nameOf, type Part } from './keys.js';
import type { Place } from './lookup.js';

/** For how long an expired value is of use is not known: as long as it is there. */
const unknownTimes = { staleMs: 0, staleIfErrorMs: Number.POSITIVE_INFINITY, earlyRefresh: 0 };

export class ForeignFamily {
  readonly name: string;
  readonly #engine: Engine;
  readonly #definition: Family<unknown, unknown> | undefined;

  /** @internal Made by `Cache.foreign`. */
  constructor(engine: Engine, name: string) {
    this.name = name;
    this.#engine = engine;
    this.#definition = Object.values(families as unknown as Record<string, Family<unknown, unknown>>).find(
      (family) => family.name === name,
    );
  }

  /** The value, if it is in Redis and worth something; it is not loaded. Throws REDIS_AWAY. */
  async peek(key: unknown): Promise<{ value: unknown } | undefined> {
    const { explanation, envelope } = await this.#examine(key);
    if (explanation.state === 'away')
      throw cacheErrors.REDIS_AWAY({ what: 'peek', reason: 'Redis cannot be asked' });
    return envelope && explanation.state !== 'missing' ? { value: envelope.v } : undefined;
  }

  async explain(key: unknown): Promise<Explanation> {
    const { explanation } = await this.#examine(key);
    if (this.#definition === undefined && explanation.state === 'aged')
      explanation.because =
        'It has expired; whether readers still get it is known to those that opened its family.';
    return explanation;
  }

  async invalidate(key: unknown): Promise<Invalidated> {
    return this.#engine.invalidate({ names: [this.#nameOf(key)], groups: [] });
  }

  async #examine(key: unknown) {
    return examine(this.#engine, this.#definition ?? unknownTimes, await this.#placeOf(key), false);
  }

  async #placeOf(key: unknown): Promise<Place<unknown>> {
    const name = this.#nameOf(key);
    const groups = this.#definition ? groupsOf(this.#definition, key) : await this.#groupsIn(name);
    return { name, key, groups };
  }

  #nameOf(key: unknown): string {
    if (this.#definition) return valueName(this.#definition, key);
    const isObject = typeof key === 'object' && key !== null && !Array.isArray(key);
    if (isObject) throw cacheErrors.PARTS_WANTED({ family: this.name });
    return nameOf(this.name, key as Part | Part[]);
  }

  /** The groups that the value itself names. */
  async #groupsIn(name: string): Promise<string[]> {
    const { keys, channel } = this.#engine;
    const [stored] = await channel.read([keys.value(name)]).catch(() => []);
    const envelope = stored instanceof Buffer ? await readEnvelope(stored) : undefined;
    return Object.keys(envelope?.gens ?? {});
  }
}
