/*
 * How much is measured: in full, quickly, and in a test that only asks whether everything runs.
 */
export interface Sizes {
  /** Turns that do not count. */
  warmUps: number;
  rounds: number;
  nearGets: number;
  redisGets: number;
  manyCalls: number;
  staleRounds: number;
  processes: number;
  readersEach: number;
  loadMs: number;
  /** A system that has not answered by then counts as hanging. */
  hangsAfterMs: number;
}

export const CONCURRENCY = 50;
export const KEYS = 1_000;
export const MANY = 100;
/** All of them fit into the memory of every system. */
export const NEAR_KEYS = 100;

export const FULL: Sizes = {
  warmUps: 1,
  rounds: 5,
  nearGets: 300_000,
  redisGets: 30_000,
  manyCalls: 400,
  staleRounds: 1_000,
  processes: 5,
  readersEach: 100,
  loadMs: 300,
  hangsAfterMs: 15_000,
};

export const QUICK: Sizes = {
  ...FULL,
  rounds: 2,
  nearGets: 100_000,
  redisGets: 10_000,
  manyCalls: 100,
  staleRounds: 200,
  hangsAfterMs: 3_000,
};

export const TINY: Sizes = {
  warmUps: 0,
  rounds: 1,
  nearGets: 1_000,
  redisGets: 500,
  manyCalls: 5,
  staleRounds: 5,
  processes: 2,
  readersEach: 5,
  loadMs: 100,
  hangsAfterMs: 500,
};
