// A worker: runs the handler until it is told to end, killed, frozen or worse.
import { join } from 'node:path';
import { consoleLogger } from '@sluice/base';
import { Queue } from '@sluice/queue';
import { Journal, files } from './evidence.js';
import type { LedgerLine } from './evidence.js';
import { readPart } from './part.js';
import { block, handlerFor } from './work.js';
import type { Work } from './work.js';

const drainMs = 4_000;

const part = readPart();
const ledger = new Journal<LedgerLine>(join(part.folder, files.ledger));
const queue = new Queue<Work, { token: string; key: string }>(part.queue, {
  redis: part.redis,
  partitions: part.partitions,
  logger: consoleLogger(),
});
const { concurrency, leaseMs, name } = part;
queue.work(handlerFor(ledger), { concurrency, leaseMs, drainMs, name });

// The conductor blocks this loop for longer than the lease.
process.on('SIGUSR2', () => block(leaseMs * 1.4));
process.once('SIGTERM', () => {
  void queue.close().then(() => process.exit(0));
});
