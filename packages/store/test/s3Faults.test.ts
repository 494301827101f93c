/** The S3 store on its bad days: every fault that a server or the network can have, between it and a real server. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer as readAll } from 'node:stream/consumers';
import { after, before, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  startS3Faults,
  startVersitygw,
  versitygwProblem,
  type S3Faults,
  type Versitygw,
} from '@sluice/testbed';
import { crc64, crc64ToBase64, s3Limits, S3Store, type S3StoreOptions } from '../src/index.js';
import { toStoreError } from '../src/s3Errors.js';
import { rejectsWith, streamOf } from './conformance.js';

const MiB = 1024 * 1024;
/** Longer than a busy machine takes to answer. */
const IDLE_MS = 3_000;
const IMPATIENT = { idleTimeoutMs: IDLE_MS };
const problem = versitygwProblem();
let server: Versitygw | undefined;

before(async () => {
  if (problem === undefined) server = await startVersitygw();
});
after(() => server?.stop());

interface Setup {
  store: S3Store;
  /** Straight to the server, to see what is really there. */
  direct: S3Store;
  faults: S3Faults;
  key: string;
}

function fact(
  what: string,
  run: (setup: Setup) => Promise<void>,
  options: Partial<S3StoreOptions> = {},
): void {
  test(`S3: ${what}`, { concurrency: true }, async (t: TestContext) => {
    if (problem !== undefined) return t.skip(problem);
    const faults = await startS3Faults(server!.endpoint);
    const store = openStore(faults.endpoint, options);
    const direct = openStore(server!.endpoint);
    try {
      await run({ store, direct, faults, key: `t/${randomUUID()}` });
    } finally {
      store.close();
      direct.close();
      await faults.stop();
    }
  });
}

function openStore(endpoint: string, options: Partial<S3StoreOptions> = {}): S3Store {
  const { region, bucket, accessKey, secretKey } = server!;
  const credentials = { accessKeyId: accessKey, secretAccessKey: secretKey };
  return new S3Store({ endpoint, region, bucket, credentials, ...options });
}

fact('500 and 503 are repeated until they pass', async ({ store, faults, key }) => {
  faults.inject({ operation: 'PutObject', fault: { do: 'answer', status: 500, code: 'InternalError' } });
  faults.inject({ operation: 'PutObject', fault: { do: 'answer', status: 503, code: 'SlowDown' } });
  await store.put(key, Buffer.from('bytes'));
  assert.equal(faults.count('PutObject'), 3);
});

fact(
  'a server that stays busy is STORE_BUSY, one that fails is STORE_UNAVAILABLE',
  async ({ store, faults, key }) => {
    const busy = faults.inject({ fault: { do: 'answer', status: 503, code: 'SlowDown' }, times: Infinity });
    await rejectsWith('STORE_BUSY', store.put(key, Buffer.from('x')));
    assert.equal(busy.applied, 4);
    faults.heal();
    faults.inject({ fault: { do: 'answer', status: 500, code: 'InternalError' }, times: Infinity });
    await rejectsWith('STORE_UNAVAILABLE', store.head(key));
  },
);

fact(
  'in an outage the budget runs dry, and calls are tried once',
  async ({ store, faults, key }) => {
    const outage = faults.inject({
      fault: { do: 'answer', status: 500, code: 'InternalError' },
      times: Infinity,
    });
    const calls = 150;
    await Promise.allSettled(Array.from({ length: calls }, () => store.head(key)));
    // 500 tokens at 5 each are 100 repetitions, however many calls fail.
    assert.equal(outage.applied, calls + 100);
  },
  { attempts: 10, maxSockets: 16 },
);

fact(
  'a long stream is sent once: what failed is reported, not repeated',
  async ({ store, direct, faults, key }) => {
    faults.inject({ operation: 'PutObject', fault: { do: 'answer', status: 503, code: 'SlowDown' } });
    await rejectsWith('STORE_BUSY', store.put(key, streamOf(randomBytes(2 * MiB))));
    assert.equal(faults.count('PutObject'), 1);
    assert.equal(await direct.head(key), undefined);
  },
);

