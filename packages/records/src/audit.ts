/**
 * The audit log: what was changed, by whom, from where, and how it ended. `begin` before the change, `complete` after it. A row without an
 * outcome is a change of which nobody knows whether it happened: whoever made it died meanwhile.
 */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { checkCount } from './metadata.js';
import { build, type AuditRow } from './schema.js';

const REMOVED_AT_ONCE = 5_000;

export type AuditDetails = Record<string, string | number | boolean>;
export type AuditOutcome = 'done' | 'refused' | 'failed';

export interface BeginAudit {
  /** Undefined for what concerns the installation. */
  tenant: string | undefined;
  action: string;
  target: string;
  actor: string;
  actorName: string;
  via: string;
  address: string;
  requestId: string;
}

export interface AuditEntry extends Omit<BeginAudit, 'tenant'> {
  /** Grows; the newest has the highest. */
  seq: number;
  id: string;
  at: Date;
  tenant: string | null;
  /** Null while it is under way, and for ever if whoever made the change died in the middle of it. */
  outcome: AuditOutcome | null;
  status: number | null;
  details: AuditDetails;
  endedAt: Date | null;
}

export interface AuditPage {
  tenant?: string;
  action?: string;
  actor?: string;
  /** Entries before this one, newest first. */
  before?: number;
  limit?: number;
}

export class Audit {
  constructor(private readonly database: Database) {}

  /** Returns the id of the entry. */
  async begin(entry: BeginAudit): Promise<string> {
    const { tenant = null, actorName: actor_name, requestId: request_id, ...rest } = entry;
    const id = randomUUID();
    const insert = build.insertInto('audit').values({ ...rest, id, tenant, actor_name, request_id });
    await this.database.ask(
      'begin a row of the audit log',
      insert.onConflict((on) => on.column('id').doNothing()),
    );
    return id;
  }

  async complete(
    id: string,
    { outcome, status, details }: { outcome: AuditOutcome; status: number; details: AuditDetails },
  ): Promise<void> {
    const text = `UPDATE audit SET outcome = $2, status = $3, details = $4, ended_at = clock_timestamp() WHERE id = $1`;
    const values = [id, outcome, status, JSON.stringify(details)];
    await this.database.query('complete a row of the audit log', text, values);
  }

  /** The newest first. */
  async list({ tenant, action, actor, before, limit }: AuditPage = {}): Promise<AuditEntry[]> {
    let question = build.selectFrom('audit').selectAll().orderBy('seq', 'desc').limit(pageSize(limit));
    if (tenant !== undefined) question = question.where('tenant', '=', tenant);
    if (action !== undefined) question = question.where('action', '=', action);
    if (actor !== undefined) question = question.where('actor', '=', actor);
    if (before !== undefined) question = question.where('seq', '<', before);
    return (await this.database.ask('read the audit log', question)).map(toEntry);
  }

  /** Forgets what is older than that, a bounded number of rows at a time; returns how many. */
  async prune(keepMs: number): Promise<number> {
    const latest = sql<Date>`clock_timestamp() - ${checkCount('keepMs', keepMs)} * interval '1 millisecond'`;
    const old = build.selectFrom('audit').select('seq').where('at', '<', latest).limit(REMOVED_AT_ONCE);
    const removal = build.deleteFrom('audit').where('seq', 'in', old).returning('seq');
    return (await this.database.ask('prune the audit log', removal)).length;
  }
}

function toEntry(row: AuditRow): AuditEntry {
  const { at, actor_name: actorName, request_id: requestId, ended_at, ...rest } = row;
  return {
    ...rest,
    actorName,
    requestId,
    at: new Date(at),
    endedAt: ended_at === null ? null : new Date(ended_at),
  };
}
