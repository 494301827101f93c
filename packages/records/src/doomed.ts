/** Objects that no node refers to any more, until somebody has deleted them from the store. */
import { sql } from 'kysely';
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { checkCount } from './metadata.js';
import { build } from './schema.js';

export interface DoomedObject {
  objectKey: string;
  bucket: string;
  driveId: string;
  since: Date;
}

export class Doomed {
  constructor(private readonly database: Database) {}

  /** The oldest first, none that is on the list for less than `graceMs`. They stay on it until they are forgotten. */
  async list({ limit, graceMs = 0 }: { limit?: number; graceMs?: number } = {}): Promise<DoomedObject[]> {
    const latest = sql<Date>`clock_timestamp() - ${checkCount('graceMs', graceMs)} * interval '1 millisecond'`;
    const question = build
      .selectFrom('doomed_objects')
      .selectAll()
      .where('since', '<=', latest)
      .orderBy('since')
      .limit(pageSize(limit));
    const rows = await this.database.ask('list doomed objects', question);
    return rows.map((row) => ({
      objectKey: row.object_key,
      bucket: row.bucket,
      driveId: row.drive_id,
      since: new Date(row.since),
    }));
  }

  /** Those that could not be deleted now are listed again behind all others, and after the same time of grace. */
  async postpone(objectKeys: string[]): Promise<void> {
    if (objectKeys.length === 0) return;
    const question = build
      .updateTable('doomed_objects')
      .set({ since: sql<Date>`clock_timestamp()` })
      .where('object_key', 'in', objectKeys);
    await this.database.ask('postpone doomed objects', question);
  }

  /** After they were deleted from the store. */
  async forget(objectKeys: string[]): Promise<void> {
    if (objectKeys.length === 0) return;
    const question = build.deleteFrom('doomed_objects').where('object_key', 'in', objectKeys);
    await this.database.ask('forget doomed objects', question);
  }
}
