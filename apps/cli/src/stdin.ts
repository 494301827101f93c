// Ids and documents that come through a pipe: `sluice dead ls mail --json | jq -r .id | sluice dead replay mail -`.
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { cliErrors } from './errors.js';

const mostIds = 100_000;
const mostBytes = 16 * 1_048_576;

/** The ids that were given; `-` stands for those that come on stdin, one per line or as JSON objects with an id. */
export async function idsFrom(given: readonly string[], stdin: Readable): Promise<string[]> {
  const ids: string[] = [];
  for (const id of given) {
    if (id !== '-') ids.push(id);
    else for await (const line of createInterface({ input: stdin })) ids.push(...idIn(line));
    if (ids.length > mostIds) throw cliErrors.USAGE({ reason: `more than ${mostIds} ids at once` });
  }
  if (ids.length === 0) throw cliErrors.USAGE({ reason: 'no ids were given' });
  return [...new Set(ids)];
}

/** A text that was given, the contents of stdin for `-`. */
export async function textFrom(given: string, stdin: Readable): Promise<string> {
  if (given !== '-') return given;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array));
    size += chunks.at(-1)!.length;
    if (size > mostBytes) throw cliErrors.USAGE({ reason: 'more than 16 MiB on stdin' });
  }
  return Buffer.concat(chunks).toString();
}

function idIn(line: string): string[] {
  const text = line.trim();
  if (text === '') return [];
  if (!text.startsWith('{')) return [text];
  try {
    const { id } = JSON.parse(text) as { id?: unknown };
    if (typeof id === 'string') return [id];
  } catch {
    // Not JSON after all; the complaint below says what is wanted.
  }
  throw cliErrors.USAGE({ reason: `no id in this line of stdin: ${text.slice(0, 80)}` });
}
