// Completing an upload, once, whatever dies on the way. Every step may be repeated by the next holder of the lease:
//
//   lease      the state becomes COMPLETING; the fence grows with every holder, and the records learn it
//   object     the parts become an object; if the multipart upload is gone, the object must be there and be ours
//   verify     size and CRC-64/NVME of the object against what was received, SHA-256 against what was declared
//   activate   one transaction: the node is ACTIVE, the events are in the outbox; a holder with an old fence is refused
//   finish     the state becomes COMPLETED with its result, which later chunks and questions get
import { createHash, randomBytes } from 'node:crypto';
import { failPoint, isSluiceError } from '@sluice/base';
import type { UploadResult } from '@sluice/records';
import { combineCrc64, crc64 as crcOf, type ObjectInfo, type ObjectStore } from '@sluice/store';
import { completionErrors } from './completionErrors.js';
import { defaultContentType, runScript, type Engine } from './engine.js';
import { forgetMultipart } from './place.js';
import { hex } from './receive.js';
import { decodeState, pairs, readParts, type PartRecord, type Result, type State } from './state.js';
import { dropFrames } from './writePart.js';
import { ask } from './work.js';

export async function complete(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  const { leaseMs } = engine.settings;
  const holder = randomBytes(9).toString('base64url');
  const [word, fenceText, ...fields] = await runScript(engine, 'completing', id, { id, holder, leaseMs });
  if (word === 'HELD') throw completionErrors.LEASE_HELD({ id });
  if (word !== 'OK') return;
  failPoint('complete.leased');
  const state = decodeState(id, pairs(fields))!;
  const fence = Number(fenceText);
  const lease = new Lease(engine, id, fence);
  try {
    await completeUnderLease(engine, state, fence, lease.signalWith(signal));
  } catch (error) {
    // The next one need not wait for the lease to run out.
    if (!isSluiceError(error) || error.retryable) await lease.giveBack();
    throw error;
  } finally {
    lease.end();
  }
}

async function completeUnderLease(
  engine: Engine,
  state: State,
  fence: number,
  signal: AbortSignal,
): Promise<void> {
  const { id } = state;
  const known = await engine.records.uploads.raiseFence(id, fence);
  failPoint('complete.fenced');
  // Somebody completed it and died before the state could follow. Its object may have been replaced since.
  if (known.status === 'COMPLETED' && known.result)
    return finishCompleted(engine, state, resultOf(known.result));
  const parts = await readParts(engine, id);
  const store = engine.storeOf({ bucket: state.bucket, prefix: state.drivePrefix });
  const crc64 = parts.reduce((all, part) => combineCrc64(all, part.crc64, part.size), 0n);
  const object = await makeObject(engine, state, store, parts, crc64, signal);
  failPoint('complete.made');
  const sha256 = await verify(engine, state, store, object, crc64, signal);
  failPoint('complete.verified');
  const activated = await engine.records.uploads.activate({
    id,
    fence,
    objectKey: object.key,
    size: object.size,
    etag: object.etag,
    sha256,
    crc64: hex(crc64),
    contentType: state.contentType ?? defaultContentType,
    ...limitsOf(state),
  });
  failPoint('complete.activated');
  await finishCompleted(engine, state, resultOf(activated.result));
}

/** Checked once more: the length may not have been known when it began. Without limits nobody waits for anybody. */
function limitsOf({ maxTenantBytes }: State): { limits?: { maxBytes: number } } {
  return maxTenantBytes === undefined ? {} : { limits: { maxBytes: maxTenantBytes } };
}

export function resultOf({
  nodeId,
  size,
  etag = '',
  sha256 = '',
  crc64 = '',
  version,
}: UploadResult): Result {
  return { nodeId, size, etag, sha256, crc64, version };
}

/** The records say COMPLETED; the state says so too, and what is left behind is cleaned up. */
export async function finishCompleted(
  engine: Engine,
  state: Pick<State, 'id' | 'tenant' | 'owner' | 'path' | 'firstChunkAt' | 'createdAt'>,
  result: Result,
): Promise<void> {
  const { id, tenant, path } = state;
  // At least once: it is asked for before the state says that there is nothing left to do.
  if (engine.hooks.afterComplete) {
    const { nodeId, size } = result;
    await ask(engine, { do: 'announce', upload: id, nodeId, tenant, path, size }, state);
  }
  const fields = [
    'result',
    JSON.stringify(result),
    'final_etag',
    result.etag,
    'final_size',
    String(result.size),
    'node_id',
    result.nodeId,
  ];
  const [word, ...left] = await runScript(engine, 'finish', id, {
    id,
    status: 'COMPLETED',
    fields: JSON.stringify(fields),
    keepMs: engine.settings.keepMs,
    lookMs: 0,
  });
  failPoint('complete.finished');
  engine.hashes.end(id);
  if (word === 'OK') engine.metrics.completed(Date.now() - (state.firstChunkAt ?? state.createdAt));
  await dropFrames(engine, id, left);
  await ask(engine, { do: 'tend', upload: id }, state);
}

