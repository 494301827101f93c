// How often somebody may do something: a bucket of tokens for each name, filled at an even rate. In this process only, and in bounded
// memory: of too many names the one that was heard of longest ago is forgotten, and begins anew with a full bucket.
import { systemClock, type Clock } from '@sluice/base';

export interface BucketOptions {
  perSecond: number;
  /** How many at once. */
  burst: number;
  mostNames?: number;
  clock?: Clock;
}

const mostNames = 10_000;

export class Buckets {
  readonly #options: Required<BucketOptions>;
  readonly #levels = new Map<string, { tokens: number; atMs: number }>();

  constructor(options: BucketOptions) {
    this.#options = { mostNames, clock: systemClock, ...options };
  }

  /** Takes one token; 0, or the seconds until there is one. */
  take(name: string): number {
    const { perSecond, burst, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const level = this.#levels.get(name);
    const filled = level ? level.tokens + ((nowMs - level.atMs) / 1_000) * perSecond : burst;
    const tokens = Math.min(filled, burst);
    const isEmpty = tokens < 1;
    // Those heard of last stand at the end.
    this.#levels.delete(name);
    this.#levels.set(name, { tokens: isEmpty ? tokens : tokens - 1, atMs: nowMs });
    this.#forget();
    return isEmpty ? Math.max(1, Math.ceil((1 - tokens) / perSecond)) : 0;
  }

  get size(): number {
    return this.#levels.size;
  }

  #forget(): void {
    if (this.#levels.size <= this.#options.mostNames) return;
    const [oldest] = this.#levels.keys();
    this.#levels.delete(oldest!);
  }
}
