/**
 * Uploads: how a file comes to be. An upload is OPEN until it is COMPLETED, FAILED, CANCELLED or EXPIRED, and then never changes.
 *
 *     begin ──▶ raiseFence … ──▶ activate        the node is ACTIVE with its object
 *       │                          end           nothing came of it; the node is as it was before
 *     storeWhole                                 begin and activate in one step, for a file that is already stored
 *
 * Each of them is one function in the database and one transaction with its events, and may be repeated: the second answer is the
 * first one. Who completes an upload raises its fence first; from then on an activation with an older fence is refused.
 */
import { sql } from 'kysely';
import { foldersOf, type OnChange } from './changes.js';
import type { Database } from './database.js';
import type { Drives } from './drives.js';
import { recordsErrors } from './errors.js';
import {
  checkCount,
  checkMetadata,
  checkOptionalCount,
  checkOptionalText,
  checkText,
  cleanReason,
  type Metadata,
} from './metadata.js';
import { toNode, toUpload, type NodeRecord, type UploadRecord, type UploadResult } from './model.js';
import { checkPlace, type Place } from './nodes.js';
import { build, type NodeRow, type UploadRow } from './schema.js';
import { Together, type WholeFile } from './together.js';

const LARGEST_LIST = 1_000;

export interface Limits {
  /** Of the tenant, stored and announced together. */
  maxBytes?: number;
  maxOpenUploads?: number;
  maxFileBytes?: number;
}

export type BeginUpload = {
  id: string;
  tenant: string;
  owner?: string;
  drive: string;
  /** Of the drive by which the place of the object was chosen: if another has its name by now, with other settings, it is not found. */
  bucket?: string;
  prefix?: string;
  /** Contains the upload's id and is never used again. */
  objectKey: string;
  declaredSize?: number;
  contentType?: string;
  /** As it is announced; the object must have it. */
  sha256?: string;
  metadata?: Metadata;
  clientNodeId?: string;
  idempotencyKey?: string;
  /** Tells a repetition of the same request from another one with the same key. */
  requestDigest?: string;
  /** 'fail' never overwrites: it is checked again when the upload is activated. */
  ifExists: 'replace' | 'fail';
  /** Replaces only a file with one of these ETags (without quotation marks), or any file (`*`); checked again when it is activated. */
  ifMatch?: string[];
  /** Exact, and therefore one after the other for each tenant; without limits nobody waits. */
  limits?: Limits;
} & Place;

export interface StoredObject {
  size: number;
  etag: string;
  sha256?: string;
  crc64?: string;
  contentType: string;
}

export interface ActivateUpload extends StoredObject {
  id: string;
  fence: number;
  /** Where the object is, if that was not known when the upload began. */
  objectKey?: string;
  /** Checked once more, for an upload that did not announce its size. */
  limits?: Pick<Limits, 'maxBytes' | 'maxFileBytes'>;
}

/** `sha256` of the object that is stored; `declaredSha256` what the client announced. */
export type StoreWhole = Omit<BeginUpload, 'sha256' | 'declaredSize' | 'contentType'> &
  Place &
  StoredObject & { declaredSha256?: string; declaredSize?: number };

export interface EndUpload {
  id: string;
  status: 'FAILED' | 'CANCELLED' | 'EXPIRED';
  reason: string;
}

export interface Begun {
  upload: UploadRecord;
  /** Undefined only if the request came again after its node was removed. */
  node: NodeRecord | undefined;
  isUpdate: boolean;
  previousVersion: number | undefined;
  /** The request came before; this is its first answer. */
  replayed: boolean;
}

export interface Activated {
  upload: UploadRecord;
  /** As it is now. Undefined only if the request came again after its node was removed. */
  node: NodeRecord | undefined;
  isUpdate: boolean;
  /** As it was when the upload was completed. */
  result: UploadResult;
  replayed: boolean;
}

interface Answer {
  upload: UploadRow;
  node: NodeRow | null;
  replayed: boolean;
  /** The highest folder that had to be made. */
  made?: string | null;
}

