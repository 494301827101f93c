// A file that comes in one request. A small one is stored and recorded at once: one object, one transaction. A large one, or one
// whose length nobody knows, becomes an ordinary upload whose bytes come in order, and the request waits for its end.
//
// A small file leaves a note in Redis before its object is written (`notes.ts`), so that the object does not stay behind when this
// process dies before the records know it.
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { failPoint, isSluiceError } from '@sluice/base';
import { recordsErrors, type Activated, type Drive, type Limits } from '@sluice/records';
import { crc64 as crcOf, type ObjectInfo, type ObjectStore } from '@sluice/store';
import { BodyReader, type Source } from './body.js';
import { resultOf } from './complete.js';
import { completionErrors } from './completionErrors.js';
import { defaultContentType, driveOf, inDrive, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { frameBytes } from './frames.js';
import { cancel } from './end.js';
import { checkNew, digestOf, initiate, objectKeyOf, type NewUpload } from './initiate.js';
import { makeId } from './keys.js';
import { hex, receive } from './receive.js';
import { declare } from './status.js';
import { readState, type Result } from './state.js';
import { labelsOf } from './work.js';

export interface StoredFile extends Result {
  isUpdate: boolean;
}

/** Up to this many bytes are taken into memory, so that the store can be tried again without the client. */
const inMemoryBytes = 1_048_576;
/** Who waits for an end asks again after a twentieth of the time that it has waited: mostly soon, in an outage seldom. */
const firstPollMs = 5;
const longestPollMs = 1_000;
const pollShare = 1 / 20;

export async function storeFile(
  engine: Engine,
  upload: NewUpload,
  source: Source,
  length: number | undefined,
): Promise<StoredFile> {
  if (length !== undefined) {
    const sized = { ...upload, size: length };
    return length <= engine.settings.wholeBytes
      ? reading(engine, source, (body) => storeSmall(engine, sized, body, length))
      : storeLarge(engine, sized, source, length);
  }
  return reading(engine, source, async (body) => {
    // The first bytes tell whether a piped file is a small one.
    const first = Buffer.allocUnsafe(inMemoryBytes);
    const got = await body.fill(first);
    if (got === inMemoryBytes) return storePiped(engine, upload, first, body);
    const sized = { ...upload, size: got };
    return reading(engine, only(first.subarray(0, got)), (small) => storeSmall(engine, sized, small, got));
  });
}

/** Whatever comes of it, also of a file that is refused unread: nobody keeps the rest of it from those who drop it. */
async function reading<T>(
  engine: Engine,
  source: Source,
  work: (body: BodyReader) => Promise<T>,
): Promise<T> {
  const body = new BodyReader(source, engine.settings.slowMs);
  try {
    return await work(body);
  } finally {
    body.close();
  }
}

async function storeSmall(
  engine: Engine,
  upload: NewUpload,
  body: BodyReader,
  length: number,
): Promise<StoredFile> {
  checkNew(engine, upload);
  const drive = await driveOf(engine, upload.tenant, upload.drive);
  await engine.hooks.beforeAccept?.(upload);
  const id = makeId(Math.floor(Math.random() * engine.settings.partitions));
  const objectKey = objectKeyOf(drive, id);
  const store = engine.storeOf(drive);
  await engine.notes.leave(id, upload, drive, objectKey, length);
  failPoint('whole.noted');
  const began = performance.now();
  const stopKeeping = engine.notes.keep(id);
  let object: Written;
  try {
    object = await write(engine, store, objectKey, body, length, upload.contentType);
    if (upload.sha256 !== undefined && upload.sha256 !== object.sha256)
      throw completionErrors.SHA256_MISMATCH({ id, declared: upload.sha256, computed: object.sha256 });
    engine.metrics.stored(performance.now() - began, length);
    failPoint('whole.written');
  } catch (error) {
    // What may still arrive is removed by whoever finds the note.
    const isLate = isSluiceError(error) && error.details?.['outcomeUnknown'] === true;
    await store.delete(objectKey).then(
      () => (isLate ? undefined : engine.notes.remove(id)),
      () => {},
    );
    throw error;
  } finally {
    stopKeeping();
  }
  const recording = record(engine, upload, id, drive, objectKey, object);
  const stored = await inDrive(engine, drive, recording).catch(async (error: unknown) => {
    // What the records refused for good leaves nothing; of anything else nobody knows yet whether it was recorded.
    if (isSluiceError(error) && !error.retryable)
      await store.delete(objectKey).then(
        () => engine.notes.remove(id),
        () => {},
      );
    throw error;
  });
  failPoint('whole.recorded');
  if (stored.upload.objectKey !== objectKey) await store.delete(objectKey);
  // At least once: it is asked for while the note is there. Who repeats somebody else's request has nothing to announce.
  if (engine.hooks.afterComplete && stored.upload.id === id) {
    const { nodeId, path } = stored.result;
    const job = { upload: id, nodeId, tenant: upload.tenant, path, size: length };
    await engine.queue.add({ do: 'announce', ...job }, { labels: labelsOf(upload) });
  }
  // The file is recorded, whatever becomes of its note: whoever finds that asks the records.
  engine.notes.remove(id).catch(() => {});
  // What was answered under this key before was the answer to other bytes of the same size.
  if (stored.result.sha256 !== object.sha256)
    throw recordsErrors.IDEMPOTENCY_CONFLICT({ key: upload.idempotencyKey ?? '' });
  engine.metrics.chunkReceived(performance.now() - began, length);
  engine.metrics.chunkCommitted();
  engine.metrics.completed(performance.now() - began);
  return { ...resultOf(stored.result), isUpdate: stored.isUpdate };
}

interface Written extends ObjectInfo {
  crc64: bigint;
  sha256: string;
}

/** From memory if there is room for the file, else as it comes. */
async function write(
  engine: Engine,
  store: ObjectStore,
  key: string,
  body: BodyReader,
  length: number,
  contentType: string | undefined,
): Promise<Written> {
  const type = contentType === undefined ? {} : { contentType };
  if (length <= inMemoryBytes) return writeBytes(store, key, body, Buffer.allocUnsafe(length), type);
  const place = engine.partMemory.take(length);
  if (!place) return writeStream(store, key, body, length, type);
  try {
    return await writeBytes(store, key, body, place.subarray(0, length), type);
  } finally {
    engine.partMemory.giveBack(place);
  }
}

async function writeBytes(
  store: ObjectStore,
  key: string,
  body: BodyReader,
  bytes: Buffer,
  type: { contentType?: string },
): Promise<Written> {
  const { length } = bytes;
  const got = await body.fill(bytes);
  if (got < length) throw uploadErrors.BODY_TRUNCATED({ wanted: length, got });
  await body.expectEnd(length);
  const crc64 = crcOf(bytes, 0n);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return confirmed(store, await store.put(key, bytes, { ...type, crc64 }), length, crc64, sha256);
}

async function writeStream(
  store: ObjectStore,
  key: string,
  body: BodyReader,
  length: number,
  type: { contentType?: string },
): Promise<Written> {
  const hash = createHash('sha256');
  let crc64 = 0n;
  const stream = body.stream(length, (bytes) => {
    crc64 = crcOf(bytes, crc64);
    hash.update(bytes);
  });
  const object = await store.put(key, { stream, length }, type);
  await body.expectEnd(length);
  return confirmed(store, object, length, crc64, hash.digest('hex'));
}

/** The store must have what was read; one that does not say is read back. */
async function confirmed(
  store: ObjectStore,
  object: ObjectInfo,
  size: number,
  crc64: bigint,
  sha256: string,
): Promise<Written> {
  const seen = object.crc64 ?? (await readBack(store, object));
  if (seen === crc64) return { ...object, size, crc64, sha256 };
  throw uploadErrors.STORE_DIFFERS({ what: 'the file', store: hex(seen), sent: hex(crc64) });
}

async function readBack(store: ObjectStore, { key }: ObjectInfo): Promise<bigint> {
  let crc64 = 0n;
  const { stream } = await store.get(key);
  for await (const bytes of stream as AsyncIterable<Buffer>) crc64 = crcOf(bytes, crc64);
  return crc64;
}

function record(
  engine: Engine,
  upload: NewUpload,
  id: string,
  drive: Drive,
  objectKey: string,
  object: Written,
): Promise<Activated> {
  return engine.records.uploads.storeWhole({
    id,
    tenant: upload.tenant,
    ...(upload.owner !== undefined && { owner: upload.owner }),
    drive: upload.drive,
    bucket: drive.bucket,
    prefix: drive.prefix,
    path: upload.path,
    objectKey,
    declaredSize: object.size,
    ...(upload.sha256 !== undefined && { declaredSha256: upload.sha256 }),
    contentType: upload.contentType ?? defaultContentType,
    ...(upload.metadata && { metadata: upload.metadata }),
    ...(upload.clientNodeId !== undefined && { clientNodeId: upload.clientNodeId }),
    ...(upload.idempotencyKey !== undefined && { idempotencyKey: upload.idempotencyKey }),
    requestDigest: digestOf(upload),
    ifExists: upload.ifExists ?? 'replace',
    ...(upload.ifMatch && { ifMatch: upload.ifMatch }),
    ...(upload.limits && { limits: withoutOpen(upload.limits) }),
    size: object.size,
    etag: object.etag,
    sha256: object.sha256,
    crc64: hex(object.crc64),
  });
}

/** A file that is stored at once was never an open upload. */
function withoutOpen({ maxOpenUploads: _, ...limits }: Limits): Limits {
  return limits;
}

async function storeLarge(
  engine: Engine,
  upload: NewUpload,
  source: Source,
  length: number,
): Promise<StoredFile> {
  const { id, status, isUpdate, result } = await initiate(engine, upload, { inOneRequest: true });
  if (result) return reading(engine, source, (body) => answeredBefore(upload, body, { ...result, isUpdate }));
  return orCancelled(engine, upload, id, async () => {
    if (status === 'PENDING' || status === 'UPLOADING')
      await receive(engine, id, { offset: 0, total: length }, source, length);
    return { ...(await untilCompleted(engine, id)), isUpdate };
  });
}

/** Of unknown length: frame by frame, until it ends. */
async function storePiped(
  engine: Engine,
  upload: NewUpload,
  first: Buffer,
  body: BodyReader,
): Promise<StoredFile> {
  const { id, isUpdate, result } = await initiate(engine, upload);
  if (result) return answeredBefore(upload, body, { ...result, isUpdate }, first);
  return orCancelled(engine, upload, id, async () => {
    let offset = 0;
    let frame = first;
    let got = first.length;
    while (got > 0) {
      await receive(engine, id, { offset }, only(frame.subarray(0, got)), got);
      offset += got;
      frame = Buffer.allocUnsafe(frameBytes);
      got = await body.fill(frame);
    }
    await declare(engine, id, { size: offset });
    return { ...(await untilCompleted(engine, id)), isUpdate };
  });
}

/**
 * The same request was answered before. Only its bytes tell whether it is the same, unless their digest was declared: then it is among
 * what the records have compared.
 */
async function answeredBefore(
  { sha256, idempotencyKey = '' }: NewUpload,
  body: BodyReader,
  answer: StoredFile,
  first: Buffer = Buffer.alloc(0),
): Promise<StoredFile> {
  if (sha256 !== undefined) return answer;
  const hash = createHash('sha256').update(first);
  for (let bytes = await body.next(frameBytes); bytes; bytes = await body.next(frameBytes))
    hash.update(bytes);
  if (hash.digest('hex') === answer.sha256) return answer;
  throw recordsErrors.IDEMPOTENCY_CONFLICT({ key: idempotencyKey });
}

/** Nobody knows the id of an upload that came in one request: what failed is ended, unless its key brings it back. */
async function orCancelled<T>(
  engine: Engine,
  { idempotencyKey }: NewUpload,
  id: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (idempotencyKey === undefined) await cancel(engine, id).catch(() => {});
    throw error;
  }
}

/** The end of an upload whose bytes are all there. */
export async function untilCompleted(engine: Engine, id: string, signal?: AbortSignal): Promise<Result> {
  for (const beganMs = performance.now(); ;) {
    const state = await readState(engine, id);
    if (!state) throw uploadErrors.UPLOAD_NOT_FOUND({ id });
    if (state.status === 'COMPLETED') return state.result!;
    if (state.status !== 'UPLOADING' && state.status !== 'COMPLETING' && state.status !== 'PENDING')
      throw uploadErrors.UPLOAD_FAILED({
        id,
        state: state.status,
        code: state.errorCode ?? '',
        reason: state.errorMessage ?? '',
      });
    if (state.status === 'UPLOADING' && state.receivedBytes < state.size!) throw uploadErrors.CHUNKS_LOST();
    const waitedMs = performance.now() - beganMs;
    const pauseMs = Math.min(Math.max(firstPollMs, waitedMs * pollShare), longestPollMs);
    await pause(pauseMs, undefined, { signal });
  }
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  if (bytes.length > 0) yield bytes;
}
