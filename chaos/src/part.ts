// What every process of a run is told when it starts: one JSON argument.
import type { Mix } from './work.js';

export interface Part {
  name: string;
  folder: string;
  seed: string;
  /** Where this process finds Redis: its own proxy, or the servers themselves. */
  redis: string;
  queue: string;
  partitions: number;
  leaseMs: number;
  concurrency: number;
  mix: Mix;
  /** Jobs per second that a producer adds. */
  perSecond: number;
  /** How often a producer adds hundreds of plain jobs at once. */
  burstShare: number;
  /** The operator only undoes what another may have left undone. */
  closing: boolean;
  /** Replicas that must have a job before it counts as accepted. */
  replicas: number;
}

export function readPart(): Part {
  return JSON.parse(process.argv[2]!) as Part;
}