export class Uploads {
  private readonly together: Together;

  constructor(
    private readonly database: Database,
    private readonly nudge: () => void,
    private readonly onChange: OnChange,
    private readonly drives: Pick<Drives, 'nameOf'>,
  ) {
    this.together = new Together(database);
  }

  async begin(upload: BeginUpload): Promise<Begun> {
    const answer = await this.database.call<Answer>('sluice_begin', {
      ...beginArguments(upload),
      contentType: checkOptionalText('contentType', upload.contentType),
      declaredSha256: checkOptionalText('sha256', upload.sha256),
    });
    this.nudge();
    const { node, made, replayed } = answer;
    // A file that is to be replaced is in its lists as it was.
    if (node?.version === 0 || made || replayed) {
      const folders = foldersOf(answer.upload.path, made, replayed);
      const { tenant } = answer.upload;
      await this.onChange({ what: 'lists', tenant, drive: upload.drive.normalize('NFC'), folders });
    }
    return begun(answer);
  }

  /**
   * Room in the tenant's quota for an upload that did not announce its size: QUOTA_EXCEEDED if there is none. Returns for how many
   * bytes there is room set aside now; that may be more than was asked for.
   */
  async claim({ id, bytes, maxBytes }: { id: string; bytes: number; maxBytes: number }): Promise<number> {
    const counts = { bytes: checkCount('bytes', bytes), maxBytes: checkCount('maxBytes', maxBytes) };
    return this.database.call<number>('sluice_claim', { id, ...counts });
  }

  /** Nobody with an older fence can activate the upload from now on. An upload that has ended is returned as it is. */
  async raiseFence(id: string, fence: number): Promise<UploadRecord> {
    checkCount('fence', fence);
    const raise = build
      .updateTable('uploads')
      .set({ fence })
      .where('id', '=', id)
      .where('status', '=', 'OPEN')
      .where('fence', '<=', fence)
      .returningAll();
    const [raised] = await this.database.ask('raise a fence', raise);
    if (raised) return toUpload(raised);
    const question = build.selectFrom('uploads').selectAll().where('id', '=', id);
    const [row] = await this.database.ask('get an upload', question);
    if (!row) throw recordsErrors.UPLOAD_NOT_FOUND({ upload: id });
    if (row.status !== 'OPEN') return toUpload(row);
    throw recordsErrors.UPLOAD_FENCED({ upload: id, fence, known: row.fence });
  }

  async activate(upload: ActivateUpload): Promise<Activated> {
    const answer = await this.database.call<Answer>('sluice_activate', {
      id: upload.id,
      fence: checkCount('fence', upload.fence),
      ...objectArguments(upload),
      objectKey: checkOptionalText('objectKey', upload.objectKey),
      ...(hasLimits(upload.limits) && { limits: checkLimits(upload.limits) }),
    });
    return this.told(answer);
  }

  /** Begin and activate in one round trip and one transaction, which others may share. */
  async storeWhole(upload: StoreWhole): Promise<Activated> {
    const file = {
      ...beginArguments(upload),
      ...objectArguments(upload),
      declaredSha256: checkOptionalText('declaredSha256', upload.declaredSha256),
    };
    const answer = isPlain(file)
      ? await this.together.store<Answer>(file)
      : await this.database.call<Answer>('sluice_store_whole', file);
    return this.told(answer, file.drive);
  }

  /** A repetition is told as well: whoever was first may have died before it could tell. */
  private async told(answer: Answer, driveName?: string): Promise<Activated> {
    this.nudge();
    const { node, made, replayed } = answer;
    if (node !== null) {
      const { tenant, id: nodeId, path } = node;
      const drive = driveName ?? (await this.drives.nameOf(tenant, node.drive_id).catch(() => undefined));
      const [, ...folders] = foldersOf(path, made, replayed);
      await this.onChange(
        drive === undefined
          ? { what: 'tree', tenant, nodeId }
          : { what: 'file', tenant, drive, nodeId, path, ...(folders.length > 0 && { folders }) },
      );
    }
    return activated(answer);
  }

