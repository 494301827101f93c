// Runs operations in a process of its own, which crash.test.ts kills, or which kills itself at a place between two steps.
import { armFailPoints } from '@sluice/base';
import { Queue } from '@sluice/queue';
import { Operations } from '../src/index.js';

interface Settings {
  redis: string;
  prefix: string;
  leaseMs: number;
  /** Dies when it comes to this place for the n-th time. */
  point?: string;
  times?: number;
}

const { redis, prefix, leaseMs, point, times = 1 } = JSON.parse(process.argv[2]!) as Settings;
let met = 0;
armFailPoints((name) => (name === point && ++met === times ? 'kill' : undefined));
const queue = new Queue<number>('mail', { redis, prefix, partitions: 2 });
const operations = new Operations({ redis, prefix, queueNamed: () => queue });
await operations.work({ leaseMs }).start();
process.send!('ready');
process.on('disconnect', () => process.exit(0));
