/**
 * What a write has done to files that are there, for whoever keeps copies of what the records say. It is told after the commit and
 * before the writer gets its answer; the same is in the outbox, for the case that the writer dies in between. Only files that are
 * ACTIVE, and drives, are told of: folders and files that are still to come change without a word.
 */
export type Change =
  /** A file was created, replaced or deleted. */
  | { what: 'file'; tenant: string; drive: string; nodeId: string; path: string }
  /** Something moved, or a folder was deleted: paths below it are not what they were. */
  | { what: 'tree'; tenant: string; nodeId: string }
  | { what: 'drive'; tenant: string; drive: string };

/** Must not throw: the change has happened. */
export type OnChange = (change: Change) => Promise<void>;
