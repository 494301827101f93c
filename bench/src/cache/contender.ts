/*
 * The contract between the measurements and a cache. Every measurement goes through it, so that no system is treated in a way of its
 * own; how a system is set up is the business of its implementation (`sluice.ts`, `bentocache.ts`, `cacheable.ts`, `raw.ts`).
 *
 * All of them read through: `get` loads what is missing and stores it for ten minutes.
 */
export const SYSTEMS = ['sluice', 'bentocache', 'cacheable'] as const;
export type SystemName = (typeof SYSTEMS)[number];
/** `raw` is a GET and JSON.parse with the same client: what a hit in Redis costs at least. */
export type ContenderName = SystemName | 'raw';
export type PerContender<T> = Partial<Record<ContenderName, T>>;

export const TTL_MS = 600_000;

export interface ContenderOptions {
  url: string;
  /** Whether copies are kept in the process. Without them every hit is a hit in Redis. */
  near: boolean;
  load: (key: string) => Promise<unknown>;
  /** How long Sluice waits for Redis, where its default would have a busy machine go to the loader. */
  patienceMs?: number;
}

export interface Contender {
  get(key: string): Promise<unknown>;
  /** Several that are all in Redis, by the system's own way to get several, if it has one. */
  getMany(keys: string[]): Promise<unknown[]>;
  invalidate(key: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Loaded on demand: a process of one system does not pay for the others. */
export async function openContender(name: ContenderName, options: ContenderOptions): Promise<Contender> {
  switch (name) {
    case 'sluice':
      return (await import('./sluice.js')).openSluice(options);
    case 'bentocache':
      return (await import('./bentocache.js')).openBentocache(options);
    case 'cacheable':
      return (await import('./cacheable.js')).openCacheable(options);
    case 'raw':
      return (await import('./raw.js')).openRaw(options);
  }
}
