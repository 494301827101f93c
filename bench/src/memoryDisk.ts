/*
 * Puts the files of a run in memory. What a suite of uploads compares is servers, not disks: the S3 server's data, the
 * parts that a peer keeps in temporary files, and the files of every Redis lie on the same tmpfs, so that nobody waits
 * for a disk. Where there is no tmpfs, all of them lie in the usual temporary folder, and the heading says so.
 */
import { accessSync, constants } from 'node:fs';

const TMPFS = '/dev/shm';

/** From now on temporary files of this process and of its children are made there. Says whether it is memory. */
export function keepTemporaryFilesInMemory(): boolean {
  try {
    accessSync(TMPFS, constants.W_OK);
  } catch {
    return false;
  }
  process.env['TMPDIR'] = TMPFS;
  return true;
}
