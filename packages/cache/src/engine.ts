// What the families of one cache share.
import type { Clock, Logger } from '@sluice/base';
import type { Breaker } from './breaker.js';
import type { Channel } from './channel.js';
import type { LoadGate } from './gate.js';
import type { KeptInvalidations, Killed } from './kept.js';
import type { KeySpace } from './keys.js';
import type { Members } from './members.js';
import type { NearCache } from './near.js';
import type { Order, Reader } from './reader.js';
import type { ServerClock } from './serverClock.js';
import type { Wakes } from './wakes.js';

export interface Engine {
  readonly keys: KeySpace;
  readonly clock: Clock;
  readonly serverClock: ServerClock;
  readonly order: Order;
  readonly random: () => number;
  readonly logger: Logger;
  readonly channel: Channel;
  readonly reader: Reader;
  readonly breaker: Breaker;
  readonly kept: KeptInvalidations;
  readonly near: NearCache;
  readonly members: Members;
  readonly wakes: Wakes;
  readonly gate: LoadGate;
  readonly leaseMs: number;
  readonly maxValueBytes: number;
  /** Counts how often tracking broke: a copy may be kept only if it did not between the question and the answer. */
  watch: { isWatching: boolean; breaks: number };
  invalidate(killed: Killed): Promise<Invalidated>;
}

/** `kept`: Redis could not be reached; the invalidation waits here, and is applied before this process reads those values again. */
export type Invalidated = 'applied' | 'kept';
