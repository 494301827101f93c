// The design that uploads began with had 28 defects. Each of them has a test here, under its number; where it can be shown in a line,
// the old way fails beside ours. (Kept in order: a number that is missing is a defect that nobody watches.)
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { after, before, test, type TestContext } from 'node:test';
import type { ObjectStore } from '@sluice/store';
import { waitUntil } from '@sluice/testbed';
import type { Uploads } from '../src/index.js';
import { frameBytes } from '../src/frames.js';
import {
  begin,
  bytesOf,
  contentOf,
  ended,
  faulty,
  mebibyte,
  quick,
  remainsOf,
  send,
  sendMissing,
  sendRange,
  servers,
  sha256,
  startService,
  stopServers,
  tenant,
  type Fault,
  type Service,
} from './harness.js';

const cleanups: (() => unknown)[] = [];
const faults = new Map<keyof ObjectStore, Fault>();
let service: Service;
let uploads: Uploads;
const announced: string[] = [];

before(async () => {
  const owner = { after: (clean: () => unknown) => cleanups.push(clean) } as unknown as TestContext;
  service = await startService(owner, {
    settings: quick,
    wrap: (store) => faulty(store, faults),
    hooks: { afterComplete: ({ id }) => void announced.push(id) },
  });
  uploads = service.uploads;
});
after(async () => {
  for (const clean of cleanups) await clean();
  await stopServers();
});

const bytes = bytesOf(3 * mebibyte + 100_000);
const chunkSize = 400_000;
const chunk = (number: number, of = bytes) => of.subarray(number * chunkSize, (number + 1) * chunkSize);
const numbers = Array.from({ length: Math.ceil(bytes.length / chunkSize) }, (_, number) => number);
const name = () => randomBytes(5).toString('hex');
const redis = (command: string, ...args: (string | number)[]) => service.redis.command(command, ...args);

async function uploaded(path: string): Promise<string> {
  const { id } = await begin(uploads, path, { size: bytes.length, chunkSize });
  for (const number of numbers) await send(uploads, id, { number }, chunk(number));
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
  return id;
}

test('1: an upload whose bytes are all there is completed, by one of those who try', async () => {
  await redis('HSET', 'old', 'status', 'UPLOADING');
  assert.equal(await redis('HSETNX', 'old', 'status', 'COMPLETING'), 0, 'the old way never completes');
  const path = name();
  const second = await service.another();
  const { id } = await begin(uploads, path, { size: bytes.length, chunkSize });
  await Promise.all(
    numbers.map((number) => send(number % 2 ? uploads : second, id, { number }, chunk(number))),
  );
  assert.equal((await ended(second, id)).state, 'COMPLETED');
  const { postgres } = await servers();
  const events = await postgres.query(
    `SELECT 1 FROM outbox WHERE topic LIKE '%uploads.completed' AND payload::text LIKE $1`,
    [`%${id}%`],
    service.database,
  );
  assert.equal(events.length, 1);
});

test('2: an acknowledged chunk stays in Redis until the store has it', async () => {
  const { id } = await begin(uploads, name(), { size: mebibyte, chunkSize });
  let heldWhileWriting = 0;
  faults.set('put', async (call) => {
    const { frames } = await remainsOf(service);
    heldWhileWriting = frames.filter((key) => key.includes(id)).length;
    faults.clear();
    return call();
  });
  for (const number of [0, 1, 2])
    await send(uploads, id, { number }, chunk(number, bytes.subarray(0, mebibyte)));
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
  assert.equal(heldWhileWriting, 3);
});

test('3: identical chunks are all counted', async () => {
  await redis('ZADD', 'old-etags', 0, 'same', 1, 'same');
  assert.equal(await redis('ZCARD', 'old-etags'), 1, 'the old way counts one');
  const path = name();
  const zeros = Buffer.alloc(4 * mebibyte);
  const { id } = await begin(uploads, path, { size: zeros.length, chunkSize: mebibyte });
  for (const number of [0, 1, 2, 3]) await send(uploads, id, { number }, zeros.subarray(0, mebibyte));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(zeros));
});

