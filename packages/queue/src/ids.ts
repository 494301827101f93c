// Names that are made here and never twice: 54 random bits per maker, then a count. They are short, because every waiting job
// stores its id twice; 14 characters fit the smallest string that Redis allocates.
import { randomBytes } from 'node:crypto';

const renewAfter = 36 ** 5;

export class IdMaker {
  #prefix = randomName();
  #count = 0;

  next(): string {
    if (this.#count === renewAfter) {
      this.#prefix = randomName();
      this.#count = 0;
    }
    return this.#prefix + (this.#count++).toString(36);
  }
}

/** Nine characters that nobody else has: for producers, sessions, and the prefix of ids. */
export function randomName(): string {
  return randomBytes(7).toString('base64url').slice(0, 9);
}
