/*
 * What a system can be asked to do in its turn, as plain data: a turn is taken in a process of the system's own
 * (`booth.ts`), and this is what travels there.
 */
import { openContender, type Contender, type SystemName } from './contender.js';
import { enqueueBatches, enqueueBulk, enqueueSingle } from './enqueue.js';
import { processBeside, type Backlog } from './growth.js';
import { pickUpLatency } from './idle.js';
import { processBacklog } from './process.js';
import type { Sizes } from './sizes.js';

export type Turn =
  | { kind: 'enqueueBulk' | 'enqueueBatches' | 'enqueueSingle' | 'process'; jobs: number }
  | { kind: 'pickUp'; samples: number; pauseMs: number }
  | { kind: 'growth'; backlog: Backlog; sizes: Sizes['growth'] };

/** Jobs per second; for `pickUp` the latencies in milliseconds. */
export async function takeTurn(turn: Turn, system: SystemName, url: string): Promise<number[]> {
  if (turn.kind === 'growth') return [await processBeside(turn.backlog, url, system, turn.sizes)];
  const contender = await openContender(system, url);
  try {
    return await measure(turn, contender);
  } finally {
    await contender.close();
  }
}

async function measure(turn: Exclude<Turn, { kind: 'growth' }>, contender: Contender): Promise<number[]> {
  switch (turn.kind) {
    case 'enqueueBulk':
      return [await enqueueBulk(contender, turn.jobs)];
    case 'enqueueBatches':
      return [await enqueueBatches(contender, turn.jobs)];
    case 'enqueueSingle':
      return [await enqueueSingle(contender, turn.jobs)];
    case 'process':
      return [await processBacklog(contender, turn.jobs)];
    case 'pickUp':
      return pickUpLatency(contender, turn.samples, turn.pauseMs);
  }
}
