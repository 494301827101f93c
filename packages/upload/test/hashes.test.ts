/** The digest of a file in passing: right, or none. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';
import { PassingHashes } from '../src/hashes.js';

const id = 'upload';
const halves = [Buffer.from('first half, '), Buffer.from('second half')] as const;
const size = halves[0].length + halves[1].length;
const digest = createHash('sha256').update(Buffer.concat(halves)).digest('hex');

/** Both halves have passed, the second one first; neither is committed. */
function passed() {
  const hashes = new PassingHashes();
  const one = hashes.begin(id, 0, halves[0].length);
  const two = hashes.begin(id, halves[0].length, halves[1].length);
  hashes.pass(id, halves[0].length, halves[1]);
  hashes.pass(id, 0, halves[0]);
  return { hashes, one, two };
}

test('the last of those who commit gets the digest, when the others are committed', async () => {
  const { hashes, one, two } = passed();
  assert.equal(await hashes.digestFor(two, id, size), undefined, 'the other has not come to its commit');
  const asked = hashes.digestFor(one, id, size);
  let isTold = false;
  void asked.then(() => (isTold = true));
  await turn();
  assert.equal(isTold, false, 'the other’s commit may still be refused');
  two.end();
  assert.equal(await asked, digest);
  one.end();
  assert.equal(hashes.digest(id, size), digest);
});

test('a commit that is refused spoils the digest also for who asked before', async () => {
  const { hashes, one, two } = passed();
  await hashes.digestFor(two, id, size);
  const asked = hashes.digestFor(one, id, size);
  hashes.spoil(id);
  two.end();
  assert.equal(await asked, undefined);
  one.end();
  assert.equal(hashes.digest(id, size), undefined);
});

test('there is no digest while somebody brings bytes, nor when two bring the same', () => {
  const { hashes, one, two } = passed();
  assert.equal(hashes.digest(id, size), undefined);
  one.end();
  two.end();
  assert.equal(hashes.digest(id, size), digest);
  const again = passed();
  again.hashes.begin(id, 3, 1).end();
  again.one.end();
  again.two.end();
  assert.equal(again.hashes.digest(id, size), undefined);
});
