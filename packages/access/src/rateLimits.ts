// Two limits. A key may ask so often, bytes of uploads not counted: they have a budget of their own. An address may fail so often; after
// that its failures are answered with "too many" instead of "wrong".
//
// A right key is never held back for the failures of its address. Behind a proxy that nobody told us of, all clients have one address:
// whoever sends wrong keys could shut everybody out. Keys that we make have 256 bits, and are not found by trying.
import { accessErrors } from './errors.js';
import { Buckets } from './buckets.js';
import type { Principal } from './principal.js';

export interface RateOptions {
  /** Requests of one key in a second; 0 for any number. */
  keyPerSecond?: number;
  /** Wrong keys, tokens, links and sessions from one address in a minute; 0 for any number. */
  failuresPerMinute?: number;
}

const usualPerSecond = 1_000;
const usualFailures = 60;

export class RateLimits {
  readonly #keys: Buckets | undefined;
  readonly #failures: Buckets | undefined;

  constructor({ keyPerSecond = usualPerSecond, failuresPerMinute = usualFailures }: RateOptions = {}) {
    if (keyPerSecond > 0) this.#keys = new Buckets({ perSecond: keyPerSecond, burst: 2 * keyPerSecond });
    if (failuresPerMinute > 0)
      this.#failures = new Buckets({ perSecond: failuresPerMinute / 60, burst: failuresPerMinute });
  }

  request({ key, via, tenant }: Principal): void {
    // Tokens of a configured key do not say which one it was: those of a tenant count together.
    const name = key?.id ?? (via === 'token' ? `tokens of ${tenant}` : undefined);
    const retryAfterS = (name !== undefined && this.#keys?.take(name)) || 0;
    if (retryAfterS > 0)
      throw accessErrors.TOO_MANY_REQUESTS({ what: 'this key asks too often', retryAfterS });
  }

  /** Somebody at this address was not who they said. Throws when that happens too often. */
  failure(address: string): void {
    const retryAfterS = this.#failures?.take(networkOf(address)) ?? 0;
    if (retryAfterS > 0)
      throw accessErrors.TOO_MANY_REQUESTS({
        what: 'too many wrong keys came from this address',
        retryAfterS,
      });
  }
}

/** One machine may have a whole IPv6 network of 64 bits for itself. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0');
  return [...first, ...zeros, ...last].slice(0, 4).join(':');
}
