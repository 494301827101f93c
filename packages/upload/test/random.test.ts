// Uploads as a careless crowd would do them, by a schedule that a seed decides: any size and cut, any order, duplicates, conflicts,
// wrong digests, cut bodies, two instances at once, and frames that vanish now and then. In the end every file is what was sent, and
// nothing is left over. The seed is printed.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { isSluiceError } from '@sluice/base';
import type { Uploads, UploadView } from '../src/index.js';
import {
  begin,
  bytesOf,
  contentOf,
  mebibyte,
  nothingLeftBut,
  objectOf,
  quick,
  remainsOf,
  send,
  sha256,
  startService,
  stopServers,
  stream,
} from './harness.js';

after(stopServers);

const uploadsAtOnce = 10;
const carelessMs = 8_000;
const seed = randomInt(2 ** 32);

/** The same numbers for the same seed. */
function random(start: number): (below: number) => number {
  let state = start;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Refusals that a careless client must expect; anything else is our mistake. */
const expected =
  /^(CHUNK_CONFLICT|RANGE_OVERLAPS|DIGEST_MISMATCH|BODY_TRUNCATED|BUDGET_EXHAUSTED|WINDOW_EXCEEDED|CHUNK_LENGTH|LAST_CONFLICT|BEYOND_END|CHUNK_TOO_LARGE|CHUNKS_LOST)$/;

test('a careless crowd gets the files that it sent, and leaves nothing', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const part = 256 * 1_024;
  const service = await startService(t, {
    settings: {
      ...quick,
      ...{
        preferredPartBytes: part,
        wholeBytes: part,
        lookAgainMs: 200,
        spillAfterMs: 400,
        attemptMs: 2_000,
      },
      ...{ budgetBytes: 6 * mebibyte, uploadBudgetBytes: mebibyte },
    },
  });
  const { uploads: first, link } = service;
  const second = await service.another();
  const until = performance.now() + carelessMs;

  const loser = async (): Promise<void> => {
    const next = random(seed + 1_000);
    while (performance.now() < until) {
      await pause(300);
      const { frames } = await remainsOf(service);
      if (frames.length > 0) await link.call('DEL', [frames[next(frames.length)]!]);
    }
  };

  const one = async (n: number): Promise<void> => {
    const next = random(seed + n);
    const size = [0, 1, next(part), part, part * 2 + next(9), next(2 * mebibyte), next(mebibyte)][next(7)]!;
    const bytes = bytesOf(size, seed + n);
    const isKnown = next(3) > 0;
    const chunkSize = next(2) ? 1 + next(300_000) + Math.ceil(size / 40) : undefined;
    const { id } = await begin(first, `f${n}`, {
      ...(isKnown && { size }),
      ...(chunkSize !== undefined && { chunkSize }),
      ...(next(2) === 0 && { sha256: sha256(bytes) }),
    });
    const some = (): Uploads => (next(2) ? first : second);
    const attempt = async (what: Promise<unknown>): Promise<void> => {
      await what.catch((error: unknown) => {
        const isFine = isSluiceError(error) ? expected.test(error.code) : /went away/.test(String(error));
        if (!isFine) throw error;
      });
    };
    const range = (from: number, to: number): Promise<void> => {
      const piece = bytes.subarray(from, to);
      const kind = next(12);
      const wrong = { algorithm: 'crc32' as const, value: Buffer.alloc(4, 1) };
      if (kind === 0) return attempt(send(some(), id, { offset: from }, piece, wrong));
      if (kind === 1) return attempt(some().receive(id, { offset: from }, cutOff(piece), piece.length));
      return attempt(send(some(), id, { offset: from }, piece));
    };
    const numbered = (at: number): Promise<void> => {
      const number = Math.floor(at / chunkSize!);
      const piece = bytes.subarray(number * chunkSize!, (number + 1) * chunkSize!);
      const last = (number + 1) * chunkSize! >= size;
      return attempt(send(some(), id, { number, last }, piece));
    };
    let view: UploadView = await first.status(id);
    const giveUp = until + 20_000;
    while (view.state !== 'COMPLETED') {
      assert.ok(['PENDING', 'UPLOADING', 'COMPLETING'].includes(view.state), JSON.stringify(view));
      assert.ok(performance.now() < giveUp, `seed ${seed}: ${JSON.stringify(view)}`);
      const isCareless = performance.now() < until;
      const gaps = view.missing
        .map(([from, to]) => [from, (to ?? size - 1) + 1] as const)
        .filter(([a, b]) => a < b);
      const gap = gaps[isCareless ? next(Math.max(1, gaps.length)) : 0];
      if (gap === undefined) {
        if (!isKnown && view.size === null) await attempt(some().declare(id, { size }));
        await pause(20);
      } else if (chunkSize !== undefined && next(3) > 0 && isCareless)
        await numbered(gap[0] + next(gap[1] - gap[0]));
      else {
        const [from, to] = gap;
        const start = isCareless ? from + next(to - from) : from;
        const end = Math.min(to, start + 1 + next(isCareless ? 700_000 : mebibyte));
        const sends = [range(start, end)];
        // The same bytes twice at once, or bytes that are there.
        if (isCareless && next(4) === 0) sends.push(range(start, end));
        if (isCareless && next(6) === 0) sends.push(range(next(size), size));
        await Promise.all(sends);
      }
      view = await some().status(id);
    }
    assert.equal(view.result!.sha256, sha256(bytes), `seed ${seed}, upload ${n}`);
    assert.deepEqual(await contentOf(service, `f${n}`), bytes, `seed ${seed}, upload ${n}`);
  };

  const crowd = Array.from({ length: uploadsAtOnce }, (_, n) => n);
  await Promise.all([loser(), ...crowd.map((n) => one(n))]);
  await nothingLeftBut(service, await Promise.all(crowd.map((n) => objectOf(service, `f${n}`))));
});

async function* cutOff(bytes: Buffer): AsyncGenerator<Buffer> {
  yield* stream(bytes.subarray(0, bytes.length >> 1));
  throw new Error('the client went away');
}