fact('a short stream is repeated like bytes in memory', async ({ store, faults, key }) => {
  faults.inject({ operation: 'PutObject', fault: { do: 'cut', when: 'before' } });
  const bytes = randomBytes(10_000);
  assert.equal((await store.put(key, streamOf(bytes))).crc64, crc64(bytes));
  assert.equal(faults.count('PutObject'), 2);
});

fact(
  'a put and a part whose replies are lost are repeated, and are there once',
  async ({ store, faults, key }) => {
    faults.inject({ operation: 'PutObject', fault: { do: 'cut', when: 'after' } });
    faults.inject({ operation: 'UploadPart', fault: { do: 'cut', when: 'after' } });
    await store.put(key, Buffer.from('bytes'));
    const multipart = await store.createMultipart(`${key}-parts`);
    const part = await store.putPart(multipart, 1, randomBytes(2 * MiB));
    assert.deepEqual(await store.listParts(multipart), [part]);
    assert.deepEqual([faults.count('PutObject'), faults.count('UploadPart')], [2, 2]);
  },
);

fact(
  'silence ends an attempt, and the next one succeeds',
  async ({ store, faults, key }) => {
    faults.inject({ operation: 'PutObject', fault: { do: 'hang' } });
    faults.inject({ operation: 'HeadObject', fault: { do: 'hang' } });
    const began = performance.now();
    await store.put(key, randomBytes(3 * MiB));
    assert.equal((await store.head(key))!.size, 3 * MiB);
    assert.ok(performance.now() - began >= 2 * IDLE_MS);
  },
  IMPATIENT,
);

fact(
  'a slow source is not silence of the store',
  async ({ store, key }) => {
    const chunks = [randomBytes(MiB), randomBytes(MiB)];
    async function* slowly(): AsyncGenerator<Buffer> {
      for (const chunk of chunks) {
        await sleep(2 * IDLE_MS);
        yield chunk;
      }
    }
    const put = await store.put(key, {
      stream: Readable.from(slowly(), { objectMode: false }),
      length: 2 * MiB,
    });
    assert.equal(put.crc64, crc64(Buffer.concat(chunks)));
  },
  IMPATIENT,
);

fact(
  'a slow reader is not silence of the store',
  async ({ store, direct, key }) => {
    const bytes = randomBytes(8 * MiB);
    await direct.put(key, bytes);
    const { stream } = await store.get(key);
    await sleep(3 * IDLE_MS);
    assert.ok((await readAll(stream)).equals(bytes));
  },
  IMPATIENT,
);

fact(
  'a server that freezes in the middle of a body is found out',
  async ({ store, faults, direct, key }) => {
    await direct.put(key, randomBytes(4 * MiB));
    faults.inject({ operation: 'GetObject', fault: { do: 'stall', afterBytes: MiB } });
    const { stream } = await store.get(key);
    const error = await rejectsWith('STORE_TRUNCATED', readAll(stream));
    assert.match(error.message, /no byte came for/);
  },
  IMPATIENT,
);

fact(
  'a download that is cut ends with STORE_TRUNCATED and how far it came',
  async ({ store, faults, direct, key }) => {
    const bytes = randomBytes(4 * MiB);
    await direct.put(key, bytes);
    for (const afterBytes of [0, 1, MiB, bytes.length - 1]) {
      faults.inject({ operation: 'GetObject', fault: { do: 'truncate', afterBytes } });
      const { stream } = await store.get(key);
      const error = await rejectsWith('STORE_TRUNCATED', readAll(stream));
      assert.ok((error as unknown as { details: { came: number } }).details.came <= afterBytes);
    }
    const { stream } = await store.get(key, { range: { first: MiB } });
    assert.ok((await readAll(stream)).equals(bytes.subarray(MiB)));
  },
);

