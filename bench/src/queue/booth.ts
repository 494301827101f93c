/*
 * The booth of a queue system: a process of its own, in which it takes its turns on the shared Redis.
 */
import type { SystemName } from './contender.js';
import type { Taken, Turn } from './turns.js';
import { Booth } from '../booth.js';

export class QueueBooth extends Booth<Turn, Taken> {
  constructor(system: SystemName, url: string) {
    super(system, new URL('./boothMain.js', import.meta.url), [system, url]);
  }
}
