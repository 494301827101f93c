// What a value that was read from Redis is worth. Every reader decides that the same way.
import type { Envelope } from './envelope.js';
import type { Family } from './define.js';

export type Verdict =
  /** To be served. `isDue`: and refreshed by whoever gets the lease, although it is still fresh (XFetch). */
  | { kind: 'fresh'; envelope: Envelope; remainingMs: number; isDue: boolean }
  /** To be served while somebody refreshes it. */
  | { kind: 'stale'; envelope: Envelope }
  /** To be served if a new one cannot be loaded. */
  | { kind: 'aged'; envelope: Envelope }
  /** Nothing there, or nothing that counts. */
  | { kind: 'missing'; why: 'absent' | 'unreadable' | 'outdated' | 'expired' };

const largestDraw = 40;

export type Times = Pick<Family<never, unknown>, 'staleMs' | 'staleIfErrorMs' | 'earlyRefresh'>;

export function judge(
  envelope: Envelope,
  groups: readonly string[],
  generations: readonly (Buffer | null)[],
  nowMs: number,
  times: Times,
  random: () => number,
): Verdict {
  for (let i = 0; i < groups.length; i++) {
    // A group without a generation was invalidated, or its generation was evicted: nobody can say that the value is right.
    const generation = generations[i];
    if (!generation || envelope.gens?.[groups[i]!] !== generation.toString()) {
      return { kind: 'missing', why: 'outdated' };
    }
  }
  const remainingMs = envelope.expires - nowMs;
  if (remainingMs > 0) {
    return { kind: 'fresh', envelope, remainingMs, isDue: isDue(envelope, remainingMs, times, random) };
  }
  if (remainingMs > -times.staleMs) return { kind: 'stale', envelope };
  if (remainingMs > -times.staleIfErrorMs) return { kind: 'aged', envelope };
  return { kind: 'missing', why: 'expired' };
}

/**
 * XFetch: the closer the end and the longer the load, the likelier one of many readers refreshes before all of them miss. Each
 * draws for itself, so that nobody has to be asked.
 */
function isDue(envelope: Envelope, remainingMs: number, times: Times, random: () => number): boolean {
  // So far from its end no draw is that large; most hits are decided here.
  if (remainingMs > times.earlyRefresh * envelope.loadMs * largestDraw) return false;
  return earlyByMs(envelope.loadMs, times.earlyRefresh, random) >= remainingMs;
}

/** How long before its end a value is refreshed, by this draw. */
export function earlyByMs(loadMs: number, earlyRefresh: number, random: () => number): number {
  return -earlyRefresh * loadMs * Math.log(1 - random());
}
