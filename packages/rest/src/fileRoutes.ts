// Files by their path: one request uploads, downloads or deletes. `curl -T file …/v1/files/{drive}/{path}` is all it takes.
import { checkScope, checkType, limitsOf, needKey, ownerOf } from '@sluice/access';
import { isSluiceError } from '@sluice/base';
import { recordsErrors, type NodeRecord } from '@sluice/records';
import type { FastifyRequest } from 'fastify';
import { bodyOf } from './body.js';
import { dispositions, downloadHeaders, etagsOf, quoted, serveFile } from './download.js';
import { restErrors } from './errors.js';
import { locationOf } from './location.js';
import { nodeView } from './nodeRoutes.js';
import { contentLength, filePlace, metadataOf, wholeSha256 } from './request.js';
import type { Call, Route } from './route.js';

export const fileRoutes: Route[] = [
  {
    method: 'PUT',
    url: '/v1/files/:drive/*',
    needs: 'operator',
    of: 'tenant',
    tokens: true,
    // The data plane: the records and the events say what came of it.
    audit: false,
    summary: 'Upload a whole file in one request, of known or unknown length.',
    answers: '201 and the new file, or 200 and the replaced one',
    headers: {
      'Idempotency-Key': 'Makes the request safe to repeat.',
      'Repr-Digest':
        'sha-256 of the file (RFC 9530); the upload fails if its bytes differ. Content-Digest counts the same.',
      'If-None-Match': '* refuses to replace a file.',
      'If-Match': 'An ETag; only this file is replaced.',
      'X-Sluice-Meta-<name>': 'Metadata of the file.',
    },
    raw: true,
    handle: async (call) => {
      const { request, reply, principal, parts } = call;
      const { drive, path } = filePlace(request);
      checkScope(principal, drive, path);
      refusePieces(request);
      const contentType = request.headers['content-type'];
      checkType(principal, contentType);
      const { headers } = request;
      const key = headers['idempotency-key'];
      const sha256 = wholeSha256(headers);
      const metadata = metadataOf(headers);
      const owner = ownerOf(principal);
      const isNew = mustBeNew(request);
      const ifMatch = conditionOf(call);
      if (ifMatch && key === undefined) await checkReplaced(call, ifMatch, drive, path);
      const stored = await parts.uploads
        .store(
          {
            tenant: principal.tenant,
            ...(owner !== undefined && { owner }),
            drive,
            path,
            ...(contentType !== undefined && { contentType }),
            ...(sha256 !== undefined && { sha256 }),
            ...(metadata && { metadata }),
            ...(typeof key === 'string' && { idempotencyKey: key }),
            ifExists: isNew ? 'fail' : 'replace',
            ...(ifMatch && { ifMatch }),
            limits: limitsOf(principal),
          },
          bodyOf(request),
          contentLength(request),
        )
        .catch((error: unknown) => {
          throw isUnmet(error, isNew) ? restErrors.PRECONDITION_FAILED() : error;
        });
      const address = `/v1/files/${encodeURIComponent(drive)}/${path.split('/').map(encodeURIComponent).join('/')}`;
      reply.code(stored.isUpdate ? 200 : 201).header('Location', locationOf(parts, request, address));
      reply.header('ETag', quoted(stored.etag));
      return { drive, path, ...stored };
    },
  },
  ...(['GET', 'HEAD'] as const).map((method): Route => ({
    method,
    url: '/v1/files/:drive/*',
    needs: 'viewer',
    of: 'tenant',
    summary: 'Download a file, or a range of it, under conditions.',
    answers: '200, 206 or 304',
    query: dispositions,
    headers: downloadHeaders,
    handle: async (call) => {
      const { node, drive } = await fileAt(call);
      return serveFile(call.parts.storeOf(drive), served(node), call);
    },
  })),
  {
    method: 'DELETE',
    url: '/v1/files/:drive/*',
    needs: 'operator',
    of: 'tenant',
    audit: 'file.delete',
    summary: 'Delete a file.',
    answers: '200 and what was deleted',
    headers: { 'If-Match': 'Only if it is still this one.' },
    handle: async (call) => {
      const { node } = await fileAt(call);
      const ifMatch = conditionOf(call);
      const { tenant } = call.principal;
      const asked = { tenant, id: node.id, ...(ifMatch && { ifMatch }) };
      const { deleted } = await call.parts.records.nodes.delete(asked);
      // Somebody else was a moment faster.
      if (deleted === 0 && ifMatch) throw restErrors.PRECONDITION_FAILED();
      return nodeView(node);
    },
  },
];

