// Why is this key in the state it is in? Everything that decides about one value, and one sentence that sums it up.
import type { Engine } from './engine.js';
import { isCompressed, isNegative, readEnvelope, type Envelope } from './envelope.js';
import { judge, type Times, type Verdict } from './judge.js';
import type { Place } from './lookup.js';

export interface Explanation {
  name: string;
  redisKey: string;
  /** The sum of it, for a human. */
  because: string;
  /** What a reader would get from Redis; `away` if Redis cannot be asked. */
  state: Verdict['kind'] | 'away';
  /** A copy in this process, and how much longer it would be served. */
  near: { remainingMs: number } | undefined;
  redis:
    | {
        bytes: number;
        isCompressed: boolean;
        isNegative: boolean;
        /** Negative once the value has expired. */
        freshForMs: number;
        keptForMs: number;
        loadMs: number;
      }
    | undefined;
  groups: { group: string; carried: string | undefined; current: string | undefined }[];
  /** Somebody, here or elsewhere, loads it; their lease ends then unless it is renewed. */
  lease: { remainingMs: number } | undefined;
  /** This process obtains it right now. */
  isUnderWay: boolean;
  /** An invalidation of it waits for Redis. */
  isKept: boolean;
  breaker: 'closed' | 'open';
}

/** Everything about a value, with the value itself if it could be read. */
export async function examine<K>(
  engine: Engine,
  times: Times,
  place: Place<K>,
  isUnderWay: boolean,
): Promise<{ explanation: Explanation; envelope?: Envelope }> {
  const { keys, near, kept, breaker } = engine;
  const [valueKey, leaseKey] = [keys.value(place.name), keys.lease(place.name)];
  const remainingMs = near.remainingMs(place.name);
  const explanation: Explanation = {
    name: place.name,
    redisKey: valueKey,
    because: '',
    state: 'away',
    near: remainingMs === undefined ? undefined : { remainingMs },
    redis: undefined,
    groups: [],
    lease: undefined,
    isUnderWay,
    isKept: kept.concerns(place.name, place.groups),
    breaker: breaker.isOpen ? 'open' : 'closed',
  };
  let envelope: Envelope | undefined;
  try {
    const generationKeys = place.groups.map((group) => keys.generation(group));
    const [values, keptForMs, leaseMs] = await Promise.all([
      engine.channel.read([valueKey, ...generationKeys]),
      engine.channel.call('PTTL', [valueKey]),
      engine.channel.call('PTTL', [leaseKey]),
    ]);
    const failed = values.find((value) => value instanceof Error);
    if (failed) throw failed;
    const [stored, ...generations] = values as (Buffer | null)[];
    if ((leaseMs as number) > 0) explanation.lease = { remainingMs: leaseMs as number };
    envelope = stored ? await readEnvelope(stored) : undefined;
    describe(explanation, engine, times, place, stored ?? null, envelope, generations, keptForMs as number);
  } catch {
    explanation.because = 'Redis cannot be asked: readers go to the loader.';
  }
  if (explanation.isKept) {
    explanation.because =
      'An invalidation of it has not reached Redis yet: readers of this process go to the loader.';
  }
  return { explanation, ...(envelope && { envelope }) };
}

function describe<K>(
  explanation: Explanation,
  engine: Engine,
  times: Times,
  place: Place<K>,
  stored: Buffer | null,
  envelope: Envelope | undefined,
  generations: (Buffer | null)[],
  keptForMs: number,
): void {
  explanation.groups = place.groups.map((group, index) => ({
    group,
    carried: envelope?.gens?.[group],
    current: generations[index]?.toString(),
  }));
  const verdict: Verdict = envelope
    ? judge(envelope, place.groups, generations, engine.serverClock.now(), times, () => 0)
    : { kind: 'missing', why: stored === null ? 'absent' : 'unreadable' };
  explanation.state = verdict.kind;
  explanation.because = sentence(verdict, explanation);
  if (!stored || !envelope) return;
  explanation.redis = {
    bytes: stored.length,
    isCompressed: isCompressed(stored),
    isNegative: isNegative(envelope),
    freshForMs: Math.round(envelope.expires - engine.serverClock.now()),
    keptForMs,
    loadMs: envelope.loadMs,
  };
}

function sentence(verdict: Verdict, { lease, groups }: Explanation): string {
  switch (verdict.kind) {
    case 'fresh':
      return 'It is in Redis and fresh.';
    case 'stale':
      return 'It has expired and is served while one reader loads a new one.';
    case 'aged':
      return 'It has expired and is kept in case that loading a new one fails.';
    case 'missing':
      break;
  }
  if (lease) return 'It is not there, and somebody loads it now.';
  switch (verdict.why) {
    case 'absent':
      return 'It is not in Redis: never loaded, invalidated, expired or evicted.';
    case 'unreadable':
      return 'What is in Redis is no value of this cache; the next reader replaces it.';
    case 'expired':
      return 'It has expired; the next reader loads a new one.';
    case 'outdated': {
      const changed = groups.filter(({ carried, current }) => carried === undefined || carried !== current);
      return `Its group ${changed.map(({ group }) => group).join(', ')} was invalidated after it was loaded.`;
    }
  }
}
