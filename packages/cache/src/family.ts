// What the users of a cache hold in their hands: one family of values. Reading is the whole of it that has to be fast: a copy in this
// process is found by name; everything else becomes a lookup, which shares one MGET with all lookups of this turn of the loop.
import { groupsOf, valueName } from './define.js';
import type { Family } from './define.js';
import type { Engine, Invalidated } from './engine.js';
import { isNegative } from './envelope.js';
import { examine, type Explanation } from './explain.js';
import { Flights } from './flights.js';
import type { CountedFamily } from './published.js';
import { Lookups, type Found, type Place } from './lookup.js';
import { FamilyCounts, summarise, type FamilyStatistics } from './statistics.js';

/** So many keys are read and loaded at once, when a family is warmed. */
const warmAtOnce = 500;

export interface Warmed {
  /** They were there already. */
  present: number;
  loaded: number;
}

export class CacheFamily<K, V> {
  readonly family: Family<K, V>;
  readonly #engine: Engine;
  readonly #counts = new FamilyCounts();
  readonly #lookups: Lookups<K>;
  readonly #flights: Flights<K>;

  /** @internal Made by `Cache.open`. */
  constructor(engine: Engine, family: Family<K, V>) {
    this.#engine = engine;
    this.family = family;
    this.#lookups = new Lookups(engine, family, this.#counts);
    this.#flights = new Flights(engine, family, this.#counts, this.#lookups);
  }

  get name(): string {
    return this.family.name;
  }

  /** The value: from this process, from Redis, or loaded once for everybody. Others may have the same: then it is frozen. */
  get(key: K): Promise<V> {
    const name = valueName(this.family, key);
    if (this.family.nearMs > 0) {
      const copy = this.#engine.near.find(name);
      if (copy !== undefined) {
        this.#counts.nearHits += 1;
        return copy.promise as Promise<V>;
      }
    }
    return this.#fetch({ name, key, groups: groupsOf(this.family, key) });
  }

