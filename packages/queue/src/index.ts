// @sluice/queue: a reliable queue on Redis.
export { Queue } from './queue.js';
export type { AddedJob, QueueOptions } from './queue.js';
export type { AddOptions, Durability, FailurePolicy, JobRef, Priority } from './options.js';
export { Job } from './job.js';
export { Worker } from './worker.js';
export type { BatchHandler, BatchOptions, ChildOptions, Handler, WorkerOptions } from './worker.js';
export { GiveUp, RetryAt, Snooze } from './outcome.js';
export type { Backoff } from './backoff.js';
export { queueErrors } from './errors.js';
