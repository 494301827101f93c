/*
 * Sluice's own server, as a process of its own, on Redis servers of its own.
 *
 * This is the one place that knows how that process is started. `startSluice` has to give it the S3 server, have a drive
 * `main` whose files go to the given bucket, and say which processes are its own, where chunks wait and how many bytes
 * of them it allows.
 */
import type { StartUploadServer } from './side.js';

/** Undefined where there is no server to start; the run then goes without this side and says so. */
export const startSluice: StartUploadServer | undefined = undefined;
