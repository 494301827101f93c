/**
 * One upload from its first request to its result. It believes nothing but the server's view: look, send what is missing, look
 * again, until the view says COMPLETED. Each step may be cut off anywhere; running it again leads to the same end. Pausing,
 * a crash and a lost reply are therefore one and the same case.
 *
 *     open ─▶ look ──▶ missing? ── send ─┐
 *              ▲                         │
 *              ├─────────────────────────┘
 *              ├── nothing missing? ── complete, wait
 *              └── COMPLETED ─▶ result
 *
 * An upload that is gone (expired, failed, unknown to the server), or turns out to hold another file, is left alone and a new
 * one is begun, a bounded number of times.
 */
import { Connection } from './connection.js';
import { Ending } from './ending.js';
import { SluiceUploadError, uploadError } from './errors.js';
import type { Meter } from './meter.js';
import { DEFAULT_PARALLEL } from './options.js';
import type { UploadOptions } from './options.js';
import { hex } from './platform.js';
import type { Platform } from './platform.js';
import { MAX_LISTED_RANGES, Protocol } from './protocol.js';
import type { Initiation, UploadResult, UploadView } from './protocol.js';
import { isMissing } from './ranges.js';
import { newKey, recordKey, UploadRecord } from './record.js';
import { Patience, sleep } from './retry.js';
import { isConflict, Sender } from './sender.js';
import type { Cut } from './sender.js';
import type { FileSource, Source, StreamSource } from './source.js';

const MAX_FRESH_STARTS = 3;
/** A browser can hold some of these. */
const MAX_CHOSEN_CHUNK_BYTES = 16 * 1024 * 1024;
/** With smaller ones requests would cost more than what they carry. */
const SMALLEST_CHOSEN_CHUNK_BYTES = 1024 * 1024;
/** So long after the last chunk the end of an upload is news to whoever comes back for it. */
const TRUSTED_RESULT_MS = 24 * 60 * 60 * 1000;
/** The plain-JavaScript digest works in pieces, so that a page stays responsive. */
const HASH_PIECE_BYTES = 1024 * 1024;

/** The upload at hand cannot be continued, but a new one may succeed. */
class StartAnew extends Error {
  constructor(
    readonly reason: SluiceUploadError,
    /** Why the same key will not do: it leads to an upload of other bytes. */
    readonly holdsOtherBytes = false,
  ) {
    super(reason.message);
  }
}

export class Session {
  uploadId: string | null = null;
  readonly #options: UploadOptions;
  readonly #source: Source;
  readonly #platform: Platform;
  readonly #meter: Meter;
  readonly #protocol: Protocol;
  readonly #patience: Patience;
  #record: UploadRecord | undefined;
  #sender: Sender | undefined;
  #sha256: string | undefined;
  #streamDigest: string | undefined;
  /** Whether the upload was begun by an earlier process: what became of it then is no failure of now. */
  #inherited = false;
  #freshStarts = 0;
  /** Chunks of which the server has these very bytes: sent by us, or compared. */
  #proven = new Set<number>();

  constructor(options: UploadOptions, source: Source, platform: Platform, meter: Meter) {
    this.#options = options;
    this.#source = source;
    this.#platform = platform;
    this.#meter = meter;
    this.#protocol = new Protocol(new Connection(options));
    this.#patience = new Patience(options.retry ?? {});
  }

  async run(signal: AbortSignal): Promise<UploadResult> {
    for (;;) {
      try {
        return await this.#carry(signal);
      } catch (failure) {
        signal.throwIfAborted();
        if (!(failure instanceof StartAnew)) throw failure;
        await this.#startAnew(failure);
      }
    }
  }

