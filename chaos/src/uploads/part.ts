// What a client of a run is told when it starts: one JSON argument.
export interface Part {
  name: string;
  folder: string;
  seed: string;
  /** Where the servers are, each behind a network of its own. */
  servers: string[];
  /** Files under way at once. */
  concurrency: number;
  /** Bytes that all files under way may have together, at most one file more. */
  bytesUnderWay: number;
  /** How many of the files that come in pieces have pieces that are sent twice at once. */
  repeatShare: number;
  /** When nothing is broken any more: what is not completed in that time is stuck. */
  finishWithinMs: number;
}

export function readPart(): Part {
  return JSON.parse(process.argv[2]!) as Part;
}
