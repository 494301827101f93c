// @sluice/queue: a reliable queue on Redis.
export { Queue } from './queue.js';
export type { AddedJob, AnyQueue, QueueOptions } from './queue.js';
export type { AddOptions, Durability, FailurePolicy, JobRef, Priority } from './options.js';
export { Job } from './job.js';
export { Worker } from './worker.js';
export type { BatchHandler, BatchOptions, ChildOptions, Handler, WorkerOptions } from './worker.js';
export { GiveUp, RetryAt, Snooze } from './outcome.js';
export type { Backoff } from './backoff.js';
export type {
  DeadLetter,
  DeadLetters,
  LabelledGroups,
  LetterChoice,
  LetterFilter,
  LetterGroup,
  LetterPage,
  MoveOptions,
  MoveReport,
  Retention,
} from './dead.js';
export type { Schedule, ScheduleOptions, SchedulePage, Schedules } from './schedule.js';
export type { ScheduleSpec } from './cron.js';
export type { JobState, JobView, MinuteStats, Percentiles, QueueCounts } from './inspect.js';
export type { BrowseOptions, JobGlance, JobPage } from './browse.js';
export type { RetryOptions, RetryPage, WaitingRetry } from './retries.js';
export { behindAll } from './places.js';
export type { TimePlace } from './places.js';
export type { AttemptRecord } from './history.js';
export { labelMatcher } from './labels.js';
export type { Crew, CrewMember, DrainState } from './crew.js';
export type { RateLimit, Rules } from './rules.js';
export { readRules } from './rules.js';
export { listQueues } from './registry.js';
export type { ListedQueue } from './registry.js';
export { createChain } from './chain.js';
export type { ChainNode, CreatedChain } from './chain.js';
export { eventsAfter, readEvents, readEventsOf } from './events.js';
export type { JobEvents, PastEvents, QueueEvent, ReadEventsOptions } from './events.js';
export type { ChildJob } from './children.js';
export { prometheusText } from './prometheus.js';
export { queueErrors } from './errors.js';
