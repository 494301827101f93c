/**
 * One server per folder. Two Redis servers on the same append-only file would destroy it, so whoever wants the
 * folder first takes the lock, a file with the mark of its process.
 *
 * Taking a free lock is atomic (a hard link cannot be made twice). A lock whose process is gone is taken over: it
 * is replaced, and after a moment read again, because two may have found the same dead one; the last to replace it
 * has won, and the other one sees that.
 */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sleep } from '@sluice/base';
import { serverErrors } from './errors.js';
import { markOf, readMark, stillRuns } from './processMark.js';

/** Much longer than the time between finding a dead lock and replacing it. */
const SETTLE_MS = 200;

export interface FolderLock {
  release(): void;
}

export async function lockFolder(folder: string): Promise<FolderLock> {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'lock');
  const draft = join(folder, `lock.${process.pid}`);
  const mine = JSON.stringify(markOf(process.pid));
  writeFileSync(draft, mine);
  try {
    if (!linked(draft, file)) await takeOver(folder, file, draft, mine);
  } finally {
    rmSync(draft, { force: true });
  }
  return {
    release: () => {
      if (contents(file) === mine) rmSync(file, { force: true });
    },
  };
}

async function takeOver(folder: string, file: string, draft: string, mine: string): Promise<void> {
  refuseIfHeld(folder, file);
  renameSync(draft, file);
  await sleep(SETTLE_MS);
  if (contents(file) !== mine) refuseIfHeld(folder, file);
}

function refuseIfHeld(folder: string, file: string): void {
  const holder = readMark(file);
  if (holder && stillRuns(holder)) throw serverErrors.ALREADY_RUNNING({ folder, pid: holder.pid });
}

function linked(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function contents(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
