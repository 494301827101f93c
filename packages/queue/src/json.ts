// Data as JSON text. A call of JSON.stringify costs more than writing a small object does, so several jobs are written with one
// call, as a list in which a marker that nobody can guess stands between them. With line ends in place of the markers, that is a bale
// (bale.lua); or it is cut apart there.
import { randomBytes } from 'node:crypto';
import { betweenJobs, maxJobsPerBale } from './bale.js';
import { queueErrors } from './errors.js';

const marker = randomBytes(9).toString('base64url');
const between = `,"${marker}",`;
/** The texts that are written together should be about this long: large ones gain nothing, and hold memory. */
const textLength = 64 * 1024;

export function toJson(data: unknown): string {
  if (data === undefined) return '';
  let text: string | undefined;
  try {
    text = JSON.stringify(data);
  } catch (error) {
    throw queueErrors.PAYLOAD_NOT_JSON(
      { reason: error instanceof Error ? error.message : String(error) },
      { cause: error },
    );
  }
  if (text === undefined) throw queueErrors.PAYLOAD_NOT_JSON({ reason: `a ${typeof data} has no JSON form` });
  return text;
}

/** Some jobs' data, written together and not cut apart yet. */
export interface Written {
  size: number;
  /** How long the longest of them is at most, in UTF-16 units or bytes. */
  longest: number;
  cut(): (string | Uint8Array)[];
  /** All of them, as they stand in a bale; nothing when they are not JSON that was written together. */
  lines(): string | undefined;
}

/** Writes all of them, in order; throws when it comes to one that has no JSON form. Bytes stay as they are. */
export function* writeEach(data: readonly unknown[]): Generator<Written> {
  let count = maxJobsPerBale;
  for (let from = 0; from < data.length;) {
    const some = data.slice(from, from + count);
    const text = writeTogether(some);
    const part = text === undefined ? apart(some) : together(some.length, text);
    yield part;
    from += some.length;
    const length = text?.length ?? part.longest * some.length;
    count = Math.max(1, Math.min(maxJobsPerBale, Math.ceil((textLength * some.length) / (length + 1))));
  }
}

function together(size: number, text: string): Written {
  const check = (fits: boolean) => {
    if (!fits) throw new Error('the marker is not as unique as it should be');
  };
  const cut = () => {
    const texts = text.slice(1, -1).split(between);
    check(texts.length === size);
    return texts;
  };
  const lines = () => {
    const list = text.slice(1, -1).replaceAll(between, betweenJobs);
    check(list.length === text.length - 2 - (size - 1) * (between.length - betweenJobs.length));
    return list;
  };
  return { size, longest: text.length, cut, lines };
}

function apart(data: readonly unknown[]): Written {
  const payloads = data.map((item) => (item instanceof Uint8Array ? item : toJson(item)));
  const longest = payloads.reduce((most, { length }) => Math.max(most, length), 0);
  return { size: data.length, longest, cut: () => payloads, lines: () => undefined };
}

function writeTogether(data: readonly unknown[]): string | undefined {
  const list: unknown[] = [];
  for (const item of data) {
    if (!isWrittenAlike(item)) return undefined;
    list.push(item, marker);
  }
  list.pop();
  try {
    return JSON.stringify(list);
  } catch {
    return undefined; // One of them has no JSON form; writing them one by one tells why.
  }
}

/** Whether JSON.stringify writes it in a list as it writes it alone. */
function isWrittenAlike(data: unknown): boolean {
  if (typeof data === 'object') return data === null || !('toJSON' in data || data instanceof Uint8Array);
  return typeof data === 'string' || typeof data === 'number' || typeof data === 'boolean';
}
