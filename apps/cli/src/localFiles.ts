// What `upload` was given, as files: a file is itself, a folder is everything in it. Links inside of a folder are not followed, because
// they may lead out of it or around in a circle; the caller is told of each thing that was left out.
import { readdir, stat } from 'node:fs/promises';
import { basename, join, resolve, sep } from 'node:path';
import { cliErrors } from './errors.js';

export interface LocalFile {
  /** Where it is here, as it was written. */
  source: string;
  /** Where it belongs below the target, with slashes. */
  name: string;
  size: number;
}

interface Search {
  /** Where relative names begin. */
  from: string;
  /** Told of what was left out. */
  skip: (what: string) => void;
}

export async function localFiles(given: readonly string[], search: Search): Promise<LocalFile[]> {
  const files: LocalFile[] = [];
  for (const path of given) {
    const found = await stat(resolve(search.from, path)).catch((error: NodeJS.ErrnoException) => {
      throw cliErrors.FILE_PROBLEM({ path, reason: reasonOf(error) }, { cause: error });
    });
    if (found.isFile()) files.push({ source: path, name: basename(path), size: found.size });
    else if (found.isDirectory()) await gather(path, topName(search.from, path), files, search);
    else throw cliErrors.FILE_PROBLEM({ path, reason: 'is neither a file nor a folder' });
  }
  return files;
}

/** `photos` keeps its name, `photos/.` and `.` are their contents, as cp has it. */
function topName(from: string, path: string): string {
  return path === '.' || path.endsWith('/.') ? '' : basename(resolve(from, path));
}

async function gather(folder: string, below: string, files: LocalFile[], search: Search): Promise<void> {
  const entries = await readdir(resolve(search.from, folder), { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const source = join(folder, entry.name);
    const name = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) await gather(source, name, files, search);
    else if (entry.isFile())
      files.push({ source, name, size: (await stat(resolve(search.from, source))).size });
    else search.skip(source.split(sep).join('/'));
  }
}

export function reasonOf(error: NodeJS.ErrnoException): string {
  const known: Record<string, string> = {
    ENOENT: 'there is no such file or folder',
    EACCES: 'permission denied',
    EEXIST: 'is already there',
    EISDIR: 'is a folder',
    ENOTDIR: 'a part of the path is not a folder',
    ENOSPC: 'the disk is full',
  };
  return known[error.code ?? ''] ?? error.message;
}
