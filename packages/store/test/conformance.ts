/** What every object store owes its callers, as tests that run on each of them. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer as readAll } from 'node:stream/consumers';
import { test } from 'node:test';
import { isSluiceError } from '@sluice/base';
import { combineCrc64, crc64, type Body, type ObjectStore, type StoredPart } from '../src/index.js';

export interface Subject {
  store(): ObjectStore;
  /** Why the tests cannot run here. */
  problem: string | undefined;
  /** Any well-formed key of up to 1,024 bytes is just a key; otherwise such keys may be refused. */
  anyKey: boolean;
}

const MiB = 1024 * 1024;

export function conforms(name: string, subject: Subject): void {
  const fact = (what: string, run: (store: ObjectStore, key: string) => Promise<void>): void => {
    test(`${name}: ${what}`, { concurrency: true }, async (t) => {
      if (subject.problem !== undefined) return t.skip(subject.problem);
      await run(subject.store(), `t/${randomUUID()}/object`);
    });
  };
  objects(fact);
  reading(fact);
  refusals(fact);
  multiparts(fact);
  keys(fact, subject);
}

type Fact = (what: string, run: (store: ObjectStore, key: string) => Promise<void>) => void;

function objects(fact: Fact): void {
  fact('what was put is read, headed and described as it was given', async (store, key) => {
    const bytes = randomBytes(100_000);
    const metadata = {
      plain: 'value',
      unicode: 'Grüße, 世界 😀',
      spaced: ' x ',
      empty: '',
      mark: "utf-8''%41",
    };
    const put = await store.put(key, bytes, {
      contentType: 'text/x-test; a=b',
      metadata,
      crc64: crc64(bytes),
    });
    assert.equal(put.size, bytes.length);
    const head = await store.head(key);
    assert.deepEqual(
      { ...head, lastModified: undefined },
      {
        key,
        size: bytes.length,
        etag: put.etag,
        crc64: crc64(bytes),
        contentType: 'text/x-test; a=b',
        lastModified: undefined,
        metadata,
      },
    );
    assert.ok(Math.abs(Date.now() - head!.lastModified!.getTime()) < 60_000);
    const read = await store.get(key);
    assert.deepEqual(
      [read.size, read.length, read.etag, read.metadata],
      [bytes.length, bytes.length, put.etag, metadata],
    );
    assert.ok((await readAll(read.stream)).equals(bytes));
  });

  fact('objects of no byte and of one byte, from memory and from a stream', async (store, key) => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('x')]) {
      for (const body of [bytes, streamOf(bytes)]) {
        const put = await store.put(key, body);
        assert.equal(put.crc64, crc64(bytes));
        const read = await store.get(key);
        assert.equal(read.length, bytes.length);
        assert.ok((await readAll(read.stream)).equals(bytes));
      }
    }
  });

  fact('a long stream passes through and its checksum is reported', async (store, key) => {
    const bytes = randomBytes(3 * MiB + 17);
    const put = await store.put(key, streamOf(bytes, 50_000));
    assert.equal(put.crc64, crc64(bytes));
    assert.ok((await readAll((await store.get(key)).stream)).equals(bytes));
    assert.equal(
      (await store.put(key, streamOf(bytes, 50_000), { crc64: crc64(bytes) })).crc64,
      crc64(bytes),
    );
  });

  fact('putting again replaces the object', async (store, key) => {
    const first = await store.put(key, Buffer.from('first'), { metadata: { only: 'first' } });
    const second = await store.put(key, Buffer.from('second one'));
    assert.notEqual(first.etag, second.etag);
    const head = await store.head(key);
    assert.deepEqual([head!.size, head!.metadata], [10, {}]);
  });

  fact('puts of the same key at the same time leave one whole object', async (store, key) => {
    const bodies = Array.from({ length: 8 }, (_, i) => Buffer.alloc(300_000 + i, i));
    await Promise.all(bodies.map((body, i) => store.put(key, i % 2 ? body : streamOf(body))));
    const read = await store.get(key);
    const bytes = await readAll(read.stream);
    assert.ok(bodies.some((body) => body.equals(bytes)));
    assert.equal(read.size, bytes.length);
    assert.equal((await store.head(key))!.crc64, crc64(bytes));
  });

  fact('what is absent is undefined, not found, and deleted without complaint', async (store, key) => {
    assert.equal(await store.head(key), undefined);
    await rejectsWith('OBJECT_NOT_FOUND', store.get(key));
    await rejectsWith('OBJECT_NOT_FOUND', store.copy(key, `${key}-copy`));
    await store.delete(key);
    await store.put(key, Buffer.from('x'));
    await store.delete(key);
    await store.delete(key);
    assert.equal(await store.head(key), undefined);
  });

  fact('a copy has the bytes, the checksum and the description', async (store, key) => {
    const bytes = randomBytes(70_000);
    await store.put(key, bytes, { contentType: 'text/plain', metadata: { a: 'ü' } });
    const copied = await store.copy(key, `${key}-copy ü+%`);
    assert.deepEqual(
      [copied.key, copied.size, copied.crc64],
      [`${key}-copy ü+%`, bytes.length, crc64(bytes)],
    );
    const read = await store.get(`${key}-copy ü+%`);
    assert.deepEqual([read.contentType, read.metadata], ['text/plain', { a: 'ü' }]);
    assert.ok((await readAll(read.stream)).equals(bytes));
  });

  fact('lists are in the order of keys and go on where they stopped', async (store, key) => {
    const names = ['a-b', 'a/b', 'a0', 'b/c/d', 'ä', 'é', '\uff5e', '😀'].map((name) => `${key}/x${name}`);
    for (const name of names.toReversed()) await store.put(name, Buffer.from(name));
    await store.put(`${key}-beside`, Buffer.from('not in the list'));
    const expected = names.toSorted((a, b) => Buffer.from(a).compare(Buffer.from(b)));
    const all = await store.list(`${key}/`);
    assert.deepEqual(
      all.objects.map((object) => object.key),
      expected,
    );
    assert.equal(all.next, undefined);
    assert.equal(all.objects[0]!.size, Buffer.byteLength(expected[0]!));
    const paged: string[] = [];
    for (let from: string | undefined, pages = 0; pages < 20; pages++) {
      const page = await store.list(`${key}/`, { limit: 2, ...(from !== undefined && { from }) });
      assert.ok(page.objects.length <= 2);
      paged.push(...page.objects.map((object) => object.key));
      from = page.next;
      if (from === undefined) break;
    }
    assert.deepEqual(paged, expected);
    assert.deepEqual((await store.list(`${key}/nothing`)).objects, []);
  });

  fact('a shallow list has what lies in a folder itself, page by page', async (store, key) => {
    for (const name of ['a', 'b', 'bb/c', 'bb/d', 'c/e/f', 'g'])
      await store.put(`${key}/${name}`, Buffer.from(name));
    await store.put(`${key}-beside`, Buffer.from('beside'));
    const paged: string[] = [];
    for (let from: string | undefined, pages = 0; pages < 20; pages++) {
      const options = { shallow: true, limit: 2, ...(from !== undefined && { from }) };
      const page = await store.list(`${key}/`, options);
      paged.push(...page.objects.map((object) => object.key));
      from = page.next;
      if (from === undefined) break;
    }
    assert.deepEqual(paged, [`${key}/a`, `${key}/b`, `${key}/g`]);
    assert.deepEqual((await store.list(`${key}/none/`, { shallow: true })).objects, []);
  });

  fact('a store that can be written to passes its check and keeps nothing of it', async (store) => {
    await store.check();
    assert.deepEqual((await store.list('sluice-check')).objects, []);
    assert.equal(store.capabilities.crc64, true);
  });
}

