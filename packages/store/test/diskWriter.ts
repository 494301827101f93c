/** Puts objects into a disk store as fast as it can until it is killed: the other half of the kill -9 test. */
import { randomBytes } from 'node:crypto';
import { DiskStore } from '../src/index.js';
import { streamOf } from './conformance.js';

const store = new DiskStore({ folder: process.argv[2]! });
await store.put('ready', Buffer.from('ready'));
console.log('ready');

async function write(lane: number): Promise<never> {
  for (let n = 0; ; n++) {
    const bytes = randomBytes(1_000_000 + n);
    // The same few keys, so that replacing is interrupted too.
    await store.put(`lane ${lane} object ${n % 5}`, n % 2 === 0 ? bytes : streamOf(bytes));
  }
}
await Promise.all([write(1), write(2), write(3)]);