  /** The values in the order of the keys: one MGET, and one call of the batch loader for what is missing. */
  async getMany(keys: readonly K[]): Promise<V[]> {
    const values: unknown[] = [];
    const places: Place<K>[] = [];
    const indexes: number[] = [];
    for (let index = 0; index < keys.length; index++) {
      const key = keys[index]!;
      const name = valueName(this.family, key);
      const copy = this.family.nearMs > 0 ? this.#engine.near.find(name) : undefined;
      if (copy === undefined) {
        places.push({ name, key, groups: groupsOf(this.family, key) });
        indexes.push(index);
      } else {
        this.#counts.nearHits += 1;
        values[index] = copy.value;
      }
    }
    if (places.length > 0) {
      const { values: fetched } = await this.#fetchAll(places, (error) => {
        throw error;
      });
      for (let i = 0; i < indexes.length; i++) values[indexes[i]!] = fetched[i];
    }
    return values as V[];
  }

  /**
   * Stores a value that the caller knows. It wins against loads that are under way; it does not win against a change that the
   * caller does not know of yet, so after a change of the data `invalidate` is the safe choice.
   */
  async set(key: K, value: V): Promise<'set' | 'refused'> {
    const place = this.#placeOf(key);
    this.#dropCopy(place.name);
    const outcome = await this.#flights.set(place, value);
    this.#dropCopy(place.name);
    return outcome;
  }

  /** Once it says `applied`, nobody reads the old values from Redis, or in this process. */
  async invalidate(...keys: readonly K[]): Promise<Invalidated> {
    this.#counts.invalidations += keys.length;
    return this.#engine.invalidate({ names: keys.map((key) => valueName(this.family, key)), groups: [] });
  }

  /** Loads what is not in Redis yet. If some of it cannot be loaded, the rest is all the same, and then the first error is thrown. */
  async warm(keys: readonly K[]): Promise<Warmed> {
    const warmed: Warmed = { present: 0, loaded: 0 };
    const errors: unknown[] = [];
    for (let at = 0; at < keys.length; at += warmAtOnce) {
      const places = keys.slice(at, at + warmAtOnce).map((key) => this.#placeOf(key));
      const { missing } = await this.#fetchAll(places, (error) => errors.push(error));
      warmed.loaded += missing;
      warmed.present += places.length - missing;
    }
    if (errors.length > 0) throw errors[0];
    return warmed;
  }

  /** Why a key is in the state it is in. */
  async explain(key: K): Promise<Explanation> {
    const place = this.#placeOf(key);
    const isUnderWay = this.#flights.isUnderWay(place.name);
    return (await examine(this.#engine, this.family, place, isUnderWay)).explanation;
  }

  statistics(): FamilyStatistics {
    return summarise(this.name, this.#counts);
  }

  /** @internal To be published. */
  get counted(): CountedFamily {
    const { loadMs, remainingMs, waitedMs, ...rest } = this.#counts;
    const { hitGoal, from } = this.family;
    return {
      family: this.name,
      ...(hitGoal !== undefined && { hitGoal }),
      ...(from !== undefined && { from }),
      ...rest,
      loadMs: Math.round(loadMs),
      remainingMs: Math.round(remainingMs),
      waitedMs: Math.round(waitedMs),
    };
  }

  /** @internal Readers from now on must not join a load that began before. */
  abandon(name: string): void {
    this.#flights.abandon(name);
  }

  /** @internal */
  abandonGroup(group: string): void {
    this.#flights.abandonGroup(group);
  }

  #fetch(place: Place<K>): Promise<V> {
    const began = this.#engine.order.next();
    // Now, because the answer comes in the context of whoever else shares the MGET.
    const { isInside } = this.#engine.gate;
    const sinceMs = this.#engine.clock.monotonicMs();
    return new Promise<V>((resolve, reject) => {
      const done = (found: Found) => {
        if (this.#isServed(place, found)) {
          this.#countWait(sinceMs);
          return resolve(found.envelope.v as V);
        }
        this.#flights.begin([place], found.kind === 'away', isInside);
        this.#flights
          .obtain(place, began, found.kind === 'aged', isInside)
          .finally(() => this.#countWait(sinceMs))
          .then(resolve as (value: unknown) => void, reject);
      };
      this.#lookups.look(place, done);
    });
  }

  /** Whatever `onError` throws ends it at once; each value has its own outcome all the same. */
  async #fetchAll(
    places: readonly Place<K>[],
    onError: (error: unknown) => void,
  ): Promise<{ values: unknown[]; missing: number }> {
    const began = this.#engine.order.next();
    const { isInside } = this.#engine.gate;
    const sinceMs = this.#engine.clock.monotonicMs();
    const found = await this.#lookups.lookAll(places);
    const values: unknown[] = [];
    const missing: { place: Place<K>; index: number; kind: Found['kind'] }[] = [];
    for (let index = 0; index < places.length; index++) {
      const place = places[index]!;
      const one = found[index]!;
      if (this.#isServed(place, one)) values[index] = one.envelope.v;
      else missing.push({ place, index, kind: one.kind });
    }
    if (missing.length > 0) {
      for (const isAway of [false, true]) {
        const some = missing.filter(({ kind }) => (kind === 'away') === isAway);
        this.#flights.begin(
          some.map(({ place }) => place),
          isAway,
          isInside,
        );
      }
      const obtained = missing.map(async ({ place, index, kind }) => {
        try {
          values[index] = await this.#flights.obtain(place, began, kind === 'aged', isInside);
        } catch (error) {
          onError(error);
        }
      });
      await Promise.all(obtained);
    }
    this.#countWait(sinceMs);
    return { values, missing: missing.length };
  }

  /** Many values at once are one wait, as they are one load. */
  #countWait(sinceMs: number): void {
    this.#counts.waitedMs += this.#engine.clock.monotonicMs() - sinceMs;
  }

  /** Counts what was found, and begins a refresh where one is due. What was not found is counted when it is obtained. */
  #isServed(place: Place<K>, found: Found): found is Extract<Found, { kind: 'fresh' | 'stale' }> {
    const counts = this.#counts;
    if (found.kind === 'fresh') {
      counts.redisHits += 1;
      counts.remainingMs += found.remainingMs;
      if (isNegative(found.envelope)) counts.negativeHits += 1;
      if (found.isDue) {
        counts.earlyRefreshes += 1;
        this.#flights.refresh(place, found.envelope.expires);
      }
      return true;
    }
    if (found.kind === 'stale') {
      counts.staleServed += 1;
      this.#flights.refresh(place, found.envelope.expires);
      return true;
    }
    return false;
  }

  #placeOf(key: K): Place<K> {
    return { name: valueName(this.family, key), key, groups: groupsOf(this.family, key) };
  }

  #dropCopy(name: string): void {
    this.#engine.near.drop(name);
    this.#engine.reader.noteChanged([this.#engine.keys.value(name)]);
  }
}