fact('a body that is cut on its way leaves neither object nor part', async ({ store, direct, key }) => {
  const multipart = await direct.createMultipart(key);
  const half = (): { stream: Readable; length: number } => {
    const stream = new Readable({ read() {} });
    stream.push(randomBytes(2 * MiB));
    return { stream, length: 4 * MiB };
  };
  const cutSoon = (): AbortSignal => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error('cut')), 200);
    return stop.signal;
  };
  await assert.rejects(store.put(key, half(), { signal: cutSoon() }), /cut/);
  await assert.rejects(store.putPart(multipart, 1, half(), { signal: cutSoon() }), /cut/);
  // With a checksum sent ahead there is no trailer, and the server compares all the same.
  await assert.rejects(store.put(key, half(), { signal: cutSoon(), crc64: 1n }), /cut/);
  await assert.rejects(store.putPart(multipart, 1, half(), { signal: cutSoon(), crc64: 1n }), /cut/);
  await sleep(200);
  assert.equal(await direct.head(key), undefined);
  assert.deepEqual(await direct.listParts(multipart), []);
});

fact(
  'a checksum in the reply that is not that of the bytes is STORE_CORRUPT',
  async ({ store, faults, key }) => {
    const bytes = randomBytes(2 * MiB);
    const alter = { do: 'alter', headers: { 'x-amz-checksum-crc64nvme': crc64ToBase64(1n) } } as const;
    const altered = faults.inject({ fault: alter, times: Infinity });
    const multipart = { key, id: (await store.createMultipart(key)).id };
    await rejectsWith('STORE_CORRUPT', store.putPart(multipart, 1, bytes));
    await rejectsWith('STORE_CORRUPT', store.putPart(multipart, 1, bytes, { crc64: crc64(bytes) }));
    await rejectsWith('STORE_CORRUPT', store.putPart(multipart, 1, streamOf(bytes)));
    await rejectsWith('STORE_CORRUPT', store.put(key, bytes));
    assert.ok(altered.applied >= 10);
    faults.heal();
    faults.inject({ operation: 'UploadPart', fault: alter });
    faults.inject({ operation: 'UploadPart', fault: { do: 'alter', headers: { etag: undefined } } });
    assert.equal((await store.putPart(multipart, 1, bytes)).crc64, crc64(bytes));
  },
);

fact('completing whose reply is lost is found completed', async ({ store, faults, direct, key }) => {
  const multipart = await store.createMultipart(key);
  const part = await store.putPart(multipart, 1, Buffer.from('bytes'));
  faults.inject({ operation: 'CompleteMultipartUpload', fault: { do: 'cut', when: 'after' } });
  // What AWS says of an upload that is complete; versitygw answers such a repetition with success.
  faults.inject({
    operation: 'CompleteMultipartUpload',
    fault: { do: 'answer', status: 404, code: 'NoSuchUpload' },
  });
  const made = await store.completeMultipart(multipart, [part], { size: 5, crc64: part.crc64! });
  assert.deepEqual([made.size, made.crc64, made.etag], [5, part.crc64, (await direct.head(key))!.etag]);
  // Without a checksum to compare, the ETag decides.
  const again = await store.createMultipart(`${key}-2`);
  const { number, etag } = await store.putPart(again, 1, Buffer.from('bytes'));
  faults.inject({ operation: 'CompleteMultipartUpload', fault: { do: 'cut', when: 'after' } });
  faults.inject({
    operation: 'CompleteMultipartUpload',
    fault: { do: 'answer', status: 404, code: 'NoSuchUpload' },
  });
  assert.equal((await store.completeMultipart(again, [{ number, etag }], { size: 5 })).size, 5);
});