async function makeObject(
  engine: Engine,
  state: State,
  store: ObjectStore,
  parts: PartRecord[],
  crc64: bigint,
  signal: AbortSignal,
): Promise<ObjectInfo> {
  const size = state.size!;
  const { objectKey: key, contentType } = state;
  if (size === 0)
    return store.put(key, new Uint8Array(), {
      crc64: 0n,
      signal,
      ...(contentType !== undefined && { contentType }),
    });
  const [only] = parts;
  if (only?.key !== undefined && parts.length === 1) {
    const object = await store.head(only.key);
    if (object) return object;
    await lose(engine, state, only);
    throw completionErrors.PART_LOST({ id: state.id, part: only.index + 1 });
  }
  const multipart = { key, id: state.multipartId! };
  const make = (list: PartRecord[]): Promise<ObjectInfo> =>
    store.completeMultipart(
      multipart,
      list.map((part) => ({ number: part.index + 1, etag: part.etag, crc64: part.crc64 })),
      { size, crc64, signal },
    );
  try {
    return await make(parts).catch(async (error: unknown) => {
      if (!isSluiceError(error, 'PARTS_REFUSED')) throw error;
      return make(await recheckParts(engine, state, store, parts));
    });
  } catch (error) {
    if (isSluiceError(error, 'MULTIPART_NOT_FOUND')) return ours(engine, state, store, crc64, error);
    if (isSluiceError(error, 'PARTS_REFUSED'))
      throw completionErrors.PARTS_UNFIT({ id: state.id }, { cause: error });
    throw error;
  }
}

/** Somebody completed it before us, or it was taken away: the object tells. */
async function ours(
  engine: Engine,
  state: State,
  store: ObjectStore,
  crc64: bigint,
  cause: unknown,
): Promise<ObjectInfo> {
  const object = await store.head(state.objectKey);
  const isOurs =
    object && object.size === state.size && (object.crc64 === undefined || object.crc64 === crc64);
  if (isOurs) return object;
  return forgetMultipart(engine, state, cause);
}

/**
 * The store has other parts than we know of. One with the same bytes under another ETag was written twice, and is taken as it is;
 * those that differ are asked for again.
 */
async function recheckParts(
  engine: Engine,
  state: State,
  store: ObjectStore,
  parts: PartRecord[],
): Promise<PartRecord[]> {
  const listed = await store.listParts({ key: state.objectKey, id: state.multipartId! });
  const byNumber = new Map(listed.map((part) => [part.number, part]));
  const lost: number[] = [];
  const there = parts.map((part) => {
    const found = byNumber.get(part.index + 1);
    const hasBytes = found?.size === part.size && (found.etag === part.etag || found.crc64 === part.crc64);
    if (!hasBytes) lost.push(part.index);
    return { ...part, etag: found?.etag ?? part.etag };
  });
  for (const part of parts.filter(({ index }) => lost.includes(index))) await lose(engine, state, part);
  if (lost.length > 0) throw completionErrors.PART_LOST({ id: state.id, part: lost[0]! + 1 });
  return there;
}

async function lose(engine: Engine, { id, fence }: State, { index, etag }: PartRecord): Promise<void> {
  const { lookAgainMs: lookMs } = engine.settings;
  await runScript(engine, 'lose', id, { id, source: '', part: index, etag, multipartId: '', fence, lookMs });
}

/** Nothing is COMPLETED before its bytes are known to be the ones that were sent. Returns the SHA-256. */
async function verify(
  engine: Engine,
  state: State,
  store: ObjectStore,
  object: ObjectInfo,
  crc64: bigint,
  signal: AbortSignal,
): Promise<string> {
  const { id, size } = state;
  if (object.size !== size) throw completionErrors.SIZE_MISMATCH({ id, wanted: size!, got: object.size });
  if (object.crc64 !== undefined && object.crc64 !== crc64)
    throw completionErrors.CRC_MISMATCH({ id, wanted: hex(crc64), got: hex(object.crc64) });
  let sha256 = state.sha256Seen;
  if (sha256 === undefined || object.crc64 === undefined) {
    const back = await readBack(store, object, signal);
    if (back.crc64 !== crc64)
      throw completionErrors.CRC_MISMATCH({ id, wanted: hex(crc64), got: hex(back.crc64) });
    sha256 = back.sha256;
    engine.metrics.readBack(object.size);
  }
  if (state.sha256 !== undefined && state.sha256 !== sha256)
    throw completionErrors.SHA256_MISMATCH({ id, declared: state.sha256, computed: sha256 });
  return sha256;
}

async function readBack(
  store: ObjectStore,
  { key, etag }: ObjectInfo,
  signal: AbortSignal,
): Promise<{ sha256: string; crc64: bigint }> {
  const hash = createHash('sha256');
  let crc64 = 0n;
  const { stream } = await store.get(key, { ifMatch: etag, signal });
  for await (const bytes of stream as AsyncIterable<Buffer>) {
    hash.update(bytes);
    crc64 = crcOf(bytes, crc64);
  }
  return { sha256: hash.digest('hex'), crc64 };
}

/** Held by whoever completes, renewed while that takes long. */
class Lease {
  readonly #engine: Engine;
  readonly #id: string;
  readonly #fence: number;
  readonly #lost = new AbortController();
  readonly #renewing: NodeJS.Timeout;

  constructor(engine: Engine, id: string, fence: number) {
    this.#engine = engine;
    this.#id = id;
    this.#fence = fence;
    this.#renewing = setInterval(() => void this.#renew(), engine.settings.leaseMs / 3);
    this.#renewing.unref();
  }

  signalWith(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#lost.signal]);
  }

  end(): void {
    clearInterval(this.#renewing);
  }

  async giveBack(): Promise<void> {
    this.end();
    await runScript(this.#engine, 'renew', this.#id, { id: this.#id, fence: this.#fence, leaseMs: 0 }).catch(
      () => {},
    );
  }

  async #renew(): Promise<void> {
    const { leaseMs } = this.#engine.settings;
    const args = { id: this.#id, fence: this.#fence, leaseMs };
    const [word] = await runScript(this.#engine, 'renew', this.#id, args).catch(() => ['']);
    if (word === 'LEASE_LOST') this.#lost.abort(completionErrors.LEASE_HELD({ id: this.#id }));
  }
}
