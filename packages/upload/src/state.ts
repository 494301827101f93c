// The state of an upload as the scripts keep it, read and given types. The names of the fields are those that operators know from
// the hash itself.
import { combineCrc64 } from '@sluice/store';
import type { Engine } from './engine.js';
import { keysFor } from './engine.js';
import { uploadErrors } from './errors.js';
import { partNumbered, type PartPlan } from './plan.js';

export type Status =
  'PENDING' | 'UPLOADING' | 'COMPLETING' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';

export interface State extends PartPlan {
  id: string;
  status: Status;
  tenant: string;
  owner: string | undefined;
  nodeId: string;
  drive: string;
  bucket: string;
  drivePrefix: string;
  path: string;
  objectKey: string;
  multipartId: string | undefined;
  size: number | undefined;
  chunkSize: number | undefined;
  contentType: string | undefined;
  /** Declared by the client. */
  sha256: string | undefined;
  /** Computed in passing. */
  sha256Seen: string | undefined;
  receivedBytes: number;
  storedBytes: number;
  receivedChunks: number;
  /** A small file is on its way in one request: there is nothing but the key of its object (`whole.ts`). */
  isNote: boolean;
  nextChunk: number;
  nextOffset: number;
  createdAt: number;
  updatedAt: number;
  firstChunkAt: number | undefined;
  idleMs: number;
  sequence: number;
  isUpdate: boolean;
  /** Of the tenant or the token; for files whose length is not known from the start. */
  maxFileBytes: number | undefined;
  maxTenantBytes: number | undefined;
  /** What is set aside for it in the tenant's quota, if that has one. */
  claimedBytes: number;
  fence: number;
  errorCode: string | undefined;
  errorMessage: string | undefined;
  result: Result | undefined;
  /** What this upload may take up in the chunks Redis now. */
  reservedBytes: number;
  /** Its lowest bytes wait for room. */
  isPressed: boolean;
  /** The end that somebody has begun to write. */
  ending: { status: string; code: string; reason: string } | undefined;
}

export interface Result {
  nodeId: string;
  size: number;
  etag: string;
  sha256: string;
  crc64: string;
  version: number;
}

export async function readState(engine: Engine, id: string): Promise<State | undefined> {
  const keys = keysFor(engine, id);
  if (!keys) return undefined;
  const flat = await engine.redis.call('HGETALL', [keys.state]);
  return decodeState(id, fieldsOf(flat));
}

/** An upload by its id, or by its state where that has just been read. */
export type UploadRef = string | State;

/** Throws UPLOAD_NOT_FOUND if there is none. */
export async function stateOf(engine: Engine, upload: UploadRef): Promise<State> {
  if (typeof upload !== 'string') return upload;
  const state = await readState(engine, upload);
  if (!state) throw uploadErrors.UPLOAD_NOT_FOUND({ id: upload });
  return state;
}

/** Whatever shape the reply of HGETALL has: pairs in a list, a map or an object. */
function fieldsOf(reply: unknown): Map<string, string> {
  if (reply instanceof Map) return new Map([...reply].map(([key, value]) => [String(key), String(value)]));
  if (!Array.isArray(reply))
    return new Map(
      Object.entries(reply as Record<string, unknown>).map(([key, value]) => [key, String(value)]),
    );
  return pairs(reply.map(String));
}

export function pairs(flat: string[]): Map<string, string> {
  const fields = new Map<string, string>();
  for (let i = 0; i + 1 < flat.length; i += 2) fields.set(flat[i]!, flat[i + 1]!);
  return fields;
}

export function decodeState(id: string, fields: Map<string, string>): State | undefined {
  if (!fields.has('status')) return undefined;
  const text = (name: string): string | undefined => fields.get(name) || undefined;
  const number = (name: string): number | undefined =>
    text(name) === undefined ? undefined : Number(text(name));
  const result = text('result');
  return {
    id,
    status: fields.get('status') as Status,
    tenant: fields.get('tenant') ?? '',
    owner: text('owner'),
    nodeId: fields.get('node_id') ?? '',
    drive: fields.get('drive') ?? '',
    bucket: fields.get('bucket') ?? '',
    drivePrefix: fields.get('drive_prefix') ?? '',
    path: fields.get('path') ?? '',
    objectKey: fields.get('s3_key') ?? '',
    multipartId: text('s3_upload_id'),
    size: number('expected_size'),
    chunkSize: number('chunk_size'),
    contentType: text('mime_type'),
    sha256: text('sha256'),
    sha256Seen: text('sha256_seen'),
    partBytes: Number(fields.get('part_bytes')),
    growEvery: Number(fields.get('grow_every')),
    receivedBytes: Number(fields.get('received_bytes')),
    storedBytes: Number(fields.get('stored_bytes')),
    receivedChunks: Number(fields.get('received_chunks')),
    isNote: Number(fields.get('stored_bytes')) < 0,
    nextChunk: Number(fields.get('next_chunk')),
    nextOffset: Number(fields.get('next_offset')),
    createdAt: Number(fields.get('created_at')),
    updatedAt: Number(fields.get('updated_at')),
    firstChunkAt: number('first_chunk_at'),
    idleMs: Number(fields.get('idle_ms')),
    sequence: Number(fields.get('sequence') ?? 0),
    isUpdate: fields.get('is_update') === 'true',
    maxFileBytes: number('max_file_bytes'),
    maxTenantBytes: number('max_tenant_bytes'),
    claimedBytes: number('claimed_bytes') ?? Infinity,
    fence: Number(fields.get('fence') ?? 0),
    errorCode: text('error_code'),
    errorMessage: text('error_message'),
    result: result === undefined ? undefined : (JSON.parse(result) as Result),
    reservedBytes: Number(fields.get('reserved') ?? 0),
    isPressed: fields.has('pressed'),
    ending: fields.has('ending')
      ? {
          status: fields.get('ending')!,
          code: fields.get('ending_code') ?? '',
          reason: fields.get('ending_reason') ?? '',
        }
      : undefined,
  };
}

