// One reader's question to Redis and what the answer is worth. The object is the whole cost of a hit beside the promise.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Engine } from './engine.js';
import { readEnvelope, type Envelope } from './envelope.js';
import type { Family } from './define.js';
import { deepFreeze } from './freeze.js';
import { earlyByMs, judge, type Verdict } from './judge.js';
import type { Read, Reading } from './reader.js';
import type { FamilyCounts } from './statistics.js';
import { validate, type Validated } from './validate.js';

/** A value of a family: its name and what it belongs to. */
export interface Place<K> {
  readonly name: string;
  readonly key: K;
  readonly groups: readonly string[];
}

export type Found = Verdict | { kind: 'away' };

const none: readonly string[] = [];

export class Lookup<K> implements Reading {
  readonly valueKey: string;
  readonly generationKeys: readonly string[];
  readonly #engine: Engine;
  readonly #family: Family<K, unknown>;
  readonly #counts: FamilyCounts;
  readonly #place: Place<K>;
  readonly #done: (found: Found, sentAs: number) => void;

  constructor(
    engine: Engine,
    family: Family<K, unknown>,
    counts: FamilyCounts,
    place: Place<K>,
    /** `sentAs` is the number of the question: the answer is not older. */
    done: (found: Found, sentAs: number) => void,
  ) {
    this.#engine = engine;
    this.#family = family;
    this.#counts = counts;
    this.#place = place;
    this.#done = done;
    this.valueKey = engine.keys.value(place.name);
    this.generationKeys =
      place.groups.length === 0 ? none : place.groups.map((group) => engine.keys.generation(group));
  }

  /** Asks, unless there is nobody to ask or the answer must not be believed. */
  start(): void {
    const { breaker, kept, reader } = this.#engine;
    if (breaker.isOpen || kept.concerns(this.#place.name, this.#place.groups)) {
      this.#done({ kind: 'away' }, 0);
    } else {
      reader.ask(this);
    }
  }

  fail(): void {
    this.#done({ kind: 'away' }, 0);
  }

  answer(
    value: Buffer | null,
    generations: readonly (Buffer | null)[],
    read: Read,
  ): Promise<void> | undefined {
    // An invalidation that failed while this was under way: whatever Redis had is not to be believed.
    if (this.#engine.kept.concerns(this.#place.name, this.#place.groups)) {
      this.fail();
      return undefined;
    }
    if (value === null) {
      this.#done({ kind: 'missing', why: 'absent' }, read.sentAs);
      return undefined;
    }
    const envelope = readEnvelope(value);
    if (envelope instanceof Promise) {
      return envelope.then((late) => this.#open(late, value.length, generations, read));
    }
    return this.#open(envelope, value.length, generations, read);
  }

  #open(
    envelope: Envelope | undefined,
    bytes: number,
    generations: readonly (Buffer | null)[],
    read: Read,
  ): Promise<void> | undefined {
    if (envelope === undefined) {
      this.#reject(read);
      return undefined;
    }
    const { serverClock, random } = this.#engine;
    const { groups } = this.#place;
    const verdict = judge(envelope, groups, generations, serverClock.now(), this.#family, random);
    const { schema } = this.#family;
    if (
      schema === undefined ||
      verdict.kind === 'missing' ||
      envelope.v === undefined ||
      envelope.v === null
    ) {
      this.#finish(verdict, bytes, read);
      return undefined;
    }
    const accept = (validated: Validated | undefined) => {
      if (validated === undefined || 'issues' in validated) return this.#reject(read);
      envelope.v = validated.value;
      this.#finish(verdict, bytes, read);
    };
    const validated = attempt(schema, envelope.v);
    if (validated instanceof Promise) return validated.then(accept);
    accept(validated);
    return undefined;
  }

  #reject(read: Read): void {
    this.#counts.unreadable += 1;
    this.#done({ kind: 'missing', why: 'unreadable' }, read.sentAs);
  }

  #finish(verdict: Verdict, bytes: number, read: Read): void {
    // Without copies each reader has parsed a value of its own, with which it may do as it likes.
    if (verdict.kind !== 'missing' && this.#family.nearMs > 0) deepFreeze(verdict.envelope.v);
    if (verdict.kind === 'fresh' && !verdict.isDue && this.#family.nearMs > 0) {
      this.#keepCopy(verdict.envelope, verdict.remainingMs, bytes, read);
    }
    this.#done(verdict, read.sentAs);
  }

  #keepCopy(envelope: Envelope, remainingMs: number, bytes: number, read: Read): void {
    const { near, watch, clock, random } = this.#engine;
    if (!watch.isWatching || watch.breaks !== read.breaks || !read.isUnchanged(this)) return;
    const { nearMs, earlyRefresh } = this.#family;
    // A copy ends when an early refresh would be due: the reader that finds it gone asks Redis, and refreshes.
    const freshMs = remainingMs - earlyByMs(envelope.loadMs, earlyRefresh, random);
    const untilMs = Math.min(read.sentMs + nearMs, clock.monotonicMs() + freshMs);
    near.put(this.#place.name, envelope.v, untilMs, bytes, this.#place.groups);
  }
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