test('4: the byte order decides about parts, not the order of arrival', async () => {
  const path = name();
  const { id } = await begin(uploads, path, { size: bytes.length, chunkSize });
  for (const number of numbers.toReversed()) await send(uploads, id, { number }, chunk(number));
  await ended(uploads, id);
  assert.deepEqual(await contentOf(service, path), bytes);
});

test('5: a chunk that nobody was told of is found all the same', async () => {
  assert.equal(await redis('PUBLISH', 'upload:chunk:received', '{}'), 0, 'the old way loses the message');
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  // As if the process had died after the commit: the jobs are gone, the bytes are there.
  const quiet = await service.another({ workers: 0 });
  for (const number of numbers) await send(quiet, id, { number }, chunk(number));
  await service.link.call('ZADD', [service.keys().attention, 'XX', 1, id]);
  await uploads.tend();
  assert.equal((await ended(uploads, id)).state, 'COMPLETED');
});

test('6: a chunk sent twice at once counts once; with other bytes it is a conflict', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  await Promise.all([1, 2, 3, 4].map(() => send(uploads, id, { number: 0 }, chunk(0))));
  const { receivedBytes } = await uploads.status(id);
  assert.equal(receivedBytes, chunkSize);
  await assert.rejects(send(uploads, id, { number: 0 }, bytesOf(chunkSize, 3)), { code: 'CHUNK_CONFLICT' });
  await uploads.cancel(id);
});

test('7: what is counted is what is there, also after a loss', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  for (const number of [0, 1]) await send(uploads, id, { number }, chunk(number));
  const { frames } = await remainsOf(service);
  for (const key of frames.filter((frame) => frame.includes(id))) await service.link.call('DEL', [key]);
  await send(uploads, id, { number: 2 }, chunk(2));
  await waitUntil('the sums say so', async () => (await uploads.status(id)).receivedBytes === chunkSize);
  assert.equal((await sendMissing(uploads, id, bytes)).state, 'COMPLETED');
});

test('8: a chunk counts by one script or not at all', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  const broken = { algorithm: 'crc32c' as const, value: Buffer.alloc(4) };
  const { state, chunks, held, parts, fill } = service.keys(id);
  const snapshot = async (): Promise<string> =>
    String(await Promise.all([chunks, held, parts, fill].map((key) => redis('DUMP', key)))) +
    String(await redis('HMGET', state, 'received_bytes', 'stored_bytes', 'status', 'charged'));
  const before = await snapshot();
  await assert.rejects(send(uploads, id, { number: 1 }, chunk(1), broken), { code: 'DIGEST_MISMATCH' });
  assert.equal(await snapshot(), before);
  await uploads.cancel(id);
});

test('9: an expired upload is never resurrected by a late chunk, and no key of an upload is left for ever', async () => {
  await redis('HINCRBY', 'old-expired', 'received_chunks', 1);
  assert.equal(await redis('PTTL', 'old-expired'), -1, 'the old way leaves a key for ever');
  const { id } = await begin(uploads, name(), { chunkSize });
  for (const number of [0, 2]) await send(uploads, id, { number }, chunk(number));
  // A look at it may be under way, as a job that leaves a key of the queue for as long as it runs.
  const own = async (): Promise<string[]> =>
    ((await redis('KEYS', `${service.prefix}:*${id}*`)) as string[]).filter(
      (key) => !key.includes(':unique:'),
    );
  assert.ok((await own()).length >= 6);
  const { state, held, attention } = service.keys(id);
  for (const key of await own())
    if (key !== state && key !== held) assert.ok(Number(await redis('PTTL', key)) > 0, key);
  // Whether the time of the next look is over already says how busy the machine is, and nothing else.
  assert.notEqual(await redis('ZSCORE', attention, id), null, 'somebody will end what does not expire');
  await redis('DEL', ...(await own()));
  await assert.rejects(send(uploads, id, { number: 1 }, chunk(1)), { code: 'UPLOAD_NOT_FOUND' });
  assert.deepEqual(await own(), []);
  // What it had reserved is nobody's now: the budget is kept in the same Redis, and goes with it in reality.
  await redis('DEL', service.keys().budget);
});

