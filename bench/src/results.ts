/*
 * Where a result is kept: `results/<date>-<suite>.json`, with the machine it was measured on.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** Compiled code runs from `bench/dist/src/`. */
const RESULTS = new URL('../../results/', import.meta.url);

/** Returns the path of the file it wrote. */
export async function saveResult(suite: string, measuredAt: Date, content: object): Promise<string> {
  const file = new URL(`${measuredAt.toISOString().slice(0, 10)}-${suite}.json`, RESULTS);
  await mkdir(RESULTS, { recursive: true });
  await writeFile(file, `${JSON.stringify({ measuredAt, ...content }, null, 2)}\n`);
  return fileURLToPath(file);
}
