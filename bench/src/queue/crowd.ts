/*
 * A process full of idle workers: `crowd.js <system> <url> <workers>`. Each has connections of its own. It says
 * 'ready' when all of them wait for work, and ends when its parent disconnects, or is gone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { openContender, type SystemName } from './contender.js';
import { inLanes } from '../waiting.js';

const OPENING_AT_ONCE = 20;
const SETTLE_MS = 2_000;

const [system, url, workers] = process.argv.slice(2);
process.once('disconnect', () => process.exit(0));

await inLanes(OPENING_AT_ONCE, Number(workers), async () => {
  const contender = await openContender(system as SystemName, String(url), 'idle');
  const worker = await contender.prepareWorker({ concurrency: 1, handler: async () => {} });
  worker.start();
});
await sleep(SETTLE_MS);
process.send?.('ready');
