/** What a drive, a node, an upload and a key look like outside of this package, and how a row becomes one. */
import type { Metadata } from './metadata.js';
import type { DriveRow, KeyRow, NodeRow, UploadResultRow, UploadRow } from './schema.js';

export interface Drive {
  id: string;
  tenant: string;
  name: string;
  bucket: string;
  prefix: string;
  createdAt: Date;
}

export type NodeType = NodeRow['type'];
export type NodeStatus = NodeRow['status'];
export type UploadStatus = UploadRow['status'];

export type KeyRole = KeyRow['role'];

/** A key without its secrets. */
export interface KeyRecord {
  id: string;
  /** `*` for the whole installation. */
  tenant: string;
  role: KeyRole;
  name: string;
  createdAt: Date;
  createdBy: string;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** To the minute, more or less. */
  usedAt: Date | null;
  /** Until then the text before the last rotation is good, too. */
  oldUntil: Date | null;
}

export interface NodeRecord {
  id: string;
  tenant: string;
  owner: string | undefined;
  driveId: string;
  parentId: string | undefined;
  type: NodeType;
  name: string;
  /** Within the drive, without a leading slash. */
  path: string;
  contentType: string | undefined;
  size: number | undefined;
  objectKey: string | undefined;
  etag: string | undefined;
  sha256: string | undefined;
  crc64: string | undefined;
  status: NodeStatus;
  metadata: Metadata;
  clientNodeId: string | undefined;
  /** 0 until a file is ACTIVE for the first time. */
  version: number;
  /** What was found out about the present bytes; about earlier ones see `records.verifications`. */
  verification: NodeVerification | undefined;
  createdAt: Date;
  updatedAt: Date;
}

export interface NodeVerification {
  result: 'approved' | 'rejected';
  score?: number;
  decision?: string;
  receivedAt: string;
}

export interface UploadRecord {
  id: string;
  tenant: string;
  owner: string | undefined;
  driveId: string;
  nodeId: string;
  path: string;
  objectKey: string;
  status: UploadStatus;
  ifExists: 'replace' | 'fail';
  fence: number;
  declaredSize: number | undefined;
  contentType: string | undefined;
  /** As it was announced. */
  sha256: string | undefined;
  metadata: Metadata;
  clientNodeId: string | undefined;
  idempotencyKey: string | undefined;
  requestDigest: string | undefined;
  /** Whether there was an ACTIVE file at the path when the upload began, and its version then. */
  isUpdate: boolean;
  previousVersion: number | undefined;
  createdAt: Date;
  endedAt: Date | undefined;
  reason: string | undefined;
  result: UploadResult | undefined;
}

/** What an upload came to. It stays the same, whatever happens to the node later. */
export type UploadResult = Readonly<UploadResultRow>;

export function toDrive(row: { [column in keyof DriveRow]: unknown }): Drive {
  return {
    id: row.id as string,
    tenant: row.tenant as string,
    name: row.name as string,
    bucket: row.bucket as string,
    prefix: row.prefix as string,
    createdAt: new Date(row.created_at as string),
  };
}

export function toNode(row: NodeRow): NodeRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    owner: row.owner ?? undefined,
    driveId: row.drive_id,
    parentId: row.parent_id ?? undefined,
    type: row.type,
    name: row.name,
    path: row.path,
    contentType: row.content_type ?? undefined,
    size: row.size ?? undefined,
    objectKey: row.object_key ?? undefined,
    etag: row.etag ?? undefined,
    sha256: row.sha256 ?? undefined,
    crc64: row.crc64 ?? undefined,
    status: row.status,
    metadata: row.metadata,
    clientNodeId: row.client_node_id ?? undefined,
    version: row.version,
    verification: presentVerification(row),
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  };
}

/** A file that was replaced has not been looked at. */
function presentVerification({ verification, object_key }: NodeRow): NodeVerification | undefined {
  if (!verification || verification.objectKey !== object_key) return undefined;
  const { objectKey: _, receivedAt, ...rest } = verification;
  return { ...rest, receivedAt: new Date(receivedAt).toISOString() };
}

export function toUpload(row: UploadRow): UploadRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    owner: row.owner ?? undefined,
    driveId: row.drive_id,
    nodeId: row.node_id,
    path: row.path,
    objectKey: row.object_key,
    status: row.status,
    ifExists: row.if_exists,
    fence: row.fence,
    declaredSize: row.declared_size ?? undefined,
    contentType: row.content_type ?? undefined,
    sha256: row.sha256 ?? undefined,
    metadata: row.metadata,
    clientNodeId: row.client_node_id ?? undefined,
    idempotencyKey: row.idempotency_key ?? undefined,
    requestDigest: row.request_digest ?? undefined,
    isUpdate: row.is_update,
    previousVersion: row.previous_version ?? undefined,
    createdAt: new Date(row.created_at),
    endedAt: row.ended_at === null ? undefined : new Date(row.ended_at),
    reason: row.reason ?? undefined,
    result: row.result ?? undefined,
  };
}

export function toKey(row: KeyRow): KeyRecord {
  const { id, tenant, role, name, created_by: createdBy } = row;
  return {
    ...{ id, tenant, role, name, createdBy },
    createdAt: new Date(row.created_at),
    expiresAt: moment(row.expires_at),
    revokedAt: moment(row.revoked_at),
    usedAt: moment(row.used_at),
    oldUntil: moment(row.old_until),
  };
}

export function moment(value: KeyRow['expires_at']): Date | null {
  return value === null ? null : new Date(value);
}
