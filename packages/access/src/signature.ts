// What this server signs, it recognises again: tokens, links, sessions. The purpose is part of what is signed, so that no signature
// can be carried from one use to another.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

export type Purpose = 'token' | 'link' | 'session' | 'print' | 'csrf';

export class Signer {
  readonly #secret: string;

  constructor(secret: string) {
    this.#secret = secret;
  }

  sign(purpose: Purpose, text: string): string {
    return createHmac('sha256', this.#secret).update(`${purpose}\n${text}`).digest('base64url');
  }

  isRight(purpose: Purpose, text: string, signature: string): boolean {
    return sameText(signature, this.sign(purpose, text));
  }
}

export function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** In a time that depends neither on where two texts differ nor on how long they are. */
export function sameText(a: string, b: string): boolean {
  return timingSafeEqual(sha256(a), sha256(b));
}

/** A moment in seconds since 1970. */
export function isAhead(expires: number): boolean {
  return expires * 1_000 > Date.now();
}
