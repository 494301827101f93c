// What a family of cached values is: its name, how a key becomes a name, how long a value lives, what it belongs to, how it is loaded.
// A definition is plain data without any connection; `Cache.open` brings it to life, there or with loaders that only it knows.
import type { StandardSchemaV1 } from '@standard-schema/spec';
import { cacheErrors } from './errors.js';
import { checkFamilyName, nameOf } from './keys.js';
import type { Part } from './keys.js';

export interface LoadContext {
  /** Fires when the load is given up, after `hardTimeoutMs`. */
  signal: AbortSignal;
}

export type Load<K, V> = (key: K, context: LoadContext) => Promise<V> | V;
/** One result per key, in their order. */
export type LoadMany<K, V> = (
  keys: readonly K[],
  context: LoadContext,
) => Promise<readonly V[]> | readonly V[];

/** A group: a name, or a name with parts of its own (`['graph', jobId]`). */
export type GroupRef = string | readonly [string, ...Part[]];

export interface Loaders<K, V> {
  load?: Load<K, V>;
  /** Used for several keys at once, and for one where there is no `load`. */
  loadMany?: LoadMany<K, V>;
}

export interface CacheDefinition<K, V> extends Loaders<K, V> {
  /** Begins the names of its values: `user`, `doc:summary`. */
  name: string;
  /** The parts of a key that follow the name. */
  key: (key: K) => Part | readonly Part[];
  /** How long a value is fresh. */
  ttlMs: number;
  /** What the value belongs to, known from its key alone; invalidating a group invalidates its values. */
  groups?: (key: K) => readonly GroupRef[];
  /**
   * Whether its values are noted as members of their groups, so that invalidating a group also frees their memory, within seconds. It
   * costs a call per fill, and some 150 bytes. Without it they go when their TTL ends: true for a TTL from one minute on.
   */
  indexed?: boolean;
  /** Held against what was loaded (an error) and what Redis has (another shape, of another version, is a miss). */
  schema?: StandardSchemaV1<unknown, V>;
  /** Says no to what must not be stored, because it changes without an invalidation; it is served and forgotten. */
  keeps?(value: V): boolean;
  /** How long "there is none" (the loader returned undefined or null) is believed: a tenth of the TTL, at most 30 s. */
  negativeTtlMs?: number;
  /** Up to this share of the TTL is taken off at random, so that what was loaded together does not expire together: 0.1. */
  jitter?: number;
  /** After its TTL a value is still served for this long, while one reader loads a new one: 0. */
  staleMs?: number;
  /** After its TTL a value is kept for this long, in case that loading a new one fails or is slow: 0. */
  staleIfErrorMs?: number;
  /** Refreshes hot values a little early and at random (XFetch); larger is earlier, 0 is never: 1. */
  earlyRefresh?: number;
  /** How long a copy stays in this process, at most 5 s: a tenth of the TTL. 0 keeps none. */
  nearMs?: number;
  /** A load that takes longer is answered with the stale value, if there is one (`staleIfErrorMs`), and goes on. */
  softTimeoutMs?: number;
  /** A load that takes longer fails: 30 s. */
  hardTimeoutMs?: number;
  /** So large a share of its reads should be hits; whoever looks at the statistics is told. */
  hitGoal?: number;
  /** What its loads are calls of, where it is not the database: what is saved there is counted apart. */
  from?: Source;
}

export type Source = 'storage';

/** A definition with its defaults. */
export interface Family<K, V> extends Loaders<K, V> {
  readonly name: string;
  readonly key: (key: K) => Part | readonly Part[];
  readonly ttlMs: number;
  readonly groups?: (key: K) => readonly GroupRef[];
  readonly indexed: boolean;
  readonly schema?: StandardSchemaV1<unknown, V>;
  keeps?(value: V): boolean;
  readonly negativeTtlMs: number;
  readonly jitter: number;
  readonly staleMs: number;
  readonly staleIfErrorMs: number;
  readonly earlyRefresh: number;
  readonly nearMs: number;
  readonly softTimeoutMs?: number;
  readonly hardTimeoutMs: number;
  readonly hitGoal?: number;
  readonly from?: Source;
}

/** Whatever tracking misses is gone after this long. */
export const maxNearMs = 5_000;
/** What lives for less long frees its memory soon enough. */
const indexedFromMs = 60_000;
const defaultNegativeMs = 30_000;
const defaultHardTimeoutMs = 30_000;
const defaultJitter = 0.1;
const longestMs = 366 * 86_400_000;
const noGroups: readonly string[] = [];

export function defineCache<K, V>(definition: CacheDefinition<K, V>): Family<K, V> {
  const { ttlMs } = definition;
  const family: Family<K, V> = {
    negativeTtlMs: Math.min(defaultNegativeMs, Math.max(1, Math.floor(ttlMs / 10))),
    jitter: defaultJitter,
    staleMs: 0,
    staleIfErrorMs: 0,
    earlyRefresh: 1,
    nearMs: Math.min(maxNearMs, Math.floor(ttlMs / 10)),
    hardTimeoutMs: defaultHardTimeoutMs,
    indexed: ttlMs >= indexedFromMs,
    ...definition,
  };
  checkFamilyName(family.name);
  checkNumber(family, 'ttlMs', 1, longestMs);
  checkNumber(family, 'negativeTtlMs', 1, longestMs);
  checkNumber(family, 'jitter', 0, 1);
  checkNumber(family, 'staleMs', 0, longestMs);
  checkNumber(family, 'staleIfErrorMs', 0, longestMs);
  checkNumber(family, 'earlyRefresh', 0, 100);
  checkNumber(family, 'nearMs', 0, maxNearMs);
  checkNumber(family, 'hardTimeoutMs', 1, longestMs);
  if (family.softTimeoutMs !== undefined) checkNumber(family, 'softTimeoutMs', 0, longestMs);
  if (family.hitGoal !== undefined) checkNumber(family, 'hitGoal', 0, 1);
  if (family.schema !== undefined) checkSchema(family.schema);
  return Object.freeze(family);
}

/** The name of a value. */
export function valueName<K, V>(family: Family<K, V>, key: K): string {
  return nameOf(family.name, family.key(key));
}

/** The names of the groups that it belongs to. */
export function groupsOf<K, V>({ groups }: Family<K, V>, key: K): readonly string[] {
  return groups === undefined ? noGroups : groups(key).map((group) => groupName(group));
}

export function groupName(group: GroupRef): string {
  const [name, ...parts] = typeof group === 'string' ? [group] : group;
  checkFamilyName(name);
  return nameOf(name, parts);
}

function checkNumber<K, V>(family: Family<K, V>, option: keyof Family<K, V>, min: number, max: number): void {
  const value: unknown = family[option];
  const isRight = typeof value === 'number' && value >= min && value <= max;
  if (isRight) return;
  throw cacheErrors.OPTION_INVALID({
    option: `${option} of ${family.name}`,
    value,
    allowed: `a number from ${min} to ${max}`,
  });
}

function checkSchema(schema: unknown): void {
  const standard = (schema as StandardSchemaV1 | null | undefined)?.['~standard'];
  if (standard?.version !== 1 || typeof standard.validate !== 'function')
    throw cacheErrors.SCHEMA_UNSUPPORTED();
}
