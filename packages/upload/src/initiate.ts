// An upload begins: the intent goes to the records first (the node, the upload, the event, in one transaction), then the state to
// Redis. A process that dies in between leaves an upload without state, which the same call under the same idempotency key
// completes, and which expires otherwise.
import { createHash } from 'node:crypto';
import { failPoint } from '@sluice/base';
import { checkMetadata, checkPath, type Drive, type Limits, type UploadRecord } from '@sluice/records';
import { resultOf } from './complete.js';
import { budgetOf, chunkPriceOf, driveOf, inDrive, priceOf, runScript, type Engine } from './engine.js';
import { uploadErrors } from './errors.js';
import { makeId } from './keys.js';
import { bufferedLimit } from './place.js';
import { planParts, type PartPlan } from './plan.js';
import { decodeState, readState, type State } from './state.js';
import { ask } from './work.js';

export interface NewUpload {
  tenant: string;
  owner?: string;
  drive: string;
  path: string;
  size?: number;
  chunkSize?: number;
  contentType?: string;
  /** Of the whole file, in hex; the upload fails if its bytes have another one. */
  sha256?: string;
  metadata?: Record<string, string>;
  clientNodeId?: string;
  idempotencyKey?: string;
  ifExists?: 'replace' | 'fail';
  /** Only a file with one of these ETags, without quotation marks, is replaced; `*` is any file. */
  ifMatch?: string[];
  limits?: Limits;
}

