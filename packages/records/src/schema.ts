/**
 * The tables as TypeScript sees them. Kysely builds and types the questions from this; the SQL files define the truth.
 * Rows have the names of the columns; what leaves the package (`records.ts`) has names of its own.
 */
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type Generated,
  type Selectable,
  type JSONColumnType,
} from 'kysely';
import type { JsonObject } from './canonicalJson.js';

/** A row comes from a query (dates) or from a function's JSON (texts). */
type Moment = Date | string;

export interface DriveRow {
  id: Generated<string>;
  tenant: string;
  name: string;
  bucket: string;
  prefix: string;
  created_at: Generated<Moment>;
}

export interface NodeRow {
  id: string;
  tenant: string;
  owner: string | null;
  drive_id: string;
  parent_id: string | null;
  type: 'FOLDER' | 'FILE';
  name: string;
  path: string;
  content_type: string | null;
  size: number | null;
  object_key: string | null;
  etag: string | null;
  sha256: string | null;
  crc64: string | null;
  status: 'PENDING' | 'UPLOADING' | 'ACTIVE' | 'FAILED';
  metadata: Record<string, string>;
  client_node_id: string | null;
  version: number;
  created_at: Moment;
  updated_at: Moment;
  /** Written by `sluice_verify`. */
  verification: NodeVerificationRow | null;
}

export interface NodeVerificationRow {
  /** The object that was looked at. */
  objectKey: string;
  result: 'approved' | 'rejected';
  score?: number;
  decision?: string;
  receivedAt: string;
}

export interface VerificationRow {
  id: string;
  digest: string;
  node_id: string;
  object_key: string;
  version: number;
  user_id: string | null;
  result: 'approved' | 'rejected';
  score: number | null;
  decision: string | null;
  metadata: JsonObject;
  received_at: Moment;
}

export interface WebhookRow {
  id: string;
  tenant: string;
  url: string;
  topics: string[];
  secrets: JSONColumnType<SealedSecret[]>;
  active: boolean;
  created_at: Generated<Moment>;
  updated_at: Generated<Moment>;
}

export interface SealedSecret {
  sealed: string;
  /** Absent: until it is replaced. */
  endsAt?: string;
}

export interface UploadRow {
  id: string;
  tenant: string;
  owner: string | null;
  drive_id: string;
  node_id: string;
  path: string;
  object_key: string;
  status: 'OPEN' | 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'EXPIRED';
  if_exists: 'replace' | 'fail';
  fence: number;
  declared_size: number | null;
  content_type: string | null;
  sha256: string | null;
  metadata: Record<string, string>;
  client_node_id: string | null;
  idempotency_key: string | null;
  request_digest: string | null;
  is_update: boolean;
  previous_version: number | null;
  base_version: number;
  created_at: Moment;
  ended_at: Moment | null;
  reason: string | null;
  if_match: string[] | null;
  claimed_size: number | null;
  result: UploadResultRow | null;
}

/** Written by `sluice_fill`. */
export interface UploadResultRow {
  nodeId: string;
  path: string;
  version: number;
  isUpdate: boolean;
  size: number;
  etag?: string;
  sha256?: string;
  crc64?: string;
  contentType?: string;
  objectKey: string;
}

export interface OutboxRow {
  seq: number;
  event_id: string;
  topic: string;
  node_id: string;
  payload: Record<string, unknown>;
  created_at: Moment;
}

export interface UsageRow {
  tenant: string;
  shard: number;
  bytes: number;
  files: number;
}

export interface DoomedRow {
  object_key: string;
  drive_id: string;
  bucket: string;
  since: Moment;
}

export interface KeyRow {
  id: string;
  tenant: string;
  role: 'viewer' | 'operator' | 'admin';
  name: string;
  old_until: Moment | null;
  created_at: Moment;
  created_by: string;
  expires_at: Moment | null;
  revoked_at: Moment | null;
  used_at: Moment | null;
}

/** Only processes that compare keys read these. */
export interface KeySecretsRow extends KeyRow {
  digest: Buffer;
  old_digest: Buffer | null;
}

export interface EndedSessionRow {
  id: string;
  until: Moment;
}

export interface AccessStateRow {
  one: boolean;
  revision: number;
  closed: boolean;
}

export interface AuditColumns {
  seq: Generated<number>;
  id: string;
  at: Generated<Moment>;
  tenant: string | null;
  action: string;
  target: string;
  actor: string;
  actor_name: string;
  via: string;
  address: string;
  request_id: string;
  outcome: Generated<'done' | 'refused' | 'failed' | null>;
  status: Generated<number | null>;
  details: Generated<Record<string, string | number | boolean>>;
  ended_at: Generated<Moment | null>;
}

export type AuditRow = Selectable<AuditColumns>;

export interface Tables {
  drives: DriveRow;
  nodes: NodeRow;
  uploads: UploadRow;
  outbox: OutboxRow;
  usage: UsageRow;
  doomed_objects: DoomedRow;
  keys: KeySecretsRow;
  ended_sessions: EndedSessionRow;
  access_state: AccessStateRow;
  audit: AuditColumns;
  verifications: VerificationRow;
  webhooks: WebhookRow;
}

/** Builds questions; `Database` asks them, because it knows about deadlines and lost connections. */
export const build = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});
