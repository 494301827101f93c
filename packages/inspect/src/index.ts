// @sluice/inspect: read-only questions about queues, caches and Redis.
export { Inspect } from './inspect.js';
export type { InspectOptions, Overview, QueueDetail, ScheduleRow } from './inspect.js';
export type { Outcomes, Problem, QueueSnapshot, Rates, SampleCost, Snapshot } from './snapshot.js';
export type { CacheFamilyRow, CacheProcessRow, CacheRates, CacheSnapshot } from './caches.js';
export type { RedisHealth } from './redisHealth.js';
export type { Watcher } from './sampler.js';
export type { Page } from './page.js';
export type { JobQuestion, JobRow } from './jobs.js';
export type { ChainJob, JobDetail, TimelineEntry } from './jobDetail.js';
export type { QueueRetries, RetryQuestion, RetryRow, RetrySummary } from './retries.js';
export type { DeadGroup, DeadGroups, DeadQuestion, DeadSummary } from './deadLetters.js';
export type { WorkerRow } from './workers.js';
export type { Series, SeriesPoint, SeriesQuestion, Step } from './series.js';
export type { CacheFigure, QueueFigure, RedisFigure } from './figures.js';
export { inspectErrors } from './errors.js';
export { AllQueues, type Directory } from './directory.js';
