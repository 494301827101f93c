/*
 * How much is measured: in full, quickly, and in a test that only asks whether everything runs.
 */
export interface Sizes {
  rounds: number;
  queues: number;
  /** Jobs that wait in each queue while it is looked at. */
  jobsEach: number;
  /** Dead letters of each of them, which the overview reads. */
  lettersEach: number;
  workersEach: number;
  /** Looks of the sampler in one window. */
  looks: number;
  /** The load beside which the share is shown. */
  jobsPerSecond: number;
  loadMs: number;
  deadLetters: number;
}

export const VIEWERS = 10;

export const FULL: Sizes = {
  rounds: 3,
  queues: 20,
  jobsEach: 50_000,
  lettersEach: 200,
  workersEach: 2,
  looks: 15,
  jobsPerSecond: 1_000,
  loadMs: 10_000,
  deadLetters: 100_000,
};

export const QUICK: Sizes = { ...FULL, rounds: 1, queues: 10, jobsEach: 5_000, looks: 10, loadMs: 4_000 };

export const TINY: Sizes = {
  rounds: 1,
  queues: 2,
  jobsEach: 100,
  lettersEach: 20,
  workersEach: 1,
  looks: 2,
  jobsPerSecond: 100,
  loadMs: 500,
  deadLetters: 200,
};