  /** Ends an open upload; one that has ended stays as it is. */
  async end({ id, status, reason }: EndUpload): Promise<{ changed: boolean; upload: UploadRecord }> {
    const argument = { id, status, reason: cleanReason(reason) };
    const answer = await this.database.call<{ changed: boolean; upload: UploadRow }>('sluice_end', argument);
    if (answer.changed) {
      this.nudge();
      await this.tellEnded(answer.upload);
    }
    return { changed: answer.changed, upload: toUpload(answer.upload) };
  }

  private async tellEnded({ tenant, drive_id: driveId, node_id: nodeId, path }: UploadRow): Promise<void> {
    const drive = await this.drives.nameOf(tenant, driveId).catch(() => undefined);
    await this.onChange(
      drive === undefined
        ? { what: 'tree', tenant, nodeId }
        : { what: 'lists', tenant, drive, folders: foldersOf(path, undefined) },
    );
  }

  /** Of a file that was to be stored at once and never was: nobody can store it under this id any more. */
  async bury(upload: {
    id: string;
    tenant: string;
    drive: string;
    path: string;
    objectKey: string;
    reason: string;
  }): Promise<UploadRecord> {
    const argument = { ...upload, reason: cleanReason(upload.reason) };
    return toUpload(await this.database.call<UploadRow>('sluice_bury', argument));
  }

  async get(tenant: string, id: string): Promise<UploadRecord | undefined> {
    const question = build
      .selectFrom('uploads')
      .selectAll()
      .where('id', '=', id)
      .where('tenant', '=', tenant);
    const [row] = await this.database.ask('get an upload', question);
    return row && toUpload(row);
  }

  /**
   * Open uploads of all tenants that began before a moment, by their ids, page by page: for whoever ends the abandoned ones. `after` is the
   * id of the last one of the page before.
   */
  async listOpen({
    olderThan,
    limit,
    after,
  }: {
    olderThan: Date;
    limit: number;
    after?: string;
  }): Promise<UploadRecord[]> {
    let question = build
      .selectFrom('uploads')
      .selectAll()
      .where('status', '=', 'OPEN')
      .where('created_at', '<', olderThan)
      .orderBy('id')
      .limit(Math.min(checkCount('limit', limit), LARGEST_LIST));
    if (after !== undefined) question = question.where('id', '>', after);
    return (await this.database.ask('list open uploads', question)).map(toUpload);
  }

  /** How many uploads are open, of all tenants. */
  async countOpen(): Promise<number> {
    const question = build
      .selectFrom('uploads')
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .where('status', '=', 'OPEN');
    const [row] = await this.database.ask('count open uploads', question);
    return Number(row!.count);
  }

  /**
   * Uploads that are open now, of one tenant or of all, the newest first, page by page: `before` is the last one of the page before.
   */
  async pageOfOpen({
    tenant,
    limit,
    before,
  }: {
    tenant?: string;
    limit: number;
    before?: { createdAt: Date; id: string };
  }): Promise<UploadRecord[]> {
    // A Date has milliseconds, PostgreSQL has microseconds: what is compared must be what was told.
    const created = sql<Date>`date_trunc('milliseconds', created_at)`;
    let question = build
      .selectFrom('uploads')
      .selectAll()
      .where('status', '=', 'OPEN')
      .orderBy(created, 'desc')
      .orderBy('id', 'desc')
      .limit(Math.min(checkCount('limit', limit), LARGEST_LIST));
    if (tenant !== undefined) question = question.where('tenant', '=', tenant);
    if (before)
      question = question.where(sql<boolean>`(${created}, id) < (${before.createdAt}, ${before.id})`);
    return (await this.database.ask('list open uploads', question)).map(toUpload);
  }