const typeShape =
  /^[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(\s*;\s*[\w-]+=("[ !#-[\]-~]*"|[\w!#$&'*+.^`|~-]+))*$/;
const longestType = 255;

/** Refuses what no upload can be, before anything is written. */
export function checkNew(engine: Engine, upload: NewUpload): void {
  const { settings } = engine;
  checkPath(upload.path);
  if (upload.metadata) checkMetadata(upload.metadata);
  wholeNumber('size', upload.size, 0);
  wholeNumber('chunkSize', upload.chunkSize, 1);
  const limit = Math.min(settings.maxFileBytes, upload.limits?.maxFileBytes ?? Infinity);
  if (upload.size !== undefined && upload.size > limit)
    throw uploadErrors.FILE_TOO_LARGE({ size: upload.size, limit });
  if (upload.size !== undefined && upload.chunkSize && upload.size / upload.chunkSize > settings.maxChunks)
    throw uploadErrors.TOO_MANY_CHUNKS({ limit: settings.maxChunks });
  if (upload.sha256 !== undefined && !/^[0-9a-f]{64}$/.test(upload.sha256))
    throw uploadErrors.UPLOAD_INVALID({ what: 'sha256', wanted: '64 hexadecimal digits in lower case' });
  if (upload.contentType !== undefined) {
    const isType = upload.contentType.length <= longestType && typeShape.test(upload.contentType);
    if (!isType)
      throw uploadErrors.UPLOAD_INVALID({ what: 'contentType', wanted: 'a media type such as image/png' });
  }
  if (upload.idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(upload.idempotencyKey))
    throw uploadErrors.UPLOAD_INVALID({
      what: 'Idempotency-Key',
      wanted: '1 to 255 visible ASCII characters',
    });
}

function wholeNumber(what: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return;
  throw uploadErrors.UPLOAD_INVALID({ what, wanted: `a whole number from ${least} to 2^53−1` });
}

/** What makes two requests the same; a key that is used for another one is refused. */
export function digestOf({ limits: _, idempotencyKey: __, ...upload }: NewUpload): string {
  const entries = Object.entries(upload).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(entries)).digest('hex');
}

export function objectKeyOf(drive: Pick<Drive, 'prefix'>, id: string): string {
  return `${drive.prefix}${id}/file`;
}

export async function initiate(
  engine: Engine,
  upload: NewUpload,
  { inOneRequest = false } = {},
): Promise<State> {
  checkNew(engine, upload);
  const drive = await driveOf(engine, upload.tenant, upload.drive);
  const plan = planParts(
    upload.size,
    upload.chunkSize,
    engine.storeOf(drive).capabilities,
    engine.settings.preferredPartBytes,
    inOneRequest,
  );
  checkBufferable(engine, upload, drive, plan);
  await engine.hooks.beforeAccept?.(upload);
  const id = makeId(Math.floor(Math.random() * engine.settings.partitions));
  const beginning = engine.records.uploads.begin({
    id,
    tenant: upload.tenant,
    ...(upload.owner !== undefined && { owner: upload.owner }),
    drive: upload.drive,
    bucket: drive.bucket,
    prefix: drive.prefix,
    path: upload.path,
    objectKey: objectKeyOf(drive, id),
    ...(upload.size !== undefined && { declaredSize: upload.size }),
    ...(upload.contentType !== undefined && { contentType: upload.contentType }),
    ...(upload.sha256 !== undefined && { sha256: upload.sha256 }),
    ...(upload.metadata && { metadata: upload.metadata }),
    ...(upload.clientNodeId !== undefined && { clientNodeId: upload.clientNodeId }),
    ...(upload.idempotencyKey !== undefined && { idempotencyKey: upload.idempotencyKey }),
    requestDigest: digestOf(upload),
    ifExists: upload.ifExists ?? 'replace',
    ...(upload.ifMatch && { ifMatch: upload.ifMatch }),
    ...(upload.limits && { limits: upload.limits }),
  });
  const begun = await inDrive(engine, drive, beginning);
  failPoint('initiate.recorded');
  const known = begun.replayed ? await readState(engine, begun.upload.id) : undefined;
  if (known) return known;
  if (begun.upload.status !== 'OPEN') return endedState(begun.upload, upload, plan);
  const partCharge = priceOf(Math.min(plan.partBytes, upload.size ?? plan.partBytes));
  await runScript(engine, 'initiate', begun.upload.id, {
    id: begun.upload.id,
    idleMs: engine.settings.idleMs,
    fields: JSON.stringify(
      Object.entries({
        status: 'PENDING',
        tenant: upload.tenant,
        owner: upload.owner ?? '',
        node_id: begun.upload.nodeId,
        s3_upload_id: '',
        s3_key: begun.upload.objectKey,
        drive: upload.drive,
        bucket: drive.bucket,
        drive_prefix: drive.prefix,
        path: begun.upload.path,
        expected_size: upload.size ?? '',
        chunk_size: upload.chunkSize ?? '',
        part_bytes: plan.partBytes,
        grow_every: plan.growEvery,
        part_charge: Math.min(partCharge, budgetOf(engine).uploadBytes),
        mime_type: upload.contentType ?? '',
        sha256: upload.sha256 ?? '',
        sha256_seen: '',
        received_chunks: 0,
        uploaded_chunks: 0,
        total_chunks:
          upload.size !== undefined && upload.chunkSize ? Math.ceil(upload.size / upload.chunkSize) : 0,
        is_last_received: 'false',
        last_chunk: '',
        received_bytes: 0,
        stored_bytes: 0,
        reach: 0,
        next_chunk: 0,
        next_offset: 0,
        low_part: 0,
        low_start: 0,
        reserved: 0,
        charged: 0,
        fence: 0,
        idle_ms: engine.settings.idleMs,
        is_update: begun.isUpdate,
        max_file_bytes: Math.min(engine.settings.maxFileBytes, upload.limits?.maxFileBytes ?? Infinity),
        max_tenant_bytes: upload.limits?.maxBytes ?? '',
        claimed_bytes: upload.size ?? 0,
        final_etag: '',
        final_size: '',
        error_message: '',
      }).flatMap(([name, value]) => [name, String(value)]),
    ),
  });
  failPoint('initiate.stated');
  // An empty file has all its bytes.
  if (upload.size === 0) await ask(engine, { do: 'complete', upload: begun.upload.id }, upload);
  return (await readState(engine, begun.upload.id))!;
}

/** Chunks that are less than a part must find room in Redis; each of these would be refused. */
function checkBufferable(
  engine: Engine,
  { size, chunkSize }: NewUpload,
  drive: Drive,
  { partBytes, growEvery }: PartPlan,
): void {
  if (chunkSize === undefined || (chunkSize === partBytes && growEvery === 0)) return;
  const { uploadBytes } = budgetOf(engine);
  if (chunkPriceOf(Math.min(chunkSize, size ?? chunkSize)) <= uploadBytes) return;
  const { capabilities } = engine.storeOf(drive);
  const least = planParts(size, undefined, capabilities, engine.settings.preferredPartBytes).partBytes;
  throw uploadErrors.UPLOAD_INVALID({
    what: 'chunkSize',
    wanted: `at most ${bufferedLimit(uploadBytes)} bytes, which can be buffered, or at least ${least}, which are a part of the file`,
  });
}

/** Redis has forgotten it; the records have not. A completed one is answered as it was, the others say that they ended. */
function endedState(record: UploadRecord, upload: NewUpload, plan: PartPlan): State {
  const { id, status, reason, result } = record;
  if (status !== 'COMPLETED' || !result)
    throw uploadErrors.UPLOAD_ENDED({ id, state: status, ...(reason !== undefined && { reason }) });
  const fields = new Map<string, string>();
  for (const [name, value] of Object.entries({
    status,
    tenant: record.tenant,
    node_id: result.nodeId,
    drive: upload.drive,
    path: record.path,
    s3_key: record.objectKey,
    expected_size: result.size,
    chunk_size: upload.chunkSize ?? '',
    part_bytes: plan.partBytes,
    grow_every: plan.growEvery,
    received_bytes: result.size,
    stored_bytes: result.size,
    created_at: record.createdAt.getTime(),
    updated_at: (record.endedAt ?? record.createdAt).getTime(),
    is_update: result.isUpdate,
    result: JSON.stringify(resultOf(result)),
  }))
    fields.set(name, String(value));
  return decodeState(id, fields)!;
}
