// Objects in S3, or in any server that speaks it.
//
// A call is one or more attempts. Each attempt is watched for silence, never for its whole duration, and ends in a result or in
// an error of `errors.ts`. What is passing is repeated within the store's budget (`retry.ts`), as long as the body can be sent
// again: bytes in memory can, and a short stream is read into memory for it. A long stream passes through unbuffered, once.
//
// Integrity: every body carries its CRC-64/NVME, and the server refuses what does not have it. It is sent ahead if the caller
// declared it or the bytes are in memory, and behind the bytes of a stream (`SourceBody`). Multipart uploads are created for a CRC-64/NVME of the whole object, which is
// checked against the parts' when it is completed. A server without this checksum works too (`crc64: false`, or found out by
// `check` or after its first refusal); bytes are then compared with their declared checksum before the last of them is sent.
//
// A reply that is lost leaves it open whether the call was carried out. Putting the same bytes again changes nothing. Completing
// again may meet NoSuchUpload, because it was completed: then the object itself tells.
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import { isSluiceError, type SluiceError } from '@sluice/base';
import { createHash, randomUUID } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';
import { BufferBody, collect, CRC64_HEADER, lengthOf, SourceBody } from './body.js';
import type {
  Body,
  Capabilities,
  CompleteOptions,
  GetOptions,
  ListOptions,
  ListPage,
  Multipart,
  ObjectInfo,
  ObjectRead,
  ObjectStore,
  PutOptions,
  StoredPart,
} from './contract.js';
import { crc64, crc64FromBase64, crc64ToBase64 } from './crc64.js';
import { storeErrors } from './errors.js';
import { IdleWatch } from './idleWatch.js';
import {
  checkDescription,
  checkKey,
  checkLength,
  checkPartList,
  checkPartNumber,
  checkRange,
  decodeMetadataValue,
  encodeMetadataValue,
} from './limits.js';
import { RetryBudget } from './retry.js';
import { makeS3Client, type S3ClientOptions } from './s3Client.js';
import { type CallContext, toStoreError } from './s3Errors.js';
import { ShortPut } from './s3ShortPut.js';
import { StoredBody } from './storedBody.js';

const MiB = 1024 ** 2;
const GiB = 1024 ** 3;

/** Limits of AWS, which most servers share. */
const AWS_LIMITS = {
  minPartBytes: 5 * MiB,
  maxPartBytes: 5 * GiB,
  maxParts: 10_000,
  equalParts: false,
  maxSinglePutBytes: 5 * GiB,
};

/** What some services want otherwise: `new S3Store({ …, limits: s3Limits.r2 })`. */
export const s3Limits = {
  aws: AWS_LIMITS,
  /** Cloudflare R2: all parts but the last have one size. */
  r2: { ...AWS_LIMITS, equalParts: true },
  /** Scaleway: at most 1,000 parts. */
  scaleway: { ...AWS_LIMITS, maxParts: 1_000 },
} as const;

export interface S3StoreOptions extends S3ClientOptions {
  bucket: string;
  /** Put before every key, as it is: `'uploads/'`. */
  prefix?: string;
  limits?: Partial<Omit<Capabilities, 'crc64'>>;
  /** Whether the server keeps CRC-64/NVME of whole objects. Without it, yes is assumed until `check` has found out. */
  crc64?: boolean;
  /** Tries of one call, the first included. */
  attempts?: number;
  /** Without a byte moving for this long, an attempt has failed. */
  idleTimeoutMs?: number;
  /** The same for completing and copying, where a server is silent while it works. */
  slowTimeoutMs?: number;
}

const DEFAULT_ATTEMPTS = 4;
const DEFAULT_IDLE_TIMEOUT_MS = 30_000;
const DEFAULT_SLOW_TIMEOUT_MS = 300_000;
/** A stream up to this length is read into memory first, so that it can be sent again. */
const COLLECTED_BYTES = 256 * 1024;
/** More than this is sent in slices, so that progress is seen. */
const SENT_AT_ONCE_BYTES = 1 * MiB;
const LIST_PAGE = 1_000;
const COPY_PART_BYTES = 1 * GiB;
/** How servers refuse a header or an algorithm that they do not know. */
const REFUSALS_OF_CHECKSUMS: ReadonlySet<unknown> = new Set([400, 501]);
const CHECK_PREFIX = 'sluice-check-';
/** A check takes moments. What an older one has left was left by a process that died. */
const CHECK_LEFT_MS = 60 * 60_000;

