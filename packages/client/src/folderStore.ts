/**
 * Remembers unfinished uploads as files in a folder, one each. A record is written beside its place and then renamed, so that a
 * process which dies while writing leaves the old record or the new one. Only the owner may read the folder: a record names an
 * upload. Uploads that nobody comes back for are forgotten, the oldest first.
 */
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ResumeStore } from './platform.js';
import { KEY_PREFIX, MAX_REMEMBERED } from './webStore.js';

let written = 0;

export function folderStore(folder: string): ResumeStore {
  let prepared: Promise<void> | undefined;
  const fileOf = (key: string): string => join(folder, `${key.replace(/[^\w-]/g, '_')}.json`);
  return {
    get: async (key) => {
      try {
        return await readFile(fileOf(key), 'utf8');
      } catch (failure) {
        if ((failure as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw failure;
      }
    },
    set: async (key, text) => {
      await (prepared ??= prepare(folder));
      const beside = `${fileOf(key)}.${process.pid}.${written++}.new`;
      await writeFile(beside, text, { mode: 0o600 });
      await rename(beside, fileOf(key));
    },
    remove: async (key) => {
      // With what a process that died while writing has left beside it.
      const own = basename(fileOf(key));
      const names = (await readdir(folder)).filter((name) => name.startsWith(own));
      await Promise.all(names.map((name) => rm(join(folder, name), { force: true })));
    },
  };
}

/** Makes the folder, and room in it. */
async function prepare(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = (await readdir(folder)).filter((name) => name.startsWith(KEY_PREFIX));
  if (names.length < MAX_REMEMBERED) return;
  const records = await Promise.all(names.map((name) => ageOf(join(folder, name))));
  records.sort((a, b) => a.savedAtMs - b.savedAtMs);
  const superfluous = records.slice(0, records.length - MAX_REMEMBERED + 1);
  await Promise.all(superfluous.map(({ path }) => rm(path, { force: true })));
}

async function ageOf(path: string): Promise<{ path: string; savedAtMs: number }> {
  try {
    const { mtimeMs } = await stat(path);
    return { path, savedAtMs: mtimeMs };
  } catch {
    // Another process was faster.
    return { path, savedAtMs: 0 };
  }
}
