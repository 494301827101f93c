// @sluice/reads: reads of the records through the cache, and what keeps them right.
export { CachedReads, directReads, type FolderRef, type ListPage, type Reads } from './reads.js';
export { eventsOfChange, eventsOfMessage } from './changes.js';
export { ChangeFollower, type ChangeFollowerOptions } from './follower.js';