type Description = Pick<PutOptions, 'contentType' | 'metadata'>;
type PartName = Pick<StoredPart, 'number' | 'etag' | 'crc64'>;

interface Attempts {
  signal?: AbortSignal | undefined;
  attempts?: number;
  timeoutMs?: number;
}

/** Makes the body of one attempt. */
type BodyMaker = (watch: IdleWatch) => Uint8Array | Readable;
interface SentBody {
  Body: Uint8Array | Readable;
  ContentLength: number;
  ChecksumCRC64NVME?: string;
}
type Send<T> = (options: { abortSignal: AbortSignal }, body: Uint8Array | Readable | undefined) => Promise<T>;

export class S3Store implements ObjectStore {
  readonly capabilities: Capabilities;
  readonly #client: S3Client;
  readonly #shortPut: ShortPut;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #attempts: number;
  readonly #idleTimeoutMs: number;
  readonly #slowTimeoutMs: number;
  readonly #budget = new RetryBudget();
  #findOutCrc64: boolean;
  #findingOut: Promise<void> | undefined;
  #closed = false;

  constructor(options: S3StoreOptions) {
    checkOptions(options);
    this.#client = makeS3Client(options);
    this.#shortPut = new ShortPut(this.#client);
    this.#bucket = options.bucket;
    this.#prefix = options.prefix ?? '';
    this.#attempts = options.attempts ?? DEFAULT_ATTEMPTS;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS;
    this.#slowTimeoutMs = options.slowTimeoutMs ?? DEFAULT_SLOW_TIMEOUT_MS;
    this.#findOutCrc64 = options.crc64 === undefined;
    this.capabilities = { ...AWS_LIMITS, ...options.limits, crc64: options.crc64 ?? true };
  }

  async put(key: string, body: Body, options: PutOptions = {}): Promise<ObjectInfo> {
    checkDescription(options);
    checkLength(lengthOf(body), this.capabilities.maxSinglePutBytes);
    return this.#orWithoutCrc64(() => this.#put(key, body, options), body);
  }

