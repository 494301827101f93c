/** Who wants to be told of events, and where. Secrets come and go sealed: what is here is of no use without the server's own secret. */
import { sql, type Selectable } from 'kysely';
import type { Database } from './database.js';
import { pageSize } from './drives.js';
import { recordsErrors } from './errors.js';
import { build, type SealedSecret, type WebhookRow } from './schema.js';

export const MAX_WEBHOOKS_PER_TENANT = 100;
/** Of all tenants together, because each event is held against all of them. */
const MAX_ACTIVE = 10_000;

export interface WebhookRecord {
  id: string;
  /** `*` is told of everything. */
  tenant: string;
  url: string;
  topics: string[];
  /** The newest first. */
  secrets: SealedSecret[];
  active: boolean;
  createdAt: Date;
  updatedAt: Date;
}

export type NewWebhook = Omit<WebhookRecord, 'createdAt' | 'updatedAt'>;
export type WebhookChange = Partial<Pick<WebhookRecord, 'url' | 'topics' | 'secrets' | 'active'>>;

export class Webhooks {
  constructor(private readonly database: Database) {}

  /** The same id again returns what is there: the call whose answer was lost. */
  async create(webhook: NewWebhook): Promise<WebhookRecord> {
    const { id, tenant, url, topics, secrets, active } = webhook;
    await this.database.query(
      'create a webhook',
      `INSERT INTO webhooks (id, tenant, url, topics, secrets, active)
       SELECT $1, $2, $3, $4, $5, $6 WHERE (SELECT count(*) FROM webhooks WHERE tenant = $2) < $7
       ON CONFLICT (id) DO NOTHING`,
      [id, tenant, url, topics, JSON.stringify(secrets), active, MAX_WEBHOOKS_PER_TENANT],
    );
    const made = await this.get(tenant, id);
    if (made) return made;
    throw recordsErrors.TOO_MANY_WEBHOOKS({ limit: MAX_WEBHOOKS_PER_TENANT });
  }

  async get(tenant: string, id: string): Promise<WebhookRecord | undefined> {
    const webhook = await this.find(id);
    return webhook?.tenant === tenant ? webhook : undefined;
  }

  /** Of whichever tenant. */
  async find(id: string): Promise<WebhookRecord | undefined> {
    if (!isPlain(id)) return undefined;
    const question = build.selectFrom('webhooks').selectAll().where('id', '=', id);
    const [row] = await this.database.ask('get a webhook', question);
    return row && toWebhook(row);
  }

  async list(tenant: string, page: { after?: string; limit?: number } = {}): Promise<WebhookRecord[]> {
    const question = build
      .selectFrom('webhooks')
      .selectAll()
      .where('tenant', '=', tenant)
      .where('id', '>', page.after !== undefined && isPlain(page.after) ? page.after : '')
      .orderBy('id')
      .limit(pageSize(page.limit));
    return (await this.database.ask('list webhooks', question)).map(toWebhook);
  }

  /** Those of everybody that are to be told something. */
  async active(): Promise<WebhookRecord[]> {
    const question = build.selectFrom('webhooks').selectAll().where('active', '=', true).limit(MAX_ACTIVE);
    return (await this.database.ask('list active webhooks', question)).map(toWebhook);
  }

  /** Undefined without such a webhook. */
  async update(tenant: string, id: string, change: WebhookChange): Promise<WebhookRecord | undefined> {
    if (!isPlain(id)) return undefined;
    const { secrets, ...rest } = change;
    const question = build
      .updateTable('webhooks')
      .set({
        ...rest,
        ...(secrets && { secrets: JSON.stringify(secrets) }),
        updated_at: sql<Date>`clock_timestamp()`,
      })
      .where('tenant', '=', tenant)
      .where('id', '=', id)
      .returningAll();
    const [row] = await this.database.ask('change a webhook', question);
    return row && toWebhook(row);
  }

  /** Whether there was one. */
  async delete(tenant: string, id: string): Promise<boolean> {
    if (!isPlain(id)) return false;
    const question = build.deleteFrom('webhooks').where('tenant', '=', tenant).where('id', '=', id);
    return (await this.database.ask('delete a webhook', question.returning('id'))).length > 0;
  }
}

/** Whether a text can be an id at all; PostgreSQL would complain of some others. */
function isPlain(id: string): boolean {
  return /^[\w-]{1,100}$/.test(id);
}

function toWebhook(row: Selectable<WebhookRow>): WebhookRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    url: row.url,
    topics: row.topics,
    secrets: row.secrets,
    active: row.active,
    createdAt: new Date(row.created_at),
    updatedAt: new Date(row.updated_at),
  };
}
