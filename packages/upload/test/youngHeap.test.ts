// Memory of bodies: it goes back to the system when nothing comes any more.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { collectAll } from '../src/youngHeap.js';

const mebibyte = 1_048_576;
const isFor = process.arch === 'x64' && process.platform === 'linux';
const isBuilt = existsSync(new URL('../native/trim.node', import.meta.url));
const skip = isFor && !isBuilt && 'there is no C compiler';

test('what was held by bodies goes back to the system, also from between what stays', { skip }, async () => {
  const bodies: Buffer[] = [];
  const kept: Buffer[] = [];
  for (let n = 0; n < 2_000; n++) {
    bodies.push(Buffer.alloc(100 * 1_024, 1));
    // Small and long-lived, so that what is free afterwards lies in holes.
    kept.push(Buffer.alloc(4_096 + 1, 1));
  }
  const most = process.memoryUsage.rss();
  bodies.length = 0;
  collectAll();
  if (!isBuilt) return;
  let now = most;
  for (let tries = 0; tries < 50 && most - now < 150 * mebibyte; tries++) {
    await pause(100);
    now = process.memoryUsage.rss();
  }
  assert.ok(most - now >= 150 * mebibyte, `${most / mebibyte} before, ${now / mebibyte} after`);
  assert.equal(kept.length, 2_000);
});
