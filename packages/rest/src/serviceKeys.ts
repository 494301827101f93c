// Keys of services that report results to us (`X-Service-Key`). They are no keys of tenants: they open the addresses below /internal and
// nothing else. Several may be valid at once, so that they can be changed without an outage. Without any, nobody gets in: a server
// that nobody configured must not believe whoever reaches it.
//
// Like all keys they are compared as digests, all of them every time, so that nothing about them can be measured.
import { createHash, timingSafeEqual } from 'node:crypto';
import { restErrors } from './errors.js';

export class ServiceKeys {
  readonly #digests: Buffer[];

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digestOf);
  }

  check(header: string | string[] | undefined): void {
    const digest = digestOf(typeof header === 'string' ? header : '');
    let isKnown = false;
    for (const known of this.#digests) if (timingSafeEqual(known, digest)) isKnown = true;
    if (!isKnown) throw restErrors.SERVICE_KEY_INVALID();
  }
}

function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
