/** The way in: connects, brings the schema up to date, and hands out the parts. */
import { Audit } from './audit.js';
import { Database, type DatabaseOptions } from './database.js';
import type { OnChange } from './changes.js';
import { Doomed } from './doomed.js';
import { Drives } from './drives.js';
import { Keys } from './keys.js';
import { migrate } from './migrations.js';
import { Nodes } from './nodes.js';
import { Outbox } from './outbox.js';
import { Uploads } from './uploads.js';
import { Verifications } from './verifications.js';
import { Webhooks } from './webhooks.js';

const CHECK_LIMIT_MS = 2_000;

export interface RecordsOptions extends DatabaseOptions {
  /** Told of every change of a file or a drive, after its commit. */
  onChange?: OnChange;
}

/** Fails with RECORDS_UNAVAILABLE when PostgreSQL does not answer until the deadline. */
export async function openRecords(options: RecordsOptions): Promise<Records> {
  const database = new Database(options);
  try {
    const schemaVersion = await migrate(database);
    return new Records(database, schemaVersion, options.onChange);
  } catch (error) {
    await database.close();
    throw error;
  }
}

export class Records {
  readonly drives: Drives;
  readonly nodes: Nodes;
  readonly uploads: Uploads;
  readonly doomed: Doomed;
  readonly outbox: Outbox;
  readonly keys: Keys;
  readonly audit: Audit;
  readonly verifications: Verifications;
  readonly webhooks: Webhooks;

  constructor(
    private readonly database: Database,
    readonly schemaVersion: number,
    onChange: OnChange = async () => {},
  ) {
    this.outbox = new Outbox(database);
    const nudge = (): void => this.outbox.nudge();
    this.drives = new Drives(database, nudge, onChange);
    this.nodes = new Nodes(database, nudge, onChange);
    this.uploads = new Uploads(database, nudge, onChange, this.drives);
    this.doomed = new Doomed(database);
    this.keys = new Keys(database);
    this.audit = new Audit(database);
    this.webhooks = new Webhooks(database);
    this.verifications = new Verifications(database, nudge, onChange);
  }

  /** Resolves if PostgreSQL answers soon. */
  async check(): Promise<void> {
    await this.database.query('check', 'SELECT 1', [], { deadlineMs: CHECK_LIMIT_MS });
  }

  /** What time it is there, whatever transaction is under way, and which PostgreSQL it is. */
  async clock(): Promise<{ nowMs: number; version: string }> {
    const statement = `SELECT round(extract(epoch FROM clock_timestamp()) * 1000)::text AS now,
      current_setting('server_version') AS version`;
    const [row] = await this.database.query('clock', statement, [], { deadlineMs: CHECK_LIMIT_MS });
    const { now, version } = row as { now: string; version: string };
    return { nowMs: Number(now), version };
  }

  async close(): Promise<void> {
    await this.outbox.close();
    await this.database.close();
  }
}
