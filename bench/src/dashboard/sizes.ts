/*
 * What the server has to show: in full, quickly, and in a test that only asks whether everything runs.
 */
export interface Sizes {
  /** Cold visits, each by a browser that has never been there. */
  rounds: number;
  waiting: number;
  /** How the page writes that number. */
  waitingShown: string;
  dead: number;
  workers: number;
  /** Whether the visits wait for the first minute of history: before it there are no charts to load. */
  charts: boolean;
}

export const FULL: Sizes = {
  rounds: 5,
  waiting: 1_000_000,
  waitingShown: '1.0 M',
  dead: 100_000,
  workers: 1_000,
  charts: true,
};

export const QUICK: Sizes = {
  rounds: 2,
  waiting: 100_000,
  waitingShown: '100 k',
  dead: 10_000,
  workers: 100,
  charts: false,
};

export const TINY: Sizes = {
  rounds: 1,
  waiting: 321,
  waitingShown: '321',
  dead: 20,
  workers: 3,
  charts: false,
};
