// A reader's question to Redis and what the answer is worth: for one value, and for many at once. Many are a list from beginning to
// end: an object and a callback for each would cost as much as the reading itself.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Engine } from './engine.js';
import { readEnvelope, type Envelope } from './envelope.js';
import type { Family } from './define.js';
import { deepFreeze } from './freeze.js';
import { earlyByMs, judge, type Verdict } from './judge.js';
import type { KeySpace } from './keys.js';
import { maxKeysPerRead, type Answer, type Read, type Reading } from './reader.js';
import type { FamilyCounts } from './statistics.js';
import { validate, type Validated } from './validate.js';

/** A value of a family: its name and what it belongs to. */
export interface Place<K> {
  readonly name: string;
  readonly key: K;
  readonly groups: readonly string[];
}

export type Found = Verdict | { kind: 'away' };
/** `sentAs` is the number of the question: the answer is not older. */
type Done = (found: Found, sentAs: number) => void;

const away: Found = { kind: 'away' };
const absent: Found = { kind: 'missing', why: 'absent' };
const noKeys: readonly string[] = [];
const noGenerations: readonly Answer[] = [];

/** Of one family. */
export class Lookups<K> {
  readonly #engine: Engine;
  readonly #family: Family<K, unknown>;
  readonly #counts: FamilyCounts;

  constructor(engine: Engine, family: Family<K, unknown>, counts: FamilyCounts) {
    this.#engine = engine;
    this.#family = family;
    this.#counts = counts;
  }

  look(place: Place<K>, done: Done): void {
    if (this.#isUseless(place)) done(away, 0);
    else this.#engine.reader.ask(new Question(this, this.#engine.keys, place, done));
  }

  /** In the order of the places; in one MGET, or a few where there are very many. */
  async lookAll(places: readonly Place<K>[]): Promise<Found[]> {
    const { keys, reader } = this.#engine;
    const found = places.map(() => away);
    const batches: Batch<K>[] = [];
    for (let index = 0; index < places.length; index++) {
      const place = places[index]!;
      if (this.#isUseless(place)) continue;
      let batch = batches.at(-1);
      if (batch === undefined || batch.keys.length >= maxKeysPerRead) batches.push((batch = new Batch(keys)));
      batch.add(place, index);
    }
    const read = (batch: Batch<K>) =>
      reader
        .read(batch.keys, (answers, read) => batch.answer(this, answers, read, found))
        // They stay away: whoever asked loads them.
        .catch(() => {});
    await Promise.all(batches.map(read));
    return found;
  }

  /** What an answer is worth. Only large values and slow schemas take their time. Never throws. */
  open(place: Place<K>, value: Answer, generations: readonly Answer[], read: Read): Found | Promise<Found> {
    // An invalidation that failed while this was under way: whatever Redis had is not to be believed.
    if (this.#engine.kept.concerns(place.name, place.groups)) return away;
    if (value instanceof Error || !areKnown(generations)) return away;
    if (value === null) return absent;
    const envelope = readEnvelope(value);
    return envelope instanceof Promise
      ? envelope.then((late) => this.#weigh(place, late, value.length, generations, read))
      : this.#weigh(place, envelope, value.length, generations, read);
  }

  #weigh(
    place: Place<K>,
    envelope: Envelope | undefined,
    bytes: number,
    generations: readonly (Buffer | null)[],
    read: Read,
  ): Found | Promise<Found> {
    if (envelope === undefined) return this.#unreadable();
    const { serverClock, random } = this.#engine;
    const verdict = judge(envelope, place.groups, generations, serverClock.now(), this.#family, random);
    const { schema } = this.#family;
    if (schema === undefined || verdict.kind === 'missing' || envelope.v === undefined || envelope.v === null)
      return this.#finish(place, verdict, bytes, read);
    const accept = (validated: Validated | undefined) => {
      if (validated === undefined || 'issues' in validated) return this.#unreadable();
      envelope.v = validated.value;
      return this.#finish(place, verdict, bytes, read);
    };
    const validated = attempt(schema, envelope.v);
    return validated instanceof Promise ? validated.then(accept) : accept(validated);
  }

  #unreadable(): Found {
    this.#counts.unreadable += 1;
    return { kind: 'missing', why: 'unreadable' };
  }

  #finish(place: Place<K>, verdict: Verdict, bytes: number, read: Read): Found {
    // Without copies each reader has parsed a value of its own, with which it may do as it likes.
    if (this.#family.nearMs > 0 && verdict.kind !== 'missing') {
      deepFreeze(verdict.envelope.v);
      if (verdict.kind === 'fresh' && !verdict.isDue) {
        this.#keepCopy(place, verdict.envelope, verdict.remainingMs, bytes, read);
      }
    }
    return verdict;
  }

  #keepCopy(place: Place<K>, envelope: Envelope, remainingMs: number, bytes: number, read: Read): void {
    const { near, watch, clock, random } = this.#engine;
    if (!watch.isWatching || watch.breaks !== read.breaks || this.#hasChanged(place, read)) return;
    const { nearMs, earlyRefresh } = this.#family;
    // A copy ends when an early refresh would be due: the reader that finds it gone asks Redis, and refreshes.
    const freshMs = remainingMs - earlyByMs(envelope.loadMs, earlyRefresh, random);
    const untilMs = Math.min(read.sentMs + nearMs, clock.monotonicMs() + freshMs);
    near.put(place.name, envelope.v, untilMs, bytes, place.groups);
  }

  /** While the answer was on its way. */
  #hasChanged({ name, groups }: Place<K>, { changed }: Read): boolean {
    if (changed === undefined) return false;
    const { keys } = this.#engine;
    return changed.has(keys.value(name)) || groups.some((group) => changed.has(keys.generation(group)));
  }

  /** There is nobody to ask, or the answer must not be believed. */
  #isUseless(place: Place<K>): boolean {
    const { breaker, kept } = this.#engine;
    return breaker.isOpen || kept.concerns(place.name, place.groups);
  }
}

