// What the tests of reads share: real servers, and services whose processes tell of their changes or die before they can.
import { randomUUID } from 'node:crypto';
import { after, before, type TestContext } from 'node:test';
import { applyEvent, Cache } from '@sluice/cache';
import { openRecords, type Change, type Records } from '@sluice/records';
import { startPostgres, startRedis, type PostgresServer, type RedisServer } from '@sluice/testbed';
import { CachedReads, eventsOfChange } from '../src/index.js';

export const drive = 'main';

export interface Process {
  cache: Cache;
  records: Records;
  reads: CachedReads;
}

export interface Service {
  tenant: string;
  prefix: string;
  /** One that tells of its changes, as a server does; or one that dies before it can. */
  open: (options?: { tells?: boolean }) => Promise<Process>;
}

export interface Bed {
  /** Of the queue and the events. */
  readonly redis: RedisServer;
  readonly cacheRedis: RedisServer;
  service(t: TestContext): Promise<Service>;
}

export function useServers(): Bed {
  let redis: RedisServer;
  let cacheRedis: RedisServer;
  let postgres: PostgresServer;
  before(async () => {
    [redis, cacheRedis, postgres] = await Promise.all([
      startRedis(),
      startRedis({ appendonly: false, config: { 'maxmemory-policy': 'allkeys-lru' } }),
      startPostgres({ fsync: false }),
    ]);
  });
  after(async () => {
    await Promise.all([redis?.stop(), cacheRedis?.stop(), postgres?.stop()]);
  });
  return {
    get redis() {
      return redis;
    },
    get cacheRedis() {
      return cacheRedis;
    },
    service: async (t) => makeService(t, await postgres.createDatabase(), cacheRedis.url),
  };
}

function makeService(t: TestContext, url: string, cacheUrl: string): Service {
  const prefix = `reads-${randomUUID()}`;
  const tenant = 'acme';
  const open = async ({ tells = true } = {}): Promise<Process> => {
    const cache = new Cache({ redis: cacheUrl, prefix, patienceMs: 10_000 });
    await cache.start();
    const onChange = async (change: Change) => void (await applyEvent(cache, ...eventsOfChange(change)));
    const records = await openRecords({ url, poolSize: 2, ...(tells && { onChange }) });
    t.after(async () => {
      await records.close();
      cache.close();
    });
    await records.drives.create({ tenant, name: drive, bucket: 'b' });
    return { cache, records, reads: new CachedReads(cache, records) };
  };
  return { tenant, prefix, open };
}

export function store({ records }: Pick<Process, 'records'>, tenant: string, path: string, etag: string) {
  const id = randomUUID();
  const what = { size: 1, etag, contentType: 'text/plain', ifExists: 'replace' } as const;
  return records.uploads.storeWhole({ id, tenant, drive, path, objectKey: `o/${id}`, ...what });
}

export const loadsOf = ({ cache }: Process, family: string): number =>
  cache.statistics().families.find((one) => one.family === family)!.loads;

/** JSON has no field where there is nothing. */
export function known<V extends object>(value: V | undefined): Partial<V> | undefined {
  if (value === undefined) return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Partial<V>;
}