function reading(fact: Fact): void {
  fact('ranges: first, last, middle, open, clipped at the end', async (store, key) => {
    const bytes = randomBytes(600_000);
    await store.put(key, bytes);
    const end = bytes.length - 1;
    const ranges = [
      [0, 0],
      [end, end],
      [5, 300_000],
      [599_990, undefined],
      [0, undefined],
      [599_000, 10_000_000],
    ] as const;
    for (const [first, last] of ranges) {
      const read = await store.get(key, { range: { first, ...(last !== undefined && { last }) } });
      const expected = bytes.subarray(first, last === undefined ? undefined : last + 1);
      assert.deepEqual([read.length, read.size], [expected.length, bytes.length]);
      assert.ok((await readAll(read.stream)).equals(expected), `${first}-${last}`);
    }
  });

  fact('a range beyond the end is not satisfiable, and nonsense is refused', async (store, key) => {
    await store.put(key, Buffer.from('12345'));
    await rejectsWith('RANGE_NOT_SATISFIABLE', store.get(key, { range: { first: 5 } }));
    await rejectsWith('RANGE_NOT_SATISFIABLE', store.get(key, { range: { first: 50, last: 60 } }));
    for (const range of [{ first: -1 }, { first: 3, last: 2 }, { first: 0.5 }, { first: NaN }]) {
      await rejectsWith('INPUT_INVALID', store.get(key, { range }));
    }
    await store.put(key, Buffer.alloc(0));
    await rejectsWith('RANGE_NOT_SATISFIABLE', store.get(key, { range: { first: 0 } }));
  });

  fact('reading with ifMatch fails once the object has changed', async (store, key) => {
    const { etag } = await store.put(key, Buffer.from('before'));
    const read = await store.get(key, { ifMatch: etag });
    assert.equal((await readAll(read.stream)).toString(), 'before');
    await store.put(key, Buffer.from('after'));
    await rejectsWith('OBJECT_CHANGED', store.get(key, { ifMatch: etag }));
  });

  fact('a reader that stops, or is told to, leaves the store usable', async (store, key) => {
    const bytes = randomBytes(4 * MiB);
    await store.put(key, bytes);
    (await store.get(key)).stream.destroy();
    const stop = new AbortController();
    const read = await store.get(key, { signal: stop.signal });
    const rest = readAll(read.stream);
    stop.abort();
    await assert.rejects(rest, { name: 'AbortError' });
    assert.ok((await readAll((await store.get(key)).stream)).equals(bytes));
  });
}