  async #put(key: string, body: Body, options: PutOptions = {}): Promise<ObjectInfo> {
    const at = this.#at(key);
    const context = { operation: 'PutObject', key };
    const reply = await this.#upload(context, body, options, (sent, send) =>
      sent.Body instanceof Uint8Array && this.#shortPut.isKnown && options.metadata === undefined
        ? this.#shortPut.put(at.Key, sent.Body, shortHeaders(sent, options), send.abortSignal)
        : this.#client.send(new PutObjectCommand({ ...at, ...description(options), ...sent }), send),
    );
    return { key, size: lengthOf(body), ...stored(reply), ...describedBy(options) };
  }

  async get(key: string, options: GetOptions = {}): Promise<ObjectRead> {
    checkRange(options);
    const { range, ifMatch, signal } = options;
    const input = {
      ...this.#at(key),
      ...(range && { Range: `bytes=${range.first}-${range.last ?? ''}` }),
      ...(ifMatch !== undefined && { IfMatch: ifMatch }),
    };
    const context = { operation: 'GetObject', key, range, ifMatch };
    const reply = await this.#call(context, { signal }, (send) =>
      this.#client.send(new GetObjectCommand(input), send),
    );
    const length = reply.ContentLength ?? 0;
    const whole = /\/(\d+)$/.exec(reply.ContentRange ?? '')?.[1];
    const stream = new StoredBody(reply.Body as Readable, key, length, this.#idleTimeoutMs);
    if (signal !== undefined) addAbortSignal(signal, stream);
    return { ...toInfo(key, reply), size: whole === undefined ? length : Number(whole), stream, length };
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    const input = { ...this.#at(key), ChecksumMode: 'ENABLED' as const };
    try {
      const context = { operation: 'HeadObject', key };
      const reply = await this.#call(context, {}, (send) =>
        this.#client.send(new HeadObjectCommand(input), send),
      );
      return { ...toInfo(key, reply), size: reply.ContentLength ?? 0 };
    } catch (error) {
      if (isSluiceError(error, 'OBJECT_NOT_FOUND')) return undefined;
      throw error;
    }
  }

  async delete(key: string): Promise<void> {
    const input = this.#at(key);
    try {
      await this.#call({ operation: 'DeleteObject', key }, {}, (send) =>
        this.#client.send(new DeleteObjectCommand(input), send),
      );
    } catch (error) {
      if (!isSluiceError(error, 'OBJECT_NOT_FOUND')) throw error;
    }
  }

  async list(
    prefix: string,
    { from, limit = LIST_PAGE, shallow = false }: ListOptions = {},
  ): Promise<ListPage> {
    const objects: ObjectInfo[] = [];
    let after = from;
    for (;;) {
      const input = {
        Bucket: this.#bucket,
        Prefix: this.#prefix + prefix,
        MaxKeys: Math.min(LIST_PAGE, limit - objects.length),
        ...(after !== undefined && { StartAfter: this.#prefix + after }),
      };
      const reply = await this.#call({ operation: 'ListObjectsV2', key: prefix }, {}, (send) =>
        this.#client.send(new ListObjectsV2Command(input), send),
      );
      for (const { Key, Size = 0, ETag = '', LastModified } of reply.Contents ?? []) {
        const key = Key!.slice(this.#prefix.length);
        after = key;
        if (shallow && key.includes('/', prefix.length)) continue;
        objects.push({ key, size: Size, etag: ETag, ...(LastModified && { lastModified: LastModified }) });
      }
      if (reply.IsTruncated !== true || after === undefined) return { objects };
      if (objects.length >= limit) return { objects, next: after };
    }
  }

  async copy(from: string, to: string): Promise<ObjectInfo> {
    const target = this.#at(to);
    const source = await this.head(from);
    if (source === undefined) throw storeErrors.OBJECT_NOT_FOUND({ key: from });
    if (source.size > this.capabilities.maxSinglePutBytes) return this.#copyInParts(source, to);
    const input = { ...target, CopySource: this.#copySource(from), CopySourceIfMatch: source.etag };
    const context = { operation: 'CopyObject', key: from, ifMatch: source.etag };
    const reply = await this.#call(context, { timeoutMs: this.#slowTimeoutMs }, (send) =>
      this.#client.send(new CopyObjectCommand(input), send),
    );
    return { ...source, key: to, ...stored({ ...reply.CopyObjectResult }) };
  }

  createMultipart(key: string, options: Description = {}): Promise<Multipart> {
    return this.#orWithoutCrc64(() => this.#create(key, options, this.capabilities.crc64));
  }

  async #create(key: string, options: Description, checksums: boolean): Promise<Multipart> {
    checkDescription(options);
    const input = {
      ...this.#at(key),
      ...description(options),
      ...(checksums && {
        ChecksumAlgorithm: 'CRC64NVME' as const,
        ChecksumType: 'FULL_OBJECT' as const,
      }),
    };
    const reply = await this.#call({ operation: 'CreateMultipartUpload', key }, {}, (send) =>
      this.#client.send(new CreateMultipartUploadCommand(input), send),
    );
    return { key, id: reply.UploadId! };
  }

  async putPart(
    multipart: Multipart,
    number: number,
    body: Body,
    options: Pick<PutOptions, 'crc64' | 'signal'> = {},
  ): Promise<StoredPart> {
    checkPartNumber(number, this.capabilities.maxParts);
    checkLength(lengthOf(body), this.capabilities.maxPartBytes);
    return this.#orWithoutCrc64(() => this.#putPart(multipart, number, body, options), body);
  }

  async #putPart(
    multipart: Multipart,
    number: number,
    body: Body,
    options: Pick<PutOptions, 'crc64' | 'signal'>,
  ): Promise<StoredPart> {
    const at = { ...this.#within(multipart), PartNumber: number };
    const context = { operation: 'UploadPart', ...multipart };
    const reply = await this.#upload(context, body, options, (sent, send) =>
      this.#client.send(new UploadPartCommand({ ...at, ...sent }), send),
    );
    return { number, size: lengthOf(body), ...stored(reply) };
  }

  async listParts(multipart: Multipart): Promise<StoredPart[]> {
    const within = this.#within(multipart);
    const parts: StoredPart[] = [];
    let marker: string | undefined;
    for (;;) {
      const input = { ...within, ...(marker !== undefined && { PartNumberMarker: marker }) };
      const reply = await this.#call({ operation: 'ListParts', ...multipart }, {}, (send) =>
        this.#client.send(new ListPartsCommand(input), send),
      );
      for (const part of reply.Parts ?? []) {
        parts.push({ number: part.PartNumber!, size: part.Size ?? 0, ...stored(part) });
      }
      const last = parts.at(-1)?.number;
      // By our own last number: some servers send no marker, and the same marker twice would go on for ever.
      if (reply.IsTruncated !== true || last === undefined || String(last) === marker) return parts;
      marker = String(last);
    }
  }

  async completeMultipart(
    multipart: Multipart,
    parts: PartName[],
    options: CompleteOptions,
  ): Promise<ObjectInfo> {
    return this.#orWithoutCrc64(() => this.#complete(multipart, parts, options, this.capabilities.crc64));
  }

  async #complete(
    multipart: Multipart,
    parts: PartName[],
    options: CompleteOptions,
    checksums: boolean,
  ): Promise<ObjectInfo> {
    const { key } = multipart;
    const at = this.#within(multipart);
    checkPartList(key, parts, this.capabilities.maxParts);
    const named = checksums ? await this.#withChecksums(multipart, parts) : parts;
    const input = {
      ...at,
      MultipartUpload: { Parts: named.map((part) => completedPart(part, checksums)) },
      MpuObjectSize: options.size,
      ...(checksums &&
        options.crc64 !== undefined && {
          ChecksumCRC64NVME: crc64ToBase64(options.crc64),
          ChecksumType: 'FULL_OBJECT' as const,
        }),
    };
    const context = { operation: 'CompleteMultipartUpload', ...multipart };
    const attempts = { signal: options.signal, timeoutMs: this.#slowTimeoutMs };
    return this.#repeat(attempts, async (earlier) => {
      try {
        const reply = await this.#attempt(context, attempts, (send) =>
          this.#client.send(new CompleteMultipartUploadCommand(input), send),
        );
        this.#compare(context, options.crc64, reply.ChecksumCRC64NVME);
        return { key, size: options.size, ...stored(reply) };
      } catch (error) {
        const finished = await this.#finishedBefore(error, earlier, key, parts, options);
        if (finished === undefined) throw error;
        return finished;
      }
    });
  }

  async abortMultipart(multipart: Multipart): Promise<void> {
    try {
      const input = this.#within(multipart);
      await this.#call({ operation: 'AbortMultipartUpload', ...multipart }, {}, (send) =>
        this.#client.send(new AbortMultipartUploadCommand(input), send),
      );
    } catch (error) {
      if (!isSluiceError(error, 'MULTIPART_NOT_FOUND')) throw error;
    }
  }

  async listMultiparts(prefix: string): Promise<(Multipart & { initiatedAt?: Date })[]> {
    const found: (Multipart & { initiatedAt?: Date })[] = [];
    let marker: { KeyMarker: string; UploadIdMarker: string } | undefined;
    for (;;) {
      const input = { Bucket: this.#bucket, Prefix: this.#prefix + prefix, ...marker };
      const reply = await this.#call({ operation: 'ListMultipartUploads', key: prefix }, {}, (send) =>
        this.#client.send(new ListMultipartUploadsCommand(input), send),
      );
      const uploads = reply.Uploads ?? [];
      for (const { Key, UploadId, Initiated } of uploads) {
        const key = Key!.slice(this.#prefix.length);
        found.push({ key, id: UploadId!, ...(Initiated && { initiatedAt: Initiated }) });
      }
      const last = uploads.at(-1);
      if (reply.IsTruncated !== true || last === undefined) return found;
      marker = { KeyMarker: last.Key!, UploadIdMarker: last.UploadId! };
    }
  }

  /** Writes and removes a small object; the first time also in parts, to find out about checksums. */
  async check(): Promise<void> {
    const key = `${CHECK_PREFIX}${randomUUID()}`;
    try {
      if (this.#findOutCrc64) await this.#findOut(key);
      else await this.put(key, Buffer.from('check'));
    } finally {
      await this.delete(key).catch(() => {});
    }
  }

  /**
   * What a server refuses that was never asked may be the checksum: that is found out, and then the call is made again without it. A
   * stream is spent by then; whoever has its bytes is told that they can come again.
   */
  async #orWithoutCrc64<T>(call: () => Promise<T>, body?: Body): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!this.#findOutCrc64 || !isSluiceError(error)) throw error;
      const { operation, key, status } = error.details as Partial<Record<string, string | number>>;
      if (!REFUSALS_OF_CHECKSUMS.has(status)) throw error;
      this.#findingOut ??= this.check().finally(() => (this.#findingOut = undefined));
      await this.#findingOut.catch(() => {});
      if (this.capabilities.crc64) throw error;
      if (body === undefined || body instanceof Uint8Array) return call();
      const reason = 'it does not know CRC-64/NVME, which has been found out just now';
      const failure = { operation: String(operation), key: String(key), reason, outcomeUnknown: false };
      throw storeErrors.STORE_UNAVAILABLE(failure, { cause: error });
    }
  }

  close(): void {
    this.#closed = true;
    this.#client.destroy();
  }

  #at(key: string): { Bucket: string; Key: string } {
    const full = this.#prefix + key;
    checkKey(key);
    checkKey(full);
    checkPlain(key, full);
    return { Bucket: this.#bucket, Key: full };
  }

  /** The id comes from outside, and there are servers that take it for a path: one with `..` reached other folders. */
  #within({ key, id }: Multipart): { Bucket: string; Key: string; UploadId: string } {
    const suspicious = typeof id !== 'string' || id.split('/').some((part) => /^\.{0,2}$/.test(part));
    if (suspicious) throw storeErrors.MULTIPART_NOT_FOUND({ key, id });
    return { ...this.#at(key), UploadId: id };
  }

  #copySource(key: string): string {
    return `${this.#bucket}/${this.#prefix + key}`.split('/').map(encodeURIComponent).join('/');
  }

  /** A call without a body. */
  #call<T>(context: CallContext, options: Attempts, send: Send<T>): Promise<T> {
    return this.#repeat(options, () => this.#attempt(context, options, send));
  }

  #repeat<T>(options: Attempts, attempt: (earlier: readonly SluiceError[]) => Promise<T>): Promise<T> {
    return this.#budget.run(attempt, {
      attempts: options.attempts ?? this.#attempts,
      signal: options.signal,
    });
  }

  async #attempt<T>(
    context: CallContext,
    options: Attempts,
    send: Send<T>,
    makeBody?: BodyMaker,
  ): Promise<T> {
    if (this.#closed) throw storeErrors.STORE_CLOSED({ operation: context.operation });
    const { signal, timeoutMs = this.#idleTimeoutMs } = options;
    signal?.throwIfAborted();
    const controller = new AbortController();
    const stop = (): void => controller.abort();
    let silence = false;
    let bodyError: Error | undefined;
    const watch = new IdleWatch(timeoutMs, () => {
      silence = true;
      stop();
    });
    const body = makeBody?.(watch);
    if (body instanceof Readable) {
      body.once('error', (error) => {
        bodyError = error;
        stop();
      });
    }
    signal?.addEventListener('abort', stop, { once: true });
    try {
      return await send({ abortSignal: controller.signal }, body);
    } catch (error) {
      // Frees the socket at once; a body that was half sent would keep it.
      stop();
      if (body instanceof Readable) body.destroy();
      if (bodyError !== undefined) throw bodyError;
      signal?.throwIfAborted();
      if (!silence) throw toStoreError(error, context);
      const { operation, key } = context;
      const reason = `nothing moved for ${timeoutMs} ms`;
      throw storeErrors.STORE_UNAVAILABLE({ operation, key, reason, outcomeUnknown: true });
    } finally {
      watch.end();
      signal?.removeEventListener('abort', stop);
    }
  }

  /** A call with a body: repeated if the body can be, and its checksum compared. */
  async #upload<T extends { ETag?: string | undefined; ChecksumCRC64NVME?: string | undefined }>(
    context: CallContext,
    body: Body,
    { crc64: declared, signal }: Pick<PutOptions, 'crc64' | 'signal'>,
    send: (sent: SentBody, options: { abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    const { key } = context;
    const serverCompares = this.capabilities.crc64;
    const checks = { key, length: lengthOf(body), crc64: serverCompares ? undefined : declared };
    const short = !(body instanceof Uint8Array) && body.length <= COLLECTED_BYTES;
    const bytes = short ? await collect(body.stream, checks, signal) : body;
    const repeatable = bytes instanceof Uint8Array;
    const ahead = declared ?? (repeatable && serverCompares ? crc64(bytes) : undefined);
    if (repeatable && !serverCompares && declared !== undefined && crc64(bytes) !== declared) {
      throw storeErrors.BODY_CHECKSUM({ key, reason: 'found before sending them' });
    }
    const checksum = serverCompares && ahead !== undefined ? { ChecksumCRC64NVME: crc64ToBase64(ahead) } : {};
    const framed = serverCompares && ahead === undefined;
    const makeBody: BodyMaker = (watch) => {
      if (!repeatable) return new SourceBody(bytes.stream, checks, watch, framed);
      return bytes.byteLength <= SENT_AT_ONCE_BYTES ? bytes : new BufferBody(bytes, watch);
    };
    const options = { signal, ...(!repeatable && { attempts: 1 }) };
    return this.#repeat(options, async () => {
      let behind: bigint | undefined;
      const reply = await this.#attempt(
        context,
        options,
        async (to, sent) => {
          const ContentLength = sent instanceof SourceBody ? sent.sentLength : lengthOf(body);
          const answer = await send({ Body: sent!, ContentLength, ...checksum }, to);
          behind = sent instanceof SourceBody ? sent.crc64 : undefined;
          return answer;
        },
        makeBody,
      );
      this.#compare(context, ahead ?? behind, reply.ChecksumCRC64NVME);
      if (reply.ETag === undefined || reply.ETag === '') {
        throw storeErrors.STORE_CORRUPT({
          operation: context.operation,
          key,
          reason: 'the reply has no ETag',
        });
      }
      return reply;
    });
  }

  #compare(
    { operation, key }: CallContext,
    expected: bigint | undefined,
    reported: string | undefined,
  ): void {
    const found = crc64FromBase64(reported);
    if (expected === undefined || found === undefined || found === expected) return;
    const reason = `its CRC-64/NVME is ${reported}, not ${crc64ToBase64(expected)}`;
    throw storeErrors.STORE_CORRUPT({ operation, key, reason });
  }

  /** A server that keeps the parts' checksums wants them all when it completes; what the caller does not know is looked up. */
  async #withChecksums(multipart: Multipart, parts: PartName[]): Promise<PartName[]> {
    if (parts.every(({ crc64: crc }) => crc !== undefined)) return parts;
    const known = new Map((await this.listParts(multipart)).map((part) => [part.number, part.crc64]));
    return parts.map((part) => {
      const crc = part.crc64 ?? known.get(part.number);
      return { number: part.number, etag: part.etag, ...(crc !== undefined && { crc64: crc }) };
    });
  }

  /** After an attempt with an unknown outcome, "no such upload" may mean that it was the one that succeeded. */
  async #finishedBefore(
    error: unknown,
    earlier: readonly SluiceError[],
    key: string,
    parts: Pick<StoredPart, 'etag'>[],
    { size, crc64: expected }: CompleteOptions,
  ): Promise<ObjectInfo | undefined> {
    if (!isSluiceError(error, 'MULTIPART_NOT_FOUND')) return undefined;
    if (!earlier.some(({ details }) => details?.['outcomeUnknown'] === true)) return undefined;
    const found = await this.head(key);
    if (found === undefined || found.size !== size) return undefined;
    const checksumsKnown = expected !== undefined && found.crc64 !== undefined;
    const ours = checksumsKnown ? found.crc64 === expected : found.etag === multipartEtag(parts);
    return ours ? found : undefined;
  }

  /**
   * Without checksums of the parts: versitygw gives a copied part the checksum of the whole source. The server computes that of
   * the new object all the same, and it is compared with the source's.
   */
  async #copyInParts(source: ObjectInfo, to: string): Promise<ObjectInfo> {
    const multipart = await this.#create(to, source, false);
    const partBytes = Math.min(COPY_PART_BYTES, this.capabilities.maxSinglePutBytes);
    try {
      const parts: PartName[] = [];
      for (let first = 0; first < source.size; first += partBytes) {
        const last = Math.min(source.size, first + partBytes) - 1;
        const input = {
          ...this.#within(multipart),
          PartNumber: parts.length + 1,
          CopySource: this.#copySource(source.key),
          CopySourceIfMatch: source.etag,
          CopySourceRange: `bytes=${first}-${last}`,
        };
        const context = {
          operation: 'UploadPartCopy',
          key: source.key,
          id: multipart.id,
          ifMatch: source.etag,
        };
        const reply = await this.#call(context, { timeoutMs: this.#slowTimeoutMs }, (send) =>
          this.#client.send(new UploadPartCopyCommand(input), send),
        );
        parts.push({ number: input.PartNumber, etag: reply.CopyPartResult?.ETag ?? '' });
      }
      const expected = source.crc64 === undefined ? {} : { crc64: source.crc64 };
      const made = await this.#complete(multipart, parts, { size: source.size, ...expected }, false);
      return { ...source, ...made };
    } catch (error) {
      await this.abortMultipart(multipart).catch(() => {});
      throw error;
    }
  }

  async #findOut(key: string): Promise<void> {
    // Who may not list them leaves them to the rules of the bucket.
    await this.#abortOldChecks().catch(() => {});
    const bytes = Buffer.from('check');
    const sum = crc64(bytes);
    let multipart: Multipart | undefined;
    try {
      multipart = await this.#create(key, {}, true);
      const part = await this.#putPart(multipart, 1, bytes, { crc64: sum });
      await this.completeMultipart(multipart, [part], { size: bytes.length, crc64: sum });
      this.capabilities.crc64 = (await this.head(key))?.crc64 === sum;
    } catch (error) {
      if (multipart !== undefined) await this.abortMultipart(multipart).catch(() => {});
      // A refusal may be about the checksum, or about everything: an object without one tells them apart.
      if (!isSluiceError(error) || error.retryable) throw error;
      this.capabilities.crc64 = false;
      await this.#put(key, bytes).catch((refusal: unknown) => {
        this.capabilities.crc64 = true;
        throw refusal;
      });
    }
    this.#findOutCrc64 = false;
  }

  async #abortOldChecks(): Promise<void> {
    const before = Date.now() - CHECK_LEFT_MS;
    const left = await this.listMultiparts(CHECK_PREFIX);
    for (const multipart of left)
      if (multipart.initiatedAt && multipart.initiatedAt.getTime() < before)
        await this.abortMultipart(multipart);
  }
}

