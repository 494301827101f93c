// What the tests of webhooks share: a Redis and a PostgreSQL per test file, and webhooks that end with their test.
import { randomBytes } from 'node:crypto';
import { after, before, type TestContext } from 'node:test';
import { openRecords, type Records } from '@sluice/records';
import { startPostgres, startRedis, waitUntil, type PostgresServer, type RedisServer } from '@sluice/testbed';
import { Webhooks, type WebhooksOptions } from '../src/index.js';

export interface Bed {
  readonly redis: RedisServer;
  readonly postgres: PostgresServer;
  open(t: TestContext, options?: Partial<WebhooksOptions>): Promise<Opened>;
}

export interface Opened {
  webhooks: Webhooks;
  records: Records;
  prefix: string;
  databaseUrl: string;
}

export function useServers(): Bed {
  let redis: RedisServer;
  let postgres: PostgresServer;
  before(async () => {
    [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  });
  after(() => Promise.all([redis?.stop(), postgres?.stop()]));
  return {
    get redis() {
      return redis;
    },
    get postgres() {
      return postgres;
    },
    open: async (t, options = {}) => {
      const prefix = `w${randomBytes(4).toString('hex')}`;
      const databaseUrl = await postgres.createDatabase();
      const records = await openRecords({ url: databaseUrl });
      const webhooks = new Webhooks({
        records,
        redis: redis.url,
        prefix,
        secret: 'only for this test',
        allow: ['127.0.0.1'],
        firstPauseMs: 10,
        ...options,
      });
      await webhooks.start();
      t.after(async () => {
        await webhooks.stop(500);
        await records.close();
      });
      return { webhooks, records, prefix, databaseUrl };
    },
  };
}

export async function eventually(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  await waitUntil(what, condition, { timeoutMs: 30_000, everyMs: 20 });
}