test('10: bytes that the store does not have yet do not run out as long as their upload lives', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  await send(uploads, id, { number: 0 }, chunk(0));
  const frame = (await remainsOf(service)).frames.find((key) => key.includes(id))!;
  const idleMs = Number(await redis('HGET', service.keys(id).state, 'idle_ms'));
  assert.ok(idleMs >= 86_400_000);
  await waitUntil('they are kept from the start', async () => Number(await redis('PTTL', frame)) > idleMs);
  await redis('PEXPIRE', frame, 5_000);
  await service.link.call('ZADD', [service.keys().attention, 'XX', 1, id]);
  await uploads.tend();
  await waitUntil('they are kept', async () => Number(await redis('PTTL', frame)) > idleMs);
  await uploads.cancel(id);
});

test('11: a Redis without room refuses with BUDGET_EXHAUSTED; it is never asked to evict', async () => {
  assert.deepEqual(await redis('CONFIG', 'GET', 'maxmemory-policy'), ['maxmemory-policy', 'noeviction']);
  const narrow = await service.another({
    settings: { prefix: name(), budgetBytes: 2_000_000, roomWaitMs: 0 },
    workers: 0,
  });
  const first = await begin(narrow, name(), { size: bytes.length, chunkSize });
  await send(narrow, first.id, { number: 0 }, chunk(0));
  const { id } = await begin(narrow, name(), { size: bytes.length, chunkSize });
  await assert.rejects(send(narrow, id, { number: 0 }, chunk(0)), {
    code: 'BUDGET_EXHAUSTED',
    retryable: true,
  });
});

test('12: an answer says whether the bytes are in the store or in Redis', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length });
  assert.equal((await sendRange(uploads, id, bytes, 0, mebibyte)).ack, 'stored');
  assert.equal((await sendRange(uploads, id, bytes, mebibyte, mebibyte + 9)).ack, 'buffered');
  await uploads.cancel(id);
});

test('13: small chunks are put together to parts: fewer calls than chunks', async () => {
  let calls = 0;
  faults.set('putPart', (call) => {
    calls++;
    return call();
  });
  const { id } = await begin(uploads, name(), { size: 2 * mebibyte, chunkSize: mebibyte / 16 });
  for (let number = 0; number < 32; number++)
    await send(
      uploads,
      id,
      { number },
      bytes.subarray((number * mebibyte) / 16, ((number + 1) * mebibyte) / 16),
    );
  await ended(uploads, id);
  faults.clear();
  assert.equal(calls, 2);
});

test('14: the end of a file is said once: a second last chunk, or one beyond it, is refused', async () => {
  const { id } = await begin(uploads, name());
  await send(uploads, id, { number: 0 }, bytes.subarray(0, 100));
  await send(uploads, id, { number: 3, last: true }, bytes.subarray(300, 350));
  await assert.rejects(send(uploads, id, { number: 2, last: true }, bytes.subarray(200, 300)), {
    code: 'LAST_CONFLICT',
  });
  await assert.rejects(send(uploads, id, { number: 4 }, bytes.subarray(0, 10)), { code: 'BEYOND_END' });
  await send(uploads, id, { number: 2 }, bytes.subarray(200, 300));
  await send(uploads, id, { number: 1 }, bytes.subarray(100, 200));
  assert.equal((await ended(uploads, id)).result!.sha256, sha256(bytes.subarray(0, 350)));
  const early = await begin(uploads, name(), { chunkSize: 100 });
  await send(uploads, early.id, { number: 3 }, bytes.subarray(300, 400));
  await assert.rejects(send(uploads, early.id, { number: 1, last: true }, bytes.subarray(0, 50)), {
    code: 'LAST_CONFLICT',
  });
  await uploads.cancel(early.id);
  // Chunks that waited and turn out to lie beyond a declared end do not count.
  const beyond = await begin(uploads, name(), { size: 150 });
  await send(uploads, beyond.id, { number: 1 }, bytes.subarray(0, 100));
  await send(uploads, beyond.id, { number: 0 }, bytes.subarray(0, 100));
  assert.equal((await uploads.status(beyond.id)).receivedBytes, 100);
  await assert.rejects(send(uploads, beyond.id, { number: 1 }, bytes.subarray(0, 100)), {
    code: 'BEYOND_END',
  });
  await send(uploads, beyond.id, { number: 1 }, bytes.subarray(100, 150));
  assert.equal((await ended(uploads, beyond.id)).result!.sha256, sha256(bytes.subarray(0, 150)));
});