fact(
  'an older object of the same size is not taken for the completed one',
  async ({ store, faults, direct, key }) => {
    await direct.put(key, Buffer.from('older'));
    const multipart = await store.createMultipart(key);
    const part = await store.putPart(multipart, 1, Buffer.from('newer'));
    for (const known of [{ crc64: part.crc64! }, {}]) {
      faults.inject({ operation: 'CompleteMultipartUpload', fault: { do: 'cut', when: 'before' } });
      faults.inject({
        operation: 'CompleteMultipartUpload',
        fault: { do: 'answer', status: 404, code: 'NoSuchUpload' },
      });
      await rejectsWith(
        'MULTIPART_NOT_FOUND',
        store.completeMultipart(multipart, [part], { size: 5, ...known }),
      );
    }
    // A first answer of "no such upload" is believed: nothing of ours can have completed it.
    const heads = faults.count('HeadObject');
    faults.inject({
      operation: 'CompleteMultipartUpload',
      fault: { do: 'answer', status: 404, code: 'NoSuchUpload' },
    });
    await rejectsWith('MULTIPART_NOT_FOUND', store.completeMultipart(multipart, [part], { size: 5 }));
    assert.equal(faults.count('HeadObject'), heads);
  },
);

fact(
  'success whose body says that it failed is a failure, and is repeated',
  async ({ store, faults, direct, key }) => {
    for (const carriedOut of [false, true]) {
      const multipart = await store.createMultipart(key);
      const part = await store.putPart(multipart, 1, Buffer.from('bytes'));
      faults.inject({
        operation: 'CompleteMultipartUpload',
        fault: { do: 'error in 200', code: 'InternalError', carriedOut },
      });
      await store.completeMultipart(multipart, [part], { size: 5, crc64: part.crc64! });
      faults.inject({
        operation: 'CopyObject',
        fault: { do: 'error in 200', code: 'InternalError', carriedOut },
      });
      await store.copy(key, `${key}-copy`);
      assert.equal((await direct.head(`${key}-copy`))!.crc64, part.crc64);
    }
    const failing = { do: 'error in 200', code: 'InternalError', carriedOut: false } as const;
    faults.inject({ operation: 'CopyObject', fault: failing, times: Infinity });
    await rejectsWith('STORE_UNAVAILABLE', store.copy(key, `${key}-never`));
    assert.equal(await direct.head(`${key}-never`), undefined);
  },
);

fact('a server that is killed and comes back is waited for', async ({ key }) => {
  const own = await startVersitygw();
  const store = new S3Store({
    endpoint: own.endpoint,
    region: own.region,
    bucket: own.bucket,
    credentials: { accessKeyId: own.accessKey, secretAccessKey: own.secretKey },
    attempts: 12,
  });
  try {
    await store.put(key, Buffer.from('before'));
    await own.kill9();
    const waiting = store.put(key, Buffer.from('after'));
    await sleep(200);
    await own.restart();
    await waiting;
    assert.equal((await readAll((await store.get(key)).stream)).toString(), 'after');
    await own.kill9();
    const quick = openStore(own.endpoint, { attempts: 1 });
    const error = await rejectsWith('STORE_UNAVAILABLE', quick.head(key));
    assert.equal(
      (error as unknown as { details: { outcomeUnknown: boolean } }).details.outcomeUnknown,
      false,
    );
    quick.close();
  } finally {
    store.close();
    await own.stop();
  }
});

fact('wrong credentials are refused at once, and no error shows a secret', async ({ faults, key }) => {
  const secret = 'a-secret-that-nobody-may-see';
  const accessKeyId = 'AKIAWRONGWRONGWRONG0';
  for (const id of [accessKeyId, server!.accessKey]) {
    const store = openStore(faults.endpoint, { credentials: { accessKeyId: id, secretAccessKey: secret } });
    const requests = faults.requests.length;
    for (const call of [() => store.put(key, Buffer.from('x')), () => store.get(key), () => store.check()]) {
      const error = await rejectsWith('STORE_REFUSED', call());
      const everything =
        inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error) + String(error.stack);
      for (const hidden of [secret, accessKeyId, 'AWS4-HMAC'])
        assert.ok(!everything.includes(hidden), hidden);
    }
    assert.ok(faults.requests.length - requests <= 6);
    store.close();
  }
});

