// Ways to break what the model watches over. Each must be noticed, or the model would see nothing.
import type { Sabotage } from './network.js';

const sameGeneration = "redis.call('SET', KEYS[1], 'always') return 'always'";

export const sabotages: Record<string, Sabotage> = {
  /** A fill is written, whatever became of its lease. */
  fillAnyway: (name, [value, , , envelope]) =>
    name === 'fill' ? { command: 'SET', args: [value!, envelope!, 'PX', 60_000] } : undefined,
  /** An invalidation leaves the lease of whoever loads. */
  leaveLease: (name, args) =>
    name === 'UNLINK'
      ? { command: 'UNLINK', args: ['none', ...args.filter((key) => !String(key).includes(':lease:'))] }
      : undefined,
  /** An invalidated group gets its old generation again. */
  oneGeneration: (name, args) =>
    name === 'generation' ? { command: 'EVAL', args: [sameGeneration, 1, args[0]!] } : undefined,
  /** An invalidation says that it was applied, and was not. */
  believeUnlink: (name) => (name === 'UNLINK' ? { command: 'PING', args: [] } : undefined),
};
