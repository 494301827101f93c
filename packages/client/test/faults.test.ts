/** What goes wrong on the way is made good, once, without sending more than needed; what cannot be is told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SluiceUploadError, upload } from '../src/index.js';
import type { Fault, RequestKind } from './protocolServer.js';
import { bytesOf, CHUNK, piecesOf, quick, stage, to, withCode } from './stage.js';

/** Spoils the first request of each kind. */
const firstOfEach =
  (fault: Fault) =>
  ({ count }: { count: number }): Fault | undefined =>
    count === 1 ? fault : undefined;

const faults: [string, Fault][] = [
  ['loses its connection before the server acts', { drop: 'before' }],
  ['loses its connection after the server has acted', { drop: 'after' }],
  ['meets 503', { status: 503 }],
  ['meets 500', { status: 500 }],
  ['meets 408', { status: 408 }],
  ['meets 429', { status: 429, retryAfterS: 0 }],
  ['meets a login page', { status: 200, text: '<html>Please log in</html>' }],
];

for (const [name, fault] of faults) {
  test(`an upload whose every first request ${name} arrives once, as it was sent`, async (t) => {
    const bytes = bytesOf(6 * CHUNK + 1);
    for (const input of [bytes, piecesOf(bytes)]) {
      const server = await stage(t, { completeMs: 20 });
      server.fault = firstOfEach(fault);
      const result = await upload(input, to(server)).done;
      assert.equal(result.size, bytes.length);
      assert.deepEqual(new Uint8Array(server.content(server.only)), bytes);
    }
  });
}

test('a line that drops every third request only slows the upload down', async (t) => {
  const server = await stage(t);
  let requests = 0;
  server.fault = () => (++requests % 3 === 0 ? { drop: requests % 2 === 0 ? 'before' : 'after' } : undefined);
  const bytes = bytesOf(40 * CHUNK);
  await upload(bytes, to(server)).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
});

test('a chunk whose acknowledgement was lost is asked for, not sent again', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind, chunk }) => (kind === 'chunk' && chunk === 1 ? { drop: 'after' } : undefined);
  await upload(bytesOf(4 * CHUNK), to(server)).done;
  assert.equal(server.count('chunk'), 4);
  assert.equal(new Set(server.chunksSeen()).size, 4);
});

test('bytes damaged on the way are recognised and sent again', async (t) => {
  const server = await stage(t);
  server.fault = ({ kind, count }) => (kind === 'chunk' && count < 3 ? { corrupt: true } : undefined);
  const bytes = bytesOf(4 * CHUNK);
  await upload(bytes, to(server)).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.equal(server.count('chunk'), 6);
  assert.match(
    String(server.seen.find(({ kind }) => kind === 'chunk')!.headers['content-digest']),
    /^sha-256=:/,
  );
});

test('chunks that the server had buffered and lost are sent again before the end is believed', async (t) => {
  const server = await stage(t);
  let losses = 0;
  server.beforeComplete = (held) => {
    if (losses++ >= 2) return true;
    for (const chunk of [1, 3]) server.lose(held, chunk * CHUNK);
    return false;
  };
  const bytes = bytesOf(5 * CHUNK);
  await upload(bytes, to(server)).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.equal(server.count('chunk'), 5 + 2 + 2);
});

test('a stream makes good what was lost as long as it holds it, and says so when it cannot', async (t) => {
  const server = await stage(t);
  let lose: number | undefined = 7;
  server.beforeComplete = (held) => {
    if (lose === undefined) return true;
    server.lose(held, lose * CHUNK);
    lose = undefined;
    return false;
  };
  const bytes = bytesOf(8 * CHUNK - 1);
  await upload(piecesOf(bytes), to(server)).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  lose = 0;
  const failed = upload(piecesOf(bytes), to(server, { path: 'b' })).done;
  await assert.rejects(failed, withCode('SOURCE_CONSUMED'));
});

test('a server that loses what it acknowledges, again and again, is given up on', async (t) => {
  const server = await stage(t);
  server.beforeComplete = (held) => {
    server.lose(held, 0);
    return false;
  };
  const failed = upload(bytesOf(2 * CHUNK), to(server)).done;
  await assert.rejects(failed, withCode('STALLED'));
  assert.ok(server.count('chunk') <= 2 + quick.attempts);
});

test('more missing ranges than a view can list are found one view after the other', async (t) => {
  const server = await stage(t);
  let scattered = false;
  server.beforeComplete = (held) => {
    if (scattered) return true;
    scattered = true;
    for (let chunk = 0; chunk < 300; chunk += 2) server.lose(held, chunk * 16);
    return false;
  };
  const bytes = bytesOf(300 * 16);
  await upload(bytes, to(server, { chunkSize: 16 })).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.equal(server.count('chunk'), 300 + 150);
});

test('a server with a narrow window gets first what it asks for first', async (t) => {
  const server = await stage(t, { windowBytes: 2 * CHUNK });
  // The lowest chunk is slow, so that the others run into the window.
  server.fault = ({ kind, count }) => (kind === 'chunk' && count === 1 ? { slowMs: 60 } : undefined);
  const bytes = bytesOf(20 * CHUNK);
  await upload(bytes, to(server, { parallel: 6 })).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
});

test('a chunk lost inside a narrow window is sent first, although it had been acknowledged', async (t) => {
  const server = await stage(t, { windowBytes: 2 * CHUNK });
  server.fault = ({ kind, count }) => {
    if (kind === 'chunk' && count === 6) server.lose(server.only, CHUNK);
    return undefined;
  };
  const bytes = bytesOf(12 * CHUNK);
  await upload(bytes, to(server, { parallel: 1 })).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.ok(server.chunksSeen().filter((chunk) => chunk === 1).length >= 2);
});

