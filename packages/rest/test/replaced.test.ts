// Downloads of a file that is replaced or deleted while they are under way.
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, test } from 'node:test';
import type { ObjectStore } from '@sluice/store';
import { bytesOf, mebibyte, startApi, stopServers } from './harness.js';

after(stopServers);

/** A store that reads objects in two halves, as one does whose connection is cut in the middle; the second waits for its turn. */
function inHalves(store: ObjectStore, turn: Promise<void>): ObjectStore {
  const read = async function* (key: string, size: number): AsyncGenerator<Buffer> {
    const half = Math.floor(size / 2);
    yield* (await store.get(key, { range: { first: 0, last: half - 1 } })).stream;
    await turn;
    yield* (await store.get(key, { range: { first: half, last: size - 1 } })).stream;
  };
  const get = async (key: string) => {
    const info = await store.head(key);
    return { ...info!, stream: Readable.from(read(key, info!.size), { objectMode: false }) };
  };
  return new Proxy(store, {
    get: (target, name) => {
      const value = (name === 'get' ? get : Reflect.get(target, name)) as unknown;
      return typeof value === 'function' && name !== 'get' ? (value.bind(target) as unknown) : value;
    },
  });
}

for (const [what, change] of [
  ['replaced', (send: (bytes: Buffer) => Promise<unknown>) => send(bytesOf(1_000, 2))],
  ['deleted', undefined],
] as const)
  test(`a download that is under way when its file is ${what} ends whole`, async (t) => {
    let goOn = (): void => {};
    const turn = new Promise<void>((resolve) => (goOn = resolve));
    const api = await startApi(t, { storeOf: (store) => inHalves(store, turn) });
    const bytes = bytesOf(mebibyte);
    const path = '/v1/files/main/f';
    assert.equal((await api.send(path, bytes)).status, 201);
    const response = await fetch(api.url + path);
    assert.equal(response.status, 200);
    if (change) await change((other) => api.send(path, other));
    else assert.equal((await api.call('DELETE', path)).status, 200);
    // What nobody needs would be deleted now.
    await api.uploads.tend();
    goOn();
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), bytes);
  });
