// What Sluice asks of object storage. S3 (`s3.ts`) and local disk (`disk.ts`) keep the same contract, and one conformance
// suite runs on both.
//
// - An object appears whole or not at all, under a key that is never a path.
// - What is absent is `undefined` from `head`, and OBJECT_NOT_FOUND from `get`. Deleting and aborting what is absent succeeds.
// - CRC-64/NVME of what was stored is returned wherever the store knows it. A body that does not match its declared `crc64` or
//   length is refused, and nothing is stored.
// - Transient failures are repeated inside, within a budget, unless the body was a stream that has been read. What remains is a
//   typed error (`errors.ts`) that says whether trying again helps.
import type { Readable } from 'node:stream';

/**
 * Bytes in memory can be sent again; a stream is sent once, and its length must be known. The store reads the stream to its end
 * and never destroys it: after a failure the rest of it is the caller's, to drain or to destroy.
 */
export type Body = Uint8Array | { stream: Readable; length: number };

export interface ObjectInfo {
  key: string;
  size: number;
  /** As the store writes it, with quotes if it has quotes. */
  etag: string;
  /** CRC-64/NVME of the whole object, if the store knows it. */
  crc64?: bigint;
  contentType?: string;
  lastModified?: Date;
  metadata?: Record<string, string>;
}

export interface PutOptions {
  contentType?: string;
  metadata?: Record<string, string>;
  /** CRC-64/NVME of the body, if it is known already; the store refuses a body that has another one. */
  crc64?: bigint;
  signal?: AbortSignal;
}

export interface GetOptions {
  /** First and last byte, both included; without `last`, to the end. A range beyond the end is RANGE_NOT_SATISFIABLE. */
  range?: { first: number; last?: number };
  /** Fails with OBJECT_CHANGED when the object has another ETag. */
  ifMatch?: string;
  signal?: AbortSignal;
}

export interface ObjectRead extends ObjectInfo {
  /** Ends with an error, never early, when the bytes stop before `length` was reached. Read it to its end or destroy it. */
  stream: Readable;
  /** How many bytes the stream brings; `size` is that of the whole object. */
  length: number;
}

export interface Multipart {
  key: string;
  id: string;
}

export interface StoredPart {
  number: number;
  size: number;
  etag: string;
  crc64?: bigint;
}

export interface CompleteOptions {
  /** The sum of the parts; a store that can check it does. */
  size: number;
  /** CRC-64/NVME of the whole object, combined from the parts. */
  crc64?: bigint;
  signal?: AbortSignal;
}

export interface ListPage {
  objects: ObjectInfo[];
  /** The last key of this page, to be given as `from`; absent on the last page. */
  next?: string;
}

export interface Capabilities {
  /** No part but the last may be smaller. */
  minPartBytes: number;
  maxPartBytes: number;
  maxParts: number;
  /** All parts but the last must have the same size (R2). */
  equalParts: boolean;
  maxSinglePutBytes: number;
  /** The store reports CRC-64/NVME of whole objects, also of those made of parts. */
  crc64: boolean;
}

export interface ListOptions {
  from?: string;
  limit?: number;
  /** Only keys without another slash behind the prefix, which ends with one: what lies in a folder itself. A disk looks nowhere else. */
  shallow?: boolean;
}

export interface ObjectStore {
  readonly capabilities: Capabilities;
  put(key: string, body: Body, options?: PutOptions): Promise<ObjectInfo>;
  get(key: string, options?: GetOptions): Promise<ObjectRead>;
  head(key: string): Promise<ObjectInfo | undefined>;
  delete(key: string): Promise<void>;
  /** In the order of the keys' UTF-8 bytes, those after `from`. Descriptions and checksums are not in lists: ask `head`. */
  list(prefix: string, options?: ListOptions): Promise<ListPage>;
  copy(from: string, to: string): Promise<ObjectInfo>;
  createMultipart(key: string, options?: Pick<PutOptions, 'contentType' | 'metadata'>): Promise<Multipart>;
  /** Parts are numbered from 1; the same number again replaces the part. */
  putPart(
    multipart: Multipart,
    number: number,
    body: Body,
    options?: Pick<PutOptions, 'crc64' | 'signal'>,
  ): Promise<StoredPart>;
  /** All parts, in the order of their numbers, however many pages that takes. */
  listParts(multipart: Multipart): Promise<StoredPart[]>;
  /** Fails with MULTIPART_NOT_FOUND when it was completed or aborted before: look at the object then. */
  completeMultipart(
    multipart: Multipart,
    parts: Pick<StoredPart, 'number' | 'etag' | 'crc64'>[],
    options: CompleteOptions,
  ): Promise<ObjectInfo>;
  abortMultipart(multipart: Multipart): Promise<void>;
  /** Multipart uploads under way whose keys begin with the prefix. */
  listMultiparts(prefix: string): Promise<(Multipart & { initiatedAt?: Date })[]>;
  /** Whether the store answers and may be written to; rejects with the reason. */
  check(): Promise<void>;
  close(): void;
}
