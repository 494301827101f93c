// @sluice/queue: a reliable queue on Redis.
export { Queue } from './queue.js';
export type { AddedJob, QueueOptions } from './queue.js';
export type { AddOptions, Durability, FailurePolicy, JobRef, Priority } from './options.js';
export { Job } from './job.js';
export { Worker } from './worker.js';
export type { BatchHandler, BatchOptions, ChildOptions, Handler, WorkerOptions } from './worker.js';
export { GiveUp, RetryAt, Snooze } from './outcome.js';
export type { Backoff } from './backoff.js';
export type { DeadLetter, DeadLetters } from './dead.js';
export type { Schedules } from './schedule.js';
export type { JobState, JobView, MinuteStats, QueueCounts } from './inspect.js';
export type { RateLimit, Rules } from './rules.js';
export { readRules } from './rules.js';
export { createChain } from './chain.js';
export { readEvents } from './events.js';
export { prometheusText } from './prometheus.js';
export { queueErrors } from './errors.js';
