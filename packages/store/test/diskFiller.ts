/** Fills a small disk with a disk store, and goes on when there is room again: the other half of the test of a disk that is really full. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskStore } from '../src/index.js';
import { rejectsWith, streamOf } from './conformance.js';

const [folder, bytes] = [process.argv[2]!, Number(process.argv[3])];
const store = new DiskStore({ folder });
const half = Buffer.alloc(bytes / 2, 1);
const multipart = await store.createMultipart('in parts');
const part = await store.putPart(multipart, 1, half.subarray(0, bytes / 4));
await store.put('first', half);
await rejectsWith('STORE_FULL', store.put('second', half));
await rejectsWith('STORE_FULL', store.put('second', streamOf(half)));
await rejectsWith('STORE_FULL', store.put('first', half));
await rejectsWith('STORE_FULL', store.putPart(multipart, 2, half));
assert.deepEqual(await readdir(join(folder, 'temporary')), [], 'nothing is left of what did not fit');
assert.equal(await store.head('second'), undefined);
assert.equal((await store.head('first'))!.size, half.length);
await store.delete('first');
await store.put('second', half.subarray(0, bytes / 4));
await store.completeMultipart(multipart, [part], { size: bytes / 4 });