function refusals(fact: Fact): void {
  fact('bytes that do not have their declared checksum are refused and not stored', async (store, key) => {
    const large = randomBytes(2 * MiB);
    for (const body of [
      (): Body => Buffer.from('x'),
      () => large,
      () => streamOf(Buffer.from('x')),
      () => streamOf(large),
    ]) {
      await rejectsWith('BODY_CHECKSUM', store.put(key, body(), { crc64: 1n }));
      assert.equal(await store.head(key), undefined);
    }
    const multipart = await store.createMultipart(key);
    await rejectsWith('BODY_CHECKSUM', store.putPart(multipart, 1, Buffer.from('x'), { crc64: 1n }));
    assert.deepEqual(await store.listParts(multipart), []);
    await store.abortMultipart(multipart);
  });

  fact('a stream of another length than declared is refused and not stored', async (store, key) => {
    for (const size of [10, 2 * MiB]) {
      const bytes = randomBytes(size);
      for (const length of [size - 1, size + 1, size + MiB, 0]) {
        await rejectsWith('BODY_LENGTH', store.put(key, { ...streamOf(bytes), length }));
        assert.equal(await store.head(key), undefined, `${size} as ${length}`);
      }
    }
    const part = randomBytes(2 * MiB);
    const multipart = await store.createMultipart(key);
    for (const length of [part.length - 1, part.length + 1]) {
      await rejectsWith('BODY_LENGTH', store.putPart(multipart, 1, { ...streamOf(part), length }));
    }
    assert.deepEqual(await store.listParts(multipart), []);
    await store.abortMultipart(multipart);
    for (const length of [-1, 0.5, NaN, 2 ** 60]) {
      await rejectsWith('INPUT_INVALID', store.put(key, { ...streamOf(Buffer.from('x')), length }));
    }
  });

  fact(
    'a stream that breaks off is refused, not stored, and is not destroyed by the store',
    async (store, key) => {
      const broken = new Readable({ read() {} });
      broken.push(randomBytes(MiB));
      setTimeout(() => broken.destroy(new Error('the client went away')), 30);
      const error = await rejectsWith('BODY_FAILED', store.put(key, { stream: broken, length: 5 * MiB }));
      assert.match(error.message, /the client went away/);
      assert.equal(await store.head(key), undefined);
      const tooLong = streamOf(randomBytes(2 * MiB));
      await rejectsWith('BODY_LENGTH', store.put(key, { ...tooLong, length: MiB }));
      assert.equal(tooLong.stream.destroyed, false);
      await rejectsWith('BODY_FAILED', store.put(key, { stream: broken, length: 5 }));
    },
  );

  fact('a put that is aborted rejects with the reason and stores nothing', async (store, key) => {
    const endless = new Readable({ read() {} });
    endless.push(randomBytes(2 * MiB));
    const reason = new Error('changed our mind');
    const stop = new AbortController();
    setTimeout(() => stop.abort(reason), 30);
    await assert.rejects(
      store.put(key, { stream: endless, length: 8 * MiB }, { signal: stop.signal }),
      reason,
    );
    await assert.rejects(store.put(key, Buffer.from('x'), { signal: stop.signal }), reason);
    assert.equal(await store.head(key), undefined);
    assert.equal(endless.destroyed, false);
  });

  fact('metadata and types that no header can carry are refused', async (store, key) => {
    const body = Buffer.from('x');
    const wrong = [
      ['Upper-Case', 'x'],
      ['a b', 'x'],
      ['', 'x'],
      ['a', 'x'.repeat(3_000)],
      ['a', '\ud800'],
    ];
    for (const pair of wrong) {
      const metadata = Object.fromEntries([pair]) as Record<string, string>;
      await rejectsWith('INPUT_INVALID', store.put(key, body, { metadata }));
    }
    for (const contentType of ['', 'text/plain\r\nx-evil: 1', 'ü']) {
      await rejectsWith('INPUT_INVALID', store.put(key, body, { contentType }));
    }
    assert.equal(await store.head(key), undefined);
  });
}