test('15: the size is that of the object, and a declared digest is verified', async () => {
  const { id } = await begin(uploads, name(), { size: 1_000, sha256: '0'.repeat(64) });
  await sendRange(uploads, id, bytes.subarray(0, 1_000), 0);
  const { state, error } = await ended(uploads, id);
  assert.equal(state, 'FAILED');
  assert.equal(error!.code, 'SHA256_MISMATCH');
  const good = await begin(uploads, name(), { sha256: sha256(bytes) });
  await sendRange(uploads, good.id, bytes, 0);
  await uploads.declare(good.id, { size: bytes.length });
  assert.equal((await ended(uploads, good.id)).result!.size, bytes.length);
});

test('16: a completion that died goes on, and an object that is there already is taken', async () => {
  let tries = 0;
  faults.set('completeMultipart', async (call) => {
    tries++;
    const object = await call();
    if (tries === 1) throw new Error('died here');
    return object;
  });
  await uploaded(name());
  faults.clear();
  assert.equal(tries, 2);
});

test('17: the event is written with the file, once, also when completing is repeated', async () => {
  const path = name();
  const id = await uploaded(path);
  const { postgres } = await servers();
  const rows = await postgres.query(
    `SELECT event_id FROM outbox WHERE topic LIKE '%uploads.completed' AND payload::text LIKE $1`,
    [`%${id}%`],
    service.database,
  );
  assert.equal(rows.length, 1);
  await waitUntil('the hook has run', () => announced.includes(id));
});

test('18: an upload that fails or is cancelled leaves no multipart upload', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length });
  await sendRange(uploads, id, bytes, 0, 2 * mebibyte);
  const own = async () => (await remainsOf(service)).multiparts.filter((key) => key.includes(id)).length;
  assert.equal(await own(), 1);
  await uploads.cancel(id);
  await waitUntil('it is aborted', async () => (await own()) === 0);
});

