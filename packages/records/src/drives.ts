/** Drives: where a tenant's files live. A drive names a bucket and a prefix in it, and both never change. */
import type { OnChange } from './changes.js';
import type { Database } from './database.js';
import { recordsErrors } from './errors.js';
import { checkText, isNodeId } from './metadata.js';
import { toDrive, type Drive } from './model.js';
import { checkName } from './names.js';
import { build, type DriveRow } from './schema.js';

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1_000;
const MAX_KNOWN_NAMES = 10_000;

export interface CreateDrive {
  tenant: string;
  name: string;
  bucket: string;
  /** Put before every object key by whoever makes the keys. */
  prefix?: string;
}

export class Drives {
  /** Id → name, which never changes. */
  private readonly names = new Map<string, string>();

  constructor(
    private readonly database: Database,
    private readonly nudge: () => void,
    private readonly onChange: OnChange,
  ) {}

  /** Makes the drive, or returns the one that is there with the same settings. */
  async create({ tenant, name, bucket, prefix = '' }: CreateDrive): Promise<Drive> {
    checkText('tenant', tenant);
    checkText('bucket', bucket);
    if (prefix !== '') checkText('prefix', prefix);
    const kept = checkName(name);
    const wanted = { tenant, name: kept, bucket, prefix };
    const answer = await this.database.call<{ drive: DriveRow; created: boolean }>(
      'sluice_create_drive',
      wanted,
    );
    if (answer.created) this.nudge();
    // One that was there may have been made by an earlier attempt of the same call.
    await this.onChange({ what: 'drive', tenant, drive: kept, is: 'there' });
    const drive = toDrive(answer.drive);
    if (drive.bucket === bucket && drive.prefix === prefix) return drive;
    throw recordsErrors.DRIVE_CONFLICT({ drive: kept });
  }

  async get(tenant: string, name: string): Promise<Drive | undefined> {
    const question = build
      .selectFrom('drives')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('name', '=', name.normalize('NFC'));
    const [row] = await this.database.ask('get a drive', question);
    return row && toDrive(row);
  }

  async getById(tenant: string, id: string): Promise<Drive | undefined> {
    if (!isNodeId(id)) return undefined;
    const question = build.selectFrom('drives').selectAll().where('tenant', '=', tenant).where('id', '=', id);
    const [row] = await this.database.ask('get a drive', question);
    return row && toDrive(row);
  }

  /** Undefined if there is no such drive (any more). */
  async nameOf(tenant: string, id: string): Promise<string | undefined> {
    const known = this.names.get(id) ?? (await this.getById(tenant, id))?.name;
    if (known === undefined) return undefined;
    if (this.names.size >= MAX_KNOWN_NAMES) this.names.clear();
    this.names.set(id, known);
    return known;
  }

  /** By name, after the name that ended the page before. */
  async list(tenant: string, page: { after?: string; limit?: number } = {}): Promise<Drive[]> {
    const question = build
      .selectFrom('drives')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('name', '>', page.after ?? '')
      .orderBy('name')
      .limit(pageSize(page.limit));
    return (await this.database.ask('list drives', question)).map(toDrive);
  }

  /** Refused while there are nodes or open uploads in it. Returns whether there was such a drive. */
  async delete(tenant: string, name: string): Promise<boolean> {
    const values = [tenant, name.normalize('NFC')];
    const rows = await this.database.query(
      'delete a drive',
      'SELECT sluice_delete_drive($1, $2) AS gone',
      values,
    );
    const { gone } = rows[0] as { gone: boolean };
    if (gone) this.nudge();
    // Nothing to delete: an earlier attempt may have done it, and its answer was lost.
    await this.onChange({ what: 'drive', tenant, drive: name.normalize('NFC'), is: 'gone' });
    return gone;
  }
}

export function pageSize(limit = DEFAULT_PAGE): number {
  return Math.max(1, Math.min(Math.trunc(limit) || DEFAULT_PAGE, LARGEST_PAGE));
}
