// The part plan keeps the limits of every store for every size, and the scripts compute the same as TypeScript does.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import type { Capabilities } from '@sluice/store';
import { partAt, partNumbered, planParts, type PartPlan } from '../src/plan.js';
import { mebibyte, servers, stopServers } from './harness.js';

after(stopServers);

const gibibyte = 1_024 * mebibyte;
const tebibyte = 1_024 * gibibyte;
const s3: Capabilities = {
  minPartBytes: 5 * mebibyte,
  maxPartBytes: 5 * gibibyte,
  maxParts: 10_000,
  equalParts: false,
  maxSinglePutBytes: 5 * gibibyte,
  crc64: true,
};
const few: Capabilities = { ...s3, maxParts: 1_000 };
const equal: Capabilities = { ...s3, equalParts: true };

/** The same numbers for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function partsOf(plan: PartPlan, size: number): number {
  return size === 0 ? 0 : partAt(plan, size - 1).index + 1;
}

test('a file of a known size has parts between 5 MiB and 5 GiB, and never more than the store takes', () => {
  const next = random(1);
  for (const store of [s3, few, equal])
    for (let i = 0; i < 2_000; i++) {
      const size = Math.floor(2 ** (next() * 42.2));
      const chunkSize = next() < 0.5 ? undefined : Math.max(1, Math.floor(2 ** (next() * 30)));
      const plan = planParts(size, chunkSize, store);
      const shown = JSON.stringify({ size, chunkSize, plan, maxParts: store.maxParts });
      assert.ok(plan.partBytes >= store.minPartBytes && plan.partBytes <= store.maxPartBytes, shown);
      assert.ok(partsOf(plan, size) <= store.maxParts, shown);
      assert.equal(plan.growEvery, 0, shown);
      if (chunkSize !== undefined) assert.equal(plan.partBytes % chunkSize, 0, shown);
    }
});

test('the largest file of S3 fits, and one that cannot fit is refused when it begins', () => {
  const limit = 10_000 * 5 * gibibyte;
  assert.ok(partsOf(planParts(limit, undefined, s3), limit) <= 10_000);
  assert.throws(() => planParts(limit + 1, undefined, s3), { code: 'FILE_TOO_LARGE' });
  assert.throws(() => planParts(undefined, 6 * gibibyte, s3), { code: 'UPLOAD_INVALID' });
});

test('parts of a file of unknown length grow, so that 5 TiB fit into 10,000 of them and 799 GiB into 1,000', () => {
  for (const store of [s3, few]) {
    const plan = planParts(undefined, undefined, store);
    assert.equal(plan.partBytes, 8 * mebibyte, 'a small file does not pay for it');
    assert.ok(partsOf(plan, store === s3 ? 5 * tebibyte : 799 * gibibyte) <= store.maxParts);
    for (let chunkSize = 1; chunkSize < gibibyte; chunkSize = chunkSize * 3 + 1) {
      const chunked = planParts(undefined, chunkSize, store);
      const last = partNumbered(chunked, store.maxParts - 1, undefined);
      assert.ok(last.size <= store.maxPartBytes, `no part is larger than the store takes: ${chunkSize}`);
    }
  }
});

test('a store that wants equal parts gets them also when the length is unknown', () => {
  const plan = planParts(undefined, undefined, equal);
  assert.equal(plan.growEvery, 0);
  assert.ok(partAt(plan, 600 * gibibyte).index < 10_000);
});

test('chunks of five mebibytes or more are parts themselves, smaller ones share one', () => {
  assert.equal(planParts(gibibyte, 5 * mebibyte, s3).partBytes, 5 * mebibyte);
  assert.equal(planParts(gibibyte, 100 * mebibyte, s3).partBytes, 100 * mebibyte);
  assert.equal(planParts(gibibyte, 3 * mebibyte, s3).partBytes, 9 * mebibyte);
  const large = planParts(undefined, 64 * mebibyte, s3);
  for (const chunk of [0, 1, 999, 1_000, 5_000])
    assert.equal(partAt(large, chunk * 64 * mebibyte).size, 64 * mebibyte, 'no large chunk is buffered');
});

test('a part of a file that comes in pieces is no larger than what the client sends at once', () => {
  const clientsLargestBytes = 16 * mebibyte;
  for (const size of [mebibyte, 200 * mebibyte, gibibyte, 100 * gibibyte])
    assert.ok(planParts(size, undefined, s3).partBytes <= clientsLargestBytes, `${size}`);
  assert.equal(planParts(gibibyte, undefined, s3, undefined, true).partBytes, 32 * mebibyte);
});

test('neighbouring parts touch, and the last one ends with the file', () => {
  const next = random(2);
  for (let i = 0; i < 500; i++) {
    const plan = { partBytes: 1 + Math.floor(next() * 50), growEvery: Math.floor(next() * 4) };
    const size = 1 + Math.floor(next() * 5_000);
    let at = 0;
    for (let index = 0; at < size; index++) {
      const part = partNumbered(plan, index, size);
      assert.equal(part.start, at);
      assert.deepEqual(partAt(plan, at).index, index);
      assert.deepEqual(partAt(plan, at + part.size - 1).index, index);
      at += part.size;
    }
    assert.equal(at, size);
  }
});

test('the scripts find the same part for every byte as TypeScript does', async () => {
  const { redis } = await servers();
  const shared = readFileSync(new URL('../../lua/upload.lua', import.meta.url), 'utf8');
  const source = `local state, chunks, held, parts, fill, window, attempts, progress, attention, budget, id
    ${shared}
    local upload = { part_bytes = ARGV[1], grow_every = ARGV[2], expected_size = '' }
    local answer = {}
    for i = 3, #ARGV do
      local index, start, size = part_at(upload, tonumber(ARGV[i]))
      answer[#answer + 1] = table.concat({ text(index), text(start), text(size), text(part_numbered(upload, index)) }, ' ')
    end
    return answer`;
  const next = random(3);
  for (let i = 0; i < 40; i++) {
    const plan = planParts(
      next() < 0.3 ? Math.floor(2 ** (next() * 42)) : undefined,
      next() < 0.5 ? Math.floor(2 ** (next() * 25)) + 1 : undefined,
      [s3, few, equal][i % 3]!,
    );
    const edge = plan.partBytes * Math.max(1, plan.growEvery);
    const offsets = [0, edge - 1, edge, edge + 1, 3 * edge - 1, 3 * edge];
    for (let n = 0; n < 50; n++) offsets.push(Math.floor(2 ** (next() * 42.3)));
    const args = [plan.partBytes, plan.growEvery, ...offsets];
    const answer = (await redis.command('EVAL', source, 0, ...args)) as string[];
    const wanted = offsets.map((offset) => {
      const { index, start, size } = partAt(plan, offset);
      return [index, start, size, partNumbered(plan, index, undefined).start].join(' ');
    });
    assert.deepEqual(answer, wanted);
  }
});