function completedPart(
  { number, etag, crc64: crc }: PartName,
  checksums: boolean,
): { PartNumber: number; ETag: string; ChecksumCRC64NVME?: string } {
  const checksum = checksums && crc !== undefined && { ChecksumCRC64NVME: crc64ToBase64(crc) };
  return { PartNumber: number, ETag: etag, ...checksum };
}

function checkOptions({ bucket, region, endpoint }: S3StoreOptions): void {
  const refuse = (what: string, reason: string): never => {
    throw storeErrors.INPUT_INVALID({ what, reason });
  };
  if (!bucket) refuse('bucket', 'the name of a bucket is needed');
  if (!region) refuse('region', 'name the region; servers that have none take us-east-1');
  if (endpoint === undefined) return;
  const url = URL.canParse(endpoint) ? new URL(endpoint) : refuse('endpoint', 'it is no URL');
  if (!/^https?:$/.test(url.protocol)) refuse('endpoint', 'it begins with http:// or https://');
  if (url.username !== '' || url.password !== '') refuse('endpoint', 'give credentials as credentials');
}

/**
 * Servers that keep objects as files fold `a//b`, `a/./b` and `/a` into other keys, and so do proxies on the way; XML, in which
 * objects are listed, has no control characters. A key that every server takes for the same key has neither.
 */