test('19: no script and no command scans the key space', () => {
  const sources = new URL('../../', import.meta.url);
  for (const folder of ['lua/', 'src/'])
    for (const file of readdirSync(new URL(folder, sources)))
      assert.doesNotMatch(
        readFileSync(new URL(folder + file, sources), 'utf8'),
        /['"](KEYS|SCAN|keys|scan)['"]/,
        file,
      );
});

test('20: progress is a snapshot and then numbered updates with bytes and percent', async () => {
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  await send(uploads, id, { number: 0 }, chunk(0));
  const seen: { sequence: number; percent: number | null; state: string }[] = [];
  const { snapshot, stop } = await uploads.watch(id, (progress) => seen.push(progress));
  assert.equal(snapshot.receivedBytes, chunkSize);
  for (const number of numbers.slice(1)) await send(uploads, id, { number }, chunk(number));
  await ended(uploads, id);
  await waitUntil('the end is seen', () => seen.at(-1)?.state === 'COMPLETED');
  stop();
  assert.deepEqual(
    seen.map(({ sequence }) => sequence),
    seen.map((_, i) => snapshot.sequence + 1 + i),
  );
  const percents = seen.map(({ percent }) => percent!);
  assert.deepEqual(
    percents,
    [...percents].sort((a, b) => a - b),
  );
  assert.equal(percents.at(-1), 100);
});

test('21: a chunk that vanished is missing, and nobody fails on its absence', async () => {
  const { id } = await begin(uploads, name(), { size: mebibyte });
  await sendRange(uploads, id, bytes.subarray(0, mebibyte), 0, 100);
  for (const key of (await remainsOf(service)).frames.filter((frame) => frame.includes(id)))
    await service.link.call('DEL', [key]);
  assert.equal((await sendMissing(uploads, id, bytes.subarray(0, mebibyte))).state, 'COMPLETED');
});

test("22: an upload is its tenant's alone, and its id cannot be guessed or taken for a node's", async () => {
  const { id, nodeId } = await begin(uploads, name(), { size: 10 });
  assert.notEqual(id, nodeId);
  assert.match(id, /^0-[0-9a-f]{32}$/);
  assert.equal((await uploads.owned(id, tenant)).id, id);
  await assert.rejects(uploads.owned(id, 'somebody else'), { code: 'UPLOAD_NOT_FOUND' });
  for (const odd of ['', '0-0', `0-${'0'.repeat(31)}*`, `zz-${'0'.repeat(32)}`, '../../x'])
    await assert.rejects(uploads.status(odd), { code: 'UPLOAD_NOT_FOUND' });
  await uploads.cancel(id);
});

test('23: the status says COMPLETING while the store makes the file', async () => {
  let during = '';
  const { id } = await begin(uploads, name(), { size: bytes.length, chunkSize });
  faults.set('completeMultipart', async (call) => {
    during = (await uploads.status(id)).state;
    return call();
  });
  for (const number of numbers) await send(uploads, id, { number }, chunk(number));
  await ended(uploads, id);
  faults.clear();
  assert.equal(during, 'COMPLETING');
});

test('24: an empty file is a file', async () => {
  const known = await begin(uploads, name(), { size: 0 });
  assert.equal((await ended(uploads, known.id)).result!.sha256, sha256(Buffer.alloc(0)));
  const unknown = await begin(uploads, name());
  await send(uploads, unknown.id, { number: 0, last: true }, Buffer.alloc(0));
  assert.equal((await ended(uploads, unknown.id)).result!.size, 0);
  // No bytes at a place take nothing from those that come there.
  const later = await begin(uploads, name(), { size: 10 });
  await send(uploads, later.id, { offset: 0 }, Buffer.alloc(0));
  await sendRange(uploads, later.id, bytes.subarray(0, 10), 0);
  assert.equal((await ended(uploads, later.id)).state, 'COMPLETED');
});

test('25: all keys that a script touches have one hash tag, in a cluster one slot', () => {
  const all = Object.values(service.keys(`0-${'0'.repeat(32)}`));
  const tags = all.map((key) => /\{[^}]+\}/.exec(key)![0]);
  assert.equal(new Set(tags).size, 1);
});

test('26: no value in Redis is larger than a mebibyte', async () => {
  const large = bytesOf(2_500_000);
  const wide = await service.another({ settings: { preferredPartBytes: 8 * mebibyte } });
  const { id } = await begin(wide, name(), { size: 8 * mebibyte });
  await send(wide, id, { offset: 0 }, large);
  const frames = (await remainsOf(service)).frames.filter((key) => key.includes(id));
  assert.equal(frames.length, 3);
  for (const frame of frames) assert.ok(Number(await redis('STRLEN', frame)) <= frameBytes);
  await uploads.cancel(id);
});

test('27: a chunk after completion replays the result', async () => {
  const id = await uploaded(name());
  const { ack, duplicate, state } = await send(uploads, id, { number: 0 }, chunk(0));
  assert.deepEqual(
    { ack, duplicate, status: state.status },
    { ack: 'stored', duplicate: true, status: 'COMPLETED' },
  );
  assert.equal(state.result!.sha256, sha256(bytes));
  await assert.rejects(uploads.cancel(id), { code: 'UPLOAD_ENDED' });
});

test('28: no secret of a store or a database is in Redis', async () => {
  const { id } = await begin(uploads, name(), { size: 10, metadata: { colour: 'blue' } });
  const fields = String(await redis('HGETALL', service.keys(id).state));
  assert.doesNotMatch(fields, /postgres|redis:|password|secret|credential|access.?key/i);
  await uploads.cancel(id);
});
