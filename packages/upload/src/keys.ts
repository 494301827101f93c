// Every Redis key of uploads is built here and described in docs/redis-keys.md (a test compares the two).
//
// In the queue Redis a key is `<prefix>:{uploads:<partition>}:<name>`: all uploads of a partition share a cluster slot, so that one
// script can change an upload, the list of uploads that somebody should look at, and the budget together. Names that end with a
// colon are families: the id of an upload follows. The partition stands in the id itself, so that it never has to be looked up.
//
// In the chunks Redis there are only frames: `<prefix>:{frames:<upload>}:<attempt>:<number>`.
import { randomBytes } from 'node:crypto';

export const keyNames = {
  state: 'state:',
  chunks: 'chunks:',
  held: 'held:',
  parts: 'parts:',
  fill: 'fill:',
  window: 'window:',
  attempts: 'attempts:',
  progress: 'progress:',
  attention: 'attention',
  budget: 'budget',
  partitions: 'partitions',
} as const;

export type KeyName = keyof typeof keyNames;
export type UploadKeys = Readonly<Record<KeyName, string>>;

const idShape = /^([0-9a-z]{1,3})-[0-9a-f]{32}$/;
const alphabet = 36;

/** Not to be guessed: whoever knows an id and has no key still needs a token, but ids appear in logs. */
export function makeId(partition: number): string {
  return `${partition.toString(alphabet)}-${randomBytes(16).toString('hex')}`;
}

/**
 * The partition that an id names, or undefined for what is no id of ours. How many there are now does not matter: there may have
 * been more when the upload began.
 */
export function partitionOf(id: string): number | undefined {
  const [, text] = idShape.exec(id) ?? [];
  return text === undefined ? undefined : Number.parseInt(text, alphabet);
}

export function isUploadId(id: string): boolean {
  return partitionOf(id) !== undefined;
}

export function keysOf(prefix: string, partition: number, id: string): UploadKeys {
  const shared = `${prefix}:{uploads:${partition}}:`;
  const entries = Object.entries(keyNames).map(([name, suffix]) => [
    name,
    shared + suffix + (suffix.endsWith(':') ? id : ''),
  ]);
  return Object.fromEntries(entries) as UploadKeys;
}

export function frameKey(prefix: string, id: string, attempt: string, number: number): string {
  return `${prefix}:{frames:${id}}:${attempt}:${number}`;
}
