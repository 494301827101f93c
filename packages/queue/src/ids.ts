// Names that are made here and never twice: 48 random bits, then a count, then other random bits. They are short, because every
// waiting job stores its id twice, and because V8 keeps a text of at most 12 characters in one piece.
import { randomBytes } from 'node:crypto';

const renewAfter = 36 ** 4;

export class IdMaker {
  #prefix = randomPrefix();
  #count = 0;

  next(): string {
    if (this.#count === renewAfter) {
      this.#prefix = randomPrefix();
      this.#count = 0;
    }
    return this.#prefix + (this.#count++).toString(36);
  }
}

function randomPrefix(): string {
  return randomBytes(6).toString('base64url');
}

/** Nine characters that nobody else has: for producers and sessions. */
export function randomName(): string {
  return randomBytes(7).toString('base64url').slice(0, 9);
}