  /** Removes uploads that ended so long ago, the oldest first, and says how many; at most as many as one transaction should. */
  async prune({ endedMs, limit }: { endedMs: number; limit: number }): Promise<number> {
    const most = Math.min(checkCount('limit', limit), LARGEST_LIST);
    const latest = sql<Date>`clock_timestamp() - ${checkCount('endedMs', endedMs)} * interval '1 millisecond'`;
    const old = build
      .selectFrom('uploads')
      .select('id')
      .where('status', '<>', 'OPEN')
      .where('ended_at', '<=', latest)
      .orderBy('ended_at')
      .limit(most)
      .forUpdate()
      .skipLocked();
    const question = build.deleteFrom('uploads').where('id', 'in', old).returning('id');
    return (await this.database.ask('prune uploads', question)).length;
  }

  /** What a tenant has stored. Open uploads are not in it. */
  async usage(tenant: string): Promise<{ bytes: number; files: number }> {
    const question = build
      .selectFrom('usage')
      .select(({ fn }) => [fn.sum<string>('bytes').as('bytes'), fn.sum<string>('files').as('files')])
      .where('tenant', '=', tenant);
    const [row] = await this.database.ask('sum up usage', question);
    return { bytes: Number(row?.bytes ?? 0), files: Number(row?.files ?? 0) };
  }
}

/**
 * Those that are likely to be refused, or that take locks beyond the drive and their file, keep to themselves: they would make others
 * wait.
 */
function isPlain<File extends ReturnType<typeof beginArguments>>(file: File): file is File & WholeFile {
  const { limits, idempotencyKey, clientNodeId, ifMatch, ifExists } = file;
  return (
    'path' in file &&
    ifExists === 'replace' &&
    [limits, idempotencyKey, clientNodeId, ifMatch].every((wish) => wish === undefined)
  );
}

type Beginning = Omit<BeginUpload, 'sha256' | 'contentType'> & Place;

function beginArguments(upload: Beginning) {
  return {
    id: checkText('id', upload.id),
    tenant: checkText('tenant', upload.tenant),
    owner: checkOptionalText('owner', upload.owner),
    drive: checkText('drive', upload.drive).normalize('NFC'),
    bucket: checkOptionalText('bucket', upload.bucket),
    prefix: upload.prefix === '' ? '' : checkOptionalText('prefix', upload.prefix),
    ...checkPlace(upload),
    objectKey: checkText('objectKey', upload.objectKey),
    declaredSize: checkOptionalCount('declaredSize', upload.declaredSize),
    metadata: checkMetadata(upload.metadata),
    clientNodeId: checkOptionalText('clientNodeId', upload.clientNodeId),
    idempotencyKey: checkOptionalText('idempotencyKey', upload.idempotencyKey),
    requestDigest: checkOptionalText('requestDigest', upload.requestDigest),
    ifExists: upload.ifExists,
    ...(upload.ifMatch && { ifMatch: upload.ifMatch.map((etag) => checkText('ifMatch', etag)) }),
    // Without a limit there is nothing to count, and nobody has to wait for the tenant's lock.
    ...(hasLimits(upload.limits) && { limits: checkLimits(upload.limits) }),
  };
}

function hasLimits(limits: Limits | undefined): limits is Limits {
  return limits !== undefined && Object.values(limits).some((limit) => limit !== undefined);
}

function objectArguments(object: StoredObject): object {
  return {
    size: checkCount('size', object.size),
    etag: checkText('etag', object.etag),
    sha256: checkOptionalText('sha256', object.sha256),
    crc64: checkOptionalText('crc64', object.crc64),
    contentType: checkText('contentType', object.contentType),
  };
}

function checkLimits(limits: Limits): Limits {
  for (const [name, value] of Object.entries(limits)) {
    if (value !== undefined) checkCount(`limits.${name}`, value as number);
  }
  return limits;
}

function begun({ upload, node, replayed }: Answer): Begun {
  const record = toUpload(upload);
  const { isUpdate, previousVersion } = record;
  return { upload: record, node: node ? toNode(node) : undefined, isUpdate, previousVersion, replayed };
}

function activated({ upload, node, replayed }: Answer): Activated {
  const record = toUpload(upload);
  const result = record.result!;
  return {
    upload: record,
    node: node ? toNode(node) : undefined,
    isUpdate: result.isUpdate,
    result,
    replayed,
  };
}
