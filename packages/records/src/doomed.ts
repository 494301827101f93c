/** Objects that no node refers to any more, until somebody has deleted them from the store. */
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { build } from './schema.js';

export interface DoomedObject {
  objectKey: string;
  bucket: string;
  driveId: string;
  since: Date;
}

export class Doomed {
  constructor(private readonly database: Database) {}

  /** The oldest first. They stay on the list until they are forgotten. */
  async list(limit?: number): Promise<DoomedObject[]> {
    const question = build.selectFrom('doomed_objects').selectAll().orderBy('since').limit(pageSize(limit));
    const rows = await this.database.ask('list doomed objects', question);
    return rows.map((row) => ({
      objectKey: row.object_key,
      bucket: row.bucket,
      driveId: row.drive_id,
      since: new Date(row.since),
    }));
  }

  /** After they were deleted from the store. */
  async forget(objectKeys: string[]): Promise<void> {
    if (objectKeys.length === 0) return;
    const question = build.deleteFrom('doomed_objects').where('object_key', 'in', objectKeys);
    await this.database.ask('forget doomed objects', question);
  }
}
