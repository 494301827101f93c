// Uploads over HTTP: begin, send, ask, finish, cancel, watch.
import { checkScope, checkType, limitsOf, ownerOf } from '@sluice/access';
import { isSluiceError } from '@sluice/base';
import { checkName, checkPath, type UploadResult } from '@sluice/records';
import { isUploadId, uploadErrors, type State, type UploadView } from '@sluice/upload';
import { bodyOf } from './body.js';
import { restErrors } from './errors.js';
import { locationOf } from './location.js';
import { chunkNumber, contentDigest, contentRange, needLength } from './request.js';
import type { Call, JsonSchema, Route } from './route.js';
import { streamProgress } from './progressStream.js';

const text: JsonSchema = { type: 'string', minLength: 1, maxLength: 1_024 };
const count: JsonSchema = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };
const sha256: JsonSchema = { type: 'string', pattern: '^[0-9a-f]{64}$' };

interface NewUploadBody {
  drive: string;
  path: string;
  size?: number;
  chunkSize?: number;
  contentType?: string;
  sha256?: string;
  metadata?: Record<string, string>;
  clientNodeId?: string;
  ifExists?: 'replace' | 'fail';
}

export const uploadRoutes: Route[] = [
  {
    method: 'POST',
    url: '/v1/uploads',
    needs: 'operator',
    of: 'tenant',
    tokens: true,
    // The data plane: the records and the events say what came of it.
    audit: false,
    summary: 'Begin an upload. The same Idempotency-Key returns the same upload.',
    answers: '201 and the upload; Location is its address',
    headers: { 'Idempotency-Key': 'Makes the request safe to repeat.' },
    body: {
      type: 'object',
      required: ['drive', 'path'],
      additionalProperties: false,
      properties: {
        drive: text,
        path: { ...text, description: 'Folders that do not exist are made.' },
        size: { ...count, description: 'Bytes; leave it out if you do not know.' },
        chunkSize: { ...count, minimum: 1, description: 'Chunk n then begins at n · chunkSize.' },
        contentType: { type: 'string', maxLength: 255 },
        sha256: { ...sha256, description: 'Of the whole file; the upload fails if its bytes differ.' },
        metadata: {
          type: 'object',
          maxProperties: 64,
          additionalProperties: { type: 'string', maxLength: 2_048 },
        },
        clientNodeId: { type: 'string', minLength: 1, maxLength: 255 },
        ifExists: { enum: ['replace', 'fail'] },
      },
    },
    handle: async ({ request, reply, principal, parts }) => {
      const asked = request.body as NewUploadBody;
      const body = { ...asked, drive: checkName(asked.drive), path: checkPath(asked.path) };
      checkScope(principal, body.drive, body.path);
      checkType(principal, body.contentType);
      const key = request.headers['idempotency-key'];
      const owner = ownerOf(principal);
      const upload = await parts.uploads.initiate({
        ...body,
        tenant: principal.tenant,
        ...(owner !== undefined && { owner }),
        ...(typeof key === 'string' && { idempotencyKey: key }),
        limits: limitsOf(principal),
      });
      reply.code(201).header('Location', locationOf(parts, request, `/v1/uploads/${upload.id}`));
      return upload;
    },
  },
  {
    method: 'PUT',
    url: '/v1/uploads/:id/chunks/:number',
    needs: 'operator',
    of: 'tenant',
    tokens: true,
    // The data plane: the records and the events say what came of it.
    audit: false,
    summary: 'Send a chunk by its number. The same bytes again are a success, others a conflict.',
    answers: '200 and what is there now; ack says "stored" or "buffered"',
    query: {
      last: { enum: ['true', 'false'], description: 'Marks the last chunk when the size is unknown.' },
    },
    headers: {
      'Content-Digest': 'Of the bytes of this chunk: sha-256, crc32c, crc32 or crc64nvme (RFC 9530).',
    },
    raw: true,
    handle: async (call) => {
      const { params, query, request, parts } = call;
      const number = chunkNumber(params['number']!);
      const length = needLength(request);
      const digest = contentDigest(request.headers);
      const upload = await ownUpload(call);
      const address = { number, last: query['last'] === 'true' };
      return receipt(call, await parts.uploads.receive(upload, address, bodyOf(request), length, digest));
    },
  },
  {
    method: 'PUT',
    url: '/v1/uploads/:id/bytes',
    needs: 'operator',
    of: 'tenant',
    tokens: true,
    // The data plane: the records and the events say what came of it.
    audit: false,
    summary:
      'Send any range of bytes. Without a digest, whole pieces that arrived before a cut connection count.',
    answers: '200 and what is there now',
    headers: {
      'Content-Range': 'bytes <first>-<last>/<size or *>',
      'Content-Digest': 'Of the bytes of this request; then they count together or not at all.',
    },
    raw: true,
    handle: async (call) => {
      const { request, parts } = call;
      const length = needLength(request);
      const range = contentRange(request.headers['content-range'], length);
      const digest = contentDigest(request.headers);
      const upload = await ownUpload(call);
      return receipt(call, await parts.uploads.receive(upload, range, bodyOf(request), length, digest));
    },
  },
  ...(['GET', 'HEAD'] as const).map((method): Route => ({
    method,
    url: '/v1/uploads/:id',
    needs: 'viewer',
    of: 'tenant',
    tokens: true,
    summary: 'What is there, and what is missing; or how it ended.',
    answers: '200 and the upload',
    handle: async (call) => {
      call.reply.header('Cache-Control', 'no-store');
      try {
        return await call.parts.uploads.status(await ownUpload(call));
      } catch (error) {
        if (!isSluiceError(error, 'UPLOAD_NOT_FOUND')) throw error;
        const ended = await endedUpload(call);
        if (!ended) throw error;
        return ended;
      }
    },
  })),
  {
    method: 'POST',
    url: '/v1/uploads/:id/complete',
    needs: 'operator',
    of: 'tenant',
    tokens: true,
    // The data plane: the records and the events say what came of it.
    audit: false,
    summary: 'Say how long the file is, or what its digest is, when that was unknown at the beginning.',
    answers: '200 and the upload, which is completed as soon as all its bytes are stored',
    body: { type: ['object', 'null'], additionalProperties: false, properties: { size: count, sha256 } },
    handle: async (call) => {
      const { id } = await ownUpload(call);
      const body = (call.request.body ?? {}) as { size?: number; sha256?: string };
      const { size, ...digest } = body;
      const before = await call.parts.uploads.status(id);
      const { state } = before;
      if (state === 'FAILED' || state === 'CANCELLED' || state === 'EXPIRED')
        throw uploadErrors.UPLOAD_ENDED({ id, state });
      // Without a size the file ends where its bytes end.
      const end = size ?? (before.size === null ? endOf(before) : undefined);
      return call.parts.uploads.declare(id, { ...digest, ...(end !== undefined && { size: end }) });
    },
  },
  {
    method: 'GET',
    url: '/v1/uploads/:id/events',
    needs: 'viewer',
    of: 'tenant',
    tokens: true,
    summary:
      'Progress as server-sent events: a snapshot, then numbered updates; with Last-Event-ID what was missed instead of the snapshot.',
    answers: '200 text/event-stream; ends after the end of the upload',
    headers: { 'Last-Event-ID': 'Where to go on.' },
    handle: async (call) => streamProgress(call, (await ownUpload(call)).id),
  },
  {
    method: 'DELETE',
    url: '/v1/uploads/:id',
    needs: 'operator',
    of: 'tenant',
    tokens: true,
    audit: 'upload.cancel',
    summary: 'Cancel an upload; what it left is removed.',
    answers: '200 and the upload',
    handle: async (call) => call.parts.uploads.cancel((await ownUpload(call)).id),
  },
];