function mustBeNew({ headers }: FastifyRequest): boolean {
  const condition = headers['if-none-match'];
  if (condition === undefined) return false;
  if (condition.trim() === '*') return true;
  throw restErrors.REQUEST_INVALID({ reason: 'If-None-Match can only be * when a file is written' });
}

/** The files one of which the client means. A key is needed: the answer tells what is there. */
function conditionOf({ principal, request }: Call): string[] | undefined {
  const wanted = request.headers['if-match'];
  if (wanted === undefined) return undefined;
  needKey(principal);
  return etagsOf(wanted);
}

/**
 * A file that is not the one to be replaced is refused before its bytes are read. What counts is checked by the records, in the
 * transaction that replaces; a request that may be a repetition is left to them, because it may have replaced the file itself.
 */
async function checkReplaced(
  { principal, parts }: Call,
  ifMatch: string[],
  drive: string,
  path: string,
): Promise<void> {
  const node = await parts.records.nodes.getByPath(principal.tenant, drive, path);
  const isThere = node?.type === 'FILE' && node.status === 'ACTIVE';
  const isMeant = isThere && ifMatch.some((etag) => etag === '*' || quoted(etag) === quoted(node.etag!));
  if (!isMeant) throw restErrors.PRECONDITION_FAILED();
}

/** A condition that held when a large file began may not hold when it is complete; then the upload has failed for that. */
function isUnmet(error: unknown, isNew: boolean): boolean {
  if (!isSluiceError(error)) return false;
  const code = error.code === 'UPLOAD_FAILED' ? error.details?.['code'] : error.code;
  return code === 'PRECONDITION_FAILED' || (isNew && code === 'NODE_EXISTS');
}

/** RFC 9110, 14.5: a server that does not take a part of a file must not take it for the whole. */
function refusePieces({ headers }: FastifyRequest): void {
  if (headers['content-range'] !== undefined)
    throw restErrors.REQUEST_INVALID({
      reason:
        'a file comes whole here, without Content-Range; to send it in pieces begin an upload (POST /v1/uploads)',
    });
  const coding = headers['content-encoding'] ?? 'identity';
  if (coding !== 'identity')
    throw restErrors.REQUEST_INVALID({
      reason: `files are kept as they come, so Content-Encoding: ${coding.slice(0, 40)} would be lost; send the plain bytes`,
    });
}

async function fileAt({ principal, request, parts }: Call) {
  const { tenant } = principal;
  const { drive: driveName, path } = filePlace(request);
  const drive = await parts.reads.drive(tenant, driveName);
  if (!drive) throw recordsErrors.DRIVE_NOT_FOUND({ drive: driveName });
  const node = await parts.reads.nodeAt(tenant, driveName, path);
  if (!node || node.type !== 'FILE' || node.status !== 'ACTIVE')
    throw recordsErrors.NODE_NOT_FOUND({ node: path, isFolder: node?.type === 'FOLDER' });
  return { node, drive };
}

/** What serving needs of a file that is ACTIVE. */
export function served(node: NodeRecord) {
  return {
    name: node.name,
    size: node.size!,
    etag: node.etag!,
    sha256: node.sha256 ?? null,
    contentType: node.contentType ?? null,
    objectKey: node.objectKey!,
    updatedAt: node.updatedAt,
  };
}
