/**
 * The test files of all workspaces. A test is taken from the sources and run from `dist/`, so that the compiled rest of a deleted test does
 * not count. Files named `*.calm.test.ts` hold many processes to their deadlines, files named `*.alone.test.ts` measure time: they are run
 * with fewer beside them.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readJson, root } from './prepare.mjs';

/** Every `test/*.test.ts` of every workspace, as its compiled file, if its path contains all words. */
export function testFiles(words) {
  const patterns = readJson(join(root, 'package.json')).workspaces;
  const folders = patterns.flatMap((pattern) => {
    if (!pattern.endsWith('/*')) return [pattern];
    const parent = pattern.slice(0, -2);
    return readdirSync(join(root, parent)).map((name) => join(parent, name));
  });
  const files = folders.flatMap((folder) => {
    const tests = join(root, folder, 'test');
    if (!existsSync(tests)) return [];
    const sources = readdirSync(tests).filter((name) => name.endsWith('.test.ts'));
    return sources.sort().map((name) => join(folder, 'dist', 'test', name.replace(/\.ts$/, '.js')));
  });
  return files.filter((file) => words.every((word) => file.includes(word)));
}

export function kindOf(file) {
  return /\.(calm|alone)\.test\.js$/.exec(file)?.[1] ?? 'usual';
}
