// Names that are made here and never twice: 48 random bits, then a count, then other random bits.
//
// The id of a plain job is the stem of its bale, a dot and its place there (bale.lua). The stem says which partition the bale is in,
// so that it can be found again.
import { randomBytes } from 'node:crypto';
import { partitionOf } from './partition.js';

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

  /** A name that leads to this partition. */
  nextFor(partition: number, partitions: number): string {
    for (;;) {
      const stem = this.next();
      if (partitionOf(stem, partitions) === partition) return stem;
    }
  }
}

/** What chooses the partition of a job that has nothing but an id. */
export function stemOf(id: string): string {
  return /^([\w-]{9,14})\.\d\d?$/.exec(id)?.[1] ?? id;
}

function randomPrefix(): string {
  return randomText(8);
}

/** Nine characters that nobody else has: for producers and sessions. */
export function randomName(): string {
  return randomText(9);
}

/** Six random bits in each character. None begins with a dash: it would be an option on a command line. */
function randomText(length: number): string {
  for (;;) {
    const text = randomBytes(length).toString('base64url').slice(0, length);
    if (!text.startsWith('-')) return text;
  }
}