/** For one value. */
class Question<K> implements Reading {
  readonly valueKey: string;
  readonly generationKeys: readonly string[];
  readonly #lookups: Lookups<K>;
  readonly #place: Place<K>;
  readonly #done: Done;

  constructor(lookups: Lookups<K>, keys: KeySpace, place: Place<K>, done: Done) {
    this.#lookups = lookups;
    this.#place = place;
    this.#done = done;
    this.valueKey = keys.value(place.name);
    this.generationKeys =
      place.groups.length === 0 ? noKeys : place.groups.map((group) => keys.generation(group));
  }

  answer(value: Answer, generations: readonly Answer[], read: Read): Promise<void> | undefined {
    const found = this.#lookups.open(this.#place, value, generations, read);
    if (found instanceof Promise) return found.then((late) => this.#done(late, read.sentAs));
    this.#done(found, read.sentAs);
    return undefined;
  }

  fail(): void {
    this.#done(away, 0);
  }
}

/** For many values, with one MGET in which the generation of each group stands once. */
class Batch<K> {
  readonly keys: string[] = [];
  readonly #keySpace: KeySpace;
  readonly #places: Place<K>[] = [];
  /** Of each place: where the asker has it, and where its value is in `keys`. */
  readonly #indexes: number[] = [];
  readonly #positions: number[] = [];
  /** Group → where its generation is in `keys`. */
  #generations: Map<string, number> | undefined;

  constructor(keySpace: KeySpace) {
    this.#keySpace = keySpace;
  }

  add(place: Place<K>, index: number): void {
    this.#places.push(place);
    this.#indexes.push(index);
    this.#positions.push(this.keys.push(this.#keySpace.value(place.name)) - 1);
    if (place.groups.length === 0) return;
    const generations = (this.#generations ??= new Map());
    for (const group of place.groups) {
      if (!generations.has(group))
        generations.set(group, this.keys.push(this.#keySpace.generation(group)) - 1);
    }
  }

  answer(
    lookups: Lookups<K>,
    answers: readonly Answer[],
    read: Read,
    found: Found[],
  ): Promise<unknown> | undefined {
    let late: Promise<void>[] | undefined;
    for (let i = 0; i < this.#places.length; i++) {
      const place = this.#places[i]!;
      const index = this.#indexes[i]!;
      const generations =
        place.groups.length === 0
          ? noGenerations
          : place.groups.map((group) => answers[this.#generations!.get(group)!]!);
      const one = lookups.open(place, answers[this.#positions[i]!]!, generations, read);
      if (one instanceof Promise) {
        (late ??= []).push(
          one.then((opened) => {
            found[index] = opened;
          }),
        );
      } else {
        found[index] = one;
      }
    }
    return late && Promise.all(late);
  }
}

/** On a cluster each key is asked for by itself, and may fail by itself. */
function areKnown(generations: readonly Answer[]): generations is readonly (Buffer | null)[] {
  return generations.length === 0 || !generations.some((generation) => generation instanceof Error);
}

/** Undefined if the schema throws: a value that it cannot even look at does not fit it. */
function attempt(
  schema: StandardSchemaV1,
  value: unknown,
): Validated | undefined | Promise<Validated | undefined> {
  try {
    const validated = validate(schema, value);
    return validated instanceof Promise ? validated.catch(() => undefined) : validated;
  } catch {
    return undefined;
  }
}
