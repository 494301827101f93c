// Real Redis servers, clusters, sentinels and a faulty network for tests.
export { startRedis, type RedisServer, type RedisServerOptions } from './redisServer.js';
export { startCluster, type RedisCluster, type ClusterOptions } from './cluster.js';
export { startSentinel, type SentinelSetup, type SentinelOptions } from './sentinel.js';
export { untilFollowing } from './following.js';
export { startProxy, type Proxy, type LoseRepliesOptions } from './proxy.js';
export { waitUntil, type WaitOptions } from './waitUntil.js';
export { freePort } from './freePort.js';
export { spawnOwned, makeOwnedFolder } from './janitor.js';
