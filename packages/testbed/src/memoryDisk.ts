/**
 * Puts the files of a run in memory, where nobody waits for a disk. A benchmark compares servers, not disks; and a run that
 * kills processes proves nothing about power cuts, so a disk could only add its stalls. Where there is no tmpfs that serves,
 * temporary files stay where they are, and the caller may say so.
 */
import { accessSync, constants, statfsSync } from 'node:fs';
import { release } from 'node:os';

const TMPFS = '/dev/shm';
const NEEDED_BYTES = 4 * 1024 ** 3;
/** Since then tmpfs has extended attributes, in which the S3 server keeps what it knows of an object. */
const KERNEL = [6, 6] as const;

/** From now on temporary files of this process and of its children are made there. Says whether it is memory. */
export function keepTemporaryFilesInMemory(): boolean {
  if (!serves()) return false;
  process.env['TMPDIR'] = TMPFS;
  return true;
}

function serves(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  if (major < KERNEL[0] || (major === KERNEL[0] && minor < KERNEL[1])) return false;
  try {
    accessSync(TMPFS, constants.W_OK);
    const { bavail, bsize } = statfsSync(TMPFS);
    return bavail * bsize >= NEEDED_BYTES;
  } catch {
    return false;
  }
}
