/*
 * How much of everything a run does. The shape of the calls (50,000 in one bulk call, calls of 1,000 with four in
 * flight, 1,000 single calls in flight, concurrency 100) is what is measured and stays the same in a quick run, as
 * far as its number of jobs allows.
 */
export const BATCH_JOBS = 1_000;
export const BATCHES_IN_FLIGHT = 4;
export const SINGLES_IN_FLIGHT = 1_000;
export const CONCURRENCY = 100;

export interface Sizes {
  /** Turns that do not count: what is measured is a process that has been working for a while. */
  warmUps: number;
  rounds: number;
  bulkJobs: number;
  batchesJobs: number;
  singleJobs: number;
  processJobs: number;
  /** Latency samples over all rounds, and the mean pause before each. */
  latencySamples: number;
  latencyPauseMs: number;
  /** Peers are weighed with fewer jobs: a million of theirs take gigabytes and tell the same. */
  memoryJobs: number;
  memoryJobsOfPeers: number;
  growth: { rounds: number; jobs: number; few: number; waiting: number; active: number; delayed: number };
  idleWatchMs: number;
  idleWorkers: number;
}

export const FULL: Sizes = {
  warmUps: 2,
  rounds: 5,
  bulkJobs: 50_000,
  batchesJobs: 100_000,
  singleJobs: 50_000,
  processJobs: 100_000,
  latencySamples: 500,
  latencyPauseMs: 25,
  memoryJobs: 1_000_000,
  memoryJobsOfPeers: 100_000,
  growth: { rounds: 3, jobs: 50_000, few: 10_000, waiting: 1_000_000, active: 50_000, delayed: 100_000 },
  idleWatchMs: 15_000,
  idleWorkers: 1_000,
};

export const QUICK: Sizes = {
  warmUps: 1,
  rounds: 2,
  bulkJobs: 10_000,
  batchesJobs: 10_000,
  singleJobs: 10_000,
  processJobs: 10_000,
  latencySamples: 100,
  latencyPauseMs: 10,
  memoryJobs: 100_000,
  memoryJobsOfPeers: 20_000,
  growth: { rounds: 2, jobs: 10_000, few: 10_000, waiting: 200_000, active: 10_000, delayed: 20_000 },
  idleWatchMs: 6_000,
  idleWorkers: 100,
};

/** Small enough for a test that only asks whether everything runs. */
export const TINY: Sizes = {
  warmUps: 1,
  rounds: 1,
  bulkJobs: 300,
  batchesJobs: 2_000,
  singleJobs: 300,
  processJobs: 300,
  latencySamples: 10,
  latencyPauseMs: 2,
  memoryJobs: 1_000,
  memoryJobsOfPeers: 1_000,
  growth: { rounds: 1, jobs: 300, few: 200, waiting: 2_000, active: 200, delayed: 200 },
  idleWatchMs: 100,
  idleWorkers: 3,
};