function checkPlain(key: string, full: string): void {
  const reason = 'on S3 a key has no control characters and no empty, "." or ".." parts between its slashes';
  // oxlint-disable-next-line no-control-regex -- these are the characters to refuse
  const unlistable = /[\u0000-\u001f\u007f\ufffe\uffff]/.test(full);
  if (unlistable || full.split('/').some((part) => /^\.{0,2}$/.test(part))) {
    throw storeErrors.KEY_INVALID({ key, reason });
  }
}

function description({ contentType, metadata }: Pick<PutOptions, 'contentType' | 'metadata'>): {
  ContentType?: string;
  Metadata?: Record<string, string>;
} {
  const encoded = Object.entries(metadata ?? {}).map(([name, value]) => [name, encodeMetadataValue(value)]);
  return {
    ...(contentType !== undefined && { ContentType: contentType }),
    ...(encoded.length > 0 && { Metadata: Object.fromEntries(encoded) as Record<string, string> }),
  };
}

function describedBy({ contentType, metadata }: PutOptions): Pick<ObjectInfo, 'contentType' | 'metadata'> {
  return { ...(contentType !== undefined && { contentType }), ...(metadata !== undefined && { metadata }) };
}

/** As the SDK writes them. */
function shortHeaders({ ChecksumCRC64NVME }: SentBody, { contentType }: PutOptions): Record<string, string> {
  return {
    'content-type': contentType ?? 'application/octet-stream',
    ...(ChecksumCRC64NVME !== undefined && { [CRC64_HEADER]: ChecksumCRC64NVME }),
  };
}