function multiparts(fact: Fact): void {
  fact('parts put in any order make one object with the combined checksum', async (store, key) => {
    const { minPartBytes } = store.capabilities;
    const bytes = randomBytes(minPartBytes * 2 + 1_000);
    const cuts = [0, minPartBytes, 2 * minPartBytes, bytes.length];
    const piece = (n: number): Buffer => bytes.subarray(cuts[n - 1], cuts[n]);
    const multipart = await store.createMultipart(key, { contentType: 'text/plain', metadata: { a: 'b' } });
    const parts: StoredPart[] = [];
    parts[2] = await store.putPart(multipart, 3, piece(3), { crc64: crc64(piece(3)) });
    parts[0] = await store.putPart(multipart, 1, streamOf(piece(1)));
    parts[1] = await store.putPart(multipart, 2, piece(2));
    for (const [i, part] of parts.entries()) {
      assert.deepEqual(
        [part.number, part.size, part.crc64],
        [i + 1, piece(i + 1).length, crc64(piece(i + 1))],
      );
    }
    assert.deepEqual(await store.listParts(multipart), parts);
    assert.equal(await store.head(key), undefined);
    const whole = parts.reduce((crc, part) => combineCrc64(crc, part.crc64!, part.size), 0n);
    const made = await store.completeMultipart(multipart, parts, { size: bytes.length, crc64: whole });
    assert.deepEqual([made.key, made.size, made.crc64], [key, bytes.length, crc64(bytes)]);
    const read = await store.get(key);
    assert.deepEqual(
      [read.etag, read.crc64, read.contentType, read.metadata],
      [made.etag, whole, 'text/plain', { a: 'b' }],
    );
    assert.ok((await readAll(read.stream)).equals(bytes));
  });

  fact('parts without a known checksum complete as well', async (store, key) => {
    const multipart = await store.createMultipart(key);
    const { number, etag } = await store.putPart(multipart, 7, Buffer.from('seven'));
    const made = await store.completeMultipart(multipart, [{ number, etag }], { size: 5 });
    assert.equal(made.crc64, crc64(Buffer.from('seven')));
  });

  fact('a part put again replaces the first', async (store, key) => {
    const multipart = await store.createMultipart(key);
    const first = await store.putPart(multipart, 1, Buffer.from('first'));
    const second = await store.putPart(multipart, 1, Buffer.from('second!'));
    assert.deepEqual(await store.listParts(multipart), [second]);
    await rejectsWith('PARTS_REFUSED', store.completeMultipart(multipart, [first], { size: 5 }));
    await store.completeMultipart(multipart, [second], { size: 7 });
    assert.equal((await readAll((await store.get(key)).stream)).toString(), 'second!');
  });

  fact(
    'wrong sums, missing, doubled and unsorted parts are refused, and the upload lives on',
    async (store, key) => {
      const multipart = await store.createMultipart(key);
      const part = await store.putPart(multipart, 2, Buffer.from('bytes'));
      const complete = (parts: StoredPart[], size: number, crc?: bigint): Promise<unknown> =>
        store.completeMultipart(multipart, parts, { size, ...(crc !== undefined && { crc64: crc }) });
      await rejectsWith('PARTS_REFUSED', complete([part], 6));
      await rejectsWith('PARTS_REFUSED', complete([part], 5, 1n));
      await rejectsWith('PARTS_REFUSED', complete([], 0));
      await rejectsWith('PARTS_REFUSED', complete([part, { ...part, number: 3 }], 10));
      await rejectsWith('PARTS_REFUSED', complete([part, part], 10));
      await rejectsWith('PARTS_REFUSED', complete([part, { ...part, number: 1 }], 10));
      for (const number of [0, -1, 1.5, 10_001]) {
        await rejectsWith('INPUT_INVALID', store.putPart(multipart, number, Buffer.from('x')));
      }
      assert.equal(await store.head(key), undefined);
      await complete([part], 5, crc64(Buffer.from('bytes')));
      assert.equal((await store.head(key))!.size, 5);
    },
  );

  fact('an upload that was completed, aborted or never begun is not found', async (store, key) => {
    const bytes = Buffer.from('x');
    const aborted = await store.createMultipart(key);
    await store.putPart(aborted, 1, bytes);
    await store.abortMultipart(aborted);
    await store.abortMultipart(aborted);
    const invented = [randomUUID(), '../../objects', '..', 'nonsense'].map((id) => ({ key, id }));
    for (const multipart of [aborted, ...invented]) {
      await rejectsWith('MULTIPART_NOT_FOUND', store.putPart(multipart, 1, bytes));
      await rejectsWith('MULTIPART_NOT_FOUND', store.listParts(multipart));
      const parts = [{ number: 1, etag: '"9dd4e461268c8034f5c8564e155c67a6"', crc64: crc64(bytes) }];
      await rejectsWith('MULTIPART_NOT_FOUND', store.completeMultipart(multipart, parts, { size: 1 }));
      await store.abortMultipart(multipart);
    }
    assert.equal(await store.head(key), undefined);
  });

  fact('more than 1,000 parts are listed, in order', async (store, key) => {
    const multipart = await store.createMultipart(key);
    const numbers = Array.from({ length: 1_050 }, (_, i) => 1 + i * 3).toReversed();
    const lane = async (): Promise<void> => {
      for (let n = numbers.pop(); n !== undefined; n = numbers.pop()) {
        await store.putPart(multipart, n, Buffer.from(`part ${n}`));
      }
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    const parts = await store.listParts(multipart);
    assert.deepEqual(
      parts.map(({ number }) => number),
      Array.from({ length: 1_050 }, (_, i) => 1 + i * 3),
    );
    assert.equal(parts[1_049]!.crc64, crc64(Buffer.from('part 3148')));
    await store.abortMultipart(multipart);
  });

  fact('uploads under way are listed by prefix until they end', async (store, key) => {
    const first = await store.createMultipart(`${key}/a`);
    const second = await store.createMultipart(`${key}/b`);
    await store.createMultipart(`${key}-other`);
    const found = await store.listMultiparts(`${key}/`);
    assert.deepEqual(
      found.map(({ key: listed, id }) => ({ key: listed, id })),
      [first, second],
    );
    assert.ok(Math.abs(Date.now() - found[0]!.initiatedAt!.getTime()) < 60_000);
    await store.abortMultipart(first);
    const part = await store.putPart(second, 1, Buffer.from('x'));
    await store.completeMultipart(second, [part], { size: 1 });
    assert.deepEqual(await store.listMultiparts(`${key}/`), []);
  });
}

function keys(fact: Fact, { anyKey }: Subject): void {
  fact('a hostile key is just a key, or is refused', async (store, prefix) => {
    const hostile = [
      '../../../escape',
      '/etc/passwd',
      './x',
      'a//b',
      '..',
      'nul\0key',
      'line\nbreak',
      'con',
      'q/',
      '%2e%2e/%00',
    ];
    for (const key of [...hostile.map((name) => `${prefix}${name}`), ...hostile]) {
      const bytes = Buffer.from(`this is ${key}`);
      const outcome = await store.put(key, bytes).catch((error: unknown) => error);
      if (outcome instanceof Error) {
        assert.ok(!anyKey && isSluiceError(outcome) && !outcome.retryable, `${key}: ${outcome.message}`);
        continue;
      }
      assert.equal((await readAll((await store.get(key)).stream)).toString(), bytes.toString());
      await store.delete(key);
    }
  });

  fact('keys of 1,024 bytes and of any script are kept', async (store, prefix) => {
    const long = `${prefix}/${'k/long-'.repeat(200)}`.slice(0, 1_024);
    for (const key of [long, `${prefix}/日本語 ключ ٱلْعَرَبِيَّة 😀`, `${prefix}/a b+c%20&<>"'?#:;,=@*`]) {
      await store.put(key, Buffer.from(key));
      assert.deepEqual(
        (await store.list(key)).objects.map((object) => object.key),
        [key],
      );
      assert.equal((await readAll((await store.get(key)).stream)).toString(), key);
    }
  });

  fact('empty, too long and malformed keys are refused', async (store) => {
    for (const key of [
      '',
      'k'.repeat(1_025),
      'ü'.repeat(513),
      'half \ud83d',
      undefined as unknown as string,
    ]) {
      await rejectsWith('KEY_INVALID', store.put(key, Buffer.from('x')));
      await rejectsWith('KEY_INVALID', store.get(key));
      await rejectsWith('KEY_INVALID', store.createMultipart(key));
    }
  });
}

export function streamOf(bytes: Buffer, chunkBytes = 65_536): { stream: Readable; length: number } {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
  return { stream: Readable.from(chunks, { objectMode: false }), length: bytes.length };
}

export async function rejectsWith(code: string, promise: Promise<unknown>): Promise<Error> {
  const error = await promise.then(
    () => assert.fail(`expected ${code}`),
    (reason: unknown) => reason as Error,
  );
  assert.equal((error as { code?: string }).code, code, error.message);
  return error;
}