  /** Deletes the upload on the server. The result, if it was too late for that. */
  async cancel(signal: AbortSignal): Promise<UploadResult | undefined> {
    // Nothing was begun, and finding out what an earlier start has left would take as long as hashing the file.
    if (!this.#record && this.#options.sha256 === 'auto' && this.#source.kind === 'file') return undefined;
    const record = await this.#remembered(signal);
    const { idempotencyKey } = record.content;
    if (this.uploadId === null && idempotencyKey !== '') {
      // The reply that would have told the id may have been lost; the same key tells it again.
      const initiated = await this.#initiate(record, signal);
      this.uploadId = initiated.id;
    }
    const id = this.uploadId;
    if (id !== null) {
      const left = await this.#patience.persist(signal, () => this.#delete(id, signal));
      if (left?.state === 'COMPLETED' && left.result) return this.#finish(left.result);
    }
    await record.forget();
    return undefined;
  }

  async #carry(signal: AbortSignal): Promise<UploadResult> {
    const record = await this.#remembered(signal);
    let view = await this.#open(record, signal);
    const cut = await this.#cut(view, record);
    const ending = new Ending();
    let fruitless = 0;
    let most = 0;
    let said = false;
    for (let waited = false; ;) {
      this.#meter.acked(view.receivedBytes);
      // What we have said was forgotten: a Redis that failed over had not heard of it.
      if (said && view.size === null && view.state !== 'COMPLETED') {
        said = false;
        await this.#breathe(fruitless++, signal);
      }
      if (view.state === 'COMPLETED') return this.#accept(view, cut, signal);
      if (view.state !== 'COMPLETING') {
        this.#refuseEnded(view);
        const chunks = await this.#due(view, cut, signal);
        if (chunks) {
          fruitless = view.receivedBytes > most ? 0 : fruitless;
          most = Math.max(most, view.receivedBytes);
          await this.#breathe(fruitless++, signal);
          view = await this.#send(view, cut, chunks, signal);
          continue;
        }
        if (!said && (this.#mustSay(view) || waited)) {
          said = true;
          view = await this.#complete(view, cut, signal);
          continue;
        }
      }
      this.#meter.enter('completing');
      view = await this.#guarded(ending.next(this.#protocol, this.#patience, view, signal));
      waited = true;
    }
  }

  /** Whoever must send the same again and again does it ever more slowly, and in the end no more. */
  async #breathe(fruitless: number, signal: AbortSignal): Promise<void> {
    if (fruitless >= this.#patience.attempts) {
      throw uploadError('STALLED', 'bytes that were sent are missing again and again');
    }
    if (fruitless > 1) await sleep(this.#patience.delayMs(fruitless), signal);
  }

  async #remembered(signal: AbortSignal): Promise<UploadRecord> {
    const options = this.#options;
    const source = this.#source;
    if (options.sha256 !== 'auto') this.#sha256 ??= options.sha256?.toLowerCase();
    else if (source.kind === 'file') this.#sha256 ??= await this.#hash(source, signal);
    else if (!source.onBytes) this.#hashAlong(source);
    if (this.#record) return this.#record;
    const store = options.resume === false ? undefined : (options.resume ?? this.#platform.store());
    const { url, drive, path, idempotencyKey, contentType, metadata, ifExists, chunkSize } = options;
    // Whoever asks for something else begins something else.
    const asked = [idempotencyKey, this.#sha256, contentType, metadata, ifExists, chunkSize];
    const destination = [url, drive, path, ...asked.map((option) => option ?? null)];
    const record =
      source.kind === 'file' && store
        ? new UploadRecord(store, await recordKey(source, destination))
        : new UploadRecord(undefined, '');
    this.#inherited = await record.load();
    this.uploadId = record.content.uploadId;
    this.#record = record;
    return record;
  }

  async #hash(source: FileSource, signal: AbortSignal): Promise<string> {
    this.#meter.enter('hashing');
    const hasher = this.#platform.hasher();
    for (let first = 0; first < source.size; first += HASH_PIECE_BYTES) {
      hasher.update(await source.read(first, Math.min(source.size, first + HASH_PIECE_BYTES)));
      signal.throwIfAborted();
    }
    return hex(hasher.digest());
  }

  #hashAlong(source: StreamSource): void {
    const hasher = this.#platform.hasher();
    source.onBytes = (bytes) => {
      hasher.update(bytes);
      if (source.ended) this.#streamDigest = hex(hasher.digest());
    };
  }

  async #open(record: UploadRecord, signal: AbortSignal): Promise<UploadView> {
    const id = this.uploadId;
    const view = id === null ? await this.#begin(record, signal) : await this.#look(id, signal);
    if (id === null) {
      this.uploadId = view.id;
      // The key of the first request has led to an upload that had ended before.
      this.#inherited ||= view.state !== 'PENDING' && view.state !== 'UPLOADING';
      record.content.uploadId = view.id;
      await record.save();
    }
    // What was completed long ago may have been replaced or deleted since.
    if (id !== null && view.state === 'COMPLETED' && record.ageMs > TRUSTED_RESULT_MS)
      throw new StartAnew(uploadError('UPLOAD_GONE', 'it was completed long ago'));
    // From here on it is our doing.
    record.ageMs = 0;
    const { size } = this.#source;
    if (size !== null && view.size !== null && view.size !== size) {
      throw new StartAnew(
        uploadError('KEY_REUSED', `it is for ${view.size} bytes, this file has ${size}`),
        true,
      );
    }
    return view;
  }

