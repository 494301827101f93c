// @sluice/cache: reads through Redis. Never stale after an invalidation, one load for all readers, harmless when Redis is down.
export { Cache, type CacheOptions } from './cache.js';
export {
  defineCache,
  groupName,
  valueName,
  type CacheDefinition,
  type Family,
  type GroupRef,
  type Load,
  type LoadContext,
  type Loaders,
  type LoadMany,
  type Source,
} from './define.js';
export { CacheFamily, type Warmed } from './family.js';
export { ForeignFamily } from './foreign.js';
export type { Invalidated } from './engine.js';
export type { Explanation } from './explain.js';
export type { Killed } from './kept.js';
export type { Part } from './keys.js';
export { addCounts, FamilyCounts, summarise } from './statistics.js';
export type { CacheStatistics, FamilyStatistics } from './statistics.js';
export { countsBetween, readPublished, sumCounts } from './published.js';
export type { CountedFamily, PublishedCache, ReadPublishedOptions } from './published.js';
export type { RedisAdvice } from './eviction.js';
export { cacheErrors } from './errors.js';
export { prometheusText } from './prometheus.js';
export { families } from './families.js';
export type {
  DocumentText,
  Graph,
  JobProgress,
  JobStatus,
  ListedDrives,
  ListedFolder,
  Manager,
  Owned,
  Rbac,
  User,
  VectorHit,
} from './families.js';
export { applyEvent, killedBy, type DomainEvent, type DomainEvents } from './events.js';
