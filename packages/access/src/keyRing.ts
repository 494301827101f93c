// The keys of the records, in the memory of this process: a request is never a question to the database.
//
//   every two seconds   the ring asks for the revision of the keys, one number; only if it has changed it reads them all
//   an unknown key      may be a new one: the ring asks at once, but at most once a second for all who ask together
//   an old ring         (this process slept, or the database was away) is looked at again before it is believed
//   no database         the ring is believed for some minutes more, then keys are refused as "try again later"
//
// So a key that was revoked or made is known everywhere within five seconds, and a flood of wrong keys costs the database one number a
// second. When a key was last used is written once a minute, for all keys together.
import { silentLogger, systemClock, type Clock, type Logger, type Timer } from '@sluice/base';
import type { Keys, LiveKey } from '@sluice/records';
import { accessErrors } from './errors.js';

const pollMs = 2_000;
const freshMs = 4_000;
const askAgainMs = 1_000;
const askLimitMs = 2_000;
const staleMs = 300_000;
const touchMs = 60_000;

export interface KeyRingOptions {
  keys: Pick<Keys, 'state' | 'live' | 'touch'>;
  logger?: Logger;
  clock?: Clock;
}

export class KeyRing {
  readonly #keys: KeyRingOptions['keys'];
  readonly #logger: Logger;
  readonly #clock: Clock;
  #known = new Map<string, LiveKey>();
  #tenants = new Set<string>();
  #endedSessions = new Set<string>();
  #closed = false;
  #revision = -1;
  /** When the question began whose answer this is. */
  #readAtMs = Number.NEGATIVE_INFINITY;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;
  #used = new Set<string>();
  #touchedAtMs: number;
  #timer: Timer | undefined;
  #stopped = false;

  constructor({ keys, logger = silentLogger, clock = systemClock }: KeyRingOptions) {
    this.#keys = keys;
    this.#logger = logger;
    this.#clock = clock;
    this.#touchedAtMs = clock.monotonicMs();
  }

  /** Reads the keys for the first time: without them nobody can be answered. */
  async start(): Promise<void> {
    await this.#read();
    this.#again();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#looking;
    await this.#touch();
  }

  /** Whether there has ever been a key. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether what is known can be believed without asking. */
  get isFresh(): boolean {
    return this.#clock.monotonicMs() - this.#readAtMs < freshMs;
  }

  find(id: string): LiveKey | undefined {
    if (this.#clock.monotonicMs() - this.#readAtMs > staleMs) throw accessErrors.KEYS_UNAVAILABLE();
    const key = this.#known.get(id);
    const isLive = key && (key.expiresAt === null || key.expiresAt.getTime() > this.#clock.now());
    return isLive ? key : undefined;
  }

  /** Whether anybody has a key of this tenant. */
  has(tenant: string): boolean {
    return this.#tenants.has(tenant);
  }

  isEnded(session: string): boolean {
    return this.#endedSessions.has(session);
  }

  used(id: string): void {
    this.#used.add(id);
  }

  /** Asks whether anything is new, unless somebody has just asked. Never fails: the ring then is as it was. */
  async look(): Promise<void> {
    if (!this.#looking && this.#clock.monotonicMs() - this.#askedAtMs < askAgainMs) return;
    await this.#lookNow();
  }

  /** After a change of our own: what was asked for before it does not count. */
  async changed(): Promise<void> {
    await this.#looking;
    await this.#lookNow();
  }

  #lookNow(): Promise<void> {
    this.#looking ??= this.#read()
      .catch((err: unknown) => this.#logger.warn({ err }, 'the keys could not be looked at'))
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  async #read(): Promise<void> {
    const askedAtMs = (this.#askedAtMs = this.#clock.monotonicMs());
    const { revision, closed } = await this.#keys.state({ deadlineMs: askLimitMs });
    // The number first: should the keys change now, they are read once more the next time.
    if (revision !== this.#revision) {
      const { keys, endedSessions } = await this.#keys.live();
      this.#known = new Map(keys.map((key) => [key.id, key]));
      this.#tenants = new Set(keys.map(({ tenant }) => tenant));
      this.#endedSessions = new Set(endedSessions);
      this.#revision = revision;
    }
    this.#closed = closed;
    this.#readAtMs = askedAtMs;
  }

  #again(): void {
    if (this.#stopped) return;
    this.#timer = this.#clock.setTimer(() => {
      const touchIsDue = this.#clock.monotonicMs() - this.#touchedAtMs >= touchMs;
      void this.#lookNow()
        .then(() => (touchIsDue ? this.#touch() : undefined))
        .then(() => this.#again());
    }, pollMs);
  }

  async #touch(): Promise<void> {
    this.#touchedAtMs = this.#clock.monotonicMs();
    const ids = [...this.#used];
    this.#used = new Set();
    await this.#keys
      .touch(ids)
      .catch((err: unknown) => this.#logger.debug({ err }, 'which keys were used was not noted'));
  }
}
