/**
 * A file on disk as a source. It is opened once, so that what is uploaded is one file even when its name is given to another
 * meanwhile; and it is looked at after each read, so that a file somebody writes to is not uploaded half old, half new.
 */
import { closeSync, fstatSync, openSync, read } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { reasonOf, uploadError } from './errors.js';
import type { Bytes } from './platform.js';
import type { FileSource } from './source.js';

const readAt = promisify(read);

export function fileSource(file: string | URL): FileSource {
  const path = typeof file === 'string' ? file : fileURLToPath(file);
  const { handle, size, mtimeMs } = openFile(path);
  let closed = false;
  return {
    kind: 'file',
    size,
    name: basename(path),
    lastModified: mtimeMs,
    type: '',
    read: async (first, end) => {
      const bytes = await readFully(handle, first, end);
      const now = fstatSync(handle);
      if (now.size !== size || now.mtimeMs !== mtimeMs || bytes.length < end - first) {
        throw uploadError('SOURCE_CHANGED', path);
      }
      return bytes;
    },
    close: async () => {
      if (closed) return;
      closed = true;
      closeSync(handle);
    },
  };
}

function openFile(path: string): { handle: number; size: number; mtimeMs: number } {
  let handle: number | undefined;
  try {
    handle = openSync(path, 'r');
    const { size, mtimeMs, ...stats } = fstatSync(handle);
    if ((stats.mode & 0o170000) !== 0o100000) throw new Error(`${path} is not a regular file`);
    return { handle, size, mtimeMs };
  } catch (cause) {
    if (handle !== undefined) closeSync(handle);
    throw uploadError('SOURCE_UNREADABLE', reasonOf(cause), { cause });
  }
}

/** Fewer bytes than asked for only at the end of the file. */
async function readFully(handle: number, first: number, end: number): Promise<Bytes> {
  const bytes = new Uint8Array(end - first);
  let filled = 0;
  while (filled < bytes.length) {
    try {
      const { bytesRead } = await readAt(handle, bytes, filled, bytes.length - filled, first + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    } catch (cause) {
      throw uploadError('SOURCE_UNREADABLE', reasonOf(cause), { cause });
    }
  }
  return bytes.subarray(0, filled);
}
