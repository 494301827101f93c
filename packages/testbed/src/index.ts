// Real servers for tests: Redis, clusters, sentinels, PostgreSQL, S3, and faulty networks between them.
export { startRedis, type RedisServer, type RedisServerOptions } from './redisServer.js';
export { startCluster, type RedisCluster, type ClusterOptions } from './cluster.js';
export { startSentinel, type SentinelSetup, type SentinelOptions } from './sentinel.js';
export { untilFollowing } from './following.js';
export { startProxy, type Proxy, type LoseRepliesOptions } from './proxy.js';
export { startLossyProxy, type LossyProxy } from './lossyProxy.js';
export { latch } from './latch.js';
export { waitUntil, type WaitOptions } from './waitUntil.js';
export { sampleOf } from './sampleOf.js';
export { freePort } from './freePort.js';
export { keepTemporaryFilesInMemory } from './memoryDisk.js';
export { spawnOwned, makeOwnedFolder } from './janitor.js';
export {
  startPostgres,
  startDebianPostgres,
  debianPostgres,
  type PostgresServer,
  type PostgresOptions,
} from './postgres.js';
export {
  startVersitygw,
  VERSITYGW_VERSION,
  versitygwProblem,
  type Versitygw,
  type VersitygwOptions,
} from './versitygw.js';
export {
  startS3Faults,
  type S3Fault,
  type S3FaultRule,
  type S3Faults,
  type S3Operation,
  type S3Request,
} from './s3Faults.js';
export { startSluice, type SluiceServer } from './sluiceServer.js';
export { chromiumProblem, startBrowser, type Browser } from './browser.js';
