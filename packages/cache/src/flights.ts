// The path of a miss. Every value that is being obtained is one flight, which all readers of this process share:
//
//   take the lease ─┬─ got it ──▶ load ──▶ fill (if the lease still stands) ──▶ served
//                   ├─ somebody filled it meanwhile ─────────────────────────▶ served
//                   ├─ somebody else has it ──▶ wait for a notice or a moment ──▶ take the lease
//                   └─ Redis is away ──▶ load, a few at a time, without filling ──▶ served
//
// Who may be served by a flight? A reader must never see something older than the moment at which it asked. A flight therefore
// says as of when its value is known to be right: when its load began, or when the read that found it was sent. Who asked before
// that is served; who asked later (and may have been told, in between, that the value was invalidated) reads Redis again, and finds
// what was filled, or flies again if the fill was refused.
//
// Nothing is served that was invalidated: a stale value that stands in for a failed or slow load is read again at that moment.
import { withDeadline } from '@sluice/base';
import type { Family, LoadContext } from './define.js';
import type { Engine } from './engine.js';
import { packEnvelope, writeEnvelope, type Envelope } from './envelope.js';
import { cacheErrors } from './errors.js';
import { deepFreeze } from './freeze.js';
import { Entry } from './gate.js';
import type { Found, Lookups, Place } from './lookup.js';
import { scripts } from './scripts.js';
import type { FamilyCounts } from './statistics.js';
import { makeToken } from './token.js';
import { validate } from './validate.js';

interface Outcome {
  value: unknown;
  /** It has expired, and stands in for one that could not be loaded in time. */
  isStale?: boolean;
  /** The value is not older than this; -1 if nothing came of the flight. */
  asOf: number;
}

interface Flight<K> {
  readonly place: Place<K>;
  readonly outcome: Promise<Outcome>;
  readonly settle: (outcome: Outcome) => void;
  readonly fail: (error: unknown) => void;
  /** Redis has just been asked in vain: a second attempt would only make its readers wait longer. */
  readonly isAway: boolean;
  /** Where it waits if Redis is away. */
  entry: Entry;
  /** A refresh in the background: the value that is to be replaced expires then. */
  readonly replaces?: number;
}

/** How a flight may go on. */
type Grip =
  | { kind: 'lease'; token: string; gens: Record<string, string> | undefined }
  | { kind: 'found'; outcome: Outcome }
  | { kind: 'busy'; leftMs: number }
  | { kind: 'away' };

interface Boarded<K> {
  flight: Flight<K>;
  grip: Extract<Grip, { kind: 'lease' | 'away' }>;
}

/** A waiting reader asks again after so long if it hears nothing, and then less often. */
const firstPauseMs = 25;
const longestPauseMs = 250;
/** Leases are renewed when a third of them has passed. */
const renewalsPerLease = 3;
/** Each round has an invalidation between question and answer; nobody invalidates that often. */
const maxRounds = 100;

export class Flights<K> {
  readonly #engine: Engine;
  readonly #family: Family<K, unknown>;
  readonly #counts: FamilyCounts;
  readonly #lookups: Lookups<K>;
  readonly #open = new Map<string, Flight<K>>();

  constructor(engine: Engine, family: Family<K, unknown>, counts: FamilyCounts, lookups: Lookups<K>) {
    this.#engine = engine;
    this.#family = family;
    this.#counts = counts;
    this.#lookups = lookups;
  }

  isUnderWay(name: string): boolean {
    return this.#open.has(name);
  }