  async #begin(record: UploadRecord, signal: AbortSignal): Promise<UploadView> {
    try {
      return await this.#initiate(record, signal);
    } catch (failure) {
      if (!(failure instanceof SluiceUploadError)) throw failure;
      const ended = failure.code === 'UPLOAD_ENDED' && failure.details?.['state'] !== 'COMPLETED';
      if (ended) throw new StartAnew(failure);
      // A remembered key may belong to a request with other options; a new key does not.
      const refused = failure.status === 409 || failure.status === 422;
      throw refused && this.#inherited ? new StartAnew(failure, true) : failure;
    }
  }

  /** The key is made and written down first: a crash before the reply, and the next start gets the same upload. */
  async #initiate(record: UploadRecord, signal: AbortSignal): Promise<UploadView> {
    const { drive, path, contentType, chunkSize, metadata, ifExists, idempotencyKey } = this.#options;
    const { content } = record;
    const { generation } = content;
    if (content.idempotencyKey === '') {
      const given =
        idempotencyKey !== undefined && generation > 0 ? `${idempotencyKey}.${generation}` : idempotencyKey;
      content.idempotencyKey = given ?? newKey();
      await record.save();
    }
    const type = contentType ?? this.#source.type;
    const initiation: Initiation = {
      drive,
      path,
      ...(this.#source.size !== null && { size: this.#source.size }),
      ...(type !== '' && { contentType: type }),
      ...(chunkSize !== undefined && { chunkSize }),
      ...(this.#sha256 !== undefined && { sha256: this.#sha256 }),
      ...(metadata && { metadata }),
      ...(ifExists && { ifExists }),
    };
    return this.#patience.persist(signal, () =>
      this.#protocol.initiate(initiation, content.idempotencyKey, signal),
    );
  }

  async #cut(view: UploadView, record: UploadRecord): Promise<Cut> {
    const { content } = record;
    const chunkSize = view.chunkSize ?? content.chunkSize ?? ownChunkSize(view.partSize);
    if (content.chunkSize !== chunkSize) {
      if (content.chunkSize !== null) record.forgetPrints();
      content.chunkSize = chunkSize;
      await record.save();
    }
    return {
      uploadId: view.id,
      chunkSize,
      as: view.chunkSize === null ? 'range' : 'chunk',
      size: this.#source.size,
      digestFollows: this.#source.kind === 'stream' && this.#options.sha256 === 'auto',
    };
  }

  /** The chunks to send now; of a stream, none may mean those that are still to be read. Nothing when all is sent. */
  async #due(view: UploadView, cut: Cut, signal: AbortSignal): Promise<number[] | undefined> {
    const source = this.#source;
    const isFile = source.kind === 'file';
    const chunks = isFile ? await this.#lacking(view, cut, source, signal) : lost(view, cut, source);
    return chunks.length > 0 || (!isFile && !source.ended) ? chunks : undefined;
  }

  async #send(view: UploadView, cut: Cut, chunks: number[], signal: AbortSignal): Promise<UploadView> {
    const source = this.#source;
    this.#meter.enter('uploading');
    this.#sender ??= this.#makeSender();
    const ack = await this.#guarded(this.#sender.send(cut, chunks, this.#proven, signal));
    if (source.kind === 'stream' && source.ended) this.#meter.learnSize(source.totalBytes);
    if (ack?.state === 'COMPLETED' && ack.result) {
      return { ...view, state: 'COMPLETED', missing: [], result: ack.result };
    }
    // Everything that the view called missing was acknowledged: there is nothing to ask, only an end to wait for.
    const isAll = source.kind === 'file' && view.missing.length < MAX_LISTED_RANGES;
    if (isAll && !ack) return { ...view, state: 'UPLOADING', missing: [], receivedBytes: source.size };
    return this.#look(cut.uploadId, signal);
  }

  /** A known size completes by itself. An unknown one must be told, as must a digest that came last. */
  #mustSay({ size }: UploadView): boolean {
    return size === null || size === 0 || this.#streamDigest !== undefined;
  }

  #makeSender(): Sender {
    return new Sender({
      protocol: this.#protocol,
      platform: this.#platform,
      source: this.#source,
      record: this.#record!,
      patience: this.#patience,
      meter: this.#meter,
      parallel: this.#options.parallel ?? DEFAULT_PARALLEL,
    });
  }

  /** The chunks to send, after comparing those that an earlier process sent with the file as it is now. */
  async #lacking(view: UploadView, cut: Cut, source: FileSource, signal: AbortSignal): Promise<number[]> {
    const lacking: number[] = [];
    for (let index = 0; index * cut.chunkSize < source.size; index++) {
      const first = index * cut.chunkSize;
      const end = Math.min(source.size, first + cut.chunkSize);
      const missing = isMissing(view, first, end);
      if (missing === undefined) break;
      if (missing || !(await this.#prove(index, source, first, end, signal))) lacking.push(index);
    }
    return lacking;
  }

  /** Whether the server has this chunk of this file, and not of one that looked like it. */
  async #prove(
    index: number,
    source: FileSource,
    first: number,
    end: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    // With a declared digest the server compares the whole, and the digest is a part of the record's key.
    if (this.#proven.has(index) || this.#sha256 !== undefined) return true;
    if (!this.#record!.knows(index)) return false;
    this.#meter.enter('verifying');
    const digest = await this.#platform.digest(await source.read(first, end));
    signal.throwIfAborted();
    if (!this.#record!.matches(index, digest)) {
      throw new StartAnew(uploadError('SOURCE_CHANGED', `chunk ${index} is not the one sent before`), true);
    }
    this.#proven.add(index);
    return true;
  }

  async #complete(view: UploadView, cut: Cut, signal: AbortSignal): Promise<UploadView> {
    const source = this.#source;
    const size = source.kind === 'stream' ? source.totalBytes : source.size;
    const sha256 = source.kind === 'stream' ? (this.#streamDigest ?? this.#sha256) : undefined;
    this.#meter.learnSize(size);
    this.#meter.enter('completing');
    try {
      return await this.#patience.persist(signal, () =>
        this.#protocol.complete(view.id, { size, ...(sha256 !== undefined && { sha256 }) }, signal),
      );
    } catch (failure) {
      signal.throwIfAborted();
      if (!(failure instanceof SluiceUploadError) || failure.status !== 409) throw gone(failure);
      // Bytes may have been lost since the last look, or somebody else has completed it.
      const now = await this.#look(view.id, signal);
      const isOpen = now.state === 'PENDING' || now.state === 'UPLOADING';
      if (isOpen && !(await this.#due(now, cut, signal))) throw failure;
      return now;
    }
  }

  #look(id: string, signal: AbortSignal): Promise<UploadView> {
    return this.#guarded(this.#patience.persist(signal, () => this.#protocol.status(id, signal)));
  }

  /** Turns the failures after which a new upload may succeed into StartAnew. */
  async #guarded<T>(step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (failure) {
      throw gone(failure);
    }
  }

  #refuseEnded({ state, error }: UploadView): void {
    if (state === 'PENDING' || state === 'UPLOADING') return;
    const reason = error
      ? new SluiceUploadError(error.code, error.message)
      : uploadError(state === 'CANCELLED' ? 'CANCELLED' : 'UPLOAD_GONE', state.toLowerCase());
    if (state === 'EXPIRED' || this.#inherited) throw new StartAnew(reason);
    throw reason;
  }

  async #startAnew({ reason, holdsOtherBytes }: StartAnew): Promise<void> {
    const record = this.#record!;
    const streamBegan = this.#source.kind === 'stream' && this.#source.count > 0;
    // A key of the caller's own stands for one file; to use it for other bytes is a mistake to be told.
    const keyMisused = holdsOtherBytes && this.#options.idempotencyKey !== undefined;
    this.#freshStarts += 1;
    if (streamBegan || keyMisused || this.#freshStarts > MAX_FRESH_STARTS) throw reason;
    await record.forget();
    record.ageMs = 0;
    record.content = {
      idempotencyKey: '',
      generation: record.content.generation + 1,
      uploadId: null,
      chunkSize: null,
    };
    this.uploadId = null;
    this.#inherited = this.#options.idempotencyKey !== undefined;
    this.#proven = new Set();
    this.#meter.startAnew();
  }

  /** A completed upload is ours only if it holds what we would have sent. */
  async #accept(view: UploadView, cut: Cut, signal: AbortSignal): Promise<UploadResult> {
    const { result } = view;
    if (!result) throw uploadError('BAD_REPLY', 'the upload is completed but has no result');
    const source = this.#source;
    if (source.kind === 'file' && !(await this.#isOurs(view, result, cut, source, signal))) {
      throw new StartAnew(uploadError('KEY_REUSED', 'the upload holds other bytes'), true);
    }
    const size =
      source.kind === 'file'
        ? source.size
        : source.count > 0 || source.ended
          ? source.totalBytes
          : result.size;
    if (result.size !== size) throw uploadError('RESULT_MISMATCH', `${result.size} bytes instead of ${size}`);
    const sha256 = this.#streamDigest ?? this.#sha256;
    if (sha256 !== undefined && result.sha256 && result.sha256 !== sha256) {
      throw uploadError('RESULT_MISMATCH', `SHA-256 ${result.sha256} instead of ${sha256}`);
    }
    return this.#finish(result);
  }

  /** Chunks that somebody else sent, another tab perhaps, are held against the digest of the whole. */
  async #isOurs(
    view: UploadView,
    result: UploadResult,
    cut: Cut,
    source: FileSource,
    signal: AbortSignal,
  ): Promise<boolean> {
    const doubtful = await this.#lacking({ ...view, missing: [] }, cut, source, signal);
    if (doubtful.length === 0) return true;
    // Where the server knows no digest, a key of the caller's own is believed: that is what such a key is for.
    if (!result.sha256) return this.#options.idempotencyKey !== undefined;
    return result.sha256 === (await this.#hash(source, signal));
  }

  async #finish(result: UploadResult): Promise<UploadResult> {
    this.#meter.learnSize(result.size);
    this.#meter.acked(result.size);
    await this.#record!.forget();
    return result;
  }

  async #delete(id: string, signal: AbortSignal): Promise<UploadView | undefined> {
    try {
      return await this.#protocol.cancel(id, signal);
    } catch (failure) {
      if (!(failure instanceof SluiceUploadError)) throw failure;
      if (failure.status === 404 || failure.status === 410) return undefined;
      if (failure.status === 409) return this.#protocol.status(id, signal);
      throw failure;
    }
  }
}