function endOf({ missing, receivedBytes }: UploadView): number {
  const [open] = missing;
  // Beyond the last byte that has its place, chunks may wait for others before them.
  if (missing.length !== 1 || open![1] !== null || receivedBytes > open![0])
    throw restErrors.REQUEST_INVALID({
      reason: 'bytes are missing in the middle of the file; ask for the status',
    });
  return open![0];
}

/** The upload, if it is the asking tenant's and its token covers it. To others it does not exist. */
async function ownUpload({ params, principal, parts }: Call): Promise<State> {
  const state = await parts.uploads.owned(params['id']!, principal.tenant);
  checkScope(principal, state.drive, state.path);
  return state;
}

/** Long after its end the state of an upload is gone from Redis; the records still know what came of it. */
async function endedUpload({ params, principal, parts }: Call): Promise<object | undefined> {
  const { tenant } = principal;
  if (!isUploadId(params['id']!)) return undefined;
  const upload = await parts.reads.endedUpload(tenant, params['id']!);
  const drive = upload && (await parts.reads.driveById(tenant, upload.driveId));
  if (!upload || !drive) return undefined;
  checkScope(principal, drive.name, upload.path);
  const { id, nodeId, path, status, result, reason, isUpdate } = upload;
  const size = result?.size ?? upload.declaredSize ?? null;
  const bytes = result?.size ?? 0;
  return {
    ...{ id, nodeId, drive: drive.name, path, state: status, size, isUpdate },
    ...{ receivedBytes: bytes, storedBytes: bytes, missing: [] },
    createdAt: upload.createdAt.toISOString(),
    updatedAt: (upload.endedAt ?? upload.createdAt).toISOString(),
    error: status === 'COMPLETED' ? null : { code: status, message: reason ?? '' },
    result: result ? shown(result) : null,
  };
}

/** As the live state has it: not where the bytes lie. */
function shown({ nodeId, size, etag = '', sha256 = '', crc64 = '', version }: UploadResult): object {
  return { nodeId, size, etag, sha256, crc64, version };
}

function receipt(
  { reply }: Call,
  { ack, duplicate, state }: Awaited<ReturnType<Call['parts']['uploads']['receive']>>,
): unknown {
  reply.header('Cache-Control', 'no-store');
  const { status, receivedBytes, storedBytes, result } = state;
  return { ack, duplicate, state: status, receivedBytes, storedBytes, ...(result && { result }) };
}