  /**
   * Begins flights for all of them that have none, with one call of the loader for those that get their lease at once. `areAway`:
   * Redis could not be asked for them. `isInside`: a load waits for them that has passed the gate.
   */
  begin(places: readonly Place<K>[], areAway: boolean, isInside: boolean): void {
    if (isInside) for (const { name } of places) this.#open.get(name)?.entry.bringIn();
    const fresh = places.filter(({ name }) => !this.#open.has(name));
    this.#counts.coalesced += places.length - fresh.length;
    const unique = new Map(fresh.map((place) => [place.name, place]));
    if (unique.size === 0) return;
    void this.#fly([...unique.values()].map((place) => this.#create(place, areAway, isInside)));
  }

  /**
   * The value, for a reader that asked as number `began` and found nothing; `hasAged` if it found one to fall back on. Only now is it
   * known what answers the reader, so it is counted here, and once.
   */
  async obtain(place: Place<K>, began: number, hasAged: boolean, isInside: boolean): Promise<unknown> {
    let answeredBy: 'misses' | 'staleServed' = 'misses';
    try {
      const { value, isStale } = await this.#outcome(place, began, hasAged, isInside);
      if (isStale) answeredBy = 'staleServed';
      return value;
    } finally {
      this.#counts[answeredBy] += 1;
    }
  }

  async #outcome(place: Place<K>, began: number, hasAged: boolean, isInside: boolean): Promise<Outcome> {
    let isAway = false;
    for (let round = 0; round < maxRounds; round++) {
      if (!this.#open.has(place.name)) this.begin([place], isAway, isInside);
      const flight = this.#open.get(place.name)!;
      if (isInside) flight.entry.bringIn();
      const outcome = await (hasAged ? this.#impatiently(flight) : flight.outcome);
      if (outcome.asOf >= began) return outcome;
      const { found, sentAs } = await this.look(place);
      if (found.kind === 'fresh' || found.kind === 'stale') return foundAs(found, sentAs);
      isAway = found.kind === 'away';
    }
    throw cacheErrors.RESTLESS({ name: place.name, rounds: maxRounds });
  }

  /** Loads a new value in the background, unless somebody does already. */
  refresh(place: Place<K>, replaces: number): void {
    if (this.#open.has(place.name)) return;
    void this.#fly([this.#create(place, false, false, replaces)]);
  }

  look(place: Place<K>): Promise<{ found: Found; sentAs: number }> {
    return new Promise((resolve) => {
      this.#lookups.look(place, (found, sentAs) => resolve({ found, sentAs }));
    });
  }

  /** Readers from now on do not join what is under way: it may have begun to load too early. */
  abandon(name: string): void {
    this.#open.delete(name);
  }

  abandonGroup(group: string): void {
    for (const [name, { place }] of this.#open) if (place.groups.includes(group)) this.#open.delete(name);
  }

  /** Writes a value that the caller knows. */
  async set(place: Place<K>, value: unknown): Promise<'set' | 'refused'> {
    const grip = await this.#grip(place, true);
    if (grip.kind !== 'lease') return 'refused';
    const copy = await this.#copy(place, value);
    return (await this.#fill(place, grip, copy.written, 0)) ? 'set' : 'refused';
  }

  #create(place: Place<K>, isAway: boolean, isInside: boolean, replaces?: number): Flight<K> {
    const { promise: outcome, resolve, reject } = withResolvers<Outcome>();
    const leave = () => {
      if (this.#open.get(place.name) === flight) this.#open.delete(place.name);
    };
    const flight: Flight<K> = {
      place,
      outcome,
      isAway,
      entry: new Entry(isInside),
      settle: (result) => {
        leave();
        resolve(result);
      },
      fail: (error) => {
        leave();
        reject(error);
      },
      ...(replaces !== undefined && { replaces }),
    };
    // A refresh in the background may have nobody who waits for it.
    outcome.catch(() => {});
    this.#open.set(place.name, flight);
    return flight;
  }

  async #fly(flights: readonly Flight<K>[]): Promise<void> {
    const grips = await Promise.all(
      flights.map(async (flight): Promise<Grip> =>
        flight.isAway ? { kind: 'away' } : this.#grip(flight.place, false, flight.replaces),
      ),
    );
    const boarded: Boarded<K>[] = [];
    for (const [index, flight] of flights.entries()) {
      const grip = grips[index]!;
      if (grip.kind === 'found') flight.settle(grip.outcome);
      else if (grip.kind !== 'busy') boarded.push({ flight, grip });
      // Somebody else refreshes it: there is nothing to wait for.
      else if (flight.replaces !== undefined) flight.settle({ value: undefined, asOf: -1 });
      else void this.#waitInLine(flight, grip.leftMs);
    }
    if (boarded.length > 0) await this.#load(boarded);
  }

  async #waitInLine(flight: Flight<K>, firstLeftMs: number): Promise<void> {
    const { clock, wakes, leaseMs } = this.#engine;
    this.#counts.coalesced += 1;
    const { hardTimeoutMs: timeoutMs } = this.#family;
    const untilMs = clock.monotonicMs() + timeoutMs + leaseMs;
    let leftMs = firstLeftMs;
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      await wakes.wait(flight.place.name, Math.max(1, Math.min(pauseMs, leftMs)));
      const grip = await this.#grip(flight.place, false);
      if (grip.kind === 'found') return flight.settle(grip.outcome);
      if (grip.kind !== 'busy') return this.#load([{ flight, grip }]);
      leftMs = grip.leftMs;
      if (clock.monotonicMs() > untilMs) {
        return flight.fail(cacheErrors.LOAD_TIMEOUT({ family: this.#family.name, timeoutMs }));
      }
    }
  }

  /**
   * Takes the lease and the generations, and reads once more: another may have filled the value between our read and our lease. All of
   * it goes out together. The generations are known before the load begins, so that a group which is invalidated during
   * the load makes its result worthless.
   */
  async #grip(place: Place<K>, force: boolean, replaces?: number): Promise<Grip> {
    const engine = this.#engine;
    if (engine.breaker.isOpen || engine.kept.concerns(place.name, place.groups)) return { kind: 'away' };
    const token = makeToken();
    const lease = engine.keys.lease(place.name);
    const args = { token, leaseMs: engine.leaseMs, force: force ? '1' : '' };
    // A lease that nobody loads under would keep the readers of all processes waiting until it ends.
    const giveBack = (reply: unknown) => {
      if (typeof reply !== 'number') engine.channel.runBehind(scripts.release, { lease }, { token });
    };
    const leasing = engine.channel.run(scripts.lease, { lease }, args, giveBack);
    try {
      const [answer, gens, { found, sentAs }] = await Promise.all([
        leasing as Promise<Buffer | number>,
        this.#generations(place.groups),
        force ? absent : this.look(place),
      ]);
      const isLeased = typeof answer !== 'number';
      if (found.kind === 'fresh' && (replaces === undefined || found.envelope.expires > replaces)) {
        if (isLeased) void this.#release(place, token);
        return { kind: 'found', outcome: foundAs(found, sentAs) };
      }
      return isLeased ? { kind: 'lease', token, gens } : { kind: 'busy', leftMs: answer };
    } catch {
      leasing.then(giveBack, () => {});
      return { kind: 'away' };
    }
  }

  async #generations(groups: readonly string[]): Promise<Record<string, string> | undefined> {
    if (groups.length === 0) return undefined;
    const { channel, keys } = this.#engine;
    const keepMs = 2 * this.#keepMs(this.#family.ttlMs);
    const pairs = groups.map(async (group) => {
      const token = makeToken();
      const generation = keys.generation(group);
      const current = await channel.run(scripts.generation, { generation }, { token, keepMs });
      return [group, String(current)] as const;
    });
    return Object.fromEntries(await Promise.all(pairs));
  }

  /** Values that are loaded one by one end one by one: none of them waits for another, or fails with it. */
  async #load(boarded: readonly Boarded<K>[]): Promise<void> {
    const parts = this.#family.loadMany === undefined ? boarded.map((one) => [one]) : [boarded];
    await Promise.all(parts.map((part) => this.#loadTogether(part)));
  }

  async #loadTogether(boarded: readonly Boarded<K>[]): Promise<void> {
    const isAway = boarded.some(({ grip }) => grip.kind === 'away');
    const load = () => this.#loadNow(boarded);
    const entry = new Entry(boarded.some(({ flight }) => flight.entry.isInside));
    for (const { flight } of boarded) flight.entry = entry;
    if (isAway) this.#counts.bypassed += boarded.length;
    try {
      await (isAway ? this.#engine.gate.pass(load, entry) : load());
    } catch (error) {
      await Promise.all(boarded.map((one) => this.#endBadly(one, error)));
    }
  }

  async #loadNow(boarded: readonly Boarded<K>[]): Promise<void> {
    const { clock, order } = this.#engine;
    const asOf = order.next();
    const startMs = clock.monotonicMs();
    // Until the values are stored: when many are loaded at once, storing them takes its time too.
    const stopRenewing = this.#renew(boarded);
    try {
      const values = await this.#timeLoader(boarded, startMs);
      const loadMs = clock.monotonicMs() - startMs;
      await Promise.all(
        boarded.map(async (one, index) => {
          try {
            await this.#endWell(one, values[index], loadMs, asOf);
          } catch (error) {
            await this.#endBadly(one, error);
          }
        }),
      );
    } finally {
      stopRenewing();
    }
  }

  async #timeLoader(boarded: readonly Boarded<K>[], startMs: number): Promise<readonly unknown[]> {
    try {
      this.#counts.loads += boarded.length;
      const values = await this.#callLoader(boarded.map(({ flight }) => flight.place.key));
      this.#counts.loaded += boarded.length;
      return values;
    } catch (error) {
      this.#counts.loadErrors += boarded.length;
      throw error;
    } finally {
      this.#counts.loadMs += this.#engine.clock.monotonicMs() - startMs;
    }
  }

  async #callLoader(keys: readonly K[]): Promise<readonly unknown[]> {
    const { load, loadMany, name: family, hardTimeoutMs: timeoutMs } = this.#family;
    // Most loaders do not ask for their signal, and making one costs more than everything else here.
    let controller: AbortController | undefined;
    const context: LoadContext = {
      get signal() {
        controller ??= new AbortController();
        return controller.signal;
      },
    };
    const giveUp = () => {
      const error = cacheErrors.LOAD_TIMEOUT({ family, timeoutMs });
      controller?.abort(error);
      return error;
    };
    if (load === undefined && loadMany === undefined) throw cacheErrors.LOADER_MISSING({ family });
    const call = async (): Promise<readonly unknown[]> => {
      if (loadMany === undefined || (keys.length === 1 && load !== undefined)) {
        return [await load!(keys[0]!, context)];
      }
      const results = await loadMany(keys, context);
      if (results.length === keys.length) return results;
      throw cacheErrors.BATCH_RESULTS({ family, keys: keys.length, results: results.length });
    };
    return withDeadline(call(), timeoutMs, giveUp, this.#engine.clock);
  }

  async #endWell({ flight, grip }: Boarded<K>, loaded: unknown, loadMs: number, asOf: number): Promise<void> {
    const { value, written } = await this.#copy(flight.place, loaded);
    if (this.#family.keeps?.(value) === false) {
      if (grip.kind === 'lease') await this.#release(flight.place, grip.token);
    } else if (grip.kind === 'lease') {
      const isFilled = await this.#fill(flight.place, grip, written, loadMs);
      if (!isFilled) this.#counts.fillsRefused += 1;
    }
    flight.settle({ value: deepFreeze(value), asOf });
  }

  async #endBadly({ flight, grip }: Boarded<K>, error: unknown): Promise<void> {
    if (grip.kind === 'lease') await this.#release(flight.place, grip.token);
    const outcome = await this.#fallBack(flight.place);
    if (outcome === undefined) return flight.fail(error);
    this.#engine.logger.warn(
      { family: this.#family.name, error },
      'a load failed, and a stale value was served',
    );
    flight.settle(outcome);
  }

  /** What is left of an expired value, if nobody invalidated it: read now, not remembered. */
  async #fallBack(place: Place<K>): Promise<Outcome | undefined> {
    if (this.#family.staleIfErrorMs === 0 && this.#family.staleMs === 0) return undefined;
    const { found, sentAs } = await this.look(place);
    if (found.kind === 'missing' || found.kind === 'away') return undefined;
    return foundAs(found, sentAs);
  }

  /** The outcome of the flight, or a stale value if it takes longer than the soft timeout. */
  async #impatiently(flight: Flight<K>): Promise<Outcome> {
    const { softTimeoutMs } = this.#family;
    if (softTimeoutMs === undefined) return flight.outcome;
    const { clock } = this.#engine;
    let timer = { cancel: () => {} };
    const isLate = new Promise<undefined>((resolve) => {
      timer = clock.setTimer(() => resolve(undefined), softTimeoutMs);
    });
    const outcome = await Promise.race([flight.outcome, isLate]).finally(() => timer.cancel());
    return outcome ?? (await this.#fallBack(flight.place)) ?? flight.outcome;
  }

  /** What readers get is what they will get from Redis later: the value after its way through JSON and the schema. */
  async #copy(place: Place<K>, loaded: unknown): Promise<{ value: unknown; written: unknown }> {
    const text = writeEnvelope(place.name, { v: loaded, expires: 0, loadMs: 0 });
    const written = (JSON.parse(text) as Envelope).v;
    const { schema } = this.#family;
    if (schema === undefined || written === undefined || written === null) return { value: written, written };
    const validated = await validate(schema, written);
    if ('issues' in validated) {
      throw cacheErrors.VALUE_INVALID({ name: place.name, issues: validated.issues });
    }
    return { value: validated.value, written };
  }

  /** Whether it is in Redis now. */
  async #fill(
    place: Place<K>,
    { token, gens }: Extract<Grip, { kind: 'lease' }>,
    value: unknown,
    loadMs: number,
  ): Promise<boolean> {
    const { channel, keys, serverClock, random, maxValueBytes } = this.#engine;
    const { ttlMs, negativeTtlMs, jitter } = this.#family;
    const isNegative = value === undefined || value === null;
    const freshMs = Math.ceil((isNegative ? negativeTtlMs : ttlMs) * (1 - jitter * random()));
    const envelope: Envelope = {
      v: value,
      expires: Math.round(serverClock.now() + freshMs),
      loadMs: Math.round(loadMs),
      ...(gens && { gens }),
    };
    const stored = await packEnvelope(JSON.stringify(envelope));
    if (stored.length > maxValueBytes) {
      await this.#release(place, token);
      return false;
    }
    const [valueKey, lease] = [keys.value(place.name), keys.lease(place.name)];
    const keepMs = isNegative ? freshMs : this.#keepMs(freshMs);
    const untilMs = Math.round(serverClock.now() + keepMs);
    // Together with the fill, not after its answer: a sweep that meets the value must find it among those that stay.
    if (gens && this.#family.indexed) this.#engine.members.join({ name: place.name, untilMs }, gens);
    try {
      const args = { token, envelope: stored, keepMs };
      const answer = await channel.run(scripts.fill, { value: valueKey, lease }, args);
      return String(answer) === 'FILLED';
    } catch {
      return false;
    }
  }

  #keepMs(freshMs: number): number {
    return freshMs + Math.max(this.#family.staleMs, this.#family.staleIfErrorMs);
  }

  /** A lease that cannot be given back ends by itself. */
  async #release(place: Place<K>, token: string): Promise<void> {
    const lease = this.#engine.keys.lease(place.name);
    await this.#engine.channel.run(scripts.release, { lease }, { token }).catch(() => {});
  }

  #renew(boarded: readonly Boarded<K>[]): () => void {
    const { clock, channel, keys, leaseMs } = this.#engine;
    const held = boarded.flatMap(({ flight, grip }) =>
      grip.kind === 'lease' ? [{ lease: keys.lease(flight.place.name), token: grip.token }] : [],
    );
    if (held.length === 0) return () => {};
    const again = () => {
      // A renewal that fails is made good by the next, or the lease is lost and the fill will be refused.
      for (const { lease, token } of held) {
        channel.run(scripts.renew, { lease }, { token, leaseMs }).catch(() => {});
      }
      timer = clock.setTimer(again, leaseMs / renewalsPerLease);
    };
    let timer = clock.setTimer(again, leaseMs / renewalsPerLease);
    return () => timer.cancel();
  }
}

function foundAs(found: Extract<Found, { envelope: Envelope }>, asOf: number): Outcome {
  return { value: found.envelope.v, asOf, isStale: found.kind !== 'fresh' };
}

const absent: Promise<{ found: Found; sentAs: number }> = Promise.resolve({
  found: { kind: 'missing', why: 'absent' },
  sentAs: 0,
});

function withResolvers<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
