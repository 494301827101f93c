/**
 * Brings the schema to the version this program knows. A migration is a file of SQL; its number is the schema's version.
 *
 * All that is missing is applied in one transaction under an advisory lock: of two processes that start at once, one works
 * and the other waits and finds it done. A schema that is newer than the program is left alone.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { Database } from './database.js';
import { recordsErrors } from './errors.js';

const FOLDER = new URL('../../sql/', import.meta.url);
/** Any number that nobody else uses. */
const LOCK = 5_320_001;
const MIGRATION_LIMIT_MS = 10 * 60_000;

interface Migration {
  version: number;
  name: string;
  sql: string;
}

/** Returns the version the schema has now. */
export async function migrate(database: Database): Promise<number> {
  const migrations = readMigrations();
  const known = migrations.at(-1)!.version;
  // Almost always there is nothing to do, and then nobody waits for the lock.
  if ((await currentVersion(database)) === known) return known;
  await database.alone('migrations', MIGRATION_LIMIT_MS, async (client) => {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    await client.query(
      `CREATE TABLE IF NOT EXISTS sluice_migrations (
         version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())`,
    );
    const { rows } = await client.query<{ version: number | null }>(
      'SELECT max(version) AS version FROM sluice_migrations',
    );
    const found = rows[0]!.version ?? 0;
    if (found > known) throw recordsErrors.SCHEMA_TOO_NEW({ found, known });
    for (const { version, name, sql } of migrations.filter((migration) => migration.version > found)) {
      await client.query(sql);
      await client.query('INSERT INTO sluice_migrations (version, name) VALUES ($1, $2)', [version, name]);
    }
  });
  return known;
}

/** 0 for an empty database. */
async function currentVersion(database: Database): Promise<number> {
  const table = await database.query(
    'look for the schema',
    `SELECT to_regclass('sluice_migrations') AS name`,
  );
  if ((table[0] as { name: string | null }).name === null) return 0;
  const rows = await database.query(
    'read the schema version',
    'SELECT max(version) AS v FROM sluice_migrations',
  );
  return (rows[0] as { v: number | null }).v ?? 0;
}

/** `0001-tables.sql`, `0002-…`, in order. */
function readMigrations(): Migration[] {
  const files = readdirSync(FOLDER).filter((file) => /^\d{4}-.*\.sql$/.test(file));
  return files.sort().map((file) => ({
    version: Number(file.slice(0, 4)),
    name: file.slice(5, -4),
    sql: readFileSync(new URL(file, FOLDER), 'utf8'),
  }));
}