fact(
  'a server without CRC-64/NVME is found out, and bytes are compared before they are sent',
  async ({ store, faults, key }) => {
    faults.inject({
      operation: 'CreateMultipartUpload',
      fault: { do: 'answer', status: 501, code: 'NotImplemented' },
    });
    await store.check();
    assert.equal(store.capabilities.crc64, false);
    const bytes = randomBytes(2 * MiB);
    for (const body of [() => bytes, () => streamOf(bytes)]) {
      await rejectsWith('BODY_CHECKSUM', store.put(key, body(), { crc64: 1n }));
      await store.put(key, body(), { crc64: crc64(bytes) });
    }
    const multipart = await store.createMultipart(key);
    const part = await store.putPart(multipart, 1, streamOf(bytes));
    await store.completeMultipart(multipart, [part], { size: bytes.length, crc64: crc64(bytes) });
    assert.equal((await store.head(key))!.size, bytes.length);
  },
);

fact(
  'a server without CRC-64/NVME is found out by its first refusal, and nobody notices',
  async ({ faults, direct, key }) => {
    faults.inject({
      hasCrc64: true,
      fault: { do: 'answer', status: 400, code: 'InvalidRequest' },
      times: Infinity,
    });
    const bytes = randomBytes(2 * MiB);
    const open = () => openStore(faults.endpoint, { prefix: `${key}/` });
    const first = open();
    await first.put('small', bytes, { crc64: crc64(bytes) });
    assert.equal(first.capabilities.crc64, false);
    assert.equal((await direct.head(`${key}/small`))!.size, bytes.length);
    const second = open();
    const multipart = await second.createMultipart('in-parts');
    const parts = [await second.putPart(multipart, 1, streamOf(bytes))];
    // Another process, which has not asked yet. What it reads from a stream is gone when it finds out.
    const third = open();
    const large = randomBytes(8 * MiB);
    await rejectsWith('STORE_UNAVAILABLE', third.put('large', streamOf(large)));
    await third.put('large', streamOf(large));
    const fourth = open();
    await fourth.completeMultipart(multipart, parts, { size: bytes.length, crc64: crc64(bytes) });
    assert.equal((await direct.head(`${key}/in-parts`))!.size, bytes.length);
    assert.equal((await direct.head(`${key}/large`))!.size, large.length);
    assert.equal((await direct.list(key)).objects.length, 3);
    assert.deepEqual(await direct.listMultiparts(key), []);
    for (const store of [first, second, third, fourth]) store.close();
  },
);

fact(
  'a refusal that is about something else stays one, and is looked into once',
  async ({ store, faults, key }) => {
    for (let i = 0; i < 2; i++) {
      faults.inject({
        operation: 'PutObject',
        key,
        fault: { do: 'answer', status: 400, code: 'InvalidRequest' },
      });
      await rejectsWith('STORE_REFUSED', store.put(key, Buffer.from('x')));
      assert.equal(store.capabilities.crc64, true);
    }
    assert.equal(faults.count('CreateMultipartUpload'), 1);
    faults.inject({
      operation: 'PutObject',
      key,
      fault: { do: 'answer', status: 403, code: 'AccessDenied' },
    });
    await rejectsWith('STORE_REFUSED', store.put(key, Buffer.from('x')));
  },
);

