// Stores that take only equal parts, or few of them. The store of these tests refuses everything else, as theirs do.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Capabilities, ObjectStore } from '@sluice/store';
import {
  begin,
  bytesOf,
  contentOf,
  ended,
  mebibyte,
  quick,
  send,
  sendMissing,
  sendRange,
  sha256,
  startService,
  stopServers,
} from './harness.js';

after(stopServers);

const bytes = bytesOf(5 * mebibyte + 12_345);

/** Checks at the end what such stores check at the end, and tells how many parts there were. */
function strict(limits: Partial<Capabilities>, made: number[]): (store: ObjectStore) => ObjectStore {
  return (store) => {
    const capabilities = { ...store.capabilities, ...limits };
    const completeMultipart: ObjectStore['completeMultipart'] = async (multipart, parts, options) => {
      const sizes = (await store.listParts(multipart)).map(({ size }) => size);
      made.push(sizes.length);
      assert.ok(sizes.length <= capabilities.maxParts, `${sizes.length} parts`);
      if (capabilities.equalParts)
        assert.deepEqual(new Set(sizes.slice(0, -1)).size, 1, `parts of ${sizes.join(', ')}`);
      return store.completeMultipart(multipart, parts, options);
    };
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'capabilities') return capabilities;
        if (name === 'completeMultipart') return completeMultipart;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
      },
    });
  };
}

for (const [title, limits] of [
  ['equal parts', { equalParts: true }],
  ['three parts', { maxParts: 3 }],
  ['three equal parts', { equalParts: true, maxParts: 3 }],
] as const)
  test(`a store that takes only ${title} gets them, whatever the chunks are`, async (t) => {
    const made: number[] = [];
    const service = await startService(t, { settings: quick, wrap: strict(limits, made) });
    const { uploads } = service;
    const { id } = await begin(uploads, 'f', { size: bytes.length, sha256: sha256(bytes) });
    // A part and a half, from the end to the beginning, and the rest as it comes.
    for (let to = bytes.length; to > 2 * mebibyte; to -= 700_001)
      await sendRange(uploads, id, bytes, Math.max(to - 700_001, 2 * mebibyte), to);
    const { state } = await sendMissing(uploads, id, bytes);
    assert.equal(state, 'COMPLETED');
    assert.deepEqual(await contentOf(service, 'f'), bytes);
    assert.ok(made.length > 0 && made.every((count) => count >= 2), `parts: ${made.join()}`);
  });

test('a chunk size of which every chunk would be refused is refused when the upload begins', async (t) => {
  const settings = { ...quick, uploadBudgetBytes: 2 * mebibyte };
  const { uploads } = await startService(t, { settings, wrap: strict({ maxParts: 3 }, []) });
  const size = 12 * mebibyte;
  // Less than a part, of which three make the file, and more than Redis takes of one upload.
  await assert.rejects(begin(uploads, 'f', { size, chunkSize: 3 * mebibyte }), {
    code: 'UPLOAD_INVALID',
    message: /chunkSize must be at most \d+ bytes, which can be buffered, or at least 4194304/,
  });
  const { id } = await begin(uploads, 'f', { size, chunkSize: 4 * mebibyte });
  const bytes = bytesOf(size);
  for (const number of [2, 0, 1]) {
    const chunk = bytes.subarray(number * 4 * mebibyte, (number + 1) * 4 * mebibyte);
    await send(uploads, id, { number }, chunk);
  }
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes));
});
