// A key as it is given to somebody: `slk_<id>_<secret>`. The id finds the key; the secret proves it. The mark in front lets programs that
// look for secrets in texts find one that was left there.
import { randomBytes } from 'node:crypto';
import { sha256 } from './signature.js';

const shape = /^slk_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/;
const idBytes = 8;
const secretBytes = 32;

export interface NewKey {
  id: string;
  text: string;
  digest: Buffer;
}

export function newKey(): NewKey {
  return newSecret(randomBytes(idBytes).toString('hex'));
}

/** Another text for the same key. */
export function newSecret(id: string): NewKey {
  const text = `slk_${id}_${randomBytes(secretBytes).toString('base64url')}`;
  return { id, text, digest: sha256(text) };
}

/** The id in a text that looks like a key of ours. */
export function idOf(text: string): string | undefined {
  return shape.exec(text)?.[1];
}