fact(
  'objects beyond the limit of one put are copied in parts',
  async ({ store, faults, direct, key }) => {
    const bytes = randomBytes(12 * MiB);
    await direct.put(key, bytes, { contentType: 'text/plain', metadata: { a: 'b' } });
    const copied = await store.copy(key, `${key}-copy`);
    assert.equal(faults.count('UploadPartCopy'), 3);
    assert.deepEqual([copied.size, copied.crc64], [bytes.length, crc64(bytes)]);
    const head = await direct.head(`${key}-copy`);
    assert.deepEqual(
      [head!.crc64, head!.contentType, head!.metadata],
      [crc64(bytes), 'text/plain', { a: 'b' }],
    );
    faults.inject({
      operation: 'UploadPartCopy',
      fault: { do: 'answer', status: 403, code: 'AccessDenied' },
    });
    await rejectsWith('STORE_REFUSED', store.copy(key, `${key}-never`));
    assert.deepEqual(await direct.listMultiparts(`${key}-never`), []);
  },
  { limits: { maxSinglePutBytes: 5 * MiB } },
);

fact(
  'a prefix stands before every key and is not seen',
  async ({ store, direct, key }) => {
    await store.put(key, Buffer.from('x'));
    assert.equal((await direct.head(`tenant-7/${key}`))!.size, 1);
    assert.deepEqual((await store.list(key)).objects[0]!.key, key);
    const multipart = await store.createMultipart(`${key}-m`);
    const [listed] = await store.listMultiparts(key);
    assert.deepEqual({ key: listed!.key, id: listed!.id }, multipart);
    const copied = await store.copy(key, `${key}-copy`);
    assert.equal(copied.key, `${key}-copy`);
    await rejectsWith('KEY_INVALID', store.put('../outside', Buffer.from('x')));
  },
  { prefix: 'tenant-7/' },
);

fact('lists go past 1,000 objects', async ({ store, direct, key }) => {
  const names = Array.from({ length: 1_020 }, (_, i) => `${key}/${String(i).padStart(5, '0')}`);
  const waiting = names.toReversed();
  const lane = async (): Promise<void> => {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop())
      await direct.put(name, Buffer.from('x'));
  };
  await Promise.all(Array.from({ length: 16 }, lane));
  const page = await store.list(`${key}/`, { limit: 5_000 });
  assert.deepEqual(
    page.objects.map((object) => object.key),
    names,
  );
  const first = await store.list(`${key}/`);
  assert.deepEqual([first.objects.length, first.next], [1_000, names[999]]);
});

test('S3: limits of services become capabilities', () => {
  const base = { region: 'auto', bucket: 'b', endpoint: 'http://127.0.0.1:1' };
  const open = (limits: S3StoreOptions['limits']): S3Store =>
    new S3Store({ ...base, ...(limits && { limits }) });
  assert.equal(open(s3Limits.r2).capabilities.equalParts, true);
  assert.equal(open(s3Limits.scaleway).capabilities.maxParts, 1_000);
  assert.deepEqual(open(undefined).capabilities, { ...s3Limits.aws, crc64: true });
});

test('S3: options that cannot work are refused when the store is made', async () => {
  const good = { region: 'us-east-1', bucket: 'b', endpoint: 'http://127.0.0.1:1' };
  const wrong = [
    { bucket: '' },
    { region: '' },
    { endpoint: 'nowhere' },
    { endpoint: 'ftp://x' },
    { endpoint: 'http://me:secret@x' },
  ];
  for (const option of wrong) {
    assert.throws(
      () => new S3Store({ ...good, ...option }),
      (error: Error & { code: string }) =>
        error.code === 'INPUT_INVALID' && !error.message.includes('secret'),
    );
  }
  const closed = new S3Store(good);
  closed.close();
  await rejectsWith('STORE_CLOSED', closed.head('x'));
});

test('S3: credentials that cannot be fetched now, and a request that came too slowly, are worth another try', () => {
  const context = { operation: 'PutObject', key: 'k' };
  const away = Object.assign(new Error('Could not load credentials'), { name: 'CredentialsProviderError' });
  assert.equal(toStoreError(away, context).code, 'STORE_UNAVAILABLE');
  for (const httpStatusCode of [408, 425]) {
    const slow = Object.assign(new Error('slow'), { name: 'Unknown', $metadata: { httpStatusCode } });
    assert.equal(toStoreError(slow, context).code, 'STORE_UNAVAILABLE');
  }
});
