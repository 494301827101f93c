/**
 * What a node may be called. The same checks are made by whoever takes a name from outside and once more here, so that no
 * path with a hidden direction mark, a line break or a `..` ever reaches a record, an object key or a terminal.
 *
 * A name is normalised to NFC first: "é" typed in two ways is one name.
 */
import { recordsErrors } from './errors.js';

export const MAX_NAME_BYTES = 255;
export const MAX_PATH_BYTES = 1_024;
const SHOWN_CHARACTERS = 80;

/** Returns the name as it is kept (NFC), or throws NAME_INVALID with the reason. */
export function checkName(name: string): string {
  if (typeof name !== 'string') refuse(String(name), 'it is no string');
  if (/\p{Surrogate}/u.test(name)) refuse(name, 'it is not valid Unicode (half of a surrogate pair)');
  const kept = name.normalize('NFC');
  if (kept === '') refuse(kept, 'it is empty');
  if (kept === '.' || kept === '..') refuse(kept, '"." and ".." have a meaning of their own');
  if (kept.includes('/')) refuse(kept, 'it contains "/"');
  if (/\p{Control}/u.test(kept)) refuse(kept, 'it contains a control character, such as NUL or a line break');
  if (/[\u2028\u2029]/.test(kept)) refuse(kept, 'it contains a line separator');
  if (/\p{Bidi_Control}/u.test(kept)) refuse(kept, 'it contains a mark that changes the direction of text');
  const bytes = Buffer.byteLength(kept);
  if (bytes > MAX_NAME_BYTES) refuse(kept, `it has ${bytes} bytes, at most ${MAX_NAME_BYTES} are allowed`);
  return kept;
}

/** Returns the path as it is kept: names joined by "/", none at the beginning or the end. */
export function checkPath(path: string): string {
  if (typeof path !== 'string') refuse(String(path), 'it is no string');
  // Before it is cut into names: nobody should make us split a megabyte.
  if (path.length > MAX_PATH_BYTES)
    throw recordsErrors.PATH_TOO_LONG({ bytes: Buffer.byteLength(path), limit: MAX_PATH_BYTES });
  const kept = path.split('/').map(checkSegment).join('/');
  const bytes = Buffer.byteLength(kept);
  if (bytes > MAX_PATH_BYTES) throw recordsErrors.PATH_TOO_LONG({ bytes, limit: MAX_PATH_BYTES });
  return kept;
}

function checkSegment(name: string, index: number, all: string[]): string {
  if (name !== '') return checkName(name);
  const where = index === 0 ? 'begins' : index === all.length - 1 ? 'ends' : 'continues';
  return refuse(
    all.join('/'),
    all.length === 1 ? 'it is empty' : `the path ${where} with a name that is empty`,
  );
}

/** The name is shown as JSON, so that the message itself carries no control character; marks are spelt out. */
function refuse(name: string, reason: string): never {
  const shown = JSON.stringify(name.slice(0, SHOWN_CHARACTERS)).replace(
    /[\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g,
    (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  throw recordsErrors.NAME_INVALID({ name: shown, reason });
}
