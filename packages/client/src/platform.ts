/**
 * What differs between a browser and Node: how bytes are hashed, and where an unfinished upload is remembered. This file holds
 * the contract and the implementation that needs nothing but web APIs; `node.ts` brings the other one.
 */
import { Sha256 } from './sha256.js';
import type { Hasher } from './sha256.js';
import { webStore } from './webStore.js';

/** Bytes that own their memory, which is what web APIs accept everywhere. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Remembers unfinished uploads as short texts. Any of the three may return a promise. */
export interface ResumeStore {
  get(key: string): string | null | undefined | Promise<string | null | undefined>;
  set(key: string, text: string): void | Promise<void>;
  remove(key: string): void | Promise<void>;
}

export interface Platform {
  /** The digest of a chunk as a member of `Content-Digest`, for example `sha-256=:…:`. */
  digest(bytes: Bytes): Promise<string>;
  /** SHA-256 of a whole file, fed in order. */
  hasher(): Hasher;
  store(): ResumeStore | undefined;
}

export const webPlatform: Platform = {
  digest: async (bytes) => `sha-256=:${base64(await sha256(bytes))}:`,
  hasher: () => new Sha256(),
  store: webStore,
};

export async function sha256(bytes: Bytes): Promise<Bytes> {
  // Absent on pages that were not loaded over https.
  const subtle = (globalThis.crypto as Partial<typeof globalThis.crypto>).subtle;
  if (subtle) return new Uint8Array(await subtle.digest('SHA-256', bytes));
  const hasher = new Sha256();
  hasher.update(bytes);
  return hasher.digest();
}

export function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