/**
 * As large as the server's parts, which are then not buffered; of larger parts a whole fraction. A chunk that crossed the end of a part
 * could be lost by half, and the server would not take the other half again.
 */
export function ownChunkSize(partSize: number): number {
  const most = Math.ceil(partSize / SMALLEST_CHOSEN_CHUNK_BYTES);
  for (let pieces = Math.ceil(partSize / MAX_CHOSEN_CHUNK_BYTES); pieces > 0 && pieces <= most; pieces++) {
    if (partSize % pieces === 0) return partSize / pieces;
  }
  return MAX_CHOSEN_CHUNK_BYTES;
}

/** Chunks of a stream that were read and are not with the server. */
function lost(view: UploadView, cut: Cut, source: StreamSource): number[] {
  const lacking = source.unacked();
  for (let index = 0; index < source.count; index++) {
    if (lacking.includes(index)) continue;
    const first = index * cut.chunkSize;
    const end = Math.min(source.totalBytes, first + cut.chunkSize);
    if (isMissing(view, first, end)) lacking.push(index);
  }
  return lacking.sort((a, b) => a - b);
}

function gone(failure: unknown): unknown {
  if (!(failure instanceof SluiceUploadError)) return failure;
  if (isConflict(failure)) return new StartAnew(failure, true);
  return failure.status === 404 || failure.status === 410 ? new StartAnew(failure) : failure;
}
