// @sluice/records: the system of record in PostgreSQL: drives, nodes, uploads, outbox, keys, audit log.
export { openRecords, Records, type RecordsOptions } from './records.js';
export { folderOf, type Change, type OnChange } from './changes.js';
export { recordsErrors, type RecordsErrorCode } from './errors.js';
export { checkName, checkPath, MAX_NAME_BYTES, MAX_PATH_BYTES } from './names.js';
export {
  checkMetadata,
  MAX_METADATA_ENTRIES,
  MAX_METADATA_KEY_BYTES,
  MAX_METADATA_VALUE_BYTES,
  type Metadata,
} from './metadata.js';
export type { CreateDrive, Drives } from './drives.js';
export type { CreateFolder, DeleteNode, Deletion, ListNodes, MoveNode, Nodes, Place } from './nodes.js';
export type {
  Activated,
  ActivateUpload,
  Begun,
  BeginUpload,
  EndUpload,
  Limits,
  StoredObject,
  StoreWhole,
  Uploads,
} from './uploads.js';
export type { AccessState, CreateKey, Keys, LiveKey, RevokeKey, RotateKey } from './keys.js';
export type { Audit, AuditDetails, AuditEntry, AuditOutcome, AuditPage, BeginAudit } from './audit.js';
export type { Doomed, DoomedObject } from './doomed.js';
export type { Leadership, Outbox, OutboxEvent, OutboxState } from './outbox.js';
export type {
  Drive,
  KeyRecord,
  KeyRole,
  NodeRecord,
  NodeVerification,
  NodeStatus,
  NodeType,
  UploadRecord,
  UploadResult,
  UploadStatus,
} from './model.js';
export { canonicalJson, type JsonObject, type JsonValue } from './canonicalJson.js';
export type { NewVerification, TakenVerification, Verification, Verifications } from './verifications.js';
export type { NewWebhook, WebhookChange, WebhookRecord, Webhooks } from './webhooks.js';
export type { SealedSecret } from './schema.js';
