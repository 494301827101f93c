/*
 * What the command line can ask of any suite.
 */
export interface BenchOptions {
  json: boolean;
  quick: boolean;
  save: boolean;
  /** Names of measures or of systems; empty means all. */
  only: string[];
  /** Undefined leaves the number of rounds to the suite. */
  rounds: number | undefined;
}