test('chunks lost by a server without room for higher ones are sent first, although they had been acknowledged', async (t) => {
  for (const parallel of [1, 3]) {
    const server = await stage(t);
    let lost = false;
    server.fault = ({ kind, chunk, count }) => {
      if (kind !== 'chunk') return undefined;
      const { pieces } = server.only;
      if (count >= 6 && !lost) {
        lost = true;
        for (const gone of [0, 2]) server.lose(server.only, gone * CHUNK);
      }
      const isLowest = [0, 2].find((gone) => !pieces.has(gone * CHUNK)) === chunk;
      const isWhole = pieces.has(0) && pieces.has(2 * CHUNK);
      if (!lost || isLowest || isWhole) return undefined;
      return { status: 429, code: 'BUDGET_EXHAUSTED', retryAfterS: 0 };
    };
    const bytes = bytesOf(12 * CHUNK);
    await upload(bytes, to(server, { parallel })).done;
    assert.deepEqual(new Uint8Array(server.content()), bytes);
  }
});

test('429 narrows the upload to fewer chunks at once, and it widens again', async (t) => {
  const server = await stage(t);
  const seenAtOnce: number[] = [];
  server.fault = ({ kind, count }) => {
    if (kind !== 'chunk') return undefined;
    if (count <= 12) return { status: 429, retryAfterS: 0 };
    seenAtOnce.push(server.busy);
    return { slowMs: 12 };
  };
  const bytes = bytesOf(60 * CHUNK);
  await upload(bytes, to(server, { parallel: 4, retry: { ...quick, attempts: 50 } })).done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.ok(Math.max(...seenAtOnce.slice(0, 2)) === 1, `at first ${seenAtOnce.slice(0, 5).join()}`);
  assert.equal(Math.max(...seenAtOnce), 4);
});

test('Retry-After is respected', async (t) => {
  const server = await stage(t);
  const at: number[] = [];
  server.fault = ({ kind }) => {
    if (kind !== 'chunk') return undefined;
    at.push(performance.now());
    return at.length === 1 ? { status: 503, retryAfterS: 0.25 } : undefined;
  };
  await upload(bytesOf(10), to(server)).done;
  assert.ok(at[1]! - at[0]! >= 245, `waited ${at[1]! - at[0]!} ms`);
});

test('a server that is gone is given up on after the attempts, with an error that says so', async (t) => {
  const server = await stage(t);
  server.fault = () => ({ drop: 'before' });
  const task = upload(bytesOf(10), to(server));
  await assert.rejects(
    task.done,
    (error) => error instanceof SluiceUploadError && error.code === 'NETWORK' && error.retryable,
  );
  assert.equal(server.count('initiate'), quick.attempts);
  assert.equal(task.progress.state, 'failed');
});

test('an upload that still makes progress, however slowly, is never given up on', async (t) => {
  const server = await stage(t);
  // Each chunk fails all but one time fewer than would end the upload; together that is far beyond it.
  const failures = new Map<number, number>();
  server.fault = ({ kind, chunk }) => {
    const failed = failures.get(chunk!) ?? 0;
    if (kind !== 'chunk' || failed >= quick.attempts - 1) return undefined;
    failures.set(chunk!, failed + 1);
    return { status: 500 };
  };
  await upload(bytesOf(5 * CHUNK), to(server, { parallel: 1 })).done;
  assert.equal(server.count('chunk'), 5 * quick.attempts);
});

test('a refusal is not repeated, and keeps its code, status and message', async (t) => {
  const kinds: RequestKind[] = ['initiate', 'chunk'];
  for (const refused of kinds) {
    const server = await stage(t);
    server.fault = ({ kind }) => (kind === refused ? { status: 403, code: 'TOKEN_SCOPE' } : undefined);
    await assert.rejects(
      upload(bytesOf(10), to(server)).done,
      (error) =>
        error instanceof SluiceUploadError &&
        error.code === 'TOKEN_SCOPE' &&
        error.status === 403 &&
        error.message === 'a fault of the test' &&
        !error.retryable,
    );
    assert.equal(server.count(refused), 1);
  }
});

test('a function for tokens that throws, at once or later, is told as that', async (t) => {
  const server = await stage(t);
  for (const token of [
    () => {
      throw new Error('signed out');
    },
    () => Promise.reject(new Error('signed out')),
  ]) {
    const task = upload(bytesOf(10), to(server, { token, retry: { ...quick, attempts: 2 } }));
    await assert.rejects(task.done, withCode('TOKEN_UNAVAILABLE'));
  }
  assert.equal(server.seen.length, 0);
});

test('a stale token is renewed in the middle of an upload, once for all lanes', async (t) => {
  const server = await stage(t);
  server.validToken = 'first';
  server.fault = ({ kind, count }) => {
    if (kind === 'chunk' && count === 4) server.validToken = 'second';
    return undefined;
  };
  const tokens = ['first', 'second'];
  const bytes = bytesOf(10 * CHUNK);
  const task = upload(bytes, to(server, { token: async () => tokens.shift()! }));
  await task.done;
  assert.deepEqual(new Uint8Array(server.content()), bytes);
  assert.deepEqual(tokens, []);
  const refused = upload(bytes, to(server, { path: 'b', token: 'third' })).done;
  await assert.rejects(refused, withCode('TOKEN_INVALID'));
});