/** Bytes that wait for their part: a member of `held`. */
export interface Extent {
  offset: number;
  length: number;
  /** The attempt whose frames hold them, or the key of a staging object. */
  attempt: string | undefined;
  staged: string | undefined;
  /** Where in the attempt's bytes they begin. */
  start: number;
  /** The chunk that brought them. */
  name: string;
  member: string;
}

export async function readExtents(engine: Engine, id: string, from = 0, to = Infinity): Promise<Extent[]> {
  const keys = keysFor(engine, id)!;
  const last = to === Infinity ? '+inf' : `(${to}`;
  const members = (await engine.redis.call('ZRANGE', [keys.held, from, last, 'BYSCORE'])) as Buffer[];
  return members.map((bytes) => decodeExtent(String(bytes)));
}

/** Chunks whose place is not known yet, as extents that begin at 0; `name` is their number. */
export async function readWindow(engine: Engine, id: string): Promise<Extent[]> {
  const entries = fieldsOf(await engine.redis.call('HGETALL', [keysFor(engine, id)!.window]));
  return [...entries].map(([name, member]) => {
    const [length, source] = member.split(' ');
    return { offset: 0, length: Number(length), ...sourceOf(source!), start: 0, name, member };
  });
}

/** Frames as the scripts write them: attempt and number of frames. `freed` are those that nobody needs; after its end, all. */
export async function readAttempts(engine: Engine, id: string, which: 'freed' | 'all'): Promise<string[]> {
  const fields = fieldsOf(await engine.redis.call('HGETALL', [keysFor(engine, id)!.attempts]));
  return [...fields].flatMap(([attempt, paid]) => {
    const frames = /^\d+ \d+ (\d+)$/.exec(paid)?.[1];
    if (attempt.startsWith('!')) return [`${attempt.slice(1)} ${paid}`];
    return frames === undefined || which === 'freed' ? [] : [`${attempt} ${frames}`];
  });
}

function decodeExtent(member: string): Extent {
  const [offset, length, source, , start, name] = member.split(' ');
  return {
    offset: Number(offset),
    length: Number(length),
    ...sourceOf(source!),
    start: Number(start),
    name: name!,
    member,
  };
}

/** Where the bytes are: in the frames of an attempt, or in a staging object, which is marked by a star. */
function sourceOf(source: string): Pick<Extent, 'attempt' | 'staged'> {
  return source.startsWith('*')
    ? { attempt: undefined, staged: source.slice(1) }
    : { attempt: source, staged: undefined };
}

/** The CRC-64/NVME of extents as it was when they arrived; undefined when some are only a piece of what arrived. */
export async function receivedCrc64(
  engine: Engine,
  id: string,
  extents: Extent[],
): Promise<bigint | undefined> {
  const names = extents.map(({ name }) => name);
  const records = (await engine.redis.call('HMGET', [
    keysFor(engine, id)!.chunks,
    ...names,
  ])) as (Buffer | null)[];
  let crc64 = 0n;
  for (const [i, { offset, length, start, staged }] of extents.entries()) {
    const [size, crc, at] = String(records[i]).split(' ');
    const isWhole = Number(size) === length && Number(at) === offset && start === 0;
    if (!isWhole || staged !== undefined) return undefined;
    crc64 = combineCrc64(crc64, BigInt(`0x${crc}`), length);
  }
  return crc64;
}

export interface PartRecord {
  index: number;
  size: number;
  crc64: bigint;
  etag: string;
  /** Set when the part is an object of its own: a file that fits into one part. */
  key: string | undefined;
}

export async function readParts(engine: Engine, id: string): Promise<PartRecord[]> {
  const keys = keysFor(engine, id)!;
  const fields = fieldsOf(await engine.redis.call('HGETALL', [keys.parts]));
  const parts = [...fields].map(([index, value]) => {
    const [size, crc64, etag, key] = value.split(' ');
    return {
      index: Number(index),
      size: Number(size),
      crc64: BigInt(`0x${crc64}`),
      etag: etag!,
      key: key || undefined,
    };
  });
  return parts.sort((a, b) => a.index - b.index);
}

export type Range = [first: number, last: number | null];

/** The ranges of bytes that are not there, ascending; the last one is open when the length is unknown. */
export async function missingRanges(engine: Engine, state: State, most: number): Promise<Range[]> {
  const [parts, extents] = await Promise.all([readParts(engine, state.id), readExtents(engine, state.id)]);
  const there = [
    ...parts.map(({ index, size }) => ({
      offset: partNumbered(state, index, undefined).start,
      length: size,
    })),
    ...extents,
  ].sort((a, b) => a.offset - b.offset);
  const missing: Range[] = [];
  let at = 0;
  for (const { offset, length } of there) {
    if (offset > at && missing.length < most) missing.push([at, offset - 1]);
    at = Math.max(at, offset + length);
  }
  if (missing.length < most) {
    if (state.size === undefined) missing.push([at, null]);
    else if (at < state.size) missing.push([at, state.size - 1]);
  }
  return missing;
}
