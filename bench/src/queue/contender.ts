/*
 * The contract between the measurements and a queue system. Everything a measurement does goes through it, so
 * that no system is treated in a way of its own; how a system is set up at its best is the business of its
 * implementation (`sluice.ts`, `bullmq.ts`, `beequeue.ts`).
 *
 * All systems are configured for the same promise: three runs of a job with exponential backoff between them,
 * leases with recovery of lost jobs on, nothing kept of a job that succeeded.
 */
import type { Payload } from './payload.js';

export const SYSTEMS = ['sluice', 'bullmq', 'beequeue'] as const;
export type SystemName = (typeof SYSTEMS)[number];
export type PerSystem<T> = Partial<Record<SystemName, T>>;

export const ATTEMPTS = 3;
export const BACKOFF_MS = 3_000;

export interface Contender {
  addOne(payload: Payload): Promise<unknown>;
  /** One call of the system's own bulk operation. */
  addMany(payloads: Payload[]): Promise<unknown>;
  addDelayed(payloads: Payload[], delayMs: number): Promise<unknown>;
  /** Connects a worker that claims nothing yet, so that connecting is not part of what is measured. */
  prepareWorker(options: WorkerOptions): Promise<PreparedWorker>;
  /** Jobs waiting or active, as Redis has them in its books: zero means that all are acknowledged. */
  unfinished(): Promise<number>;
  close(): Promise<void>;
}

export interface WorkerOptions {
  concurrency: number;
  handler: () => Promise<void>;
}

export interface PreparedWorker {
  /** Begins to claim. */
  start(): void;
  /** Finishes what it runs and claims no more. */
  stop(): Promise<void>;
}

/** Opens a connected contender. Loaded on demand: a run of one system does not pay for the others. */
export async function openContender(
  system: SystemName,
  url: string,
  queueName = 'bench',
): Promise<Contender> {
  switch (system) {
    case 'sluice':
      return (await import('./sluice.js')).openSluice(url, queueName);
    case 'bullmq':
      return (await import('./bullmq.js')).openBullmq(url, queueName);
    case 'beequeue':
      return (await import('./beequeue.js')).openBeequeue(url, queueName);
  }
}

/** A remark of a system under test; it belongs to the reader of the run, not to the figures. */
export function remark(system: SystemName, error: Error): void {
  process.stderr.write(`  ${system}: ${error.message}\n`);
}
