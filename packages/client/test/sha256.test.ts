/** The plain SHA-256 agrees with the native one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hex } from '../src/platform.js';
import { Sha256 } from '../src/sha256.js';
import { bytesOf, sha256Of } from './stage.js';

test('SHA-256 of every length around a block is the native one, in whatever pieces the bytes come', () => {
  for (let length = 0; length < 200; length++) {
    const bytes = bytesOf(length);
    for (const piece of [1, 7, 63, 64, 65, 200]) {
      const hasher = new Sha256();
      for (let at = 0; at < length; at += piece) hasher.update(bytes.subarray(at, at + piece));
      assert.equal(hex(hasher.digest()), sha256Of(bytes), `${length} bytes in pieces of ${piece}`);
    }
  }
});

test('SHA-256 of a megabyte is the native one', () => {
  const bytes = bytesOf(1024 * 1024 + 3);
  const hasher = new Sha256();
  hasher.update(bytes);
  assert.equal(hex(hasher.digest()), sha256Of(bytes));
});
