/**
 * Remembers unfinished uploads in `localStorage`, so that a reloaded page continues where it was. Uploads that nobody comes
 * back for would pile up there: beyond a number of them the oldest are forgotten. A page without storage (private mode, a
 * worker, a full quota) uploads all the same; it just cannot continue after a reload.
 */
import type { ResumeStore } from './platform.js';

/** Unfinished uploads remembered at once. */
export const MAX_REMEMBERED = 100;
export const KEY_PREFIX = 'sluice-upload-';

/** The part of the Storage interface that is used; Node 20 has no such type. */
interface TextStorage {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  removeItem(key: string): void;
}

export function webStore(): ResumeStore | undefined {
  const storage = findStorage();
  if (!storage) return undefined;
  return {
    get: (key) => storage.getItem(key),
    set: (key, text) => {
      if (storage.getItem(key) === null) forgetOldest(storage);
      storage.setItem(key, text);
    },
    remove: (key) => storage.removeItem(key),
  };
}

function findStorage(): TextStorage | undefined {
  try {
    return (globalThis as { localStorage?: TextStorage }).localStorage;
  } catch {
    // Merely looking at it throws where the user forbids it.
    return undefined;
  }
}

function forgetOldest(storage: TextStorage): void {
  const ours = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '')
    .filter((key) => key.startsWith(KEY_PREFIX))
    .map((key) => ({ key, savedAt: savedAt(storage.getItem(key)) }))
    .sort((a, b) => a.savedAt - b.savedAt);
  for (const { key } of ours.slice(0, Math.max(0, ours.length - MAX_REMEMBERED + 1))) storage.removeItem(key);
}

function savedAt(text: string | null): number {
  return Number(/"savedAt":(\d+)/.exec(text ?? '')?.[1] ?? 0);
}
