/*
 * The scenarios as data: how many files, how long, how many at once, and whether in one request or in chunks. A quick run
 * has an eighth of the bytes; the shape of the requests stays the same.
 */
const KIB = 2 ** 10;
const MIB = 2 ** 20;
export const GIB = 2 ** 30;

export const SCENARIOS = ['large', 'parallel', 'smallChunks', 'smallFiles'] as const;
export type ScenarioName = (typeof SCENARIOS)[number];

export interface Chunks {
  chunkBytes: number;
  /** Of one file, for a side that can: in tus each chunk has to wait for the one before it. */
  chunksAtOnce: number;
}

export interface Scenario {
  files: number;
  fileBytes: number;
  filesAtOnce: number;
  /** Absent if each file goes in one request. */
  chunks?: Chunks;
}

export interface Sizes {
  /** Turns that do not count: what is measured is a process that has been working for a while. */
  warmUps: number;
  rounds: number;
  scenarios: Record<ScenarioName, Scenario>;
  /** Many uploads at once, to see what the server keeps in memory. */
  memory: Scenario;
  /** So many files tell the number of S3 calls per file as well as all of them. */
  countedFilesAtMost: number;
}

const SMALL_FILES_AT_ONCE = 16;
const FEW_AT_ONCE: Chunks = { chunkBytes: MIB, chunksAtOnce: 4 };
const ONE_BY_ONE: Chunks = { chunkBytes: MIB, chunksAtOnce: 1 };

export const FULL: Sizes = {
  warmUps: 1,
  rounds: 5,
  scenarios: {
    large: { files: 1, fileBytes: GIB, filesAtOnce: 1 },
    parallel: { files: 4, fileBytes: 256 * MIB, filesAtOnce: 4 },
    smallChunks: { files: 1, fileBytes: 64 * MIB, filesAtOnce: 1, chunks: FEW_AT_ONCE },
    smallFiles: { files: 2_000, fileBytes: 100 * KIB, filesAtOnce: SMALL_FILES_AT_ONCE },
  },
  memory: { files: 1_000, fileBytes: 8 * MIB, filesAtOnce: 1_000, chunks: ONE_BY_ONE },
  countedFilesAtMost: 200,
};

/** As many bytes as an eighth: fewer files where there are many, shorter ones where there are few. */
export function eighthOf(scenario: Scenario): Scenario {
  const { files, fileBytes } = scenario;
  return files >= 8
    ? { ...scenario, files: Math.ceil(files / 8) }
    : { ...scenario, fileBytes: Math.ceil(fileBytes / 8) };
}

export const QUICK: Sizes = {
  warmUps: 1,
  rounds: 2,
  scenarios: {
    large: eighthOf(FULL.scenarios.large),
    parallel: eighthOf(FULL.scenarios.parallel),
    smallChunks: eighthOf(FULL.scenarios.smallChunks),
    smallFiles: eighthOf(FULL.scenarios.smallFiles),
  },
  memory: { files: 125, fileBytes: 8 * MIB, filesAtOnce: 125, chunks: ONE_BY_ONE },
  countedFilesAtMost: 20,
};

/** Small enough for a test that only asks whether everything runs. */
export const TINY: Sizes = {
  warmUps: 1,
  rounds: 1,
  scenarios: {
    large: { files: 1, fileBytes: 12 * MIB, filesAtOnce: 1 },
    parallel: { files: 4, fileBytes: 6 * MIB, filesAtOnce: 4 },
    smallChunks: { files: 1, fileBytes: 3 * MIB, filesAtOnce: 1, chunks: FEW_AT_ONCE },
    smallFiles: { files: 20, fileBytes: 100 * KIB, filesAtOnce: SMALL_FILES_AT_ONCE },
  },
  memory: { files: 20, fileBytes: 2 * MIB, filesAtOnce: 20, chunks: ONE_BY_ONE },
  countedFilesAtMost: 5,
};

export function longestFileBytes({ scenarios, memory }: Sizes): number {
  return Math.max(...[...Object.values(scenarios), memory].map(({ fileBytes }) => fileBytes));
}
