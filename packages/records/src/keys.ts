/**
 * Keys: who may ask. What is kept of a key is the digest of its text; the text is known to whoever it was given to, and to nobody else.
 * Each change raises a revision, so that processes that have the keys in memory learn with one number whether they must read them again.
 */
import { sql } from 'kysely';
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { checkText } from './metadata.js';
import { moment, toKey, type KeyRecord, type KeyRole } from './model.js';
import { build, type KeyRow } from './schema.js';

/** All of them are in the memory of each process that answers requests. */
const MAX_LIVE_KEYS = 10_000;

export interface CreateKey {
  id: string;
  /** `*` for the whole installation. */
  tenant: string;
  role: KeyRole;
  name: string;
  /** SHA-256 of the text. */
  digest: Buffer;
  createdBy: string;
  expiresInMs?: number;
  /** Whether there are keys besides those in the records. */
  configured: boolean;
}

export interface RotateKey {
  id: string;
  /** Only if it is this tenant's. */
  tenant?: string;
  digest: Buffer;
  /** The text before this one is good for so long. */
  graceMs: number;
}

export interface RevokeKey {
  id: string;
  tenant?: string;
  /** Whether an admin of the installation is configured, so that the last one here may go. */
  configuredAdmin: boolean;
}

/** What a process needs to recognise a key. */
export interface LiveKey {
  id: string;
  tenant: string;
  role: KeyRole;
  name: string;
  digest: Buffer;
  expiresAt: Date | null;
  oldDigest: Buffer | null;
  oldUntil: Date | null;
}

export interface AccessState {
  revision: number;
  /** There has been a key: from then on nobody gets in without one. */
  closed: boolean;
}

export class Keys {
  constructor(private readonly database: Database) {}

  async create({ digest, ...key }: CreateKey): Promise<KeyRecord> {
    for (const field of ['id', 'tenant', 'name', 'createdBy'] as const) checkText(field, key[field]);
    const asked = { ...key, digest: digest.toString('hex'), limit: MAX_LIVE_KEYS };
    return toKey(await this.database.call<KeyRow>('sluice_create_key', asked));
  }

  async rotate({ digest, ...asked }: RotateKey): Promise<KeyRecord> {
    const call = { ...asked, digest: digest.toString('hex') };
    return toKey(await this.database.call<KeyRow>('sluice_rotate_key', call));
  }

  /** From now on it opens nothing. Revoking it again changes nothing. */
  async revoke(asked: RevokeKey): Promise<KeyRecord> {
    return toKey(await this.database.call<KeyRow>('sluice_revoke_key', asked));
  }

  /** By id, after the id that ended the page before; of one tenant or of all. Those that have ended are among them. */
  async list(page: { tenant?: string; after?: string; limit?: number } = {}): Promise<KeyRecord[]> {
    let question = build
      .selectFrom('keys')
      .select([
        ...(['id', 'tenant', 'role', 'name', 'old_until', 'created_at', 'created_by'] as const),
        ...(['expires_at', 'revoked_at', 'used_at'] as const),
      ])
      .where('id', '>', page.after ?? '')
      .orderBy('id')
      .limit(pageSize(page.limit));
    if (page.tenant !== undefined) question = question.where('tenant', '=', page.tenant);
    return (await this.database.ask('list keys', question)).map(toKey);
  }

  async state(options?: { deadlineMs?: number }): Promise<AccessState> {
    const question = build.selectFrom('access_state').select(['revision', 'closed']);
    const [row] = await this.database.ask('look at the keys', question, options);
    return row!;
  }

  /** Every key that opens something now, and the sessions that were ended before their time. */
  async live(): Promise<{ keys: LiveKey[]; endedSessions: string[] }> {
    const now = sql<Date>`clock_timestamp()`;
    const keys = await this.database.ask(
      'read the keys',
      build
        .selectFrom('keys')
        .selectAll()
        .where('revoked_at', 'is', null)
        .where((is) => is.or([is('expires_at', 'is', null), is('expires_at', '>', now)])),
    );
    const ended = await this.database.ask(
      'read ended sessions',
      build.selectFrom('ended_sessions').select('id').where('until', '>', now),
    );
    return {
      keys: keys.map(({ id, tenant, role, name, digest, old_digest, old_until, expires_at }) => ({
        ...{ id, tenant, role, name, digest, oldDigest: old_digest },
        expiresAt: moment(expires_at),
        oldUntil: moment(old_until),
      })),
      endedSessions: ended.map(({ id }) => id),
    };
  }

  /** They were used lately. Many uses become one write. */
  async touch(ids: string[]): Promise<void> {
    if (ids.length === 0) return;
    const text = 'UPDATE keys SET used_at = clock_timestamp() WHERE id = ANY ($1)';
    await this.database.query('note which keys are used', text, [ids]);
  }

  /** Nobody gets in with this session any more, although it would live until then. */
  async endSession(id: string, until: Date): Promise<void> {
    await this.database.query('end a session', 'SELECT sluice_end_session($1, $2)', [id, until]);
  }
}