function stored(reply: { ETag?: string | undefined; ChecksumCRC64NVME?: string | undefined }): {
  etag: string;
  crc64?: bigint;
} {
  const crc = crc64FromBase64(reply.ChecksumCRC64NVME);
  return { etag: reply.ETag ?? '', ...(crc !== undefined && { crc64: crc }) };
}

interface ObjectReply {
  ETag?: string | undefined;
  ChecksumCRC64NVME?: string | undefined;
  ContentType?: string | undefined;
  LastModified?: Date | undefined;
  Metadata?: Record<string, string> | undefined;
}

function toInfo(key: string, reply: ObjectReply): Omit<ObjectInfo, 'size'> {
  const metadata = Object.entries(reply.Metadata ?? {}).map(([name, value]) => [
    name,
    decodeMetadataValue(value),
  ]);
  return {
    key,
    ...stored(reply),
    ...(reply.ContentType !== undefined && { contentType: reply.ContentType }),
    ...(reply.LastModified !== undefined && { lastModified: reply.LastModified }),
    metadata: Object.fromEntries(metadata) as Record<string, string>,
  };
}

/** The ETag that S3 gives to an object made of parts: the MD5 of their MD5s, and their number. */
function multipartEtag(parts: Pick<StoredPart, 'etag'>[]): string {
  const digests = parts.map(({ etag }) => Buffer.from(etag.replaceAll('"', ''), 'hex'));
  return `"${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${parts.length}"`;
}
