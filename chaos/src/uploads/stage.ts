// Everything that the servers of a run stand on: a Redis for state, one for the bytes of chunks, a PostgreSQL, and a store (an S3
// server behind a proxy with the faults of object storage, or a folder). Each server reaches the first Redis through a proxy of
// its own, and clients reach each server through another one.
import { join } from 'node:path';
import { DiskStore, S3Store } from '@sluice/store';
import type { ObjectStore } from '@sluice/store';
import {
  freePort,
  keepTemporaryFilesInMemory,
  makeOwnedFolder,
  startPostgres,
  startProxy,
  startRedis,
  startS3Faults,
  startVersitygw,
} from '@sluice/testbed';
import type { PostgresServer, Proxy, RedisServer, S3Faults, Versitygw } from '@sluice/testbed';
import { writesBeforeItAnswers } from '../stage.js';

export type StoreKind = 's3' | 'disk';

/** Short, so that a run of seconds sees uploads that rest, expire and change hands. */
const idleMs = 10_000;
const spillMs = 2_000;
/** Here a request of a dead server reaches the store at once, or when the store goes on. */
const lateMs = 5_000;
const deleteGraceMs = 2_000;
/** A store that swallows a request must cost a run less than its patience. */
const storeIdleMs = 4_000;
export const leaseMs = 2_000;
/** Not enough for all: some are told to come back later. */
const budgetBytes = 40 * 1_048_576;
const stopDeadlineMs = 8_000;

export interface Stage {
  readonly redis: RedisServer;
  readonly chunks: RedisServer;
  readonly postgres: PostgresServer;
  readonly databaseUrl: string;
  readonly gateway: Versitygw | undefined;
  readonly s3Faults: S3Faults | undefined;
  /** Past all faults. */
  readonly store: ObjectStore;
  /** What a server is told: its roles and its own way to Redis. */
  openPlace(roles: string): Promise<Place>;
  stop(): Promise<void>;
}

export interface Place {
  env: Record<string, string>;
  url: string;
  /** Between clients and this server. */
  front: Proxy;
  /** Between this server and the Redis that has its state. */
  back: Proxy;
}

export async function openStage(kind: StoreKind): Promise<Stage> {
  keepTemporaryFilesInMemory();
  const folder = makeOwnedFolder('server');
  const [redis, chunks, postgres, gateway] = await Promise.all([
    startRedis({ config: writesBeforeItAnswers }),
    startRedis({ appendonly: false }),
    // The machine does not crash here, so a commit need not wait for its disk.
    startPostgres({ fsync: false }),
    kind === 's3' ? startVersitygw() : undefined,
  ]);
  const s3Faults = gateway && (await startS3Faults(gateway.endpoint));
  const databaseUrl = await postgres.createDatabase('sluice');
  const store = gateway
    ? new S3Store({
        bucket: gateway.bucket,
        region: gateway.region,
        endpoint: gateway.endpoint,
        forcePathStyle: true,
        credentials: { accessKeyId: gateway.accessKey, secretAccessKey: gateway.secretKey },
      })
    : new DiskStore({ folder: join(folder, 'objects') });
  const proxies: Proxy[] = [];
  const proxyTo = async (port: number): Promise<Proxy> => {
    const proxy = await startProxy(port);
    proxies.push(proxy);
    return proxy;
  };
  return {
    redis,
    chunks,
    postgres,
    databaseUrl,
    gateway,
    s3Faults,
    store,
    openPlace: async (roles) => {
      const port = await freePort();
      const [front, back] = [await proxyTo(port), await proxyTo(redis.port)];
      const env: Record<string, string> = {
        SLUICE_ROLES: roles,
        SLUICE_PORT: String(port),
        SLUICE_DATA_DIR: folder,
        SLUICE_SECRET: 'chaos-needs-no-secrets-at-all',
        SLUICE_REDIS_URL: back.url,
        SLUICE_CHUNKS_REDIS_URL: chunks.url,
        SLUICE_DATABASE_URL: databaseUrl,
        SLUICE_UPLOAD_IDLE_MS: String(idleMs),
        SLUICE_UPLOAD_SPILL_MS: String(spillMs),
        SLUICE_UPLOAD_LATE_MS: String(lateMs),
        SLUICE_DELETE_GRACE_MS: String(deleteGraceMs),
        SLUICE_UPLOAD_BUDGET_BYTES: String(budgetBytes),
        SLUICE_LEASE_MS: String(leaseMs),
        SLUICE_STOP_DEADLINE_MS: String(stopDeadlineMs),
        ...(gateway && {
          SLUICE_S3_BUCKET: gateway.bucket,
          SLUICE_S3_ENDPOINT: s3Faults!.endpoint,
          SLUICE_S3_IDLE_MS: String(storeIdleMs),
          SLUICE_S3_REGION: gateway.region,
          SLUICE_S3_ACCESS_KEY_ID: gateway.accessKey,
          SLUICE_S3_SECRET_ACCESS_KEY: gateway.secretKey,
        }),
      };
      return { env, url: `http://127.0.0.1:${front.port}`, front, back };
    },
    stop: async () => {
      store.close();
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await s3Faults?.stop();
      await Promise.all([redis.stop(), chunks.stop(), postgres.stop(), gateway?.stop()]);
    },
  };
}
