/**
 * What a write has done to what others read, for whoever keeps copies of what the records say. It is told after the commit and before
 * the writer gets its answer; the same is in the outbox, for the case that the writer dies in between.
 *
 * Files are told of once they are ACTIVE, folders when they change or go, drives when they come or go. A file that is still to come is told of only as
 * something that a list of its folder shows; that bytes of it have come (UPLOADING) is told nobody.
 */
export type Change =
  /** A file was created, replaced or deleted, and the list of its folder with it; also those of `folders`, if some were made for it. */
  | { what: 'file'; tenant: string; drive: string; nodeId: string; path: string; folders?: string[] }
  /** Something came, went or changed in these folders (paths; the root is the empty one) that is no ACTIVE file. */
  | { what: 'lists'; tenant: string; drive: string; folders: string[] }
  /** Something moved, or a folder was deleted: paths below it are not what they were. */
  | { what: 'tree'; tenant: string; nodeId: string }
  /** A drive was made or deleted; also when it was there, or gone, already. */
  | { what: 'drive'; tenant: string; drive: string; is: 'there' | 'gone' };

/** Must not throw: the change has happened. */
export type OnChange = (change: Change) => Promise<void>;

/** The folder in which something is; the root of the drive is the empty path. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/**
 * The folders whose lists show a change at `path`; `made` is the highest of the folders that had to be made for it. A repetition cannot
 * tell what the first attempt made, whose answer may have been lost: then it is all folders on the way.
 */
export function foldersOf(path: string, made: string | null | undefined, isRepeated = false): string[] {
  if (!isRepeated) return made ? [folderOf(path), folderOf(made)] : [folderOf(path)];
  const folders = [folderOf(path)];
  while (folders.at(-1) !== '') folders.push(folderOf(folders.at(-1)!));
  return folders;
}
